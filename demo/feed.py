"""Feeds two generated streams at a set rate, into Kafka or into folders of files, and keeps what it fed."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from streamjoin.errors import RunError
from streamjoin.generate import generator
from streamjoin.generate.stream import BASE_US, TIME
from streamjoin.results.jsonlines import json_lines
from tests.servers import KafkaBroker
from tests.servers.kafka import PRODUCER

TICK_S = 0.25


class Target(Protocol):
    """Where rows of a stream go."""

    def send(self, stream: str, rows: pa.RecordBatch, number: int) -> None:
        """Deliver rows; they are there when this returns."""


class KafkaTarget:
    """A topic a stream, JSON records.

    One producer for all of them: a new one asks the broker for its number first, which takes half a second.
    """

    def __init__(self, broker: KafkaBroker) -> None:
        self._failures: list[KafkaError] = []
        settings = {**PRODUCER, "bootstrap.servers": broker.servers, "on_delivery": self._note}
        # It would complain on the terminal once the broker has ended; what was not delivered is told by `_note`.
        self._producer = Producer({**settings, "log_level": 0})

    def send(self, stream: str, rows: pa.RecordBatch, number: int) -> None:
        """Produce one record a row.

        Raises:
            KafkaException: a record was not delivered.
        """
        for line in json_lines(pa.Table.from_batches([rows])):
            while True:
                try:
                    self._producer.produce(stream, line.encode())
                    break
                except BufferError:
                    self._producer.poll(0.1)  # Full: wait for the sender to make room.
        self._producer.flush()
        if self._failures:
            raise KafkaException(self._failures[0])

    def _note(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failures.append(error)


@dataclass
class FolderTarget:
    """A folder a stream, Parquet files."""

    folder: Path

    def send(self, stream: str, rows: pa.RecordBatch, number: int) -> None:
        """Write one file; it appears under its name when it is whole."""
        (self.folder / stream).mkdir(parents=True, exist_ok=True)
        path = self.folder / stream / f"{number:06d}.parquet"
        hidden = path.with_name(f".{path.name}")
        pq.write_table(pa.Table.from_batches([rows]), hidden)
        hidden.rename(path)


@dataclass
class Feeder:
    """Sends generators' rows as time goes by, from a thread of its own; their event times are the clock's.

    Args:
        streams: stream -> generator kind.
        shares: stream -> its share of all events.
        rate_per_s: events a second, of all streams together.
        history: where the fed rows are kept, a Parquet file a tick.
    """

    target: Target
    streams: dict[str, str]
    shares: dict[str, float]
    rate_per_s: float
    history: Path
    fed: dict[str, int] = field(default_factory=dict)
    failure: BaseException | None = None

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()

    def start(self) -> None:
        """Begin to feed."""
        self._thread.start()

    def check(self) -> None:
        """Raise if feeding has failed.

        Raises:
            RunError: it has.
        """
        if self.failure is not None:
            raise RunError(f"the streams could not be fed: {self.failure}") from self.failure

    def stop(self) -> dict[str, int]:
        """End, and tell how many rows of each stream were fed.

        Raises:
            RunError: feeding has failed.
        """
        self._stop.set()
        self._thread.join()
        self.check()
        return self.fed

    def _run(self) -> None:
        try:
            self._feed()
        except BaseException as failure:  # the main thread raises it
            self.failure = failure

    def _feed(self) -> None:
        self.fed = dict.fromkeys(self.streams, 0)
        begun = time.monotonic()
        # A tick's rows are sent together at its end, so that none is of the future.
        shift = np.timedelta64(time.time_ns() // 1000 - BASE_US - int(TICK_S * 1e6), "us")
        number = 0
        while not self._stop.wait(max(begun + number * TICK_S - time.monotonic(), 0)):
            number += 1
            events = int(self.rate_per_s * TICK_S * number)
            for stream, kind in self.streams.items():
                first, stop = self.fed[stream], int(events * self.shares[stream])
                if stop > first:
                    rows = generator(kind).rows(first, stop, seed=1, rate=self.rate_per_s)
                    place = rows.schema.get_field_index(TIME)
                    moved = pc.add(rows.column(place), pa.scalar(shift))
                    rows = rows.set_column(place, rows.schema.field(place), moved)
                    FolderTarget(self.history).send(stream, rows, number)
                    self.target.send(stream, rows, number)
                    self.fed[stream] = stop
