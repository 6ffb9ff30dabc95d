"""What a report says of units that join relations: rates and shares from what they counted."""

from __future__ import annotations

import pytest

from streamjoin.operators.reading import counted, measured

SECONDS = {"probe": 0.2, "store": 0.05}


def test_a_rate_is_of_the_units_own_time_and_units_at_once_share_it() -> None:
    counts = counted({"reading": {"tuples": 1_000, "relation_rows": 250, "cache_hits": 600}, "seconds": SECONDS})
    assert counts["work_us"] == 250_000
    found = measured(counts, 2)
    assert found == {"rate_per_s": 8_000.0, "rows_read_per_tuple": 0.25, "cached_share": 0.6}


@pytest.mark.parametrize("counts", [{}, {"tuples": 0, "work_us": 5}, {"tuples": 5, "work_us": 0}])
def test_without_tuples_or_time_there_is_no_rate(counts: dict[str, int]) -> None:
    assert measured(counts, 2)["rate_per_s"] is None


def test_units_that_join_no_relation_count_nothing() -> None:
    assert counted({"seconds": SECONDS}) == counted({"reading": {}, "seconds": SECONDS}) == {}


def test_a_lookup_reads_nothing_and_caches_nothing() -> None:
    found = measured({"tuples": 7, "work_us": 7}, 1)
    assert found == {"rate_per_s": 1e6, "rows_read_per_tuple": None, "cached_share": None}
