"""Fields of a join file that the command line sets."""

from __future__ import annotations

from typing import Annotated

import cyclopts

from streamjoin.errors import InputError

Set = Annotated[
    list[str] | None, cyclopts.Parameter(name="--set", negative=(), help="FIELD=VALUE: set a field of the join file.")
]


def overrides(pairs: list[str] | None) -> dict[str, str]:
    """What FIELD=VALUE options say, by field.

    Raises:
        InputError: one has no equals sign.
    """
    found = {}
    for pair in pairs or []:
        field, equals, value = pair.partition("=")
        if not equals:
            raise InputError(f'--set takes FIELD=VALUE, such as operator.name=matrix, not "{pair}"')
        found[field.strip()] = value
    return found
