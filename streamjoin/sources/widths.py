"""Counts the columns and fields at the beginning of a text, before a library reads it that would make room for all.

A megabyte may name 160,000 columns, each of which takes ten kilobytes while it is read, and JSON lines may have as many
objects as one of them has fields. Of more columns than a stream may have no types are guessed: whoever checks them
counts them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamjoin.intake.dialect import Dialect
from streamjoin.plan.schema import COLUMNS_MAX, is_reserved
from streamjoin.sources.lines import first_record, header_in

CELLS_MAX = 1 << 22
"""Fields times objects of JSON lines: so many are guessed from."""
_FIELD_CELLS = 1_000
"""What a field takes itself, however few objects there are."""


def wide_names(path: Path, head: bytes, dialect: Dialect) -> Sequence[str]:
    """The names of a CSV text's columns where there are more than a stream may have; else none.

    Raises:
        RunError: there are, and they are no text.
    """
    if dialect.names is not None:
        return dialect.names if len(dialect.names) > COLUMNS_MAX else ()
    record = first_record(head, dialect)
    if record.count(dialect.delimiter.encode()) < COLUMNS_MAX:
        return ()
    names = header_in(path, record, dialect)
    return names if len(names) > COLUMNS_MAX else ()


def own_names(names: Iterable[str]) -> list[str]:
    """Those that a stream may have: the others are reserved, or there twice."""
    return [name for name, count in Counter(names).items() if count == 1 and not is_reserved(name)]


def as_texts(names: Iterable[str]) -> pa.Schema:
    """Columns whose types nobody guessed."""
    return pa.schema([pa.field(name, pa.string()) for name in names])


class Fields:
    """The fields of JSON lines, those inside of others, too.

    Args:
        lines: a megabyte at most, since Python reads it.
    """

    def __init__(self, lines: bytes) -> None:
        self._top = _Field()
        self._count = self._unknown = 0
        self._lines: list[tuple[bytes, int, bool]] = []
        """Each with its objects, and whether it has a field that no line before has; none of those nobody can read."""
        objects = 0
        for line in lines.split(b"\n"):
            before = self._count
            try:
                here = self._note(json.loads(line), self._top)
                self._lines.append((line, here, self._count > before))
            except (ValueError, RecursionError):
                here = line.count(b"{")
                self._unknown += line.count(b":")  # Arrow may read what Python does not, such as two objects
            objects += here
        self._whole = lines if self._fits(self._count + self._unknown, objects) else None

    def columns(self) -> list[str]:
        """Names for those that a stream would have: their own, and of fields inside of others just different ones."""
        found: list[str] = []
        for name, field in self._top.inside.items():
            if not is_reserved(name):
                found += [name] if field.is_column else []
                found += [f"{name[:20]}.{number}" for number in range(len(found), len(found) + field.leaves())]
        return found

    def lines(self) -> bytes:
        """The lines to guess from: all, or as many as fit, those with new fields first.

        Raises:
            ArrowInvalid: even one object of all fields would be too large.
        """
        if self._whole is not None:
            return self._whole
        if not self._fits(self._count, 0):
            raise pa.ArrowInvalid(f"objects have {self._count} fields, those inside of others among them")
        room = CELLS_MAX // max(self._count, 1)
        kept, objects = [], 0
        for line, here, has_new in self._lines:
            if objects + here <= (2 * room if has_new else room - _FIELD_CELLS):
                kept.append(line)
                objects += here
        return b"\n".join(kept)

    def _fits(self, fields: int, objects: int) -> bool:
        return fields * (objects + _FIELD_CELLS) <= CELLS_MAX

    def _note(self, value: Any, field: _Field) -> int:
        """Note what is in a value; how many objects are."""
        if isinstance(value, list):
            field.is_nested = True
            field.elements = field.elements or _Field()
            return sum(self._note(one, field.elements) for one in value)
        if not isinstance(value, dict):
            field.is_plain |= value is not None
            return 0
        field.is_nested = True
        objects = 1
        for name, one in value.items():
            if (inside := field.inside.get(name)) is None:
                inside = field.inside[name] = _Field()
                self._count += 1
            objects += self._note(one, inside)
        return objects


class _Field:
    """What stands at one place of objects."""

    __slots__ = ("elements", "inside", "is_nested", "is_plain")

    def __init__(self) -> None:
        self.inside: dict[str, _Field] = {}
        self.elements: _Field | None = None
        self.is_nested = self.is_plain = False

    @property
    def is_column(self) -> bool:
        """Whether it is no object and no list, as far as anybody knows."""
        return self.is_plain or not self.is_nested

    def leaves(self) -> int:
        """How many columns the fields inside are; elements of lists are none."""
        return sum(field.is_column + field.leaves() for field in self.inside.values())
