"""SplitJoin's one flow from the top down: who stores, who processes, what expires."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from simulate.network import Candidate, Earliest, Faults, Network, Shuffled
from simulate.splitjoin import check
from simulate.splitjoin.core import Region
from simulate.splitjoin.distribution import Input, JoinCore, Source
from simulate.splitjoin.messages import Arrival, End, Message, Ordering, Precision, Result, Star
from simulate.splitjoin.report import totals
from simulate.splitjoin.system import Costs, SplitJoin
from simulate.splitjoin.tree import tree_over
from simulate.splitjoin.window import Aged, CountWindow, Ring, Stored, TimeWindow
from streamjoin.operators.costs.splitjoin import depth_of
from tests.unit.simulate.splitjoin_runs import R, S, always, close, expected, history, played, sequence

pytestmark = pytest.mark.slow

ALTERNATING = sequence("RS" * 12)
EVERYTHING = CountWindow(1_000)
ONE_US = Costs(link_us=lambda sender, receiver: 1)


@pytest.mark.parametrize("cores", [1, 2, 7, 28, 29, 64, 125])
@pytest.mark.parametrize("fan_out", [2, 4, 5])
def test_the_tree_reaches_each_core_once_on_as_few_levels_as_there_can_be(cores: int, fan_out: int) -> None:
    names = [f"core {at}" for at in range(cores)]
    tree = tree_over(names, fan_out, "distributor")
    assert tree.leaves() == names
    assert fan_out ** tree.depth() >= cores and (cores == 1 or fan_out ** (tree.depth() - 1) < cores)
    assert tree.depth() == depth_of(cores, fan_out)
    assert max((len(node.children) for node in tree.inner()), default=0) <= fan_out


def test_the_fan_out_grows_before_the_depth() -> None:
    shapes = [tree_over([str(at) for at in range(cores)], 4, "node") for cores in (2, 3, 4, 5)]
    assert [(len(tree.children), tree.depth()) for tree in shapes] == [(2, 1), (3, 1), (4, 1), (2, 2)]


@pytest.mark.parametrize(("cores", "fan"), [(1, 2), (2, 2), (7, 2), (7, 4), (28, 4), (29, 4), (29, 2)])
def test_any_number_of_cores_joins_the_same(cores: int, fan: int) -> None:
    inputs, window = ALTERNATING[:10], CountWindow(3)
    run = played(inputs, window, cores=cores, fan_out=fan, fan_in=fan, scheduler=Shuffled(cores))
    assert check.exactly_once(run.pairs, expected(inputs, window, always)) == []
    assert check.same_sequence(run.network.log, run.regions) == [] and len(run.regions) == 2 * cores


@pytest.mark.parametrize("streams", ["", "R", "S", "RRRRR", "SSSSS", "RS", "SR", "RRRRSSSS", "SSSSRRRR"])
def test_streams_that_are_empty_or_come_one_after_the_other(streams: str) -> None:
    run = played(sequence(streams), EVERYTHING, scheduler=Shuffled(1))
    assert check.exactly_once(run.pairs, expected(sequence(streams), EVERYTHING, always)) == [] and run.ended


def test_every_tuple_reaches_every_core_is_stored_at_one_and_compared_with_the_whole_opposite_window() -> None:
    run = played(ALTERNATING, CountWindow(5), cores=4, match=close)
    for region in run.regions.values():
        assert sum(region.seen.values()) == len(ALTERNATING)
    counted = totals(run)
    assert counted.received == 4 * len(ALTERNATING)
    assert counted.stored == len(ALTERNATING)
    # Of 24 alternating tuples the n-th of a stream meets min(5, what the other stream had).
    assert counted.comparisons == len(expected(ALTERNATING, CountWindow(5), always))
    assert counted.results == len(run.pairs) and counted.match_probability == counted.results / counted.comparisons


def test_results_of_r_come_only_from_left_regions() -> None:
    run = played(ALTERNATING, EVERYTHING)
    found = [
        (each.message.newer.stream, each.sender.split()[-1])
        for each in run.network.log
        if each.sender in run.regions and isinstance(each.message, Result)
    ]
    assert set(found) == {(R, "left"), (S, "right")}
    for name, region in run.regions.items():
        assert region.stores is (S if name.endswith("left") else R)


class _LeftFirst:
    """Right regions get nothing as long as anything else can happen."""

    def pick(self, candidates: Sequence[Candidate]) -> int:
        return next((at for at, each in enumerate(candidates) if not each.receiver.endswith("right")), 0)


def test_the_regions_of_a_core_may_drift_apart_by_a_thousand_tuples() -> None:
    inputs = [each for _ in range(500) for each in sequence("RS", [1, 2])]
    window = CountWindow(2)
    run = SplitJoin(_LeftFirst(), 1, window, always)
    run.feed([*inputs, End()])
    left, right = run.regions["core 0 left"], run.regions["core 0 right"]
    run.network.run(until=lambda: sum(left.seen.values()) == 1_000)
    assert sum(right.seen.values()) == 0 and len(left.window) == 2, (
        "left is ahead, and kept no copy of what it processed"
    )
    run.network.run()
    assert check.exactly_once(run.pairs, expected(inputs, window, always)) == []
    assert len(left.window) == len(right.window) == 2


# What the proof of "exactly once" needs: no loss, FIFO, the same order everywhere.


def _faulty(faults: Faults) -> SplitJoin:
    return played(ALTERNATING, EVERYTHING, faults=faults, costs=ONE_US)


def _wrong(run: SplitJoin, inputs: Any = ALTERNATING) -> tuple[bool, bool]:
    """Whether the checkers of sequences and of pairs complain."""
    return (
        bool(check.same_sequence(run.network.log, run.regions)),
        bool(check.exactly_once(run.pairs, expected(inputs, EVERYTHING, always))),
    )


def test_a_tuple_lost_on_the_way_to_one_core_is_detected() -> None:
    last = tree_over([f"core {at}" for at in range(4)], 2, "distributor").parents()["core 2"]
    assert _wrong(_faulty(Faults())) == (False, False)
    assert _wrong(_faulty(Faults(lose={(last, "core 2", 4)}))) == (True, True)


@pytest.mark.parametrize(("number", "complaint"), [(4, "too much"), (6, "missing")])
def test_two_tuples_swapped_on_the_way_to_one_core_are_detected(number: int, complaint: str) -> None:
    # Core 2 stores R2 (place 4) and S2 (place 5). R2 before S1: both find each other. R3 before S2: neither does.
    last = tree_over([f"core {at}" for at in range(4)], 2, "distributor").parents()["core 2"]
    run = _faulty(Faults(overtake={(last, "core 2", number)}))
    assert _wrong(run) == (True, True)
    assert all(complaint in each for each in check.exactly_once(run.pairs, expected(ALTERNATING, EVERYTHING, always)))


def test_a_swap_of_two_tuples_that_are_stored_in_the_same_core_does_no_harm_but_is_seen() -> None:
    last = tree_over([f"core {at}" for at in range(4)], 2, "distributor").parents()["core 2"]
    assert _wrong(_faulty(Faults(overtake={(last, "core 2", 5)}))) == (True, False)


class _MergesDifferently(JoinCore):
    """At one core R's tuples overtake S's: each stream is in order, but not both together."""

    def take(self, port: str, message: Message, network: Network) -> Any:
        if self.name != "core 2":
            yield from super().take(port, message, network)
            return
        held = self.__dict__.setdefault("held", [])
        if isinstance(message, Arrival) and message.stream is S:
            held.append(message)
            return
        yield [(child, message) for child in self.outputs] if isinstance(message, Arrival) else []
        while held:
            earlier = held.pop(0)
            yield [(child, earlier) for child in self.outputs]
        if not isinstance(message, Arrival):
            yield [(child, message) for child in self.outputs]


def test_merging_both_streams_differently_at_two_cores_is_detected() -> None:
    assert _wrong(played(ALTERNATING, EVERYTHING, core=_MergesDifferently)) == (True, True)


# Whose turn it is to store.


class _CommonCounter(Region):
    """Counts both streams together for the round robin."""

    def rank_of(self, tuple_: Arrival) -> int:
        return sum(self.seen.values())


def _stored(run: SplitJoin, side: str) -> list[int]:
    return [run.regions[f"{core} {side}"].stored for core in run.cores]


def test_turns_are_counted_for_each_stream_apart() -> None:
    assert _stored(played(ALTERNATING, EVERYTHING), "right") == [3, 3, 3, 3]
    assert _stored(played(ALTERNATING, EVERYTHING, region=_CommonCounter), "right") == [6, 0, 6, 0]


@pytest.mark.parametrize(("cores", "run"), [(4, 1), (3, 1), (3, 5)])
def test_sub_windows_differ_by_at_most_one_run_at_any_time(cores: int, run: int) -> None:
    join = SplitJoin(Earliest(), cores, EVERYTHING, always, run=run)
    for each in history(random.Random(cores), 40):
        join.feed([each])
        join.network.run()
        for side in ("left", "right"):
            sizes = _stored(join, side)
            assert max(sizes) - min(sizes) <= run
            assert sizes == sorted(sizes, reverse=True) or run > 1


@pytest.mark.parametrize("window", [CountWindow(10), CountWindow(7), CountWindow(16)])
def test_runs_of_five_at_three_cores(window: CountWindow) -> None:
    inputs = history(random.Random(7), 80)
    join = played(inputs, window, cores=3, run=5, precision=Precision(Ordering.INNER), scheduler=Shuffled(7))
    assert check.exactly_once(join.pairs, expected(inputs, window, always)) == []
    assert check.inner_order([left.message for left in join.output]) == []


# Count windows.


class _UncheckedRing(Ring):
    """Takes all that the ring holds, and rings of W / k rounded up."""

    def __init__(self, rows: int, cores: int, run: int) -> None:
        super().__init__(rows, cores, run)
        self._capacity = -(-rows // cores)

    def live(self, seen: int, tuple_: Arrival) -> list[Stored]:
        return list(self._stored)


class _UncheckedWindow(CountWindow):
    def sub_window(self, cores: int, run: int) -> Ring:
        return _UncheckedRing(self.rows, cores, run)


@pytest.mark.parametrize(("rows", "cores"), [(10, 4), (7, 3), (8, 4), (1, 3), (2, 5)])
def test_a_count_window_is_exact_also_if_the_cores_do_not_divide_it(rows: int, cores: int) -> None:
    inputs = sequence("RRRS" * 12)
    run = played(inputs, CountWindow(rows), cores=cores)
    assert check.exactly_once(run.pairs, expected(inputs, CountWindow(rows), always)) == []
    naive = played(inputs, _UncheckedWindow(rows), cores=cores)
    too_much = check.exactly_once(naive.pairs, expected(inputs, CountWindow(rows), always))
    assert bool(too_much) == (rows % cores != 0) and all("too much" in each for each in too_much)


def test_fixed_rings_for_ten_tuples_at_four_cores_hold_twelve() -> None:
    naive = played(sequence("R" * 20), _UncheckedWindow(10))
    assert sum(len(naive.regions[f"{core} right"].window) for core in naive.cores) == 12


def test_a_probe_after_q_opposite_tuples_sees_the_ranks_from_q_minus_w_to_q_minus_1() -> None:
    run = played(sequence("R" * 23 + "S"), CountWindow(10))
    assert sorted(pair[0] for pair in run.pairs) == list(range(13, 23))
    assert totals(run).comparisons == 10


# Time windows.


class _AsPrinted(Aged):
    """Algorithm 4 with the sign that the paper prints."""

    @staticmethod
    def _age_us(stored: Arrival, new: Arrival) -> int:
        return -Aged._age_us(stored, new)


class _NotStrict(Aged):
    """Expires at the window's length already."""

    @staticmethod
    def _age_us(stored: Arrival, new: Arrival) -> int:
        return Aged._age_us(stored, new) + 1


