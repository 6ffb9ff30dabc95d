"""Counts by name, and how more of them are added."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping


def add_counts(counts: MutableMapping[str, int], more: Mapping[str, int]) -> None:
    """Add counts to those of the same names; a name that is new begins with what it brings."""
    for name, value in more.items():
        counts[name] = counts.get(name, 0) + value


def added(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sums of counts by name."""
    total: dict[str, int] = {}
    for part in parts:
        add_counts(total, part)
    return total
