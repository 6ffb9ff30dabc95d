"""Approximate counts and quantiles: how near they come, and that no order or cut changes a bit of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.operators.aggregate import sketches
from streamjoin.operators.aggregate.grouping import group
from streamjoin.operators.aggregate.parts import made, merged
from streamjoin.operators.aggregate.sketches import distinct_counts, quantiles
from streamjoin.plan.aggregate import Kind, Part
from streamjoin.plan.expression import Column
from streamjoin.plan.types import FLOAT64

REGISTERS, BUCKETS = (Part(kind, (Column("a", "x", FLOAT64),)) for kind in (Kind.REGISTERS, Kind.BUCKETS))
COUNT_BOUND, COUNT_WITHIN = 0.05, 0.99
QUANTILE_BOUND = 1 / 128


def sketch(part: Part, values: np.ndarray, groups: np.ndarray | None = None) -> list[pa.Array]:
    found = np.zeros(values.size, np.int64) if groups is None else groups
    return made(part, [pa.array(values)], group(found, []))


def together(part: Part, some: Sequence[list[pa.Array]]) -> list[pa.Array]:
    """Views of one group each, added up."""
    columns = [pa.concat_arrays(list(parts)) for parts in zip(*some, strict=True)]
    return merged(part, columns, group(np.zeros(len(some), np.int64), []))


def count_error(seed: int) -> float:
    """How far a count is off, as a part of it: of 1 to 1,000,000 values, each of some of them twice."""
    chosen = np.random.default_rng(seed)
    count = int(10 ** chosen.uniform(0, 6))
    # Steps, not draws: every value once, near ones and far ones.
    values = np.arange(count) * float(chosen.integers(1, 1_000)) + float(chosen.integers(-(10**6), 10**6))
    halves = [values[: count // 2 + 1], values[count // 3 :]]
    found = together(REGISTERS, [sketch(REGISTERS, half) for half in halves if half.size])
    return float(abs(distinct_counts(found[0])[0] - count) / count)


def quantile_error(seed: int) -> float:
    """The largest of some quantiles' errors, as a part of the true value."""
    chosen = np.random.default_rng(seed)
    size = int(10 ** chosen.uniform(0, 4))
    drawn = [
        chosen.normal(0, 1, size),
        chosen.lognormal(0, 5, size),
        chosen.pareto(1, size),
        -chosen.exponential(9, size),
    ]
    values = drawn[seed % 4] * 10.0 ** chosen.integers(-200, 200)
    columns = sketch(BUCKETS, values)
    errors = []
    for wanted in (0.0, 0.01, 0.5, 0.95, 0.999, 1.0):
        (found,) = quantiles(columns[0], columns[1], wanted).to_pylist()
        (exact,) = [np.sort(values)[int(np.floor(wanted * (size - 1)))]]
        errors.append(abs(found - exact) / abs(exact))
    return float(max(errors))


def test_counts_and_quantiles_are_inside_their_bounds() -> None:
    assert sum(count_error(seed) <= COUNT_BOUND for seed in range(20)) >= 19
    assert max(quantile_error(seed) for seed in range(20)) <= QUANTILE_BOUND


@pytest.mark.soak
def test_a_thousand_seeds_are_inside_their_bounds() -> None:
    within = np.mean([count_error(seed) <= COUNT_BOUND for seed in range(1_000)])
    print(f"counts: {within:.1%} of 1,000 seeds inside {COUNT_BOUND:.0%}")
    assert within >= COUNT_WITHIN
    worst = max(quantile_error(seed) for seed in range(1_000))
    print(f"quantiles: at most {worst:.3%} off")
    assert worst <= QUANTILE_BOUND


def test_few_values_are_counted_as_they_are() -> None:
    counted = [distinct_counts(sketch(REGISTERS, np.arange(float(count)))[0])[0] for count in range(1, 60)]
    assert np.rint(counted).tolist() == [*range(1, 60)]


@pytest.mark.parametrize("part", [REGISTERS, BUCKETS], ids=["registers", "buckets"])
def test_no_cut_and_no_order_changes_a_bit(part: Part) -> None:
    chosen = np.random.default_rng(5)
    values = chosen.normal(0, 1e3, 20_000)
    whole = sketch(part, values)
    for pieces in (2, 7, 40):
        mixed = [chosen.permutation(some) for some in np.array_split(chosen.permutation(values), pieces)]
        assert together(part, [sketch(part, some) for some in mixed]) == whole
    assert sketch(part, values[::-1].copy()) == whole


def test_groups_and_nulls_are_kept_apart() -> None:
    values = pa.array([1.0, 2.0, None, 2.0, None, 3.0])
    rows = group(np.array([0, 0, 0, 1, 2, 1]), [])
    counted = distinct_counts(made(REGISTERS, [values], rows)[0])
    assert np.rint(counted).tolist() == [2, 2, 0]
    columns = made(BUCKETS, [values], rows)
    assert [round(value) if value else value for value in quantiles(columns[0], columns[1], 1.0).to_pylist()] == [
        2,
        3,
        None,
    ]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("_RANK_MAX", 54), ("_sigma", lambda x: np.zeros_like(x))],
    ids=["ranks one too high", "empty registers forgotten"],
)
def test_a_worse_sketch_is_caught(name: str, wrong: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketches, name, wrong)
    assert sum(count_error(seed) <= COUNT_BOUND for seed in range(20)) < 19
