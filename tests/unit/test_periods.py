"""Where rows and files end periods: what streams say, what they owe each other, and when a period is complete."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.flow import periods
from streamjoin.flow.periods import BEFORE_ALL_US, Ended, Ends, capped, closing, ended_by
from streamjoin.flow.punctuation import Punctuation
from streamjoin.plan.ending import EndsByRow, as_typed


def said(*ends_us: int, file: int | None = None, latest_us: int | None = None) -> Punctuation:
    return Punctuation(0, "all", "p", 1, latest_us, 0, ends_us=ends_us, file=file)


def test_rows_of_several_pieces_end_periods_in_the_order_of_event_time() -> None:
    assert ended_by([said(7, 9), said(), said(3, 8)]) == Ended((3, 7, 8, 9))
    assert ended_by([]) == Ended()


def test_a_file_ends_a_period_behind_its_latest_row_whatever_pieces_it_was_read_in() -> None:
    told = [said(file=4, latest_us=5), said(file=3, latest_us=9), said(file=4, latest_us=6), said(file=5), said()]
    told += [said(file=6), said(file=6, latest_us=1), said(file=6)]
    told += [said(file=7, latest_us=-5), said(file=7, latest_us=0), said(file=7)]  # 1970 is a time as any other
    for seed in range(5):
        random.Random(seed).shuffle(told)
        assert ended_by(told) == Ended((10, 7, None, 2, 1), by_file=True)


def test_a_punctuation_has_come_when_the_mark_has_passed_it_and_not_before() -> None:
    ends = Ends().after(Ended((3, 7, 8)), 6)
    assert (ends.passed_us, ends.ahead_us) == ((3,), (7, 8))
    assert ends.after(Ended(), 7).passed_us == (3, 7)
    assert ends.after(Ended((5,)), 7).passed_us == (3, 5, 7), "one that came later, and still in time"
    assert Ends().after(Ended((3,)), None).passed_us == ()


def test_one_that_is_late_is_counted_all_the_same_so_that_the_pairs_stay_together() -> None:
    ends = Ends().after(Ended((3, 7)), 10).after(Ended((2, 12)), 12)
    assert ends.passed_us == (3, 7, 2, 12)
    other = Ends((), (4, 5, 6, 7))
    assert closing([ends, other], 100, None) == [4, 7, 7, 12], "a period never ends before the one before it"


def test_files_end_periods_in_their_order_with_all_that_was_read_before() -> None:
    first = Ends().after(Ended((None, 10, 4), by_file=True), 3)
    assert (first.passed_us, first.ahead_us) == ((BEFORE_ALL_US,), (10, 10))
    second = first.after(Ended((6, 15, None), by_file=True), 15)
    assert second.passed_us == (BEFORE_ALL_US, 10, 10, 10, 15, 15)


def test_a_period_is_complete_when_all_streams_have_ended_it_and_the_output_has_passed_the_latest_end() -> None:
    r, s = Ends((), (1, 2, 3)), Ends((), (2,))
    assert closing([r, s], 1, None) == []
    assert closing([r, s], None, None) == []
    assert closing([r, s], 2, None) == [2]
    assert closing([r, s], 9, None) == [2]
    late = Ends((), (2, 50))
    assert closing([r, late], 49, None) == [2]
    assert closing([r, late], 50, None) == [2, 50]
    assert closing([r.without(1), late.without(1)], 50, 2) == [50]


def test_a_stream_far_ahead_ends_no_further_periods_and_loses_none_of_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(periods, "PERIODS_AHEAD_MAX", 3)
    assert capped([1, 2, 3]) == [1, 2, 3]
    assert capped([1, 2, 9, 4]) == [1, 2, 9]
    ends = Ends().after(Ended((1, 2, 3, 4, 5)), 100)
    assert ends.passed_us == (1, 2, 5)
    assert ends.after(Ended((7, 8)), 100).passed_us == (1, 2, 8)
    assert ends.without(2).after(Ended((7, 8)), 100).passed_us == (5, 7, 8)
    assert len(Ends().after(Ended((10, 20, 30, 40, 50)), 0).ahead_us) == 3


def test_ends_and_what_says_them_survive_json() -> None:
    ends = Ends((1, 2), (-5,), 2)
    assert Ends.from_json(json.loads(json.dumps(ends.to_json()))) == ends
    for told in (said(1, 2), said(file=0, latest_us=4), said()):
        assert Punctuation.from_json(json.loads(json.dumps(told.to_json()))) == told


US, NS = pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC")
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "kind", "wanted"),
    [
        (5, pa.int8(), 5),
        ("5", pa.int64(), 5),
        ("true", pa.bool_(), True),
        ("0.5", pa.float64(), 0.5),
        (True, pa.bool_(), True),
        (5, pa.float64(), 5.0),
        (0.5, pa.float32(), 0.5),
        ("end", pa.string(), "end"),
        ("end", pa.binary(), b"end"),
        ("2026-01-02T03:04:05Z", US, AT),
        ("2026-01-02T04:04:05+01:00", US, AT),
        ("2026-01-02 03:04:05", US, AT),
        (AT, US, AT),
        ("2026-01-02", pa.date32(), date(2026, 1, 2)),
        (date(2026, 1, 2), pa.date32(), date(2026, 1, 2)),
        ("1.50", pa.decimal128(9, 2), Decimal("1.50")),
        (1.5, pa.decimal128(9, 2), Decimal("1.50")),
    ],
)
def test_a_value_is_of_the_type_of_its_column(value: Any, kind: pa.DataType, wanted: Any) -> None:
    found = as_typed(value, kind)
    assert found is not None and found.type == kind and found.as_py() == wanted
    column = pa.array([None, wanted, wanted], kind)
    assert EndsByRow("c", found).marked(pa.record_batch([column], ["c"])).tolist() == [False, True, True]


def test_a_time_in_nanoseconds_is_one_too() -> None:
    found = as_typed("2026-01-02T03:04:05.000000001Z", NS)
    assert found is not None and found.value % 10**9 == 1


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (300, pa.int8()),
        (1.5, pa.int64()),
        ("5.5", pa.int64()),
        ("end", pa.int64()),
        ("nan", pa.float64()),
        (True, pa.int64()),
        (1, pa.bool_()),
        ("yes", pa.bool_()),
        (5, pa.string()),
        (float("nan"), pa.float64()),
        (float("inf"), pa.float64()),
        ("soon", US),
        (5, US),
        ("2026-01-40", pa.date32()),
        ("1.555", pa.decimal128(9, 2)),
        ("x", pa.decimal128(9, 2)),
        ([1], pa.int64()),
        ({"a": 1}, pa.string()),
    ],
)
def test_a_value_that_the_column_cannot_hold_is_none(value: Any, kind: pa.DataType) -> None:
    assert as_typed(value, kind) is None
