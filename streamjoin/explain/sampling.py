"""A look at the first rows of the streams: how fast they come, how large they are, and how skewed their keys are."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from streamjoin.errors import InputError, StreamJoinError
from streamjoin.index.columns import carried_rows, stored_columns
from streamjoin.index.layout import equality_cells
from streamjoin.intake.event_time import event_times
from streamjoin.intake.selection import select
from streamjoin.operators.costs import StreamStatistics
from streamjoin.plan.aggregate import AggregatePlan
from streamjoin.plan.evaluation import evaluate
from streamjoin.plan.rounds import RoundPlan
from streamjoin.plan.schema import ARRIVAL, StreamSchema
from streamjoin.plan.sharing import Pairs
from streamjoin.plan.stages import Plan, StagePlan, entry_of
from streamjoin.plan.window import CountWindow, TimeWindow
from streamjoin.sources.kafka_kind import KafkaSettings, topic_decoder
from streamjoin.sources.source import first_rows
from streamjoin.sources.topic import newest
from streamjoin.spec.inputs import is_sparks, source_spec
from streamjoin.spec.joinfile import JoinFile
from streamjoin.spec.prepare import Bound

SAMPLE_ROWS = 20_000
TOPIC_ROWS, TOPIC_S = 2_000, 3.0
"""Records of each partition of a topic, and how long a broker may take for one answer."""
STORED_ENGINE_BYTES = 16  # event time and one key a stored tuple
SKEW_ROWS_MIN = 1_000
"""Fewer rows tell nothing of how often a key comes."""
FULL_HISTORY_S = 3600.0
"""Without a window, costs are shown for one hour of history."""


@dataclass(frozen=True, slots=True)
class Look:
    """The first rows of all streams.

    Args:
        rows: by stream; None where there are none, or nobody can look.
        rates_per_s: by stream, of all rows, where something else than these rows tells it.
        unknown: by the name of the stream, why nothing is known of it.
    """

    plan: Plan
    rows: tuple[pa.RecordBatch | None, ...]
    rates_per_s: Mapping[int, float] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)

    @property
    def unknown_words(self) -> str:
        """Why nothing is known of some streams."""
        return "; ".join(f"{name}: {why}" for name, why in self.unknown.items())

    def statistics(self) -> tuple[StreamStatistics, ...] | None:
        """Rate and size of each stream; None unless all could be looked at."""
        found = []
        for number, rows in enumerate(self.rows):
            if rows is None:
                return None
            stage, side = entry_of(self.plan, number)
            found.append(_statistics(rows, stage.plan, side, self.rates_per_s.get(number)))
        return tuple(found)

    def top_key_shares(self) -> dict[int, float]:
        """By stream, the share of the most frequent key that tuples are routed by, of those tuples that have one.

        Empty without an equality; a stream with too few rows to tell is left out.
        """
        shares: dict[int, float] = {}
        for number, rows in enumerate(self.rows):
            stage, side = entry_of(self.plan, number)
            plan = stage.plan
            if isinstance(plan, AggregatePlan) or rows is None or not (keys := plan.equality_keys(side)):
                continue
            joinable = np.logical_or.reduce([select(query, side, rows).joinable for query in plan.queries])
            rows = rows.filter(pa.array(joinable))
            if rows.num_rows >= SKEW_ROWS_MIN:
                columns = {(plan.names[side], name): rows.column(name) for name in rows.schema.names}
                cells = equality_cells([evaluate(key, columns, rows.num_rows) for key in keys])
                shares[number] = float(np.unique(cells, return_counts=True)[1].max() / cells.size)
        return shares


@dataclass(frozen=True, slots=True)
class _First:
    """A stream's first rows, or its newest ones; None where there are none, or nobody can look, and why."""

    rows: pa.RecordBatch | None
    rate_per_s: float | None = None
    unknown: str = ""


