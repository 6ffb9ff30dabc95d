"""Feeds two generated streams at a set rate, into Kafka or into folders of files, and keeps what it fed."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from streamjoin.generate import generator
from streamjoin.results.parts import json_lines
from tests.servers import KafkaBroker

TICK_S = 0.25


class Target(Protocol):
    """Where rows of a stream go."""

    def send(self, stream: str, rows: pa.RecordBatch, number: int) -> None:
        """Deliver rows; they are there when this returns."""


@dataclass
class KafkaTarget:
    """A topic a stream, JSON records."""

    broker: KafkaBroker

    def send(self, stream: str, rows: pa.RecordBatch, number: int) -> None:
        """Produce one record a row."""
        self.broker.produce(stream, [line.encode() for line in json_lines(pa.Table.from_batches([rows]))])


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
    """Sends generators' rows as time goes by, from a thread of its own.

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

    def start(self) -> None:
        """Begin to feed."""
        self._thread.start()

    def stop(self) -> dict[str, int]:
        """End, and tell how many rows of each stream were fed."""
        self._stop.set()
        self._thread.join()
        if self.failure is not None:
            raise self.failure
        return self.fed

    def _run(self) -> None:
        try:
            self._feed()
        except BaseException as failure:  # the main thread raises it
            self.failure = failure

    def _feed(self) -> None:
        self.fed = dict.fromkeys(self.streams, 0)
        begun = time.monotonic()
        number = 0
        while not self._stop.wait(max(begun + number * TICK_S - time.monotonic(), 0)):
            number += 1
            events = int(self.rate_per_s * TICK_S * number)
            for stream, kind in self.streams.items():
                first, stop = self.fed[stream], int(events * self.shares[stream])
                if stop > first:
                    rows = generator(kind).rows(first, stop, seed=1, rate=self.rate_per_s)
                    FolderTarget(self.history).send(stream, rows, number)
                    self.target.send(stream, rows, number)
                    self.fed[stream] = stop
