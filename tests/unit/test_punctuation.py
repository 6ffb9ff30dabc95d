"""Marks: how far a stream has come, and who may hold it back."""

from __future__ import annotations

import json

from streamjoin.punctuation import IDLE_TIMEOUT_US, Punctuation, StreamClock


def said(router: str, ts_max_us: int | None, rows: int = 1, piece: str = "p") -> Punctuation:
    return Punctuation(0, router, piece, rows, ts_max_us, 0)


def test_the_mark_is_the_slowest_routers_latest_time_less_the_delay() -> None:
    clock = StreamClock().advance([said("a", 100), said("b", 70)], delay_us=10, now_us=0)
    assert clock.mark_us == 60


def test_the_mark_never_goes_back() -> None:
    clock = StreamClock().advance([said("a", 100)], 0, 0).advance([said("a", 40), said("b", 20)], 0, 1)
    assert clock.mark_us == 100


def test_an_idle_router_stops_holding_the_mark_back_and_a_returning_one_does_again() -> None:
    clock = StreamClock().advance([said("a", 100), said("b", 70)], 0, now_us=0)
    later = clock.advance([said("a", 500)], 0, now_us=IDLE_TIMEOUT_US)
    assert later.mark_us == 70
    much_later = later.advance([said("a", 900)], 0, now_us=IDLE_TIMEOUT_US + 1)
    assert much_later.mark_us == 900
    assert much_later.advance([said("a", 1_000), said("b", 950)], 0, IDLE_TIMEOUT_US + 2).mark_us == 950


def test_with_all_routers_idle_the_furthest_one_tells_the_time() -> None:
    clock = StreamClock().advance([said("a", 100), said("b", 70)], 0, now_us=0)
    assert clock.advance([], 0, now_us=10 * IDLE_TIMEOUT_US).mark_us == 100


def test_without_a_tuple_there_is_no_mark() -> None:
    clock = StreamClock().advance([said("a", None, rows=0)], 0, 0)
    assert clock.mark_us is None
    assert clock.rows == 0


def test_ranks_go_on_where_the_last_batch_ended() -> None:
    clock = StreamClock().advance([said("a", 1, rows=3), said("a", 2, rows=4)], 0, 0)
    assert clock.rows == 7


def test_clocks_and_punctuations_survive_json() -> None:
    clock = StreamClock().advance([said("a", 100), said("b", -(2**62))], 5, 9)
    assert StreamClock.from_json(json.loads(json.dumps(clock.to_json()))) == clock
    punctuation = Punctuation(1, "topic/3", "000001@7", 12, None, 2**60, {"rows": 12})
    assert Punctuation.from_json(json.loads(json.dumps(punctuation.to_json()))) == punctuation
