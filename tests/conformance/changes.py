"""What groups that change are, in plain Python that shares nothing with the code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .groups import Pair

Timed = tuple[int, Pair]
Table = dict[Any, list[Any]]


@dataclass(frozen=True)
class Asked:
    """What a query asks of groups that change.

    Args:
        every: the span of EMIT EVERY.
        key: of the parts of a row; a tuple where there are several.
        values: of the rows of a group, the columns behind the key.
        end: up to when a row counts; None where rows count for ever.
        having: of the rows of a group, whether it is given.
    """

    every: int
    key: Callable[[Pair], Any]
    values: Callable[[Sequence[Pair]], list[Any]]
    end: Callable[[Pair], int] | None = None
    having: Callable[[Sequence[Pair]], bool] = lambda pairs: True

    def at(self, found: Sequence[Timed], moment: int) -> Table:
        """Every group as of a moment, from all rows that there ever are."""
        groups: dict[Any, list[Pair]] = {}
        for time, parts in found:
            if time <= moment and (self.end is None or moment <= self.end(parts)):
                groups.setdefault(self.key(parts), []).append(parts)
        return {key: self.values(pairs) for key, pairs in groups.items() if self.having(pairs)}


def moment_of(row: dict[str, Any]) -> int:
    """As of when a row is, in us."""
    return round(row["emit_time"].timestamp() * 1e6)


def replayed(table: Table, rows: Iterable[dict[str, Any]], keys: int, same: Callable[[Any, Any], bool]) -> int | None:
    """Take a batch's rows into what was there; the moment that they are as of, None without rows."""
    moments, seen = set(), set()
    for row in rows:
        *values, operation, _ = row.values()
        key = values[0] if keys == 1 else tuple(values[:keys])
        assert key not in seen, f"{key} was given twice in a batch"
        seen.add(key)
        moments.add(moment_of(row))
        if operation == "delete":
            assert key in table, f"{key} was not there and ends"
            assert values[keys:] == [None] * len(values[keys:])
            del table[key]
        else:
            assert operation == "upsert"
            assert not (key in table and alike(table[key], values[keys:], same)), f"{key} was given and had not changed"
            table[key] = values[keys:]
    assert len(moments) <= 1
    return moments.pop() if moments else None


def alike(one: Sequence[Any], other: Sequence[Any], same: Callable[[Any, Any], bool]) -> bool:
    """Whether the values of a group are the same."""
    return all(same(mine, theirs) for mine, theirs in zip(one, other, strict=True))


def check_table(table: Table, wanted: Table, same: Callable[[Any, Any], bool]) -> None:
    """Raise where a group is missing, too many, or has another value."""
    assert table.keys() == wanted.keys()
    for key, values in wanted.items():
        assert alike(table[key], values, same), (key, table[key], values)
