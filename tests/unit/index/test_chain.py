"""The chain of segments: what one archive period holds, to the microsecond."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.flow.block import Block
from streamjoin.index.chain import SMALL_ROWS, Chain
from streamjoin.index.layout import layout_of
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.window import R
from streamjoin.query import plan_query
from tests.conformance.histories import TIMESTAMP

PERIOD_US = 1_000
COLUMNS = pa.schema([("id", pa.int64()), ("ts", TIMESTAMP), ("k", pa.int64())])


def store(chain: Chain, times_us: list[int]) -> None:
    """A batch with as many rows at each of these times as a segment of their own takes."""
    ts_us = np.repeat(np.array(times_us), SMALL_ROWS)
    numbers = pa.array(np.arange(ts_us.size))
    rows = pa.RecordBatch.from_arrays([numbers, pa.array(ts_us).view(TIMESTAMP), numbers], schema=COLUMNS)
    columns = {("r", name): rows.column(name) for name in COLUMNS.names}
    chain.store(Block(rows.select(["id"]), ts_us), [columns], None)


@pytest.fixture
def chain() -> Chain:
    streams = {name: StreamSchema(name, COLUMNS, "ts") for name in "rs"}
    plan = plan_query(
        "SELECT ONLINE r.id AS a, s.id AS b FROM r, s WHERE r.k = s.k WITHIN 1 SECOND",
        streams,
        archive_period_us=PERIOD_US,
    )
    return Chain((layout_of(plan, R),), ("id",), plan.archive_period, [])


@pytest.mark.parametrize(("apart_us", "segments"), [(PERIOD_US, 1), (PERIOD_US + 1, 2)])
def test_a_batch_of_exactly_one_period_is_one_segment(chain: Chain, apart_us: int, segments: int) -> None:
    store(chain, [0, apart_us])
    assert len(chain.segments) == segments


@pytest.mark.parametrize(("apart_us", "segments"), [(PERIOD_US, 1), (PERIOD_US + 1, 2)])
def test_neighbours_of_exactly_one_period_are_merged(chain: Chain, apart_us: int, segments: int) -> None:
    store(chain, [0])
    store(chain, [apart_us])
    assert len(chain.segments) == 2
    chain.merge()
    assert len(chain.segments) == segments
