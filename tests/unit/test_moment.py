"""When batches begin where the wall clock is set, or the machine sleeps."""

from __future__ import annotations

from streamjoin.flow.moment import Moment

SECOND, HOUR = 1_000_000, 3_600_000_000
NOON = 1_700_000_000 * SECOND


def run(wall_us: list[int], before: Moment | None = None) -> list[Moment]:
    """A run that looks once a second, by what the wall clock says each time."""
    moments = [(before or Moment()).begun(wall_us[0])]
    for now_us in wall_us[1:]:
        moments.append(moments[-1].after(SECOND, now_us))
    return moments


def since(start_us: int, times_us: list[int]) -> list[float]:
    """In seconds."""
    return [(time_us - start_us) / SECOND for time_us in times_us]


def test_a_clock_that_is_not_set_is_all_three() -> None:
    assert run([NOON, NOON + SECOND, NOON + 2 * SECOND]) == [Moment(now, now, now) for now in (
        NOON, NOON + SECOND, NOON + 2 * SECOND)]  # fmt: skip


def test_a_step_forward_is_no_time_that_passed_and_rows_arrive_when_they_do() -> None:
    moments = run([NOON, NOON + HOUR + SECOND, NOON + HOUR + 2 * SECOND])
    assert since(NOON, [moment.clock_us for moment in moments]) == [0, 1, 2]
    assert since(NOON, [moment.arrival_us for moment in moments]) == [0, 3601, 3602]


def test_after_a_step_back_rows_arrive_half_as_fast_until_they_arrive_when_they_do() -> None:
    moments = run([NOON, *(NOON + (number - 4) * SECOND for number in range(1, 11))])
    assert since(NOON, [moment.clock_us for moment in moments]) == list(range(11))
    arrived = since(NOON, [moment.arrival_us for moment in moments])
    assert arrived == [0, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6]


def test_a_clock_that_was_ahead_at_the_start_and_is_corrected_freezes_nothing() -> None:
    moments = run([NOON + HOUR, NOON + SECOND, NOON + 2 * SECOND])
    assert since(NOON + HOUR, [moment.clock_us for moment in moments]) == [0, 1, 2]
    assert since(NOON + HOUR, [moment.arrival_us for moment in moments]) == [0, 1, 1.5]
    # The next run goes on from there.
    later = run([NOON + 10 * SECOND, NOON + 11 * SECOND], moments[-1])
    assert since(NOON + HOUR, [moment.clock_us for moment in later]) == [2, 3]
    assert since(NOON + HOUR, [moment.arrival_us for moment in later]) == [1.5, 2]


def test_a_run_begins_by_the_wall_clock() -> None:
    assert Moment(NOON, NOON + HOUR, NOON + HOUR).begun(NOON + 2 * HOUR) == Moment(*[NOON + 2 * HOUR] * 3)


def test_a_clock_that_was_set_is_noticed_and_one_that_drifts_is_not() -> None:
    logged = Moment(NOON, NOON, NOON)
    assert not logged.after(SECOND, NOON + SECOND + 500).is_off(logged)
    assert logged.after(SECOND, NOON + 2 * SECOND).is_off(logged) and logged.after(SECOND, NOON).is_off(logged)
    stepped = logged.after(SECOND, NOON + HOUR)
    assert not stepped.after(SECOND, NOON + HOUR + SECOND).is_off(stepped)


def test_it_comes_back_from_an_offset_and_an_old_one_has_the_wall_clock_alone() -> None:
    moment = Moment(1, 2, 3)
    assert Moment.from_json({**moment.to_json(), "streams": {}}) == moment
    assert Moment.from_json({"clock_us": 5, "streams": {}}) == Moment(5, 5, 5)
