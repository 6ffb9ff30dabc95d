"""A preview: a few result rows before a job is there, from samples of the streams.

The samples are joined in this process by the intake and the units that jobs run, as a job of one unit a stage whose
batches are small. What matches leaves it as row numbers; the SELECT list is evaluated for the few rows that are
shown. It is no result: other tuples may join, a join starts elsewhere in its streams, and late tuples meet all others.
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
from streamjoin.engine.operator import Operator
from streamjoin.explain.no_row import reason_for, span_text, time_text, times_of
from streamjoin.explain.numbers import of_numbers, version_name
from streamjoin.explain.overlap import ROW_BYTES_MAX, Sample, row_sizes, samples
from streamjoin.explain.parts import parts_of
from streamjoin.explain.relations import SAMPLE_VERSION, SampledTables, relation_samples
from streamjoin.intake.intake import REJECTED
from streamjoin.operators.aggregate import Aggregate
from streamjoin.operators.asof import AsOfJoin
from streamjoin.operators.lookup import Lookup
from streamjoin.operators.matrix import Matrix
from streamjoin.plan.aggregate import AggregatePlan
from streamjoin.plan.evaluation import evaluate
from streamjoin.plan.expression import Column, walk
from streamjoin.plan.rounds import RoundPlan
from streamjoin.plan.schema import VERSION, StreamSchema, type_name
from streamjoin.plan.stages import Plan, Stage, asof_stages, decided_stages
from streamjoin.results.formats import write_table
from streamjoin.results.jsonlines import json_lines
from streamjoin.results.sink import Post
from streamjoin.spec.outputs import store_sink
from streamjoin.spec.prepare import Bound
from streamjoin.state.memory import MemoryStates

ROWS = 20
JOIN_S = 3.0
"""How long samples are joined; time is looked at between two batches."""
BATCH_ROWS = 100
BATCH_BYTES = 64 << 20
"""Rows of each stream that one batch joins: so many, and fewer where the pairs they may give would be larger."""
GROUPED_ROWS = 1_000
"""The same where groups are made of pairs, of which none is kept."""
FED_BYTES = 64 << 20
"""What stages may give to the next ones: they keep it. A preview that comes to more is cut off."""
SHOWN_PAIRS = 1_000
SHOWN_PAIRS_BYTES = 16 << 20
"""Matches that the SELECT list is evaluated for at a time: so many, and fewer where their values may be larger."""
SHOWN_ROW_BYTES = 192 << 10
"""The largest row that is shown, whatever a SELECT list makes of its columns; queries beside each other share it."""
NOTE = "a preview from samples, not a result"


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
        looked: at each stream.
        cut_off: time, or room for what stages give to one another, ran out before all sampled rows were joined.
    """

    looked: tuple[Looked, ...]
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
    """Join samples of all streams, of a bundle part by part.

    Raises:
        InputError: a stream cannot be reached.
        RunError: a file is damaged.
    Cost: that of the samples, and `JOIN_S` seconds at most.
    """
    parts = parts_of(bound)
    found = [_preview(part, JOIN_S / len(parts), len(bound.queries)) for part in parts]
    looked = {one.name: one for part in found for one in part.looked}
    queries = tuple(query for part in found for query in part.queries)
    return Preview(tuple(looked.values()), queries, any(part.cut_off for part in found))


def _preview(bound: Bound, join_s: float, shown_queries: int) -> Preview:
    """Of a part, among so many queries in all."""
    bound = bound.as_tree
    now_us = time.time_ns() // 1_000
    sampled = (*samples(bound, now_us), *relation_samples(bound))
    shown = [_Shown(one, sampled, _row_bytes_max(shown_queries)) for one in bound.queries]
    until = time.monotonic() + join_s
    joined = _Joining(of_numbers(bound.plan), sampled, now_us, until)
    is_cut_off = _ran_out(joined, shown, until)
    # Only rows that were joined count.
    streams = len(bound.plan.streams)
    sampled = (*(replace(one, rows=one.rows.slice(0, joined.reached)) for one in sampled[:streams]), *sampled[streams:])
    schemas = (*bound.plan.streams, *bound.plan.relations)
    looked = (
        _looked(schema, one, dead, now_us)
        for schema, one, dead in zip(schemas, sampled, [*joined.dead, *(0 for _ in sampled[streams:])], strict=True)
    )
    queries = (
        Rows(one.bound.name, one.rows, one.large, None if one.count else _why_none(one, sampled, now_us, is_cut_off))
        for one in shown
    )
    return Preview(tuple(looked), tuple(queries), is_cut_off)


