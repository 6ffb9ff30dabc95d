"""A look at a stream before anything runs: its columns, its first rows, and how skewed its values are."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from backend.skew import SKEW_ROWS
from backend.streams.entry import one_stream, opened_schema
from backend.streams.times import TimeColumn, time_columns
from backend.streams.widened import Widened, widened_columns
from streamjoin.errors import InputError
from streamjoin.intake.event_time import event_times, usable
from streamjoin.plan.schema import ARRIVAL, StreamSchema
from streamjoin.sources.kafka_kind import KafkaSettings, topic_decoder
from streamjoin.sources.source import first_rows
from streamjoin.sources.texts import TEXT_FORMATS
from streamjoin.sources.topic import newest_values
from streamjoin.spec.inputs import source_spec
from streamjoin.spec.joinfile import JoinFile

ROWS = 100
"""Records of each partition of a topic that are read."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What was seen.

    Args:
        schema: the stream's columns.
        rows: the first that a join could use, or the newest ones of a topic; `SKEW_ROWS` at most.
        bad: why records could not be read or have no event time, with how many there were of each.
        rate_per_s: rows a second of event time among them; None where that cannot be told.
        times: columns that may be the event time.
        widened: columns that were guessed to be text because of a few values.
    """

    schema: pa.Schema
    rows: pa.RecordBatch
    bad: Counter[str]
    rate_per_s: float | None
    times: list[TimeColumn]
    widened: list[Widened]


def look_at(entry: Mapping[str, Any], secrets: Mapping[str, str] | None = None) -> Sample:
    """Read a little of a stream. The reader of jobs reads it, so what is a bad record here is one there.

    Raises:
        InputError: it cannot be reached or read; the message says what to change.
    Cost: opens one file, or asks the broker, which has seconds to answer.
    """
    file, stream = one_stream(entry)
    schema = opened_schema(file, stream)
    if schema.time != ARRIVAL and schema.time not in schema.columns.names:
        raise InputError(
            f'"{schema.time}" is no column; columns are {", ".join(schema.columns.names[:50])}', field="time"
        )
    if isinstance(stream, KafkaSettings):
        rows, bad = _newest_of_topic(file, stream, schema, secrets or {})
    else:
        with tempfile.TemporaryDirectory() as folder:
            source = source_spec(file, stream, schema).open("stream", Path(folder) / "log.jsonl")
            rows, letters = first_rows(source, schema.columns, SKEW_ROWS)
            bad = Counter(letter.detail for letter in letters)
    times = time_columns(rows)
    is_guessed = stream.schema_ is None and stream.source in TEXT_FORMATS
    widened = widened_columns(rows) if is_guessed else []
    rows, without_time = usable(rows, schema)
    return Sample(schema.columns, rows, bad + without_time, _rate(rows, schema), times, widened)


def _newest_of_topic(
    file: JoinFile, stream: KafkaSettings, schema: StreamSchema, secrets: Mapping[str, str]
) -> tuple[pa.RecordBatch, Counter[str]]:
    """The newest records of each partition, and why others cannot be read."""
    values = newest_values(stream.servers, stream.topic, {**stream.client, **secrets}, ROWS)
    decoded = topic_decoder(stream, schema.columns, file.resolve).decode(values)
    return decoded.rows.slice(0, SKEW_ROWS), Counter(item.detail for item in decoded.bad)


def _rate(rows: pa.RecordBatch, schema: StreamSchema) -> float | None:
    if schema.time == ARRIVAL or rows.num_rows < 2:
        return None
    ts_us, _, _ = event_times(rows, schema, 0)
    span_us = int(ts_us.max() - ts_us.min()) if ts_us.size else 0
    return float(ts_us.size / span_us * 1e6) if span_us else None
