"""Samples of streams that can meet: the first rows of each, or those from where the others begin."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.intake.event_time import event_times
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import entry_of
from streamjoin.plan.window import CountWindow, FullHistory, reach_us
from streamjoin.sources import GeneratorSource, Read, Source
from streamjoin.sources.kafka_kind import KafkaSettings, topic_decoder
from streamjoin.sources.topic import newest_values
from streamjoin.spec.inputs import source_spec
from streamjoin.spec.job import read_columns
from streamjoin.spec.joinfile import JoinFile
from streamjoin.spec.prepare import Bound

SAMPLE_ROWS = 20_000
SAMPLE_BYTES = 16 << 20
ROW_BYTES_MAX = 16 << 10
"""Larger rows are left out: joined with thousands of others they would fill the memory."""
TOPIC_ROWS = 5_000
"""Records of each partition of a topic."""
PASSED_ROWS_MAX = 5_000_000
PASSED_S = 2.0
"""How many rows of a stream, and for how long, are passed over until it has come to where the other one begins."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Some rows of a stream that follow each other.

    Args:
        rows: with the columns that the join reads.
        ts_us: event times of those that have one.
        bad: records that could not be read.
        large: rows that were left out because they are larger than `ROW_BYTES_MAX`.
        row_bytes: of the largest row that is there.
    """

    rows: pa.RecordBatch
    ts_us: np.ndarray
    bad: int
    large: int
    row_bytes: int


def samples(bound: Bound, now_us: int) -> tuple[Sample, ...]:
    """A sample of each stream, overlapping in event time as far as a short search finds rows that do.

    Args:
        now_us: the event time of rows that have none but their arrival, and where generators begin that begin now.
    Raises:
        InputError: a stream cannot be reached.
        RunError: a file is damaged.
    Cost: `SAMPLE_ROWS` rows of each; for each one that ends before another one begins, `PASSED_S` seconds more.
    """
    plan = bound.plan
    found = [_sample(bound, number, now_us, None) for number in range(len(plan.streams))]
    if isinstance(plan.window, CountWindow | FullHistory):
        return tuple(found)
    for number, mine in enumerate(found):
        begins_us = [_early(other.ts_us) for other in found if other is not mine and other.ts_us.size]
        if mine.ts_us.size and begins_us:
            needed_us = max(begins_us) - reach_us(plan.window, number)
            if _late(mine.ts_us) < needed_us:
                later = _sample(bound, number, now_us, needed_us)
                found[number] = later if later.rows.num_rows else mine
    return tuple(found)


def _early(ts_us: np.ndarray) -> int:
    """Where a sample begins, but for the few rows that are far older than all others."""
    return int(np.partition(ts_us, ts_us.size // 100)[ts_us.size // 100])


def _late(ts_us: np.ndarray) -> int:
    return -_early(-ts_us)


def _sample(bound: Bound, side: int, now_us: int, from_us: int | None) -> Sample:
    """The first rows; with `from_us` those that come after the first row of that time or later."""
    schema = bound.plan.streams[side]
    # Batches without columns cannot be put together.
    stage, at = entry_of(bound.plan, side)
    names = read_columns(stage.plan, at) or (schema.columns.names[0],)
    carried = pa.schema([schema.columns.field(name) for name in names])
    parts = [pa.RecordBatch.from_pylist([], schema=carried)]
    bad = large = passed = row_bytes = 0
    room = SAMPLE_BYTES
    until = time.monotonic() + PASSED_S
    for rows, letters in _blocks(bound, side, names, now_us):
        rows = pa.RecordBatch.from_arrays(rows.columns, schema=carried)
        passed += rows.num_rows
        if from_us is None or sum(part.num_rows for part in parts):
            bad += letters
        else:
            rows = rows.slice(_first_from(rows, schema, now_us, from_us))
        rows = rows.slice(0, SAMPLE_ROWS - sum(part.num_rows for part in parts))
        sizes = row_sizes(rows)
        fits = sizes <= ROW_BYTES_MAX
        large += int(np.count_nonzero(~fits))
        rows, sizes = rows.filter(pa.array(fits)), sizes[fits]
        held = int(np.searchsorted(np.cumsum(sizes), room, side="right"))
        room -= int(sizes[:held].sum())
        row_bytes = max(row_bytes, int(sizes[:held].max(initial=0)))
        parts.append(rows.slice(0, held))
        is_full = held < rows.num_rows or sum(part.num_rows for part in parts) >= SAMPLE_ROWS
        if is_full or passed >= PASSED_ROWS_MAX or time.monotonic() > until:
            break
    together = pa.concat_batches(parts)
    ts_us, missing, wrong = event_times(together, schema, now_us)
    return Sample(together, ts_us[~(missing | wrong)], bad, large, row_bytes)


def _first_from(rows: pa.RecordBatch, schema: StreamSchema, now_us: int, from_us: int) -> int:
    """The number of the first row of that time or later; that of none where all are earlier."""
    ts_us, missing, wrong = event_times(rows, schema, now_us)
    late = np.nonzero((ts_us >= from_us) & ~(missing | wrong))[0]
    return int(late[0]) if late.size else rows.num_rows


def _blocks(bound: Bound, side: int, names: tuple[str, ...], now_us: int) -> Iterator[tuple[pa.RecordBatch, int]]:
    """The rows of a stream, and how many records before and among them could not be read."""
    schema = bound.plan.streams[side]
    stream = bound.file.streams[schema.name]
    if isinstance(stream, KafkaSettings):
        yield _newest(bound.file, stream, schema, names)
        return
    with tempfile.TemporaryDirectory() as folder:
        source = source_spec(bound.file, stream, schema).open(schema.name, Path(folder) / "log.jsonl")
        for read in _reads(source, now_us):
            for rows, letters in read.rows(names):
                yield rows, len(letters)


def _reads(source: Source, now_us: int) -> Iterator[Read]:
    """Parts of a stream from its beginning on."""
    if isinstance(source, GeneratorSource):
        stop = PASSED_ROWS_MAX if source.rows is None else min(source.rows, PASSED_ROWS_MAX)
        parts = -(-stop // SAMPLE_ROWS)
        yield from source.reads({"rows": 0, "begun_us": 0}, {"rows": stop, "begun_us": now_us}, parts)
        return
    source.freeze(now_us)
    start = source.initial()
    while (end := source.latest(start, now_us)) != start:
        yield from source.reads(start, end, 1)
        start = end


def _newest(
    file: JoinFile, stream: KafkaSettings, schema: StreamSchema, names: tuple[str, ...]
) -> tuple[pa.RecordBatch, int]:
    values = newest_values(stream.servers, stream.topic, stream.client, TOPIC_ROWS)
    decoded = topic_decoder(stream, schema.columns, file.resolve).decode(values)
    return decoded.rows.select(list(names)), len(decoded.bad)


def row_sizes(rows: pa.RecordBatch) -> np.ndarray:
    """About how many bytes each row has, int64 of shape (n,)."""
    sizes = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            sizes += pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)
        else:
            sizes += column.type.bit_width // 8 or 1
    return sizes
