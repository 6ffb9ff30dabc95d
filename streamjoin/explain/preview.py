"""A preview: a few result rows before a job is there, from samples of both streams.

The samples are joined in this process by the intake and the unit that jobs run, as a job of one unit whose batches are
small. A unit gives pairs of row numbers here; the SELECT list is evaluated for the few pairs that are shown. It is no
result: other tuples may join, a join starts elsewhere in its streams, and late tuples meet all others.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.engine.loop import Brought, Loop
from streamjoin.errors import UnsupportedError
from streamjoin.explain.no_row import reason_for, span_text, time_text, times_of
from streamjoin.explain.overlap import ROW_BYTES_MAX, Sample, row_sizes, samples
from streamjoin.intake.intake import REJECTED
from streamjoin.operators.matrix import Matrix
from streamjoin.plan.evaluation import evaluate
from streamjoin.plan.expression import Column, walk
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.schema import StreamSchema, type_name
from streamjoin.plan.sharing import Plan, SharedPlan
from streamjoin.plan.stages import Cascade
from streamjoin.plan.window import R, S
from streamjoin.results.formats import write_table
from streamjoin.results.parts import json_lines
from streamjoin.results.sink import Post
from streamjoin.spec.job import read_columns
from streamjoin.spec.outputs import store_sink
from streamjoin.spec.prepare import Bound
from streamjoin.state.memory import MemoryStates

ROWS = 20
JOIN_S = 3.0
"""How long samples are joined; time is looked at between two batches."""
BATCH_ROWS = 100
BATCH_BYTES = 64 << 20
"""Rows of each stream that one batch joins: so many, and fewer where the pairs they may give would be larger."""
SHOWN_PAIRS = 1_000
SHOWN_PAIRS_BYTES = 16 << 20
"""Pairs that the SELECT list is evaluated for at a time: so many, and fewer where their values may be larger."""
SHOWN_ROW_BYTES = 192 << 10
"""The largest row that is shown, whatever a SELECT list makes of its columns; queries beside each other share it."""
NOTE = "a preview from samples, not a result"

_NEVER_LATE_US = 1 << 62


@dataclass(frozen=True, slots=True)
class Looked:
    """What was looked at of a stream.

    Args:
        rows: rows that were joined.
        bad: records that could not be read, and rows without a usable event time.
        large: rows that were left out for their size.
        first_us, last_us: event times; None where no row has one.
    """

    name: str
    rows: int
    bad: int
    large: int
    first_us: int | None
    last_us: int | None

    def __str__(self) -> str:
        words = f"{self.name}: {self.rows:,} {'row' if self.rows == 1 else 'rows'}"
        if self.first_us is not None and self.last_us is not None:
            words += f" {span_text(self.first_us, self.last_us)}"
        if self.bad:
            words += f", {self.bad:,} that cannot be read"
        if self.large:
            words += f", {self.large:,} left out as larger than {ROW_BYTES_MAX >> 10} KiB"
        return words


@dataclass(frozen=True, slots=True)
class Rows:
    """What a query would give.

    Args:
        query: its name, where there are several.
        rows: `ROWS` at most, with the query's output columns; those that its results keep.
        large: rows that were found and left out for their size.
        reason: why there are none; None where there are some.
    """

    query: str
    rows: pa.RecordBatch
    large: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class Preview:
    """A few result rows of each query.

    Args:
        looked: at R and S.
        cut_off: time ran out before all sampled rows were joined.
    """

    looked: tuple[Looked, Looked]
    queries: tuple[Rows, ...]
    cut_off: bool

    def to_json(self) -> dict[str, Any]:
        """For programs; rows are objects, with values as JSON lines results have them."""
        return {
            "note": NOTE,
            "streams": [
                {
                    "name": one.name, "rows": one.rows, "bad_records": one.bad, "large_rows": one.large,
                    "first": time_text(one.first_us), "last": time_text(one.last_us),
                }
                for one in self.looked
            ],
            "cut_off": self.cut_off,
            "queries": [
                {
                    "query": found.query,
                    "columns": [{"name": field.name, "type": type_name(field.type)} for field in found.rows.schema],
                    "rows": [json.loads(line) for line in json_lines(pa.Table.from_batches([found.rows]))],
                    "large_rows": found.large,
                    "reason": found.reason,
                }
                for found in self.queries
            ],
        }  # fmt: skip

    def __str__(self) -> str:
        lines = [f"{NOTE}; looked at", *(f"  {one}" for one in self.looked)]
        if self.cut_off:
            lines.append("  then time ran out")
        for found in self.queries:
            lines += ["", *([f"query {found.query}"] if found.query else [])]
            if found.reason is None:
                out = io.BytesIO()
                write_table(found.rows.schema, [found.rows], out)
                lines.append(out.getvalue().decode().rstrip("\n"))
            else:
                lines.append(f"no row: {found.reason}")
            if found.large:
                lines.append(f"{found.large:,} left out as larger than {_row_bytes_max(len(self.queries)) >> 10} KiB")
        return "\n".join(lines)


def preview(bound: Bound) -> Preview:
    """Join samples of both streams.

    Raises:
        InputError: a stream cannot be reached.
        RunError: a file is damaged.
    Cost: that of the samples, and `JOIN_S` seconds at most.
    """
    if isinstance(bound.plan, Cascade):
        raise UnsupportedError(
            f"a preview shows joins of two streams, and this one joins {len(bound.plan.streams)}; run it to see rows",
            field="query",
        )
    now_us = time.time_ns() // 1_000
    sampled = samples(bound, now_us)
    shown = [_Shown(one, sampled, _row_bytes_max(len(bound.queries))) for one in bound.queries]
    joined = _Joining(_of_pairs(bound.plan), sampled, now_us)
    is_cut_off = _ran_out(joined, shown, time.monotonic() + JOIN_S)
    # Only rows that were joined count.
    r, s = (replace(one, rows=one.rows.slice(0, joined.reached)) for one in sampled)
    looked = [_looked(bound.plan.streams[side], (r, s)[side], joined.dead[side], now_us) for side in (R, S)]
    queries = (
        Rows(one.bound.name, one.rows, one.large, None if one.count else _why_none(one, (r, s), now_us, is_cut_off))
        for one in shown
    )
    return Preview((looked[R], looked[S]), tuple(queries), is_cut_off)


def _row_bytes_max(queries: int) -> int:
    """The largest row that is shown of one of so many queries."""
    return SHOWN_ROW_BYTES // queries


def _ran_out(joined: _Joining, shown: Sequence[_Shown], until: float) -> bool:
    """Join until there are enough rows of each query, or no rows are left; whether time ran out before."""
    while joined.is_left:
        for query, pairs in joined.batch():
            shown[query].take(pairs, until)
            if all(one.is_full for one in shown):
                return False
            if time.monotonic() > until:
                return True
        if time.monotonic() > until:
            return joined.is_left
    return False


def _of_pairs(plan: Plan) -> Plan:
    """The same join with the numbers of two rows as its only result columns: the last column of either stream."""
    streams = (_numbered(plan, R), _numbered(plan, S))
    queries = tuple(_query_of_pairs(query, streams) for query in plan.queries)
    return SharedPlan(plan.names_of_queries, queries) if isinstance(plan, SharedPlan) else queries[0]


def _numbered(plan: Plan, side: int) -> StreamSchema:
    """A stream with the columns that its tuples are matched by, and a number for each row."""
    stream = plan.streams[side]
    matched = {name for query in plan.queries for name in read_columns(_without_results(query), side)}
    number = "row"
    while number in stream.columns.names:
        number += "_"
    columns = [column for column in stream.columns if column.name in matched]
    # Where no row is late nothing expires, so late tuples meet all others.
    return replace(stream, columns=pa.schema([*columns, pa.field(number, pa.int64())]), delay_us=_NEVER_LATE_US)


def _without_results(query: JoinPlan) -> JoinPlan:
    return replace(query, select=(), keyed=False, ordering=Ordering.NONE)


def _query_of_pairs(query: JoinPlan, streams: tuple[StreamSchema, StreamSchema]) -> JoinPlan:
    numbers = (Column(query.names[side], streams[side].columns.names[-1], pa.int64()) for side in (R, S))
    return replace(_without_results(query), streams=streams, select=tuple(zip("rs", numbers, strict=True)))


class _Joining:
    """A job of one unit over two samples; each of its batches brings as many rows of either.

    `reached` says how many rows of each sample were joined, and `dead` how many of each had no usable event time.
    """

    def __init__(self, plan: Plan, sampled: tuple[Sample, Sample], now_us: int) -> None:
        self.now_us = now_us
        self.reached = 0
        self._rows = [_numbered_rows(one.rows, stream) for one, stream in zip(sampled, plan.streams, strict=True)]
        self._size = _batch_rows(sampled)
        states = MemoryStates()
        self._loop = Loop(plan, (Matrix(1, 1),), lambda _: states)

    @property
    def is_left(self) -> bool:
        """There are rows that were not joined yet."""
        return self.reached < max(rows.num_rows for rows in self._rows)

    @property
    def dead(self) -> tuple[int, int]:
        """Rows of R and of S without a usable event time."""
        r, s = (sum(n for name, n in counts.items() if name.startswith(REJECTED)) for counts in self._loop.counts)
        return r, s

    def batch(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Join the next rows: (query, numbers of the rows of R and S that match)."""
        r, s = (rows.slice(self.reached, self._size) for rows in self._rows)
        self.reached += self._size
        brought = Brought(([r], [s]), self.now_us)
        yield from self._loop.batch(brought)
        self._loop.commit(brought)


