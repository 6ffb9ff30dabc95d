"""Where slots run on a cluster, batch by batch: a program that writes a line of JSON for each, until it is killed.

A line has `places`, by slot where it ran, and `slots`, by slot of which slots it got rows.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator

import pyarrow as pa

from streamjoin.spark.session import create_session
from streamjoin.spark.staying import Staying
from streamjoin.spark.wire import ROUTED_SCHEMA
from streamjoin.spec.cluster import Cluster, ExecutorsFile

SLOTS = 2


def routed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A row for each slot from each piece."""
    for _ in batches:
        slots = pa.array(range(SLOTS), pa.int32())
        block = pa.array([b"block"] * SLOTS, pa.binary())
        yield pa.RecordBatch.from_arrays([slots, pa.array(["{}"] * SLOTS), block], ["slot", "meta", "block"])


def placed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Where the slot runs, and the slots that it got rows of."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    found = sorted({slot for rows in batches for slot in rows["slot"].to_pylist()})
    time.sleep(0.1)  # a batch has some work, or one core does all
    yield pa.RecordBatch.from_arrays(
        [pa.array([context.partitionId()]), pa.array([os.getcwd()]), pa.array([json.dumps(found)])],
        ["slot", "place", "slots"],
    )


def main(master: str, settings: str) -> None:
    """Batches without end."""
    cluster = Cluster(master, ExecutorsFile(min=2, max=2, memory="512m"))
    session = create_session(SLOTS, cluster=cluster, settings=json.loads(settings))
    staying = Staying(session, SLOTS)
    while True:
        staying.look()
        pieces = session.range(0, SLOTS, 1, SLOTS).mapInArrow(routed, ROUTED_SCHEMA)
        met = staying.partitioned(pieces).mapInArrow(placed, "slot long, place string, slots string")
        rows = sorted(met.collect())
        told = {"places": [row.place for row in rows], "slots": [json.loads(row.slots) for row in rows]}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
