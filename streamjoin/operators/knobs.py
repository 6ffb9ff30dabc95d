"""Knobs as a join file gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamjoin.errors import InputError

Knobs = Mapping[str, Any]

UNITS_MAX = 4096
"""Of any kind of unit: a join has at most so many."""


def whole(knobs: Knobs, name: str, default: int, least: int = 1, most: int = UNITS_MAX) -> int:
    """A knob that is a whole number.

    Raises:
        InputError: it is something else, or out of bounds.
    """
    value = knobs.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InputError(f"{value!r} is not a whole number from {least} to {most}", field=f"operator.{name}")
    return value
