"""What a session does before its first job, so that the job does not wait for it: one small join, to its end.

Everything that a job uses is loaded, compiled and forked by then: Spark's plans, its planners in Python, our workers
and the store of results.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from streamjoin.spark.run import run_job
from streamjoin.spark.session import start_workers
from streamjoin.spec.joinfile import parse
from streamjoin.spec.prepare import bind

JOIN = """
streams:
  auction: {source: generator, kind: nexmark.auction, rows: 60, time: ts, delay: 1s}
  bid: {source: generator, kind: nexmark.bid, rows: 600, time: ts, delay: 1s}
query: SELECT ONLINE auction.id, bid.price FROM auction, bid WHERE auction.id = bid.auction WITHIN 1 SECOND
results: {store: sqlite, path: results.db, job: warm}
run: {offsets_per_batch: 300, checkpoint: checkpoint}
"""


def join(session: SparkSession, slots: int, folder: Path) -> None:
    """Join two streams of a few rows.

    Args:
        folder: for its files; nothing in it is needed afterwards.
    """
    start_workers(session, slots)
    bound = bind(parse(JOIN, base=folder, overrides={"run.slots": str(slots)}))
    run_job(session, bound, bound.job(heartbeat=False), bound.sinks(), until_end=True)