def _time_window(kind: type[Aged], length_us: int) -> Any:
    class Naive(TimeWindow):
        def sub_window(self, cores: int, run: int) -> Aged:
            return kind(self.length_us, False)

    return Naive(length_us)


def test_a_gap_of_the_windows_length_joins_and_one_more_does_not() -> None:
    inputs = sequence("RRS", times=[0, 1, 11])
    assert played(inputs, TimeWindow(10)).pairs == [(1, 0)]
    assert sorted(played(inputs, _time_window(_AsPrinted, 10)).pairs) == [(0, 0), (1, 0)]
    assert played(inputs, _time_window(_NotStrict, 10)).pairs == []


def test_what_has_expired_is_dropped_before_it_is_compared() -> None:
    run = played(sequence("RRRRS", times=[0, 1, 2, 11, 12]), TimeWindow(10), cores=2)
    assert totals(run).comparisons == 2 and totals(run).expired == 2


def test_expiry_sends_no_messages() -> None:
    for window, times in ((CountWindow(2), None), (TimeWindow(3), list(range(24)))):
        run = played(sequence("RS" * 12, times=times), window)
        assert totals(run).expired > 0
        assert {type(each.message) for each in run.network.log} == {Arrival, Result, Star, End}
        between_cores = [
            each for each in run.network.log if each.sender.split()[0] == each.receiver.split()[0] == "core"
        ]
        assert all(each.receiver.startswith(each.sender + " ") for each in between_cores), "no core talks to another"


