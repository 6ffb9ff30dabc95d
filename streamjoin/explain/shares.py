"""Which share of the pairs of a sample fulfils the conditions of a join of three streams and more.

Conditions over the same two streams are looked at together, on pairs of sampled rows that are in reach of each other;
where there are none, as samples are of different times, on any pairs. Equal keys are all counted, so that a key which
one pair in a million shares is seen. Everything else is evaluated on up to `PAIRS` of the pairs that are left, at
equal distances, so that the same samples always tell the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.errors import RunError
from streamjoin.explain.sampling import Look
from streamjoin.index.layout import equality_cells
from streamjoin.intake.event_time import event_times
from streamjoin.operators.costs.several import Share
from streamjoin.plan.evaluation import evaluate, filter_mask
from streamjoin.plan.expression import Call, Expression, conjunction, streams_of, walk
from streamjoin.plan.functions.table import FUNCTIONS
from streamjoin.plan.predicate import JoinPredicate, analyse
from streamjoin.plan.stages import Plan
from streamjoin.plan.window import TimeWindow, between

PAIRS = 20_000
"""Combinations that conditions are evaluated on."""
REGISTERED_PAIRS = 1_000
"""The same where a predicate was registered, which may be slow."""
_PLACES_MAX = 1 << 62

Predicates = Mapping[str, Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a stream that its own conditions let through, and their event times."""

    name: str
    rows: pa.RecordBatch
    ts_us: np.ndarray

    def columns(self, at: np.ndarray | None = None) -> dict[tuple[str, str], pa.Array]:
        rows = self.rows if at is None else self.rows.take(pa.array(at))
        return {(self.name, name): rows.column(name) for name in rows.schema.names}


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Pairs of rows: of each row of one side, a run of the other's.

    Args:
        order: the other side's rows, sorted.
        begins, counts: of each row of the one side, where in `order` its partners begin, and how many there are.
    """

    order: np.ndarray
    begins: np.ndarray
    counts: np.ndarray

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def some(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Up to so many of the pairs, at equal distances: rows of either side."""
        total = self.total
        chosen = np.arange(min(count, total), dtype=np.float64) + 0.5
        places = (chosen * (total / max(chosen.size, 1))).astype(np.int64)
        ends = np.cumsum(self.counts)
        rows = np.searchsorted(ends, places, side="right")
        return rows, self.order[self.begins[rows] + places - (ends[rows] - self.counts[rows])]


def shares(plan: Plan, look: Look, conditions: Sequence[Expression]) -> tuple[Share, ...]:
    """What the sampled rows tell of each set of conditions over the same streams, in the order of the query.

    Args:
        conditions: all that a result must fulfil.
    """
    sampled = [_selected(plan, look, number, conditions) for number in range(len(plan.streams))]
    by_streams: dict[frozenset[int], list[Expression]] = {}
    for condition in conditions:
        streams = frozenset(plan.names.index(name) for name in streams_of(condition))
        if len(streams) > 1:
            by_streams.setdefault(streams, []).append(condition)
    return tuple(
        _of_two(plan, sampled, streams, parts) if len(streams) == 2 else _of_more(plan, sampled, streams, parts)
        for streams, parts in by_streams.items()
    )


def _selected(plan: Plan, look: Look, number: int, conditions: Sequence[Expression]) -> _Rows:
    rows, name = look.rows[number], plan.names[number]
    assert rows is not None
    ts_us, missing, wrong = event_times(rows, plan.streams[number], 0)
    found = _Rows(name, rows, ts_us)
    keep = ~(missing | wrong)
    alone = [condition for condition in conditions if streams_of(condition) == {name}]
    if alone:
        keep &= filter_mask(conjunction(alone), found.columns(), rows.num_rows, plan.predicates)
    return _Rows(name, rows.filter(pa.array(keep)), ts_us[keep])


def _of_two(plan: Plan, sampled: Sequence[_Rows], streams: frozenset[int], parts: list[Expression]) -> Share:
    first, second = sorted(streams)
    one, other = sampled[first], sampled[second]
    predicate = analyse(conjunction(parts), (one.name, other.name))
    window = between(plan.window, first, second)
    every = _pairs(one.ts_us, other.ts_us, None, window)
    if not every.total:
        window, every = None, _pairs(one.ts_us, other.ts_us, None, None)
    if not every.total:
        return Share(streams, 1.0)
    there, equal = every, 1.0
    if predicate.equalities:
        there = _pairs(one.ts_us, other.ts_us, _cells(predicate, one, other), window)
        equal = max(there.total, 0.5) / every.total
    left = [source for found in predicate.ranges for source in found.sources]
    if predicate.equalities:
        rest = _share(plan, (one, other), there, [*left, *predicate.residual]) if there.total else 1.0
        only = predicate.equalities[0] if len(parts) == 1 else None
        keys = None if only is None else (str(only.keys[0]), str(only.keys[1]))
        return Share(streams, equal * rest, equal, True, keys)
    looked_at = _share(plan, (one, other), there, left)
    return Share(streams, min(_share(plan, (one, other), there, [*left, *predicate.residual]), looked_at), looked_at)


