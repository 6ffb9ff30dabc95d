"""The gather stage: results in order, as the join's `ordering` promises.

    units -> repartitionById(gather partition) -> gather -> sink

A gather partition gets the results whose newer tuple lies in its share of the batch's span of the sequence, so that the
partitions one after the other are the whole batch in order, and batches follow each other. It plays the part of
SplitJoin's gathering tree (USENIX ATC 2016); what the tree's stars tell, the end of the unit stage tells here.

Cost: results are shuffled once, and the results of a batch are held in memory, each partition its share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from streamjoin.engine.arranging import in_order
from streamjoin.engine.routing import split
from streamjoin.flow.block import to_ipc
from streamjoin.plan.ordering import NEWER
from streamjoin.plan.stages import Query
from streamjoin.spark.wire import row, rows_of


def run_rows(results: pa.RecordBatch, query: int, span: range, partitions: int) -> Iterator[pa.RecordBatch]:
    """Results of a unit as rows for the gather partitions.

    Args:
        query: whose results they are; its number in the job.
        span: sequence numbers of the newer tuples of the batch's results.
    """
    places = results.column(NEWER).to_numpy() - span.start
    for partition, rows in split(places * partitions // max(len(span), 1)):
        share = results if rows.size == results.num_rows else results.take(pa.array(rows))
        yield row(partition, {"query": query}, to_ipc(share))


@dataclass(slots=True)
class Gathering:
    """One gather partition's work on one batch."""

    queries: tuple[Query, ...]
    _runs: dict[int, list[pa.RecordBatch]] = field(default_factory=dict)

    def receive(self, batches: Iterator[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
        """Take everything that was sent here; gives the reports among it."""
        for meta, buffer in rows_of(batches):
            if buffer is None:
                yield meta["report"]
            else:
                self._runs.setdefault(meta["query"], []).append(pa.ipc.open_stream(buffer).read_next_batch())

    def results(self, query: int) -> Iterator[pa.RecordBatch]:
        """A query's results in order, without their sequence numbers; only once."""
        plan = self.queries[query]
        return in_order(plan.ordering, self._runs.pop(query, []), plan.delivered.names)
