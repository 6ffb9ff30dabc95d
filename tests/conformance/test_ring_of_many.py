"""Rings of six to eight streams against the nested loop: orders, reaches and lengths at random, disorder and ties."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from .test_ring import NAMES, Condition, Run, below, cut, equal, nested_loop, rows_of, text_of, together

ROWS = 6
"""Of each stream."""


def a_query(chosen: random.Random, count: int) -> tuple[list[Condition], list[int]]:
    """Conditions that lead to every stream, one of them over three, and a reach for each."""
    names = NAMES[:count]
    tied = [
        (equal if chosen.random() < 0.7 else below)(chosen.choice(names[:place]), names[place])
        for place in range(1, count)
    ]
    return [*tied, together(*chosen.sample(names, 3))], [chosen.randrange(12, 60) for _ in names]


def check(seed: int, folder: Path) -> int:
    """A query with an order for each origin, and nodes that keep some streams alone; how many results it has."""
    chosen = random.Random(seed)
    count = 6 + seed % 3
    names = NAMES[:count]
    conditions, reaches = a_query(chosen, count)
    streams = [rows_of(seed * 10 + place, ROWS, keys=1) for place in range(count)]
    nodes = chosen.randrange(2, 5)
    knobs: dict[str, Any] = {
        "nodes": nodes,
        "orders": {name: chosen.sample(names.replace(name, ""), count - 1) for name in names},
        "lengths": {name: chosen.randrange(1, nodes + 1) for name in names},
    }
    run = Run(text_of(count, conditions, reaches), folder, chosen.randrange(1, 4), **knobs)
    for pieces in cut(streams, 3):
        run.maybe_twice(pieces, chosen)
    wanted = nested_loop(streams, conditions, reaches)
    assert run.found == wanted, (seed, knobs)
    return wanted.total()


@pytest.mark.parametrize("seed", range(3))
def test_rings_of_six_to_eight_streams_give_what_a_nested_loop_gives(seed: int, tmp_path: Path) -> None:
    assert check(seed, tmp_path) > 0


@pytest.mark.soak
@pytest.mark.parametrize("first", range(100, 400, 30))
def test_many_rings_of_six_to_eight_streams_give_what_a_nested_loop_gives(first: int, tmp_path: Path) -> None:
    assert sum(check(seed, tmp_path / str(seed)) for seed in range(first, first + 30)) > 1_000
