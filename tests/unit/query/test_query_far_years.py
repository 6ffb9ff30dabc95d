"""Years far from ours: Arrow keeps a year in 16 bits, and the calendar repeats every 400 years."""

from __future__ import annotations

import random

import duckdb
import pyarrow as pa
import pytest

from streamjoin.plan.evaluation import evaluate
from streamjoin.plan.functions import times
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.types import TIMESTAMP, TIMESTAMP_NS
from streamjoin.query import plan_query

DAY_US = 86_400_000_000
TOP, BOTTOM = 2**63 - 1, -(2**63)
# DuckDB's last moment is one earlier, and its first one is the midnight after ours.
MOMENTS = [TOP - 1, BOTTOM + DAY_US, 10**18, -(10**18), 0, -1, 253_402_300_800_000_000, -62_135_596_800_000_001, None]
MOMENTS += [random.Random(7).randrange(BOTTOM + DAY_US, TOP) for _ in range(2_000)]


def values(text: str, column: pa.Array) -> pa.Array:
    """An item over the column `t` of a stream."""
    streams = {
        name: StreamSchema(name, pa.schema([("ts", pa.int64()), ("t", column.type)]), "ts") for name in ("r", "s")
    }
    item = plan_query(f"SELECT ONLINE {text} AS item, s.ts AS other FROM r, s", streams).select[0][1]
    return evaluate(item, {("r", "t"): column}, len(column))


@pytest.fixture(scope="module")
def moments() -> pa.Array:
    return pa.array(MOMENTS, pa.int64()).cast(TIMESTAMP)


@pytest.fixture(scope="module")
def in_duckdb():
    with duckdb.connect() as connection:
        connection.register("moments", pa.table({"us": pa.array(MOMENTS, pa.int64())}))
        connection.execute("CREATE TABLE r AS SELECT make_timestamp(us) AS t FROM moments")
        yield lambda text: [value for (value,) in connection.execute(f"SELECT {text} FROM r").fetchall()]


@pytest.mark.parametrize("field", times.FIELDS)
def test_fields_are_duckdbs_in_any_year(field, moments, in_duckdb):
    assert values(f"EXTRACT({field} FROM r.t)", moments).to_pylist() == in_duckdb(f"EXTRACT({field} FROM r.t)")


@pytest.mark.parametrize("unit", ["day", "week", "month", "quarter", "year"])
def test_moments_are_cut_off_as_in_duckdb_in_any_year(unit, moments, in_duckdb):
    found = values(f"DATE_TRUNC('{unit}', r.t)", moments).cast(pa.int64()).to_pylist()
    # No week and no longer unit begins at or before the first days that int64 has.
    wanted = in_duckdb(f"TRY(epoch_us(DATE_TRUNC('{unit}', r.t)))")
    assert [one for one in found if one is not None] == [
        two for one, two in zip(found, wanted, strict=True) if one is not None
    ]
    assert {MOMENTS[place] for place, one in enumerate(found) if one is None} <= {None, MOMENTS[1]}


def test_texts_have_every_digit_of_the_year():
    moments = pa.array([TOP, BOTTOM, 10**18, 253_402_300_800_000_000, -62_167_219_200_000_001, 0, None], pa.int64())
    assert values("CAST(r.t AS VARCHAR)", moments.cast(TIMESTAMP)).to_pylist() == [
        "294247-01-10 04:00:54.775807Z", "-290308-12-21 19:59:05.224192Z", "33658-09-27 01:46:40.000000Z",
        "10000-01-01 00:00:00.000000Z", "-0001-12-31 23:59:59.999999Z", "1970-01-01 00:00:00.000000Z", None,
    ]  # fmt: skip
    days = pa.array([2**31 - 1, -(2**31), 106_751_992, 0, None], pa.int32()).cast(pa.date32())
    assert values("CAST(r.t AS VARCHAR)", days).to_pylist() == [
        "5881580-07-11", "-5877641-06-23", "294247-01-11", "1970-01-01", None
    ]  # fmt: skip


def test_dates_without_a_midnight_have_no_parts_and_stop_nothing():
    days = pa.array([2**31 - 1, 106_751_992, 106_751_991, 0], pa.int32()).cast(pa.date32())
    assert values("YEAR(r.t)", days).to_pylist() == [None, None, 294_247, 1970]
    assert values("DATE_TRUNC('year', r.t) IS NULL", days).to_pylist() == [True, True, False, False]
    assert values("EPOCH(r.t)", days).to_pylist() == [None, None, 106_751_991 * 86_400.0, 0.0]


def test_nanoseconds_become_microseconds_and_texts_become_times_with_what_is_finer_cut_off():
    ends = pa.array([TOP, BOTTOM, 1_001, -1, None], pa.int64()).cast(TIMESTAMP_NS)
    us = values("CAST(r.t AS TIMESTAMP)", ends).cast(pa.int64()).to_pylist()
    assert us == [TOP // 1_000, BOTTOM // 1_000, 1, -1, None]
    texts = pa.array(["1970-01-01 00:00:00.000001999", "1970-01-01T01:00:00.0000019999+01:00", "x", None])
    assert values("CAST(r.t AS TIMESTAMP)", texts).cast(pa.int64()).to_pylist() == [1, 1, None, None]
    assert values("CAST(r.t AS TIMESTAMP_NS)", texts).cast(pa.int64()).to_pylist() == [1_999, 1_999, None, None]
