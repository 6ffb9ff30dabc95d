"""DATE_TRUNC by weeks, to both ends of int64, against days counted by Python."""

from __future__ import annotations

import pyarrow as pa
import pytest

from streamjoin.plan.functions.times import truncate

ENDS = [0, -1, 2**63 - 1, -(2**63) + 1, 2**63 - 10**9, 1_234_567_890_123_456_789, -987_654_321_987_654_321]
DAY_US = 86_400_000_000
MONDAY = 4
"""The first one is on the fifth day of 1970."""


@pytest.mark.parametrize(("unit", "per_day"), [("us", DAY_US), ("ns", DAY_US * 1_000)])
def test_weeks_begin_on_monday_also_in_the_last_days_there_are(unit: str, per_day: int) -> None:
    times = [*ENDS, *(2**63 - 1 - hours * per_day // 24 for hours in range(1, 24 * 20))]
    days = [time // per_day for time in times]
    want = [(day - (day - MONDAY) % 7) * per_day for day in days]
    found = truncate(pa.array(times, pa.int64()).cast(pa.timestamp(unit, "UTC")), "WEEK")
    assert found.cast(pa.int64()).to_pylist() == [begin if begin >= -(2**63) else None for begin in want]
