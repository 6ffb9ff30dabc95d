"""The join file that a command reads, with the fields that `--set` gives, and on which line of it a mistake is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import cyclopts

from streamjoin.errors import InputError, QueryError
from streamjoin.settings.text import place_of
from streamjoin.spec.joinfile import JoinFile, load

Set = Annotated[
    list[str] | None, cyclopts.Parameter(name="--set", negative=(), help="FIELD=VALUE: set a field of the join file.")
]
_read: list[tuple[Path, frozenset[str]]] = []
"""The join file of this command, and the fields that `--set` gave; empty until it is read."""


def load_join(file: Path, pairs: list[str] | None) -> JoinFile:
    """Read a join file with what FIELD=VALUE options say.

    Raises:
        InputError: an option has no equals sign, or the file is wrong.
    """
    found = {}
    for pair in pairs or []:
        field, equals, value = pair.partition("=")
        if not equals:
            raise InputError(f'--set takes FIELD=VALUE, such as operator.name=matrix, not "{pair}"')
        found[field.strip()] = value
    _read[:] = [(file, frozenset(found))]
    return load(file, found)


def with_place(wrong: InputError) -> str:
    """What is wrong, with the line and column of the field in the join file, where the file has that field."""
    said = str(wrong)
    if not _read or not wrong.field or isinstance(wrong, QueryError):
        return said
    ((file, given),) = _read
    if any(wrong.field == field or wrong.field.startswith(f"{field}.") for field in given):
        return said
    try:
        place = place_of(file.read_text(encoding="utf-8-sig"), wrong.field)
    except (OSError, ValueError):
        return said
    return said if place is None else f"{said} ({file}, line {place[0]}, column {place[1]})"
