"""What `explain` predicts of operators that read a relation part by part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.explain.plans import explain
from streamjoin.operators.costs.ssbj import Bytes, memory_bytes
from streamjoin.operators.ssbj.step import COLLECTED_SHARE

from .conftest import Changes, Try
from .test_auto_relations import BAND, JOIN, MIXED

ROWS = 60_000
MIB = 1 << 20
ROW, TUPLE = 8 + 100 + 4 + 16, 8 + 8 + 16


@pytest.fixture(autouse=True)
def skewed(folder: Path) -> Path:
    """A relation of a row a value, and a stream that asks for few values more often than for others."""
    pq.write_table(pa.table({"id": np.arange(ROWS), "name": ["n" * 100] * ROWS}), folder / "wide.parquet")
    shares = np.arange(1, ROWS + 1) ** -1.0
    keys = np.random.default_rng(1).choice(ROWS, 20_000, p=shares / shares.sum())
    times = np.datetime64("2026-01-01") + np.arange(keys.size).astype("timedelta64[ms]")
    rows = pa.table({"ts": pa.array(times, pa.timestamp("ms")), "id": np.arange(keys.size), "k": keys})
    pq.write_table(rows, folder / "skewed.parquet")
    return folder


def changes(query: str = JOIN, **operator: Any) -> Changes:
    return {
        "streams/orders": {"source": "parquet", "path": "skewed.parquet", "time": "ts", "delay": "0s"},
        "relations": {"customers": {"source": "parquet", "path": "wide.parquet"}}, "query": query,
        **{f"operator/{name}": value for name, value in operator.items()},
    }  # fmt: skip


def test_rows_read_and_what_the_cache_joins_are_predicted(validate: Try) -> None:
    shown = explain(validate(changes(memory=1)))
    found = shown.to_json()["readings"]
    assert list(found) == ["ssbj", "meshjoin"] and found["ssbj"]["memory_bytes"] == MIB
    ssbj = found["ssbj"]
    # Equation 1, from the share and the rows read: what the memory has to be.
    round_tuples, buffer_rows = ROWS / ssbj["rows_read_per_tuple"], MIB / 10 / ROW
    misses = (1 - ssbj["cached_share"]) * round_tuples * buffer_rows / ROWS
    waits = memory_bytes(Bytes(TUPLE, ROW), ROWS, buffer_rows, 0, misses)
    room = MIB - (MIB - buffer_rows * ROW) / COLLECTED_SHARE
    assert 0.5 * room < waits < room  # the rest is cached
    assert 0.3 < ssbj["cached_share"] < 0.9
    text = str(shown)
    assert f"predicted   ssbj: {ssbj['cached_share']:.0%} of o from the cache, " in text
    assert "rows of c read for each row of o, in 1.0 MiB" in text and "meshjoin: " in text
    assert "ssbj         can run it; what it reads is predicted above" in text
    assert "lookup       can run it; no formula tells its costs" in text


def test_meshjoin_with_its_usual_memory_by_hand(validate: Try) -> None:
    found = explain(validate(changes(name="meshjoin", memory=2, partitions=40))).to_json()["readings"]["meshjoin"]
    round_tuples = (2 * MIB - ROWS / 40 * ROW) / TUPLE
    assert found == {
        "text": f"{found['rows_read_per_tuple']:.2g} rows of c read for each row of o, in 2.0 MiB",
        "memory_bytes": 2 * MIB,
        "rows_read_per_tuple": pytest.approx(ROWS / round_tuples, rel=0.02),
        "cached_share": 0,
    }


def test_more_memory_reads_less_and_enough_of_it_nothing(validate: Try) -> None:
    read = [
        explain(validate(changes(memory=memory))).to_json()["readings"]["ssbj"]["rows_read_per_tuple"]
        for memory in (1, 2, 4, 64)
    ]
    assert read == sorted(read, reverse=True) and len(set(read)) == 4 and read[-1] == 0
    assert "ssbj: 100% of o from the cache, nothing of c read once it is cached" in str(
        explain(validate(changes(memory=64)))
    )


def test_too_little_memory_is_said_before_the_start(validate: Try) -> None:
    shown = explain(validate(changes(memory=1, partitions=1)))
    assert "ssbj: a memory of 1 MiB is not enough, as a part of the relation has 3.7 MiB in each of 2 units" in str(
        shown
    )
    found = shown.to_json()["readings"]
    assert list(found["ssbj"]) == ["text"] and "give at least 15 MiB, or more partitions" in found["ssbj"]["text"]
    assert found["meshjoin"]["memory_bytes"] == 256 * MIB  # its own usual one


@pytest.mark.parametrize("query", [BAND, MIXED])
def test_where_too_little_is_known_nothing_is_predicted(query: str, validate: Try) -> None:
    shown = explain(validate(changes(query)))
    assert shown.readings == () and "\npredicted " not in str(shown)


def test_a_rate_takes_what_it_takes(validate: Try) -> None:
    assert list(explain(validate(changes(rate=1_000))).to_json()["readings"]) == ["meshjoin"]