def look(bound: Bound) -> Look:
    """Look at all streams, before anything is started.

    Cost: `SAMPLE_ROWS` rows of each; brokers are asked side by side, each for some seconds at most.
    """
    streams = bound.plan.streams
    is_topic = [isinstance(bound.file.streams[one.name], KafkaSettings) for one in streams]
    with ThreadPoolExecutor(max(sum(is_topic), 1)) as pool:
        asked = [
            pool.submit(_newest, bound.file, one) if asks else None for one, asks in zip(streams, is_topic, strict=True)
        ]
        found = [
            _First(_first(bound.file, one)) if answer is None else answer.result()
            for one, answer in zip(streams, asked, strict=True)
        ]
    return Look(
        bound.as_tree.plan,
        tuple(one.rows for one in found),
        {number: one.rate_per_s for number, one in enumerate(found) if one.rate_per_s is not None},
        {schema.name: one.unknown for schema, one in zip(streams, found, strict=True) if one.unknown},
    )


def _newest(file: JoinFile, schema: StreamSchema) -> _First:
    """A topic's newest rows, and how many come in a second: as the join file says, or as their timestamps do."""
    stream = file.streams[schema.name]
    assert isinstance(stream, KafkaSettings)
    given = stream.rows_per_s
    try:
        found = newest(stream.servers, stream.topic, stream.client, TOPIC_ROWS, rate=given is None, wait_s=TOPIC_S)
        decoded = topic_decoder(stream, schema.columns, file.resolve).decode(found.values)
    except StreamJoinError as wrong:
        return _First(None, unknown=wrong.message if isinstance(wrong, InputError) else str(wrong))
    rate_per_s = found.rate_per_s if given is None else given
    if rate_per_s is None:
        return _First(None, unknown=found.unknown)
    if not decoded.rows.num_rows:
        why = f"none of its newest records can be read as {stream.format}" if len(found.values) else "it has no record"
        return _First(None, unknown=f"topic {stream.topic}: {why}")
    return _First(decoded.rows.slice(0, SAMPLE_ROWS), rate_per_s)


def _first(file: JoinFile, schema: StreamSchema) -> pa.RecordBatch | None:
    """A stream's first rows; None where there are none, or nobody can look."""
    stream = file.streams[schema.name]
    if is_sparks(stream) or schema.time == ARRIVAL:
        return None
    with tempfile.TemporaryDirectory() as folder:
        try:
            source = source_spec(file, stream, schema).open(schema.name, Path(folder) / "log.jsonl")
            rows, _ = first_rows(source, schema.columns, SAMPLE_ROWS)
        except (InputError, StreamJoinError):
            return None
    return rows if rows.num_rows else None


def _statistics(rows: pa.RecordBatch, plan: StagePlan, side: int, rate_per_s: float | None) -> StreamStatistics:
    """Of a stream whose rate is known, or follows from the event times of its rows."""
    ts_us, missing, wrong = event_times(rows, plan.streams[side], 0)
    ts_us = ts_us[~(missing | wrong)]
    span_s = (int(ts_us.max()) - int(ts_us.min())) / 1e6 if ts_us.size else 0.0
    share = _selected_share(rows, plan, side)
    of_rows = rows.num_rows / span_s if span_s else float(rows.num_rows)
    rate = share * (of_rows if rate_per_s is None else rate_per_s)
    if isinstance(plan, AggregatePlan):  # views are stored, of which there are as many as groups
        return StreamStatistics(rows.select(list(plan.reads)).nbytes / rows.num_rows, rate, 0.0)
    assert not isinstance(plan, RoundPlan)  # streams are looked at as those of joins of two
    kept = carried_rows(rows.select(list(stored_columns(plan, side))))
    size = kept.nbytes / rows.num_rows + STORED_ENGINE_BYTES
    return StreamStatistics(size, rate, _stored(plan, side, rate, share))


def _selected_share(rows: pa.RecordBatch, plan: StagePlan, side: int) -> float:
    """The share of rows that any query's conditions on this stream alone let through."""
    keep = np.logical_or.reduce([select(query, side, rows).selected for query in plan.queries])
    return float(keep.mean()) if keep.size else 1.0


def _stored(plan: Pairs, side: int, rate_per_s: float, share: float) -> float:
    if plan.streams[1 - side].is_relation:
        return 0.0
    match plan.window:
        case TimeWindow() as window:
            kept_us = window.keeps_us(side) + plan.streams[1 - side].delay_us + (plan.archive_period or 0)
            return rate_per_s * kept_us / 1e6
        case CountWindow(rows):
            return rows * share
        case _:
            return rate_per_s * FULL_HISTORY_S