def _numbered_rows(rows: pa.RecordBatch, stream: StreamSchema) -> pa.RecordBatch:
    columns = [rows.column(name) for name in stream.columns.names[:-1]]
    return pa.RecordBatch.from_arrays([*columns, pa.array(np.arange(rows.num_rows))], schema=stream.columns)


def _batch_rows(sampled: tuple[Sample, Sample]) -> int:
    """How many rows of each sample are joined at a time."""
    rows = sum(one.rows.num_rows for one in sampled)
    size = sum(one.row_bytes for one in sampled)
    return max(1, min(BATCH_ROWS, BATCH_BYTES // max(rows * size, 1)))


class _Shown:
    """The rows of one query that are shown; `large` counts those that were left out for their size."""

    def __init__(self, bound: Bound, sampled: tuple[Sample, Sample], row_bytes_max: int) -> None:
        self.bound = bound
        self.plan = bound.query
        self.sampled = sampled
        self.row_bytes_max = row_bytes_max
        results = bound.file.results
        post = store_sink(bound.file, bound.query).post if results.store is not None else Post()
        self.post = Post(post.where, post.select)
        self.count = 0
        self.large = 0
        self._parts = [self.post.apply(self._empty())]
        self._pairs = max(1, min(SHOWN_PAIRS, SHOWN_PAIRS_BYTES // self._pair_bytes()))

    def _empty(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([], schema=self.plan.output)

    def _pair_bytes(self) -> int:
        """About how large the SELECT list's values for one pair may be: each mention of a column may add its value."""
        size = len(self.plan.text)
        mentioned = [column for _, item in self.plan.select for column in walk(item) if isinstance(column, Column)]
        for side in (R, S):
            mentions = sum(column.stream == self.plan.names[side] for column in mentioned)
            size += mentions * self.sampled[side].row_bytes
        return size

    @property
    def is_full(self) -> bool:
        """There are enough rows."""
        return self.count >= ROWS

    @property
    def rows(self) -> pa.RecordBatch:
        """Those that were found so far."""
        return pa.concat_batches(self._parts)

    def take(self, pairs: pa.RecordBatch, until: float) -> None:
        """Evaluate the SELECT list for as many pairs as are still needed, and as there is time for."""
        for first in range(0, pairs.num_rows, self._pairs):
            if self.is_full:
                return
            some = pairs.slice(first, self._pairs)
            columns: dict[tuple[str, str], pa.Array] = {}
            for side in (R, S):
                rows = self.sampled[side].rows
                columns |= {
                    (self.plan.names[side], name): rows.column(name).take(some.column(side))
                    for name in rows.schema.names
                }
            values = [
                evaluate(expression, columns, some.num_rows, self.plan.predicates) for _, expression in self.plan.select
            ]
            kept = self.post.apply(pa.RecordBatch.from_arrays(values, schema=self.plan.output))
            fits = row_sizes(kept) <= self.row_bytes_max
            self.large += int(np.count_nonzero(~fits))
            kept = kept.filter(pa.array(fits)).slice(0, ROWS - self.count)
            self._parts.append(kept)
            self.count += kept.num_rows
            if time.monotonic() > until:
                return


def _looked(schema: StreamSchema, sample: Sample, dead: int, now_us: int) -> Looked:
    ts_us, _ = times_of(sample.rows, schema, now_us)
    first, last = (int(ts_us.min()), int(ts_us.max())) if ts_us.size else (None, None)
    return Looked(schema.name, sample.rows.num_rows, sample.bad + dead, sample.large, first, last)


def _why_none(shown: _Shown, sampled: tuple[Sample, Sample], now_us: int, cut_off: bool) -> str:
    if shown.large:
        return f"every row that was found is larger than {shown.row_bytes_max >> 10} KiB"
    return reason_for(shown.bound, sampled, now_us, cut_off)
