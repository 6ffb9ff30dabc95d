"""Which column a name means."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from streamjoin.alike import alike
from streamjoin.plan.expression import Column, Expression
from streamjoin.plan.schema import StreamSchema, is_reserved, left_out
from streamjoin.query.source import Range, Source

Named = TypeVar("Named")

_LISTED_MAX = 12
_PLAIN = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True, slots=True)
class Merged:
    """Columns with one name without a stream, as USING asks for.

    Args:
        columns: the streams', which are equal in all results.
        left, right: what is compared: the column of the streams on that side, or what theirs were merged to.
        value: what the name means: the first one's, in the type that they are compared in.
    """

    columns: tuple[Column, ...]
    left: Expression
    right: Expression
    value: Expression


@dataclass(frozen=True, slots=True)
class Scope:
    """What a query reads, under the names it gives it: two streams, or the results of a join.

    Args:
        hidden: the streams of which no column comes out: a semi or anti join gives none of theirs.
        is_behind: what is read now stands behind the joins, so a name alone means no column of `hidden`.
    """

    source: Source
    names: tuple[str, ...]
    streams: tuple[StreamSchema, ...]
    merged: tuple[Merged, ...] = ()
    hidden: frozenset[str] = frozenset()
    is_behind: bool = False

    @property
    def widest(self) -> tuple[Merged, ...]:
        """The merged columns without those that a later USING has merged with more."""
        return tuple(
            one
            for place, one in enumerate(self.merged)
            if not any(set(one.columns) < set(later.columns) for later in self.merged[place + 1 :])
        )

    def column(self, stream: tuple[str, Range] | None, name: tuple[str, Range]) -> Expression:
        """The column a name means, by case first, then without case where only one fits; for merged ones their value.

        Args:
            stream: the qualifier and its place, or None.
        Raises:
            QueryError: no column or two columns have that name.
        """
        written, where = name
        sides = (self.side(*stream),) if stream else tuple(range(len(self.streams)))
        found = [self._exact(side, written) for side in sides]
        fits = [column for column in found if column] or [
            column for side in sides for column in self._any_case(side, written)
        ]
        if stream is None and self.is_behind:
            fits = [column for column in fits if column.stream not in self.hidden] or fits
        if stream is None and (one := self.merged_of(fits)):
            return one.value
        if len(fits) == 1:
            return fits[0]
        if fits:
            both = " or ".join(str(column) for column in fits)
            raise self.source.wrong(f'"{written}" can be {both}; write which', where)
        known: dict[str, str] = {}
        for side in sides:
            for column in self.streams[side].own_columns.names:
                full = f"{self.names[side]}.{_as_written(column)}"
                known[column] = f"{known[column]} or {full}" if column in known else full
        wanted = f"{stream[0]}.{written}" if stream else written
        if fields := [full for column, full in known.items() if column.lower().startswith(f"{written.lower()}.")]:
            raise self.source.wrong(f'"{wanted}" is a struct; name a field of it, such as {fields[0]}', where)
        for side in sides:
            for column, kind in left_out(self.streams[side].columns).items():
                if column.lower() == written.lower():
                    if is_reserved(column):
                        reserved = f'column "{wanted}": names that begin with two underscores are reserved; rename it'
                        raise self.source.wrong(reserved, where)
                    raise self.source.wrong(f'column "{wanted}" is {kind[:60]}, which no stream can have', where)
        quoted = stream is None and self.source.text[where[0]] == '"'
        hint = f"; a text stands in single quotes: '{wanted}'" if quoted else ""
        raise self.source.wrong(f'there is no column "{wanted}"; {suggest(written, known)}{hint}', where)

    def column_at(self, parts: Sequence[tuple[str, Range]]) -> Expression:
        """The column that names with dots between them mean: `k`, `s.k`, and of a struct `s.a.b` or `a.b`.

        Where the first name is a stream's, the rest is meant to be a column of it.

        Raises:
            QueryError: no column or two columns are meant.
        """
        (first, at), *rest = parts
        if not rest:
            return self.column(None, (first, at))
        where = rest[-1][1]
        inside = ".".join(name for name, _ in rest)
        whole = f"{first}.{inside}"
        is_stream = any(own.lower() == first.lower() for own in self.names)
        of_stream = is_stream and self._knows(self.side(first, at), inside)
        if not of_stream and self.has(whole):
            return self.column(None, (whole, where))
        return self.column((first, at), (inside, where))

    def has(self, name: str) -> bool:
        """Whether a name alone is a column's."""
        return any(self._knows(side, name) for side in range(len(self.streams)))

    def _knows(self, side: int, name: str) -> bool:
        return any(own.lower() == name.lower() for own in self.streams[side].own_columns.names)

    def side(self, name: str, where: Range) -> int:
        """0 or 1: the stream the query calls `name`."""
        # Two names never differ by case only, so one look is enough.
        for side, own in enumerate(self.names):
            if own.lower() == name.lower():
                return side
        for side, stream in enumerate(self.streams):
            if stream.name.lower() == name.lower():
                raise self.source.wrong(f'here "{name}" is called "{self.names[side]}"; write that name', where)
        *first, last = (f'"{own}"' for own in self.names)
        names = f"{', '.join(first)} and {last}" if first else last
        raise self.source.wrong(f'there is no stream "{name}" in FROM; the query reads {names}', where)

    def all_of(self, side: int) -> list[Column]:
        """Every column of one side, in the stream's order."""
        columns = self.streams[side].own_columns
        return [Column(self.names[side], name, kind) for name, kind in zip(columns.names, columns.types, strict=True)]

    def merged_of(self, columns: Collection[Column]) -> Merged | None:
        """The merged columns that all of some are; None where they are not, or where there are none."""
        fits = (one for one in reversed(self.merged) if columns and set(columns) <= set(one.columns))
        return next(fits, None)

    def column_of(self, side: int, name: str) -> Column | None:
        """The column of one side that a name means; None where there is none, or more than one in other cases."""
        if exact := self._exact(side, name):
            return exact
        fits = self._any_case(side, name)
        return fits[0] if len(fits) == 1 else None

    def _exact(self, side: int, name: str) -> Column | None:
        columns = self.streams[side].own_columns
        return Column(self.names[side], name, columns.field(name).type) if name in columns.names else None

    def _any_case(self, side: int, name: str) -> list[Column]:
        return [column for column in self.all_of(side) if column.name.lower() == name.lower()]


def _as_written(column: str) -> str:
    """A column's name as a query writes it: in double quotes if it would be read as something else."""
    return column if _PLAIN.fullmatch(column) else '"' + column.replace('"', '""') + '"'


def look_up(name: str, table: Mapping[str, Named]) -> Named | None:
    """What `name` means: by case first, then without case where only one entry fits."""
    if name in table:
        return table[name]
    fits = [key for key in table if key.lower() == name.lower()]
    return table[fits[0]] if len(fits) == 1 else None


def suggest(wanted: str, known: Mapping[str, str]) -> str:
    """What to write instead of `wanted`.

    Args:
        known: what people may have meant -> how to write it.
    Returns:
        The end of a sentence: the names that look alike, or else those there are.
    """
    if near := alike(wanted, known, most=3, cutoff=0.6):
        return f"did you mean {' or '.join(known[name] for name in near)}?"
    every = list(known.values())
    return f"there are {', '.join(every[:_LISTED_MAX])}{', ...' if len(every) > _LISTED_MAX else ''}"
