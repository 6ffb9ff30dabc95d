"""Marks: how far a stream has come, and who may hold it back."""

from __future__ import annotations

import json

from streamjoin.flow.idle import with_idle
from streamjoin.flow.punctuation import HEARTBEAT, IDLE_TIMEOUT_US, Punctuation, StreamClock


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


HALF_US = IDLE_TIMEOUT_US // 2


def test_the_time_between_two_runs_is_nobodys_silence() -> None:
    clock = StreamClock().advance([said("a", 100), said("b", 70)], 0, now_us=0, begins=True)
    stopped_us = 9 * IDLE_TIMEOUT_US
    first = clock.advance([said("a", 500)], 0, stopped_us, begins=True)
    assert first.mark_us == 70
    assert first.advance([said("b", 80)], 0, stopped_us + 1).mark_us == 80
    # In a batch that is not the first of its run, it was silent for so long.
    assert clock.advance([said("a", 500)], 0, stopped_us).mark_us == 500


def test_silence_adds_up_over_runs_that_are_shorter_than_the_time_out() -> None:
    clock = StreamClock().advance([said("a", 0), said("b", 0)], 0, 0, begins=True)
    marks, now_us = [], 0
    for run in range(1, 4):
        now_us += 10 * IDLE_TIMEOUT_US
        clock = clock.advance([said("a", 10 * run)], 0, now_us, begins=True)
        now_us += HALF_US
        clock = clock.advance([said("a", 10 * run + 1)], 0, now_us)
        marks.append(clock.mark_us)
    assert marks == [0, 0, 31]
    # It stays idle over the next stop, and returns at once with a tuple.
    assert clock.advance([said("a", 50)], 0, now_us * 2, begins=True).mark_us == 50
    assert clock.advance([said("a", 50), said("b", 40)], 0, now_us * 2, begins=True).mark_us == 40


def test_a_router_whose_records_give_no_tuple_is_not_idle_and_one_never_heard_of_counts_for_nothing() -> None:
    clock = StreamClock().advance([said("a", 100), said("b", 70)], 0, 0)
    later = clock.advance([said("a", 500), said("b", None, rows=0), said("c", None, rows=0)], 0, 2 * IDLE_TIMEOUT_US)
    assert later.mark_us == 70
    assert sorted(later.routers) == ["a", "b"]
    assert later.advance([said("a", 600)], 0, 3 * IDLE_TIMEOUT_US + 1).mark_us == 600


def test_a_clock_that_was_set_back_makes_nobody_idle() -> None:
    clock = StreamClock().advance([said("a", 100), said("b", 70)], 0, IDLE_TIMEOUT_US)
    back = clock.advance([said("a", 200)], 0, 0)
    assert (back.mark_us, back.now_us) == (70, IDLE_TIMEOUT_US)
    assert back.advance([], 0, IDLE_TIMEOUT_US + 1).mark_us == 70


def test_a_manifest_from_before_clocks_were_kept_counts_from_its_last_tuple() -> None:
    clock = StreamClock().advance([said("a", 100)], 0, 5).advance([said("b", 70)], 0, 9)
    written = {name: value for name, value in clock.to_json().items() if name != "now_us"}
    assert StreamClock.from_json(written) == clock
    assert StreamClock.from_json(StreamClock().to_json()) == StreamClock()


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


def test_a_shorter_time_out_of_a_stream_is_that_of_its_partitions() -> None:
    clock = StreamClock().advance([said("a", 100), said("b", 70)], 0, now_us=0)
    assert clock.advance([said("a", 500)], 0, 30, 30).mark_us == 70
    assert clock.advance([said("a", 500)], 0, 31, 30).mark_us == 500


def test_a_stream_is_idle_after_logged_time_in_which_it_had_nothing_to_bring() -> None:
    clock = StreamClock().advance([], 0, 0, begins=True)
    assert not clock.is_idle(None)
    assert not clock.advance([], 0, 30).is_idle(30)
    assert clock.advance([Punctuation(0, HEARTBEAT, HEARTBEAT, 0, None, 31)], 0, 31).is_idle(30), "it never brought any"
    assert not clock.advance([said("a", None, rows=0)], 0, 31).is_idle(30), "what gives no row was read, too"
    assert not clock.advance([], 0, 31, begins=True).is_idle(30), "nobody looked"
    assert clock.advance([], 0, 1_000, begins=True).advance([], 0, 1_031).is_idle(30)


def test_idle_streams_take_the_lowest_mark_of_the_active_ones_and_else_the_highest() -> None:
    def at(mark: int | None, silent_us: int) -> StreamClock:
        return StreamClock(mark_us=mark, now_us=100, seen_us=100 - silent_us)

    def marks(clocks: list[StreamClock], idle_us: int | None = 30) -> list[int | None]:
        return [clock.mark_us for clock in with_idle(clocks, [idle_us] * len(clocks))]

    assert marks([at(5, 50), at(8, 0), at(7, 30)]) == [7, 8, 7]
    assert marks([at(9, 50), at(8, 0)]) == [9, 8], "a mark never goes back"
    assert marks([at(5, 50), at(8, 31), at(None, 99)]) == [8, 8, 8]
    assert marks([at(5, 50), at(None, 0)]) == [5, None], "an active one has not begun"
    assert marks([at(None, 50), at(None, 50)]) == [None, None]
    assert marks([at(5, 50), at(8, 0)], None) == [5, 8]
