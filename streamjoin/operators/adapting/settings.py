"""What knobs have alike that say when units are added and taken away."""

from __future__ import annotations

from collections.abc import Collection

from pydantic import Field

from streamjoin.errors import InputError
from streamjoin.settings.setting import Settings

ROUNDS_MAX = 1000
SHARE = Field(gt=0, le=1, strict=True)


def check_adapts(settings: Settings, limits: Collection[str], units: str) -> None:
    """Of an operator that is not adaptive: refuse what is of one that is.

    Args:
        limits: the names of these knobs.
        units: what the operator calls its units.
    Raises:
        InputError: one is given.
    """
    if given := settings.model_fields_set & set(limits):
        raise InputError(
            f"{sorted(given)[0]} says when {units} are added and taken away; write adaptive: true beside it, or leave "
            "it out",
            field=f"operator.{sorted(given)[0]}",
        )


def check_range(least: int, most: int, units: str) -> None:
    """Refuse limits that no number of units lies between.

    Args:
        least, most: how many there are to be.
        units: how the settings end that say so.
    Raises:
        InputError: there is none.
    """
    if least > most:
        raise InputError(
            f"min_{units} {least} is above max_{units} {most}; write a lower min_{units} or a higher max_{units}",
            field=f"operator.min_{units}",
        )