def _cells(predicate: JoinPredicate, one: _Rows, other: _Rows) -> tuple[np.ndarray, np.ndarray]:
    """Numbers that are equal where all keys are, for the rows of either side; below 0 where one is NULL."""
    found, there = [], []
    for side, rows in enumerate((one, other)):
        keys = [evaluate(equality.keys[side], rows.columns(), rows.rows.num_rows) for equality in predicate.equalities]
        valid = np.ones(rows.rows.num_rows, bool)
        for key in keys:
            valid &= key.is_valid().to_numpy(zero_copy_only=False)
        found.append(equality_cells([key.filter(pa.array(valid)) for key in keys]))
        there.append(valid)
    _, numbers = np.unique(np.concatenate(found), return_inverse=True)
    sides = np.split(numbers.astype(np.int64), [found[0].size])
    cells = [np.full(valid.size, -1 - side, np.int64) for side, valid in enumerate(there)]
    for side in range(2):
        cells[side][there[side]] = sides[side]
    return cells[0], cells[1]


def _pairs(
    one_us: np.ndarray, other_us: np.ndarray, cells: tuple[np.ndarray, np.ndarray] | None, window: TimeWindow | None
) -> _Pairs:
    """The pairs with equal cells that are in reach of each other; None for all cells, or all times."""
    if not one_us.size or not other_us.size:
        none = np.zeros(one_us.size, np.int64)
        return _Pairs(np.zeros(0, np.int64), none, none)
    mine, theirs = cells or (np.zeros(one_us.size, np.int64), np.zeros(other_us.size, np.int64))
    first_us = min(int(one_us.min()), int(other_us.min()))
    span = max(int(one_us.max()), int(other_us.max())) - first_us + 1
    before, after = (window.before_us, window.after_us) if window else (span, span)
    # A place says cell and time in one number; where that is too large, times are coarser.
    coarse = -(-(int(max(mine.max(), theirs.max())) + 4) * (span + 2) // _PLACES_MAX)
    width = span // coarse + 2
    theirs_at = (theirs + 2) * width + (other_us - first_us) // coarse
    order = np.argsort(theirs_at, kind="stable")
    lows, highs = (
        (mine + 2) * width + np.clip(one_us - first_us + by_us, 0, span) // coarse
        for by_us in (-min(before, span), min(after, span))
    )
    found = theirs_at[order]
    begins = np.searchsorted(found, lows, side="left")
    return _Pairs(order, begins, np.searchsorted(found, highs, side="right") - begins)


def _share(plan: Plan, sides: tuple[_Rows, _Rows], pairs: _Pairs, parts: Sequence[Expression]) -> float:
    """The share of pairs that fulfil conditions; 1 without any."""
    if not parts:
        return 1.0
    at = pairs.some(_pairs_for(parts))
    return _fulfilled(plan, [side.columns(rows) for side, rows in zip(sides, at, strict=True)], at[0].size, parts)


def _of_more(plan: Plan, sampled: Sequence[_Rows], streams: frozenset[int], parts: list[Expression]) -> Share:
    """Of conditions over three streams and more: rows of each, in any order and whatever their times."""
    chosen = np.random.default_rng(1)
    count = _pairs_for(parts)
    if not all(sampled[stream].rows.num_rows for stream in streams):
        return Share(streams, 1.0)
    taken = [
        sampled[stream].columns(chosen.integers(0, sampled[stream].rows.num_rows, count)) for stream in sorted(streams)
    ]
    return Share(streams, _fulfilled(plan, taken, count, parts))


def _fulfilled(
    plan: Plan, columns: Sequence[dict[tuple[str, str], pa.Array]], count: int, parts: Sequence[Expression]
) -> float:
    """The share of combinations that fulfil all conditions, half of one where none does."""
    together = {pair: values for each in columns for pair, values in each.items()}
    try:
        mask = filter_mask(conjunction(parts), together, count, plan.predicates)
    except RunError:  # a registered predicate fails on some row; the job says so when it meets one
        return 1.0
    return max(int(np.count_nonzero(mask)), 0.5) / max(mask.size, 1)


def _pairs_for(parts: Sequence[Expression]) -> int:
    calls = [node for part in parts for node in walk(part) if isinstance(node, Call)]
    return REGISTERED_PAIRS if any(call.function not in FUNCTIONS for call in calls) else PAIRS
