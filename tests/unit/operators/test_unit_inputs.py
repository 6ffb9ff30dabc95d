"""In of every unit, and B, their sum: as reports tell it and as `explain` predicts it (BiStream, section 4.3)."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.explain.plans import explain
from streamjoin.operators import costs
from streamjoin.operators.biclique import Biclique, Routing
from streamjoin.operators.costs import StreamStatistics
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query
from streamjoin.spark.batchreport import BatchReport
from streamjoin.spark.progress import Progress
from streamjoin.spec.joinfile import parse
from streamjoin.spec.prepare import bind
from tests.conformance.local import LocalRun

COLUMNS = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("k", pa.int64())])
ROWS = {"r": 40_000, "s": 20_000}
TUPLE_BYTES = 16
"""Event time and key."""
SHAPES = [Biclique(3, 5), Biclique(4, 4, Routing.HASH), Biclique(5, 6, Routing.CONTRAND, 2, 4)]


def rows(count: int, seed: int) -> pa.RecordBatch:
    ts = pa.array(np.arange(count)).view(COLUMNS.field("ts").type)
    keys = pa.array(np.random.default_rng(seed).integers(0, 10_000, count))
    return pa.RecordBatch.from_arrays([ts, keys], schema=COLUMNS)


def inputs(operator: Biclique, r: StreamStatistics, s: StreamStatistics) -> list[float]:
    d, e = (len(groups) for groups in operator.groups)
    found = costs.biclique_inputs_bytes_per_s(r, s, operator.r_units, operator.s_units, d, e)
    return [*found[0], *found[1]]


@pytest.mark.parametrize("operator", SHAPES, ids=str)
def test_what_a_report_says_that_units_received_is_their_in(operator: Biclique, tmp_path: Path) -> None:
    streams = {name: StreamSchema(name, COLUMNS, "ts") for name in "rs"}
    plan = plan_query("SELECT ONLINE r.k FROM r, s WHERE r.k = s.k WITHIN 1 MICROSECONDS", streams)
    run = LocalRun(plan, operator, tmp_path, slots=3)
    progress = Progress()
    for batch in range(2):
        run.batch(([rows(ROWS["r"], 2 * batch)], [rows(ROWS["s"], 2 * batch + 1)]))
        progress.add(BatchReport(batch, 0, [asdict(report) for report in run.reports[batch]], {}, {}))
    # Of a second of two batches.
    r, s = (StreamStatistics(TUPLE_BYTES, 2 * ROWS[name], 0) for name in "rs")
    wanted = inputs(operator, r, s)
    measured = [progress.units[unit]["received_bytes"] for unit in sorted(progress.units)]
    assert measured == [pytest.approx(one, rel=0.1) for one in wanted]
    assert sum(measured) == sum(progress.received_bytes.values())


def test_explain_predicts_the_busiest_input_and_that_nothing_waits_for_an_order(tmp_path: Path) -> None:
    for name in "rs":
        pq.write_table(pa.Table.from_batches([rows(ROWS[name], 1)]), tmp_path / f"{name}.parquet")
    # Tuples that waited as long as streams are late would be most of what is stored.
    text = f"""
streams:
  r: {{source: parquet, path: {tmp_path}/r.parquet, time: ts, delay: 10s}}
  s: {{source: parquet, path: {tmp_path}/s.parquet, time: ts, delay: 10s}}
query: SELECT ONLINE r.k FROM r, s WHERE r.k = s.k WITHIN 1 SECONDS
operator: {{name: biclique, routing: random, r_units: 3, s_units: 5}}
"""
    shown = explain(bind(parse(text, base=tmp_path)))
    assert shown.statistics is not None
    r, s = shown.statistics
    [told] = [one for one in shown.to_json()["operators"] if one["name"] == "biclique"]
    assert told["memory_bytes"] == round(r.tuple_bytes * r.stored + s.tuple_bytes * s.stored)
    assert told["busiest_bytes_per_s"] == round(max(inputs(Biclique(3, 5), r, s)))
    assert told["bytes_per_s"] == round(sum(inputs(Biclique(3, 5), r, s)))