def _row_bytes_max(queries: int) -> int:
    """The largest row that is shown of one of so many queries."""
    return SHOWN_ROW_BYTES // queries


def _ran_out(joined: _Joining, shown: Sequence[_Shown], until: float) -> bool:
    """Join until there are enough rows of each query, or no rows are left; whether time or room ran out before."""
    ran_out = False
    while joined.is_left and not ran_out:
        try:
            for query, matches in joined.batch():
                shown[query].take(matches, until)
                if all(one.is_full for one in shown):
                    return False
                if time.monotonic() > until:
                    return True
        except _NoRoomError:
            return True
        ran_out = time.monotonic() > until
    for query, groups in joined.end():
        shown[query].take(groups, until)
    return ran_out and joined.is_left


class _NoRoomError(Exception):
    """Stages gave more to the next ones than may be kept, or time ran out on the way."""


class _Joining:
    """A job of one unit a stage over samples; each of its batches brings as many rows of every stream.

    `reached` says how many rows of each sample were joined, and `dead` how many of each had no usable event time.
    """

    def __init__(self, plan: Plan, sampled: tuple[Sample, ...], now_us: int, until: float) -> None:
        self.now_us = now_us
        self.until = until
        self.fed_bytes = 0
        self.reached = 0
        self._groups = plan.groups is not None
        inputs = (*plan.streams, *plan.relations)
        rows = [
            one.rows if self._groups else _numbered_rows(one.rows, schema)
            for one, schema in zip(sampled, inputs, strict=True)
        ]
        self._rows, of_relations = rows[: len(plan.streams)], rows[len(plan.streams) :]
        self._size = GROUPED_ROWS if self._groups else _batch_rows(sampled[: len(plan.streams)])
        states = [MemoryStates() for _ in plan.stages]
        operators = tuple(map(_operator, plan.stages))
        tables = SampledTables(plan, of_relations) if plan.relations else None
        self._versions = {relation.name: SAMPLE_VERSION for relation in plan.relations}
        self._loop = Loop(plan, operators, lambda stage: states[stage], on_fed=self._fed, tables=tables)

    @property
    def is_left(self) -> bool:
        """There are rows that were not joined yet."""
        return self.reached < max(rows.num_rows for rows in self._rows)

    @property
    def dead(self) -> list[int]:
        """Rows of each stream without a usable event time."""
        return [sum(n for name, n in counts.items() if name.startswith(REJECTED)) for counts in self._loop.counts]

    def batch(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Join the next rows: (query, numbers of the rows of each stream that match, or groups of ended windows)."""
        pieces = [[rows.slice(self.reached, self._size)] for rows in self._rows]
        self.reached += self._size
        brought = Brought(pieces, self.now_us, versions=self._versions)
        yield from self._loop.batch(brought)
        self._loop.commit(brought)

    def end(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """What the end of the rows that were joined decides: rows that found no partner, and groups of open windows."""
        for _ in range(decided_stages(self._loop.plan) + len(asof_stages(self._loop.plan)) + self._groups):
            brought = Brought([[] for _ in self._rows], self.now_us, drains=True, versions=self._versions)
            yield from self._loop.batch(brought)
            self._loop.commit(brought)

    def _fed(self, rows: pa.RecordBatch) -> None:
        self.fed_bytes += 0 if self._groups else rows.nbytes  # of which no row is kept
        if self.fed_bytes > FED_BYTES or time.monotonic() > self.until:
            raise _NoRoomError


def _operator(stage: Stage) -> Operator:
    if isinstance(stage.plan, AggregatePlan):
        return Aggregate(stage.plan, 1)
    if stage.table is not None:
        return Lookup(1)
    assert not isinstance(stage.plan, RoundPlan)  # a look at rows joins two at a time
    return AsOfJoin(1) if stage.asof is not None else Matrix(1, 1)


def _numbered_rows(rows: pa.RecordBatch, stream: StreamSchema) -> pa.RecordBatch:
    columns = [rows.column(name) for name in stream.own_columns.names[:-1]]
    return pa.RecordBatch.from_arrays([*columns, pa.array(np.arange(rows.num_rows))], schema=stream.own_columns)


def _batch_rows(sampled: tuple[Sample, ...]) -> int:
    """How many rows of each sample are joined at a time."""
    rows = sum(one.rows.num_rows for one in sampled)
    size = sum(one.row_bytes for one in sampled)
    return max(1, min(BATCH_ROWS, BATCH_BYTES // max(rows * size, 1)))


class _Shown:
    """The rows of one query that are shown; `large` counts those that were left out for their size."""

    def __init__(self, bound: Bound, sampled: tuple[Sample, ...], row_bytes_max: int) -> None:
        self.bound = bound
        self.plan = bound.plan
        self.names = (*self.plan.names, *self.plan.relation_names)
        self.output = bound.query.output
        self.sampled = sampled
        self.row_bytes_max = row_bytes_max
        results = bound.file.results
        post = store_sink(bound.file, bound.plan).post if results.store is not None else Post()
        self.post = Post(post.where, post.select)
        self.count = 0
        self.large = 0
        self._parts = [self.post.apply(self._empty())]
        self._at_once = max(1, min(SHOWN_PAIRS, SHOWN_PAIRS_BYTES // self._match_bytes()))

    def _empty(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([], schema=self.output)

    def _match_bytes(self) -> int:
        """About how large the SELECT list's values for one match may be: each mention of a column may add its value."""
        size = len(self.plan.text)
        mentioned = [column for _, item in self.plan.select for column in walk(item) if isinstance(column, Column)]
        for name, sample in zip(self.names, self.sampled, strict=True):
            size += sample.row_bytes * sum(column.stream == name for column in mentioned)
        return size

    @property
    def is_full(self) -> bool:
        """There are enough rows."""
        return self.count >= ROWS

    @property
    def rows(self) -> pa.RecordBatch:
        """Those that were found so far."""
        return pa.concat_batches(self._parts)

    def take(self, matches: pa.RecordBatch, until: float) -> None:
        """Evaluate the SELECT list for as many matches as are still needed, and as there is time for."""
        for first in range(0, matches.num_rows, self._at_once):
            if self.is_full:
                return
            if self.plan.groups:
                self._keep(matches.slice(first, self._at_once))
                continue
            some = matches.slice(first, self._at_once)
            columns: dict[tuple[str, str], pa.Array] = {}
            for number, (stream, sample) in enumerate(zip(self.names, self.sampled, strict=True)):
                columns |= {
                    (stream, name): sample.rows.column(name).take(some.column(number))
                    for name in sample.rows.schema.names
                }
                if (version := version_name(stream)) in some.schema.names:
                    columns[stream, VERSION] = some.column(version)
            values = [
                evaluate(expression, columns, some.num_rows, self.plan.predicates) for _, expression in self.plan.select
            ]
            self._keep(pa.RecordBatch.from_arrays(values, schema=self.output))
            if time.monotonic() > until:
                return

    def _keep(self, found: pa.RecordBatch) -> None:
        """Add what is kept of result rows, and small enough to be shown."""
        kept = self.post.apply(found.select(self.output.names))
        fits = row_sizes(kept) <= self.row_bytes_max
        self.large += int(np.count_nonzero(~fits))
        kept = kept.filter(pa.array(fits)).slice(0, ROWS - self.count)
        self._parts.append(kept)
        self.count += kept.num_rows


def _looked(schema: StreamSchema, sample: Sample, dead: int, now_us: int) -> Looked:
    ts_us = sample.ts_us if schema.is_relation else times_of(sample.rows, schema, now_us)[0]
    first, last = (int(ts_us.min()), int(ts_us.max())) if ts_us.size else (None, None)
    return Looked(schema.name, sample.rows.num_rows, sample.bad + dead, sample.large, first, last)


def _why_none(shown: _Shown, sampled: tuple[Sample, ...], now_us: int, cut_off: bool) -> str:
    if shown.large:
        return f"every row that was found is larger than {shown.row_bytes_max >> 10} KiB"
    return reason_for(shown.bound, sampled, now_us, cut_off)
