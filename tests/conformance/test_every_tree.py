"""Every tree of five streams, and made-up trees of six to nine, give what a nested loop gives."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Cascade
from streamjoin.query import plan_query
from streamjoin.settings.trees import NamedTree

from .loops import joined, loop_of
from .test_three_streams import BY, COLUMNS, DISORDER_US, Row, Shape, equal, rows, trees

NAMES = "abcdefghi"
STREAMS = {name: StreamSchema(name, COLUMNS, "ts", "us", DISORDER_US) for name in NAMES}
OF_FIVE = list(trees(range(5)))
CHUNK = 15
SEEDS, SEEDS_AT_ONCE = 200, 10
ROWS = 5
"""Of each of six streams or more."""
BATCHES = 3


@dataclass(frozen=True, slots=True)
class Conjunct:
    """A condition over some streams, as text and as a function of a row of each."""

    streams: tuple[int, ...]
    text: str
    holds: Callable[..., bool]


def equality(one: int, other: int) -> Conjunct:
    return Conjunct((one, other), f"{NAMES[one]}.k = {NAMES[other]}.k", lambda r, s: equal(r["k"], s["k"]))


def less(one: int, other: int) -> Conjunct:
    return Conjunct((one, other), f"{NAMES[one]}.x < {NAMES[other]}.x", lambda r, s: r["x"] < s["x"])


def over_three(one: int, two: int, three: int) -> Conjunct:
    text = f"{NAMES[one]}.x + {NAMES[two]}.x > {NAMES[three]}.x"
    return Conjunct((one, two, three), text, lambda r, s, t: r["x"] + s["x"] > t["x"])


def conjuncts(chosen: random.Random, count: int, *, keyed: bool) -> list[Conjunct]:
    """Conditions that tie all streams to each other; `keyed`: each two have an equality, as hash routing needs."""
    if keyed:
        return [equality(one, other) for one, other in combinations(range(count), 2)]
    tied = []
    for stream in range(1, count):
        other = chosen.randrange(stream)
        tied.append(equality(other, stream) if chosen.random() < 0.7 else less(other, stream))
    return [*tied, over_three(*chosen.sample(range(count), 3))]


def nested_loop(
    streams: Sequence[Sequence[Row]], conditions: Sequence[Conjunct], reaches: Sequence[int]
) -> Counter[Any]:
    """Row by row; a condition is asked as soon as its last stream is there, for what fails then fails in the end."""
    combined: list[tuple[Row, ...]] = [()]
    for number, stream in enumerate(streams):
        asked = [one for one in conditions if max(one.streams) == number]
        combined = [
            parts
            for before in combined
            for row in stream
            if is_near(parts := (*before, row), reaches)
            and all(one.holds(*(parts[place] for place in one.streams)) for one in asked)
        ]
    return Counter(tuple(part["id"] for part in parts) for parts in combined)


def is_near(parts: Sequence[Row], reaches: Sequence[int]) -> bool:
    newest = max(part["ts"] for part in parts)
    return all(newest <= part["ts"] + reach for part, reach in zip(parts, reaches, strict=False))


def named(tree: Shape) -> NamedTree:
    if isinstance(tree, int):
        return NAMES[tree]
    left, right = map(named, tree)
    return left, right


def made_up(chosen: random.Random, streams: list[int]) -> Shape:
    """A tree whose leaves are in any order and whose joins are anywhere."""
    if len(streams) == 1:
        return streams[0]
    mixed = chosen.sample(streams, len(streams))
    left = chosen.randrange(1, len(mixed))
    return made_up(chosen, mixed[:left]), made_up(chosen, mixed[left:])


def check(seed: int, shape: Shape, count: int, rows_each: int, folder: Path) -> int:
    """Compare one tree with the nested loop; how many rows there are."""
    chosen = random.Random(seed)
    operator = BY[seed % len(BY)]
    conditions = conjuncts(chosen, count, keyed=operator == "biclique by hash")
    streams = [rows(100 * seed + place, rows_each, keys=2 if count == 5 else 1) for place in range(count)]
    span = 6 * rows_each
    each = chosen.random() < 0.5
    least = span // 2 if count == 5 else span  # of many streams few rows would be near each other
    reaches = [chosen.randrange(least, 3 * span) for _ in range(count)] if each else [span] * count
    within = ", ".join(f"{reach} MICROSECONDS FOR {NAMES[place]}" for place, reach in enumerate(reaches))
    plan = plan_query(
        f"SELECT ONLINE {', '.join(f'{name}.id AS {name}' for name in NAMES[:count])} FROM {', '.join(NAMES[:count])} "
        f"WHERE {' AND '.join(one.text for one in conditions)} WITHIN {within if each else f'{span} MICROSECONDS'}",
        STREAMS,
        tree=named(shape),
    )
    assert isinstance(plan, Cascade) and len(plan.stages) == count - 1
    wanted = nested_loop([stream.to_pylist() for stream in streams], conditions, reaches)
    found = joined(loop_of(plan, operator, folder), streams, BATCHES, 1, repeated=seed % 3 == 1)
    assert found == wanted, (seed, plan.shape, operator)
    return wanted.total()


@pytest.mark.parametrize(
    "first",
    [pytest.param(first, marks=[pytest.mark.soak] if first else []) for first in range(0, len(OF_FIVE), CHUNK)],
)
def test_every_tree_of_five_streams_gives_the_same(first: int, tmp_path: Path) -> None:
    assert len(OF_FIVE) == 105
    of_each = [check(number, OF_FIVE[number], 5, 12, tmp_path / str(number)) for number in range(first, first + CHUNK)]
    assert sum(map(bool, of_each)) > CHUNK // 2


@pytest.mark.parametrize(
    "first",
    [pytest.param(first, marks=[pytest.mark.soak] if first else []) for first in range(0, SEEDS, SEEDS_AT_ONCE)],
)
def test_trees_of_six_to_nine_streams_give_the_same(first: int, tmp_path: Path) -> None:
    found = []
    for seed in range(first, first + SEEDS_AT_ONCE):
        count = 6 + seed % 4
        shape = made_up(random.Random(seed), list(range(count)))
        found.append(check(seed, shape, count, ROWS, tmp_path / str(seed)))
    assert sum(map(bool, found)) > SEEDS_AT_ONCE // 3
