"""Why a query gives no row, as far as samples of its streams tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import combinations

import numpy as np
import pyarrow as pa

from streamjoin.explain.overlap import Sample
from streamjoin.explain.relations import SAMPLE_VERSION
from streamjoin.index.layout import equality_cells
from streamjoin.intake.event_time import event_times
from streamjoin.intake.selection import select
from streamjoin.plan.evaluation import evaluate
from streamjoin.plan.expression import Expression
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import ARRIVAL, StreamSchema
from streamjoin.plan.stages import Input, Plan, Table, entry_of, joins_nothing
from streamjoin.plan.window import R, S, TimeWindow, between
from streamjoin.spec.prepare import Bound

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NEVER_US = np.iinfo(np.int64).max
_ROUND_US = ((10_000_000, 1_000_000), (10_000, 1_000))
"""Spans from the first on are told in whole multiples of the second."""


def reason_for(bound: Bound, sampled: tuple[Sample, ...], now_us: int, cut_off: bool) -> str:
    """Why a query gives no row, in words; `cut_off` where time or room ran out before all rows were joined."""
    chosen: dict[Input, pa.RecordBatch] = {}
    streams = len(bound.plan.streams)
    for number, sample in enumerate(sampled):
        read = number if number < streams else Table(number - streams)
        stage, side = entry_of(bound.plan, read)
        (query,) = stage.plan.queries
        name, rows = query.names[side], query.streams[side].versioned_rows(sample.rows, SAMPLE_VERSION)
        if not rows.num_rows:
            bad = sample.bad
            return f"{name} has no {'row that can be read' if bad else 'rows to look at yet'}"
        picked = select(query, side, rows)
        if not picked.selected.any():
            return f"no row of {name} that was looked at meets {query.predicate.selections[side]}"
        if not picked.joinable.any():
            return f"the key is NULL in every row of {name} that was looked at"
        rows = rows.filter(pa.array(picked.joinable))
        _, has_time = times_of(rows, query.streams[side], now_us)
        if not has_time.any():
            return f"no row of {name} that was looked at has an event time"
        chosen[read] = rows.filter(pa.array(has_time))
    plan = bound.plan
    if joins_nothing(plan):
        return "time ran out before a window ended" if cut_off else "no group of the rows that were looked at is given"
    of_streams = [chosen[number] for number in range(streams)]
    words = _never_together(plan, of_streams, now_us) if plan.pair is None else None
    # The first stage joins two inputs; what it may find is all that later ones can join.
    first = plan.stages[0]
    pair = [chosen[read] for read in first.inputs]
    joined = first.plan.queries[0]
    assert isinstance(joined, JoinPlan)
    words = words or _too_far_apart(joined, pair, now_us)
    if words is not None:
        return words
    together = "pair" if len(chosen) == 2 else "combination"
    if cut_off:
        return f"time ran out before a {together} was found"
    if bound.file.results.where is not None:
        return f"no {together} of the rows that were looked at meets the condition and results.where"
    return f"no {together} of the rows that were looked at meets the condition"


def _never_together(plan: Plan, rows: list[pa.RecordBatch], now_us: int) -> str | None:
    """Two of three streams and more of which no two rows are near enough in time."""
    times_us = [times_of(some, schema, now_us)[0] for some, schema in zip(rows, plan.streams, strict=True)]
    for one, other in combinations(range(len(rows)), 2):
        window = between(plan.window, one, other)
        if window is not None and _are_apart(times_us[one], times_us[other], window):
            named = [(plan.names[number], plan.streams[number]) for number in (one, other)]
            return _apart_words(named, (times_us[one], times_us[other]), window)
    return None


def _too_far_apart(query: JoinPlan, rows: list[pa.RecordBatch], now_us: int) -> str | None:
    """In time or in the values of a key; None where rows are near enough in both."""
    window = query.window if isinstance(query.window, TimeWindow) else None
    r_us, s_us = (times_of(rows[side], query.streams[side], now_us)[0] for side in (R, S))
    if window is not None and _are_apart(r_us, s_us, window):
        return _apart_words(list(zip(query.names, query.streams, strict=True)), (r_us, s_us), window)
    for equality in query.predicate.equalities:
        r_keys, s_keys = (_cells([equality.keys[side]], query.names[side], rows[side]) for side in (R, S))
        if not np.isin(r_keys, s_keys).any():
            return (
                f"no value of {equality.keys[R]} is among those of {equality.keys[S]} in the rows that were looked at"
            )
    if window is None or ARRIVAL in (query.streams[R].time, query.streams[S].time):
        return None
    r_keys, s_keys = (
        _cells([equality.keys[side] for equality in query.predicate.equalities], query.names[side], rows[side])
        for side in (R, S)
    )
    wider = wider_window((r_keys, r_us), (s_keys, s_us), window)
    if wider is None or wider == window:
        return None
    alike = "rows with equal keys" if query.predicate.equalities else "rows"
    return f"no two {alike} that were looked at are {window}; {wider} there are some"


def _are_apart(r_us: np.ndarray, s_us: np.ndarray, window: TimeWindow) -> bool:
    return bool(r_us.max() + window.after_us < s_us.min() or s_us.max() + window.before_us < r_us.min())


def _apart_words(
    named: list[tuple[str, StreamSchema]], ts_us: tuple[np.ndarray, np.ndarray], window: TimeWindow
) -> str:
    (r, _), (s, _) = named
    spans = [span_text(int(times.min()), int(times.max())) for times in ts_us]
    words = f"the rows of {r} are {spans[R]}, those of {s} {spans[S]}"
    words += "".join(f" ({name} would arrive now)" for name, schema in named if schema.time == ARRIVAL)
    return f"{words}; no pair of them is {window}"


def wider_window(
    r: tuple[np.ndarray, np.ndarray], s: tuple[np.ndarray, np.ndarray], window: TimeWindow
) -> TimeWindow | None:
    """The window, widened as little as lets a pair with equal keys in; one that is the same to both sides stays so.

    Args:
        r, s: keys and event times of the rows, int64 of shape (n,) each.
    Returns:
        `window` itself where it has such a pair, and None where no two keys are equal. Spans are rounded up.
    Cost: sorting all rows.
    """
    keys, times = (np.concatenate(both) for both in zip(r, s, strict=True))
    is_s = np.repeat([False, True], [r[0].size, s[0].size])
    order = np.lexsort((is_s, times, keys))
    keys, times, is_s = keys[order], times[order], is_s[order]
    # Of the rows with one key, those of R and S that are nearest to each other have no other between them.
    meets = (keys[1:] == keys[:-1]) & (is_s[1:] != is_s[:-1])
    gaps_us = np.diff(times)
    after_us, before_us = (int(gaps_us[meets & side].min(initial=_NEVER_US)) for side in (is_s[1:], ~is_s[1:]))
    if not meets.any():
        return None
    if after_us <= window.after_us or before_us <= window.before_us:
        return window
    if window.before_us == window.after_us:
        span_us = _rounded(min(after_us, before_us))
        return TimeWindow(span_us, span_us)
    if after_us - window.after_us <= before_us - window.before_us:
        return TimeWindow(window.before_us, _rounded(after_us))
    return TimeWindow(_rounded(before_us), window.after_us)


def _rounded(span_us: int) -> int:
    """Up to a number that people write."""
    unit = next((unit for least, unit in _ROUND_US if span_us >= least), 1)
    return -(-span_us // unit) * unit


def _cells(keys: list[Expression], name: str, rows: pa.RecordBatch) -> np.ndarray:
    """Keys as int64, equal for equal ones; all the same where there are none."""
    if not keys:
        return np.zeros(rows.num_rows, np.int64)
    columns = {(name, column): rows.column(column) for column in rows.schema.names}
    return equality_cells([evaluate(key, columns, rows.num_rows) for key in keys])


def times_of(rows: pa.RecordBatch, schema: StreamSchema, now_us: int) -> tuple[np.ndarray, np.ndarray]:
    """Event times of the rows that have one, and which rows these are."""
    ts_us, missing, wrong = event_times(rows, schema, now_us)
    has_time = ~(missing | wrong)
    return ts_us[has_time], has_time


def span_text(first_us: int, last_us: int) -> str:
    """Such as `from 2026-01-05T09:00:00Z to 2026-01-05T09:40:00Z`."""
    first, last = time_text(first_us), time_text(last_us)
    return f"at {first}" if first == last else f"from {first} to {last}"


def time_text(us: int | None) -> str | None:
    """An event time as ISO 8601 in UTC, or as microseconds where no calendar has it."""
    if us is None:
        return None
    try:
        at = _EPOCH + timedelta(microseconds=us)
    except OverflowError:
        return f"{us} us"
    return at.isoformat(timespec="milliseconds" if us % 1_000_000 else "seconds").replace("+00:00", "Z")
