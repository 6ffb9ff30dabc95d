"""What units read and cache, beside what the cost model says of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.operators.costs.keys import zipf_keys
from streamjoin.operators.costs.ssbj import Bytes, Join, StepTimes
from streamjoin.operators.ssbj.cache import ENTRY_BYTES
from streamjoin.operators.ssbj.step import COLLECTED_SHARE

from .semistream import EQUAL, NAMES, PartsJob, units_of
from .test_relations import RELATION, STREAM, planned

ROWS, PARTS, WARM, MEASURED = 4_000, 15, 24, 6
TUPLE_BYTES = 4 * 8
"""Two columns that are read, the time and the join value."""
ANY_TIMES = StepTimes(seek=1.0, read=0.0, look_up=0.0, output=0.0, take=1.0, append=0.0, remove=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("skew", [0.5, 1.0])
@pytest.mark.parametrize("name", NAMES)
def test_units_read_and_cache_as_much_as_the_model_says(name: str, skew: float, tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    shares = np.arange(1, ROWS + 1) ** -skew
    of_relation = random.integers(0, ROWS, ROWS)
    rows = pa.RecordBatch.from_arrays(
        [
            pa.array(range(ROWS)), pa.array(of_relation), pa.array([1] * ROWS), pa.array(["n" * 60] * ROWS),
        ], schema=RELATION,
    )  # fmt: skip
    memory = 100_000
    job = PartsJob(planned(EQUAL), tmp_path, units_of(name, 1, partitions=PARTS, memory_bytes=memory))
    job.take({"c": rows})
    each = 6_000  # always more than a round has room for
    before = (0, 0, 0)
    for number in range(WARM + MEASURED):
        keys = random.choice(ROWS, each, p=shares / shares.sum())
        arrays = [pa.array(range(each)), pa.array(np.full(each, number)), pa.array(keys), pa.array([1] * each)]
        job.batch([[pa.RecordBatch.from_arrays(arrays, schema=STREAM)]])
        totals, (report,) = job.totals(), job.loop.reports
        done = (number + 1) * each - report.holding["outside_rows"]
        now = (totals["relation_bytes"], totals["cache_hits"], done)
        if number == WARM - 1:
            before = now
    read, hits, taken = (after - first for after, first in zip(now, before, strict=True))
    row_bytes = totals["relation_bytes"] / totals["steps"] * PARTS / ROWS
    sizes = Bytes(TUPLE_BYTES, row_bytes, entry=ENTRY_BYTES)
    model = Join(sizes, ANY_TIMES, ROWS, zipf_keys(ROWS, skew, ROWS))
    caches, buffer_rows = name == "ssbj", ROWS / PARTS
    kept = (memory - buffer_rows * row_bytes) / COLLECTED_SHARE if caches else 0
    said = model.given_memory(memory - kept, buffer_rows, caches=caches)
    assert read / row_bytes / taken == pytest.approx(ROWS / said.round_tuples, rel=0.15)
    assert hits / taken == pytest.approx(said.cached_share, rel=0.15, abs=0.05)
