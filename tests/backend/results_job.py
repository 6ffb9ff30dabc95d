"""A job of the catalog whose results somebody commits without Spark, and apps that serve them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from fastapi import FastAPI

from backend.api import live, queries, snapshots
from backend.app import create_app
from backend.catalog.database import Catalog
from backend.catalog.ids import new_id
from backend.catalog.jobspec import JobSpec
from backend.catalog.models import Job, results_name
from backend.jobs.joinfile import result_spec
from backend.results.memory import recent_for
from backend.settings import Settings
from streamjoin.plan.join import RESULT_KEY, RESULT_TIME
from streamjoin.results.block import key_code
from streamjoin.results.description import Description
from streamjoin.results.parts import BatchDone
from streamjoin.results.policy import EpochPolicy
from streamjoin.results.sink import StoreSink
from tests.catalogs import migrated

SCHEMA = pa.schema(
    [
        ("n", pa.int64()), ("price", pa.float64()), ("name", pa.string()), ("sent_us", pa.int64()),
        (RESULT_TIME, pa.int64()), (RESULT_KEY, pa.int64()),
    ]
)  # fmt: skip
SPAN_US = 1_000_000
KEYS = 50
BATCHES = EpochPolicy(span_us=None, batches=1, immediate=False)
ENTRY = {
    "source": "generator", "kind": "nexmark.bid", "rate": "1000/s", "time": "ts", "delay": "2s",
}  # fmt: skip


def add_job(catalog: Catalog, name: str = "matches", wanted: str = "running") -> Job:
    """A row of the catalog, as if somebody had made and started it."""
    job = Job(
        id=new_id("job"),
        name=name,
        spec=JobSpec("SELECT a.price FROM a JOIN b ON a.auction = b.auction AND a.ts WITHIN 1 SECOND OF b.ts"),
        streams={"a": ENTRY, "b": ENTRY},
        wanted=wanted,
        observed="running",
    )
    with catalog.begin() as session:
        session.add(job)
    return job


def rows(batch: int, count: int, sent_us: int = 0) -> pa.RecordBatch:
    """Rows of one batch: numbers go on from batch to batch, times lie in the batch's second, keys repeat."""
    numbers = np.arange(count, dtype=np.int64) + batch * 1_000_000
    return pa.RecordBatch.from_arrays(
        [
            pa.array(numbers),
            pa.array((numbers % 100) / 4),
            pa.array([f"name {number % 7}" for number in numbers.tolist()]),
            pa.array(np.full(count, sent_us)),
            pa.array(np.linspace(batch * SPAN_US, (batch + 1) * SPAN_US - 1, count).astype(np.int64)),
            pa.array(numbers % KEYS),
        ],
        schema=SCHEMA,
    )


class Committer:
    """The driver of a job: each commit is one snapshot.

    Args:
        memory: keep recent results in the settings' Redis, too.
        policy: when snapshots close.
        query: of which the results are, if it is not the job's own.
    """

    def __init__(
        self, settings: Settings, job: Job, *, memory: bool = False, retain_us: int | None = None,
        equality: bool = True, policy: EpochPolicy = BATCHES, query: str = "",
    ) -> None:  # fmt: skip
        code = key_code(pa.int64(), equality=equality, buckets=1)
        recent, spec = recent_for(settings, job.results_name) if memory else (None, None)
        self.recent = recent
        name = results_name(job.id, job.incarnation, query)
        self.sink = StoreSink(
            result_spec(settings, job), name, Description(SCHEMA, code, key_name="a.auction"), policy,
            retain_us=retain_us, recent=recent, memory=spec, retry_s=5,
        )  # fmt: skip
        self.writer = self.sink.begin("checkpoint")
        self.commits = (self.sink.ledger.head.batch + 1) // 2
        self.numbers: list[int] = []

    def commit(self, count: int = 10, content: pa.RecordBatch | None = None, late: bool = False) -> str:
        """One snapshot of so many rows; its id. A batch without rows closes it."""
        if content is None:
            content = rows(self.commits, count, time.time_ns() // 1000)
        mark = self.commits * SPAN_US + (2 * SPAN_US if late else 0)
        for batch, some in ((2 * self.commits, content), (2 * self.commits + 1, content.slice(0, 0))):
            with self.writer.part(batch, 0, SCHEMA) as part:
                part.write(some, 0)
            self.sink.commit(
                BatchDone(batch, time.time_ns() // 1000, (mark, mark), output_mark_us=mark), [part.summary()]
            )
        self.numbers += content.column("n").to_pylist()
        self.commits += 1
        return str(self.sink.ledger.head.state.last)

    def close(self) -> None:
        """Let go of the memory."""
        if self.recent is not None:
            self.recent.close()
        self.sink.ledger.store.close()


def make_app(settings: Settings, limits: Any = None) -> FastAPI:
    """An app with a migrated catalog and the routes of results."""
    migrated(settings)
    app = create_app(settings)
    if limits is not None:
        app.state.context.shared["results.limits"] = limits
    there = {route.path for route in app.routes if hasattr(route, "path")}
    for module in (queries, snapshots, live):
        if not {route.path for route in module.router.routes} & there:  # type: ignore[attr-defined]
            app.include_router(module.router)
    return app


def settings_in(folder: Path, **values: Any) -> Settings:
    """Everybody may do everything, as often as they like; no Redis unless given."""
    return Settings(
        **{"data": folder / "data", "auth": "off", "redis_url": "redis://127.0.0.1:1/0", "rate_limit": "1000000/minute",
           **values}
    )  # fmt: skip
