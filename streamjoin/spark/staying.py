"""Slots that stay on the machine that has their segments, where tasks run on several.

    anchors    one row a slot, a partition each, which Spark keeps in the memory of the executor that made it
    units      anchors without their rows + routed blocks, partition by partition

Spark likes to start a task where the kept partitions are that it reads, so a slot's units run where its anchor is, as
long as a core there is free within `spark.locality.wait`. An anchor that is lost with its executor is made again by the
slot's next task, wherever that runs. Nothing is read from anchors, so results do not depend on them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (its usual name)

from streamjoin.spark.wire import ROUTED_SCHEMA

FIRST_HOLD_S = 1.0
NEXT_HOLD_S = 5.0
"""Longer than Spark's `spark.locality.wait` of 3 s and what a start takes, after which idle machines get what waits."""
KEY = "key"
"""A slot's number among those whose hash leads to its partition."""
_TRIED = 64
"""Numbers tried for each slot; not to find one for some slot is as likely as e**-64."""
_log = logging.getLogger("streamjoin.driver")


class Staying:
    """The anchors of a job's slots.

    Args:
        session: of a cluster.
    """

    def __init__(self, session: SparkSession, slots: int) -> None:
        self.session = session
        self.slots = slots
        self._keys: list[int] = []
        self._anchors: DataFrame | None = None
        self._known: frozenset[str] = frozenset()
        self._works = True
        self._made = 0

    def look(self) -> None:
        """Before a batch: anchor slots, and where executors have come, give them those that wait for a core elsewhere.

        Cost: nothing mostly; some seconds at the start and when executors have come.
        """
        if not self._works or not (now := executors_at(self.session)) - self._known:
            return
        if self._anchors is None:
            self._keys = _keys(self.session, self.slots)
            self._anchor(FIRST_HOLD_S)
            self._check()
        else:
            self._anchor(NEXT_HOLD_S)
        self._known = now

    def partitioned(self, routed: DataFrame) -> DataFrame:
        """Routed blocks, a partition a slot, which Spark likes to read where the slot's anchor is.

        Returns:
            With a further column `KEY`, by which Spark knows that both sides of the union are partitioned alike, and
            which has to be read.
        """
        if self._anchors is None:
            return routed.withColumn(KEY, F.lit(0)).repartitionById(self.slots, F.col("slot"))
        return _near(self._anchors, self._keyed(routed))

    def close(self) -> None:
        """Let the anchors go."""
        if self._anchors is not None:
            self._anchors.unpersist()
            self._anchors = None

    def _keyed(self, rows: DataFrame) -> DataFrame:
        """Rows partitioned by the hash of their slot's key."""
        keys = F.lit(self._keys).cast("array<bigint>")
        return rows.withColumn(KEY, F.element_at(keys, F.col("slot") + 1)).repartition(self.slots, KEY)

    def _anchor(self, seconds: float) -> None:
        """Keep a row a slot; each of them keeps its core for a while, so that the others go to other cores.

        All are made from nothing, or what Spark sends with each task would grow with all executors that ever came.
        """
        names = [f"CAST(NULL AS {kind}) AS {name}" for name, kind in _columns() if name != "slot"]
        slots = self.session.range(0, self.slots, 1, 1).selectExpr("CAST(id AS int) AS slot", *names)
        self._made += 1
        # Spark takes rows of the same plan for those that it keeps, so plans differ by a number.
        anchors = self._keyed(slots).where(f"{_holding(seconds)} AND {self._made} > 0").persist()
        before, self._anchors = self._anchors, anchors
        if before is None:
            anchors.count()
            return
        # Those before say where slots are, and each of the new ones is made there unless its turn comes too late.
        _near(before, anchors).select(KEY).collect()
        before.unpersist()

    def _check(self) -> None:
        """Make sure that blocks come to their slots' partitions as Spark is set; else do without anchors."""
        assert self._anchors is not None
        rows = self._anchors.drop(KEY)
        # What is not read need not be there, so the key is.
        found = self.partitioned(rows).select(KEY, "slot", F.spark_partition_id()).collect()
        if sorted(row[1:] for row in found) != [(slot, slot) for slot in range(self.slots)]:
            _log.warning("slots move among machines: this Spark does not zip unions by their partitions")
            self.close()
            self._works = False


def _near(anchors: DataFrame, rows: DataFrame) -> DataFrame:
    """The rows alone. Spark prefers to compute each partition where its anchor is, as long as `KEY` is read."""
    # Spark zips children of a union that are partitioned alike, which it sees at hashes of columns alone.
    return anchors.where("meta IS NOT NULL").unionAll(rows)


def _holding(seconds: float) -> str:
    """A condition that holds, and does so for a while, until a time that is the same for all rows.

    A function in Python would lose how rows are partitioned. For a row that is made again later the time is over.
    """
    hold_ms = int(seconds * 1000)
    # Spark takes the first time when it plans the rows.
    left_ms = (
        f"unix_millis(current_timestamp()) + {hold_ms}"
        " - CAST(java_method('java.lang.System', 'currentTimeMillis') AS long)"
    )
    return f"java_method('java.lang.Thread', 'sleep', least(greatest({left_ms}, 0L), {hold_ms}L)) IS NOT NULL"


def without_key(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Routed blocks as they were before `Staying.partitioned`."""
    return (batch.drop_columns([KEY]) for batch in batches)


def _columns() -> list[tuple[str, str]]:
    """Names and types of the rows that blocks travel in."""
    return [(name, kind) for name, kind in (column.split() for column in ROUTED_SCHEMA.split(", "))]


def _keys(session: SparkSession, slots: int) -> list[int]:
    """By slot, a number whose hash leads to the slot's partition."""
    tried = session.range(0, _TRIED * slots, 1, 1).selectExpr("id", f"pmod(hash(id), {slots}) AS slot").toArrow()
    first = dict(zip(reversed(tried["slot"].to_pylist()), reversed(tried["id"].to_pylist()), strict=True))
    return [first[slot] for slot in range(slots)]


def executors_at(session: SparkSession) -> frozenset[str]:
    """Addresses of all executors, and of the driver."""
    known: Any = session.sparkContext._jsc.sc().getExecutorMemoryStatus()
    return frozenset(known.keySet().mkString(" ").split())


def staying(session: SparkSession, slots: int) -> Staying | None:
    """Anchors for a job's slots; None where all tasks run on the driver's machine."""
    return None if (session.conf.get("spark.master") or "").startswith("local") else Staying(session, slots)
