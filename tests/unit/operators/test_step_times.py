"""What steps of a ring take, as they are watched, and the log by which a batch decides."""

from __future__ import annotations

from math import inf, nan
from pathlib import Path

import pytest

from streamjoin.errors import StateError
from streamjoin.operators.costs.psp import StepTimes
from streamjoin.operators.costs.watched import ENOUGH, KEPT, Watched, observed_s, resolved, terms
from streamjoin.operators.ring.spent import StepsWatched
from streamjoin.spec.measured import MEASURED_FILE, MeasuredLog, known_times

TIMES = StepTimes(join=1e-8, send=1e-7, hop=1e-3, insert=1e-7)

WATCHED = StepsWatched(StepTimes(1e-8, 1e-7, 1e-3), frozenset())


def test_a_time_is_what_work_took_by_how_many_were_worked_on() -> None:
    assert observed_s((0.5, 1000, 0.01)) == 0.5 / 1000
    assert observed_s((0.02, 10, 0.01)) is not None  # twice what would have passed anyway


@pytest.mark.parametrize(
    "taken",
    [
        (0.0, 100, 0.0), (0.5, 0, 0.0), (0.5, 1000, 0.3), (1e-4, 1000, 0.0), (-1.0, 10, 0.0), (nan, 10, 0.0),
        (inf, 10, 0.0), (1e9, 1, 0.0), (0.5, 1e14, 0.0),
    ],
)  # fmt: skip
def test_work_that_tells_nothing_of_a_single_one_is_no_observation(taken: tuple[float, float, float]) -> None:
    assert observed_s(taken) is None


def test_a_time_is_known_once_some_batches_tell_it_and_outliers_do_not_move_it() -> None:
    watched = Watched()
    for _ in range(ENOUGH - 1):
        watched.add({"join": 2e-6, "send": None})
    assert watched.known == {}
    watched.add({"join": 2.1e-6})
    assert watched.known == {"join": 2e-6}
    for outlier in (900.0, 1e-10, 900.0):  # a machine that slept, a clock that jumped
        watched.add({"join": outlier})
        assert watched.known["join"] <= 2.1e-6
    for _ in range(KEPT):
        watched.add({"join": 8e-6})
    assert watched.known == {"join": 8e-6}


def test_what_an_earlier_start_knew_holds_until_as_much_is_measured_anew() -> None:
    watched = Watched({"join": 5e-6, "hop": 1e-4})
    watched.add({"join": 1e-6})
    assert watched.known == {"join": 5e-6, "hop": 1e-4}
    for _ in range(ENOUGH - 1):
        watched.add({"join": 1e-6})
    assert watched.known == {"join": 1e-6, "hop": 1e-4}


def test_what_is_set_wins_over_what_is_measured_and_the_rest_is_assumed() -> None:
    measured = {"join": 3e-6, "send": 4e-7}
    found = resolved(TIMES, {"join"}, measured)
    assert (found.join, found.send, found.hop, found.insert) == (1e-8, 4e-7, 1e-3, 1e-7)
    assert {one.symbol: (round(one.us, 6), one.origin) for one in terms(TIMES, {"join"}, measured)} == {
        "T_j": (0.01, "set"), "T_s": (0.4, "measured"), "T_n": (1000.0, "assumed"), "T_i": (0.1, "assumed"),
        "T_p": (0.0, "assumed"),
    }  # fmt: skip


NODE = {
    "compared": [0.4, 1000, 0.01], "received": [0.03, 200, 0.001], "stored": [0.02, 100, 0.002],
    "purged": [0.01, 50, 0.001], "handed": [0.05, 0, 0],
}  # fmt: skip


def test_all_nodes_and_rounds_tell_what_a_step_took() -> None:
    later = {"compared": [0.2, 500, 0.0], "received": [0.01, 200, 0.0], "handed": [7.0, 0, 0]}
    found = WATCHED.observed([[NODE, NODE], [later]], [0.3], 1000)
    assert found["join"] == pytest.approx(1.0 / 2500)
    # Who writes results down does not send them to a node.
    assert found["send"] == pytest.approx((0.03 * 2 + 0.01 + 0.05 * 2) / 600)
    assert found["insert"] == pytest.approx(0.04 / 200) and found["purge"] == pytest.approx(0.02 / 100)
    assert found["hop"] == pytest.approx(0.3 / 1000)  # a shuffle carries all rows at once


@pytest.mark.parametrize("hops_s", [[], [0.0], [-4.0], [3600.0], [nan]])
def test_a_pause_that_clocks_cannot_have_seen_is_no_hop(hops_s: list[float]) -> None:
    assert WATCHED.observed([[NODE], [NODE]], hops_s, 1000)["hop"] is None
    assert WATCHED.observed([[NODE], [NODE]], [0.1], 0)["hop"] is None


def test_a_batch_that_is_repeated_knows_what_it_knew() -> None:
    log = MeasuredLog().with_batch(3, {"join": 1e-6})
    assert log.before(2) == {} and log.before(3) == log.before(9) == {"join": 1e-6}
    assert log.with_batch(3, {"join": 9e-6}) is log
    more = log.with_batch(7, {"join": 9e-6})
    assert more.before(6) == {"join": 1e-6} and more.before(7) == {"join": 9e-6}
    assert more.with_batch(5, {"join": 2e-6}) is more  # its driver began anew from an older copy
    assert MeasuredLog.from_text(more.to_text()) == more


def test_a_time_is_logged_once_it_is_another_one() -> None:
    log = MeasuredLog().with_batch(1, {"join": 1e-6})
    assert log.with_batch(2, {"join": 1.05e-6}) is log and log.with_batch(2, {}) is log
    assert log.with_batch(2, {"join": 1.2e-6}).before(2) == {"join": 1.2e-6}
    assert log.with_batch(2, {"join": 0.8e-6}).before(2) == {"join": 0.8e-6}
    assert log.with_batch(2, {"join": 1e-6, "send": 1e-7}).before(2) == {"join": 1e-6, "send": 1e-7}


@pytest.mark.parametrize(
    "text", ["", "{}", '{"entries": 3}', '{"entries": [{"batch": 1, "seconds": {"join": NaN}}]}',
             '{"entries": [{"batch": 1, "seconds": {"join": 0}}]}'],
)  # fmt: skip
def test_a_damaged_log_says_the_way_out(text: str, tmp_path: Path) -> None:
    (tmp_path / MEASURED_FILE).write_text(text)
    with pytest.raises(StateError, match="remove this file"):
        MeasuredLog.of(tmp_path)
    assert known_times(tmp_path) == {}
    assert MeasuredLog.of(tmp_path / "nobody") == MeasuredLog()