def test_a_stream_that_lags_is_refused_as_it_would_join_what_is_far_away(monkeypatch: pytest.MonkeyPatch) -> None:
    hour, ten_seconds = 3_600_000_000, 10_000_000
    late = sequence("RS", times=[hour, 0])
    with pytest.raises(ValueError, match="event time fell from 3600000000 to 0 us"):
        played(late, TimeWindow(ten_seconds))
    monkeypatch.setattr(Source, "_check", lambda self, item: None)
    assert played(late, TimeWindow(ten_seconds)).pairs == [(0, 0)], "an hour apart"


def test_only_tuples_for_time_windows_carry_a_time() -> None:
    with pytest.raises(ValueError, match="have an event time with time windows"):
        played(sequence("R"), TimeWindow(1))
    with pytest.raises(ValueError, match="have an event time with time windows"):
        played(sequence("R", times=[0]), CountWindow(1))


def test_a_silent_opposite_stream_stops_expiry_unless_tuples_of_the_own_stream_are_a_clock_too() -> None:
    length_us = 10
    inputs = sequence("R" * 100 + "SR", times=range(102))
    paper, own = played(inputs, TimeWindow(length_us)), played(inputs, TimeWindow(length_us, expire_on_own=True))
    assert paper.pairs == own.pairs and len(own.pairs) == length_us + 1
    silent = sequence("R" * 100, times=range(100))
    paper, own = played(silent, TimeWindow(length_us)), played(silent, TimeWindow(length_us, expire_on_own=True))
    assert sum(totals(paper).sub_windows.values()) == 100
    assert sum(totals(own).sub_windows.values()) == length_us + 1


def test_what_is_counted_is_what_the_log_says() -> None:
    inputs = history(random.Random(3), 40, by_time=True)
    run = played(inputs, TimeWindow(20), match=close, costs=ONE_US, scheduler=Earliest())
    counted, log = totals(run), run.network.log
    from_regions = [each.message for each in log if each.sender in run.regions]
    assert counted.received == sum(isinstance(each.message, Arrival) for each in log if each.receiver in run.cores)
    assert counted.results == sum(isinstance(each, Result) for each in from_regions) == len(run.pairs)
    assert counted.stars == sum(isinstance(each, Star) for each in from_regions) == 4 * len(inputs)
    assert counted.stored - counted.expired == sum(counted.sub_windows.values())
    assert counted.tuples_per_second == len(inputs) / (run.network.now_us / 1e6)
    assert set(counted.depth_max) >= set(run.regions) and max(counted.depth_max.values()) >= 1


def test_throughput_counts_the_tuples_of_both_streams() -> None:
    hundred = [each for at in range(100) for each in (Input(R, 0, None, at * 10_000), Input(S, 0, None, at * 10_000))]
    run = played(hundred, CountWindow(1))
    assert totals(run).tuples_per_second == pytest.approx(200, rel=0.02)
