"""A relation that is read again and again, on Spark: exact through a crash and a new version in mid-round."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from .test_relations import replaced_after_a_crash

pytestmark = pytest.mark.spark


def test_ssbj_joins_exactly_and_reports_what_it_did(session: SparkSession, tmp_path: Path) -> None:
    knobs = "operator: {name: ssbj, units: 2, partitions: 3, steps: 2, memory: 1}\n"
    reading = replaced_after_a_crash(session, tmp_path, knobs)["reading"]
    assert reading["steps"] >= 2 * 2 * 3 and reading["waiting_rows"] == 0
    assert 0 < reading["memory_bytes_max"] <= 1 << 20 and reading["relation_bytes"] > 0
    assert reading["rate_per_s"] == pytest.approx(2 * reading["tuples"] * 1e6 / reading["work_us"], rel=0.01)
    assert reading["rate_per_s"] > 0
    assert reading["rows_read_per_tuple"] > 0 and reading["predicted"]["rate_per_s"] > 0
    assert reading["units_counting"] + reading["units_switching"] + reading["units_phasing_out"] == 2
