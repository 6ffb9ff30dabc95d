"""How often heartbeats come: as often as asked while one could change anything, seldom after that."""

from __future__ import annotations

from dataclasses import replace

from streamjoin.flow.punctuation import IDLE_TIMEOUT_US, Punctuation, StreamClock
from streamjoin.flow.silence import REST_US, Silence

BEAT_US = 1_000_000


def test_a_job_rests_until_its_first_tuple() -> None:
    never = Silence()
    assert never.pause_us(BEAT_US, 0) == never.pause_us(BEAT_US, 9) == REST_US > BEAT_US
    assert never.beat(IDLE_TIMEOUT_US * 5) == never


def test_routers_are_idle_for_one_heartbeat_and_a_chain_is_drained_before_it_rests() -> None:
    silence, now_us, pauses = Silence(0), 0, []
    while (pause_us := silence.pause_us(BEAT_US, 3)) == BEAT_US:
        now_us += pause_us
        silence = silence.beat(now_us)
        pauses.append(now_us)
        assert len(pauses) < 100, "it never rests"
    # The first one that finds routers idle, and three that drain.
    assert pauses[-4] == IDLE_TIMEOUT_US + BEAT_US
    assert pauses[-1] == IDLE_TIMEOUT_US + 4 * BEAT_US


def test_marks_stand_still_while_a_job_rests() -> None:
    """What the rule rests on: the first heartbeat at which all routers are idle moves marks for the last time."""
    given = [Punctuation(0, router, "p", 1, ts_max_us, 0) for router, ts_max_us in (("a", 5_000_000), ("b", 9_000_000))]
    clock = StreamClock().advance(given, 0, 0)
    assert clock.mark_us == 5_000_000
    resting = clock.advance([], 0, IDLE_TIMEOUT_US + 1)
    assert resting.mark_us == 9_000_000
    later = resting.advance([], 0, 100 * IDLE_TIMEOUT_US)
    assert replace(later, now_us=resting.now_us) == resting


def test_input_that_was_not_seen_begins_it_anew() -> None:
    assert Silence(7, 3).until(7) == Silence(7, 3)
    assert Silence(7, 3).until(8) == Silence(8)
    assert Silence(None).until(8) == Silence(8)


def test_heartbeats_that_are_rare_stay_so_and_none_stay_none() -> None:
    assert Silence().pause_us(2 * REST_US, 0) == 2 * REST_US
    assert Silence().pause_us(0, 0) == 0


def test_it_comes_back_from_an_offset() -> None:
    for silence in (Silence(), Silence(7), Silence(7, 3)):
        assert Silence.from_json(silence.to_json()) == silence
