"""SplitJoin's relaxed adjustable punctuation: stars, mergers, and the orders that they keep."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from simulate.network import Earliest, Network, Shuffled
from simulate.splitjoin import check
from simulate.splitjoin.buffers import Step
from simulate.splitjoin.core import Region
from simulate.splitjoin.gathering import (
    COMBINER,
    MERGERS,
    Aligned,
    Combiner,
    Heads,
    InPortOrder,
    Merger,
    Policy,
    Shut,
    Sink,
)
from simulate.splitjoin.messages import (
    Arrival,
    Change,
    Closed,
    Label,
    Message,
    Ordering,
    Precision,
    Result,
    Star,
)
from simulate.splitjoin.system import Costs, SplitJoin
from simulate.splitjoin.window import CountWindow, TimeWindow
from simulate.stream import Stream
from tests.unit.simulate.splitjoin_runs import (
    R,
    S,
    always,
    complaints,
    expected,
    history,
    messages,
    never,
    played,
    processed,
    sequence,
)

pytestmark = pytest.mark.slow

OUTER, INNER, TOTAL = Precision(), Precision(Ordering.INNER), Precision(Ordering.TOTAL)
WINDOW = CountWindow(5)
MIXED = history(random.Random(5), 18)
HALF = 9


# The star rule.


class _StarsWithResultsOnly(Region):
    """Gives a star only if there was a result."""

    def _end_of_probe(self, probe: int, position: int, found: int) -> Iterator[Step]:
        if found:
            yield from super()._end_of_probe(probe, position, found)


def test_a_tuple_without_a_match_still_gets_its_star() -> None:
    run = played(MIXED, WINDOW, never)
    count = processed(MIXED)
    assert not run.pairs
    assert [star.flag for star in run.stars].count(R) == count[R]
    for name, region in run.regions.items():
        assert region.stars == count[R if name.endswith("left") else S]


def test_stars_with_results_only_starve_the_mergers() -> None:
    inputs = sequence("RRRRRRSSSSSS")
    match = lambda r, s: r == 2  # noqa: E731
    run = SplitJoin(Earliest(), 4, WINDOW, match, OUTER)
    run.feed(inputs)
    run.network.run()
    assert check.exactly_once(run.pairs, expected(inputs, WINDOW, match)) == []
    naive = SplitJoin(Earliest(), 4, WINDOW, match, OUTER, region=_StarsWithResultsOnly)
    naive.feed(inputs)
    naive.network.run()
    assert check.stars_divide(messages(naive), processed(inputs)) != []
    lost = check.exactly_once(naive.pairs, expected(inputs, WINDOW, match))
    assert lost and all("missing" in each for each in lost), "results wait for stars that never come"


def test_no_order_has_no_stars() -> None:
    run = played(MIXED, WINDOW, precision=Precision(Ordering.NONE), scheduler=Shuffled(1))
    assert complaints(run, MIXED, WINDOW, always) == []
    assert not run.stars and not any(isinstance(each.message, Star) for each in run.network.log)


def test_settings_without_a_meaning_are_refused() -> None:
    with pytest.raises(ValueError, match="relaxes outer order"):
        Precision(Ordering.INNER, tuples_per_star=5)
    with pytest.raises(ValueError, match="relaxes inner order"):
        Precision(Ordering.OUTER, rows_per_star=5)
    with pytest.raises(ValueError, match="at least 1"):
        Precision(Ordering.OUTER, tuples_per_star=0)


# Mergers alone.


class _Feeder:
    name = "feeder"

    def receive(self, sender: str, message: Any, network: Network) -> None: ...

    def wake(self, tag: Any, network: Network) -> None: ...


def _arrival(stream: Stream, number: int) -> Arrival:
    return Arrival(stream, number, 0, None, None, 0)


def _result(stream: Stream, new: int, old: int, storage_round: int = -1) -> Result:
    newer, older = _arrival(stream, new), _arrival(stream.opposite, old)
    return Result(newer, older, Label(new, storage_round), new, 0, 0)


def _star(stream: Stream, probe: int, storage_round: int = -1, last: bool = True) -> Star:
    return Star(stream, Label(probe, storage_round), probe, last)


def _merged(
    policy: type[Policy], ordering: Ordering, ports: int, sent: list[tuple[int, Message]]
) -> list[Result | Star]:
    """What a merger makes of messages that come to its ports in this order."""
    network = Network(Earliest())
    names = [f"port {at}" for at in range(ports)]
    merger = Merger("merger", names, "sink", Precision(ordering), {ordering: policy})
    sink = Sink("sink", "merger")
    network.add(merger)
    network.add(sink)
    for port, message in sent:
        network.send(names[port], "merger", message)
        network.run()
    return [left.message for left in sink.output if isinstance(left.message, Result | Star)]


@pytest.mark.parametrize("policy", [Shut, InPortOrder])
def test_a_merger_of_three_gives_one_star_for_three_and_shuts_inputs_that_gave_theirs(policy: type[Policy]) -> None:
    sent: list[tuple[int, Message]] = [
        (2, _result(R, 0, 2)),
        (2, _star(R, 0)),
        (2, _result(R, 1, 5)),
        (2, _star(R, 1)),
        (0, _result(R, 0, 0)),
        (0, _star(R, 0)),
        (1, _star(R, 0)),
        (1, _result(R, 1, 4)),
        (1, _star(R, 1)),
        (0, _star(R, 1)),
    ]
    out = _merged(policy, Ordering.OUTER, 3, sent)
    assert ["*" if isinstance(each, Star) else each.newer.number for each in out] == [0, 0, "*", 1, 1, "*"]
    if policy is InPortOrder:
        assert [each.older.number for each in out if isinstance(each, Result)] == [0, 2, 4, 5], "in port order"
    assert [each.newer.number for each in _merged(Policy, Ordering.NONE, 3, sent) if isinstance(each, Result)] != [
        0,
        0,
        1,
        1,
    ]


def test_a_merger_that_aligns_gives_one_star_for_each_storage_round_that_anyone_has() -> None:
    sent: list[tuple[int, Message]] = [
        (0, _star(R, 0, 1, last=False)),
        (0, _result(R, 0, 8, 2)),
        (0, _star(R, 0, 2)),
        (1, _star(R, 0)),  # holds nothing
        (2, _result(R, 0, 2, 0)),
        (2, _star(R, 0, 0, last=False)),
        (2, _star(R, 0, 1)),
    ]
    out = _merged(Aligned, Ordering.INNER, 3, sent)
    assert [each.older.number if isinstance(each, Result) else each.label.storage_round for each in out] == [
        2,
        0,
        1,
        8,
        2,
    ]
    assert [each.last for each in out if isinstance(each, Star)] == [False, False, True]


FIGURE_9 = {
    "right": "S1-R8 S1-R4 * S2-R8 S2-R3 S2-R9 S2-R4 S2-R7 * S3-R8",
    "left": "R0-S2 * R1-S4 * R2-S6 R2-S4 * R3-S3 R3-S8",
}


def test_a_merger_that_aligns_ends_a_probe_whose_last_star_died_with_its_input() -> None:
    sent: list[tuple[int, Message]] = [
        (1, _result(R, 0, 1, 0)),
        (1, _star(R, 0, 0)),
        (0, _star(R, 0, 0, last=False)),
        (0, _result(R, 0, 4, 1)),
        (0, Closed()),
        (1, _star(R, 1, 0)),
    ]
    out = _merged(Aligned, Ordering.INNER, 2, sent)
    assert [each.older.number if isinstance(each, Result) else each.last for each in out] == [1, False, 4, True, True]
    assert [each.label.probe for each in out] == [0, 0, 0, 0, 1]


def test_the_combiner_forwards_both_flows_of_the_papers_figure_and_flags_their_stars() -> None:
    flows: dict[str, list[Message]] = {"left": [], "right": []}
    for side, text in FIGURE_9.items():
        probe = 0
        for word in text.split():
            if word == "*":
                flows[side].append(_star(R if side == "left" else S, probe))
            else:
                (first, new), (_, old) = ((part[0], int(part[1:])) for part in word.split("-"))
                flows[side].append(_result(Stream(first), new, old))
                probe = new
    for seed in range(20):
        network = Network(Shuffled(seed))
        sink = Sink("sink", "combiner")
        network.add(Combiner("combiner", {"left": R, "right": S}, "sink", OUTER))
        network.add(sink)
        for side, flow in flows.items():
            for message in flow:
                network.send(side, "combiner", message)
        network.run()
        out = [left.message for left in sink.output]
        for side, stream in (("left", R), ("right", S)):
            mine = [
                each
                for each in out
                if (isinstance(each, Result) and each.newer.stream is stream)
                or (isinstance(each, Star) and each.flag is stream)
            ]
            assert [replace(each, flag=None) if isinstance(each, Star) else each for each in mine] == flows[side]


# Outer order.


@pytest.mark.parametrize("policy", [Shut, InPortOrder])
@pytest.mark.parametrize("seed", range(5))
def test_both_readings_of_the_merger_keep_outer_order(policy: type[Policy], seed: int) -> None:
    run = played(
        MIXED, WINDOW, precision=OUTER, scheduler=Shuffled(seed), mergers={**MERGERS, Ordering.OUTER: policy}, fan_in=3
    )
    assert complaints(run, MIXED, WINDOW, always) == []


def _some_seed_fails(play: Any, seeds: int = 20) -> bool:
    return any(play(seed) for seed in range(seeds))


def test_mergers_that_do_not_wait_for_stars_break_outer_order() -> None:
    def play(seed: int) -> list[str]:
        run = played(MIXED, WINDOW, scheduler=Shuffled(seed), mergers={**MERGERS, Ordering.OUTER: Policy})
        return check.outer_order(messages(run))

    assert _some_seed_fails(play)


def test_between_stars_of_r_stand_results_of_one_r_tuple_and_any_of_s() -> None:
    run = played(MIXED, WINDOW, precision=OUTER, scheduler=Shuffled(11))
    assert check.stars_divide(messages(run), processed(MIXED)) == []
    assert all(star.flag is star.stream for star in run.stars)
    unflagged = [replace(each, flag=R) if isinstance(each, Star) else each for each in messages(run)]
    assert check.stars_divide(unflagged, processed(MIXED)) != [], "without flags nobody can tell the stars apart"


def test_relaxed_outer_order_mixes_groups_of_five_and_closes_the_last_one() -> None:
    relaxed = Precision(Ordering.OUTER, tuples_per_star=5)
    inputs = sequence("S" * 8 + "R" * 13)
    strict_broken = False
    for seed in range(10):
        run = played(inputs, WINDOW, precision=relaxed, scheduler=Shuffled(seed))
        assert complaints(run, inputs, WINDOW, always) == []
        assert [star.flag for star in run.stars].count(R) == 3
        strict_broken |= bool(check.outer_order(messages(run)))
    assert strict_broken, "inside a group any order is allowed, and happens"
    # Without the end the last group, of three, has no star; no result waits for it.
    run = SplitJoin(Earliest(), 4, WINDOW, always, relaxed)
    run.feed(inputs)
    run.network.run()
    assert [star.flag for star in run.stars].count(R) == 2


# Inner order.

COUNTED = {**MERGERS, Ordering.INNER: InPortOrder}
"""Merges the i-th sections of all inputs, whatever they are."""


def test_counting_stars_is_wrong_once_the_oldest_live_tuple_is_not_in_the_first_core() -> None:
    inputs = sequence("R" * 10 + "S")
    assert [r for r, _ in played(inputs, CountWindow(8), precision=INNER).pairs] == [2, 3, 4, 5, 6, 7, 8, 9]
    assert [r for r, _ in played(inputs, CountWindow(8), precision=INNER, mergers=COUNTED).pairs] == [
        4,
        5,
        2,
        3,
        8,
        9,
        6,
        7,
    ]


@pytest.mark.parametrize("fan_in", [2, 3])
@pytest.mark.parametrize(("cores", "window", "size"), [(3, 7, 20), (4, 8, 10), (4, 10, 23), (5, 9, 31)])
def test_partners_come_oldest_first_for_any_window(cores: int, window: int, size: int, fan_in: int) -> None:
    inputs = sequence("R" * size + "S" + "SR")
    for seed in range(2):
        run = played(inputs, CountWindow(window), cores=cores, precision=INNER, fan_in=fan_in, scheduler=Shuffled(seed))
        assert complaints(run, inputs, CountWindow(window), always) == []
    naive = played(inputs, CountWindow(window), cores=cores, precision=INNER, mergers=COUNTED, fan_in=fan_in)
    assert check.inner_order(messages(naive)) != []


def test_partners_come_oldest_first_where_cores_do_not_know_each_others_oldest() -> None:
    inputs = sequence("R" * 10 + "SRRRSRRS", times=[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 12, 13, 14, 15, 16, 17])
    run = played(inputs, TimeWindow(9), precision=INNER, scheduler=Shuffled(2))
    assert complaints(run, inputs, TimeWindow(9), always) == []
    assert check.inner_order(messages(played(inputs, TimeWindow(9), precision=INNER, mergers=COUNTED))) != []


@pytest.mark.parametrize(("rows_per_star", "stars"), [(1, 32), (4, 8), (16, 2), (12, 3), (64, 1)])
def test_a_star_every_so_many_comparisons(rows_per_star: int, stars: int) -> None:
    inputs = sequence("R" * 64 + "S")
    precision = Precision(Ordering.INNER, rows_per_star=rows_per_star)
    run = played(inputs, CountWindow(64), cores=2, precision=precision, scheduler=Shuffled(1))
    assert [run.regions[f"core {at} right"].stars for at in (0, 1)] == [stars, stars]
    assert complaints(run, inputs, CountWindow(64), always) == []
    assert bool(check.inner_order(messages(run))) == (rows_per_star > 1), "groups rise, not single partners"


@pytest.mark.parametrize(("rows_per_star", "stars"), [(1, 4), (2, 4), (3, 2), (4, 2), (8, 1)])
def test_the_interval_is_rounded_up_to_whole_runs(rows_per_star: int, stars: int) -> None:
    inputs, precision = sequence("R" * 16 + "S"), Precision(Ordering.INNER, rows_per_star=rows_per_star)
    run = played(inputs, CountWindow(16), cores=2, run=2, precision=precision, scheduler=Shuffled(1))
    assert [run.regions[f"core {at} right"].stars for at in (0, 1)] == [stars, stars]
    assert complaints(run, inputs, CountWindow(16), always) == []


def test_strict_inner_order_sends_each_result_and_then_its_star() -> None:
    run = played(sequence("RRRRS"), WINDOW, cores=2, precision=INNER)
    sent = [
        each.message
        for each in run.network.log
        if each.sender == "core 1 right" and isinstance(each.message, Result | Star)
    ]
    assert [type(each) for each in sent] == [Result, Star, Result, Star]
    assert [each.last for each in sent if isinstance(each, Star)] == [False, True]
    assert [each.label for each in sent] == [(0, 0), (0, 0), (0, 1), (0, 1)]


# Total order.


def test_the_combiner_keeps_no_total_order_and_the_extension_does() -> None:
    def broken(seed: int) -> list[str]:
        run = played(MIXED, WINDOW, precision=INNER, scheduler=Shuffled(seed))
        assert complaints(run, MIXED, WINDOW, always) == []
        return check.total_order(messages(run))

    assert _some_seed_fails(broken)
    for seed in range(5):
        run = played(MIXED, WINDOW, precision=TOTAL, scheduler=Shuffled(seed))
        assert complaints(run, MIXED, WINDOW, always) == []
    naive = {**COMBINER, Ordering.TOTAL: Policy}
    assert _some_seed_fails(
        lambda seed: check.total_order(
            messages(played(MIXED, WINDOW, precision=TOTAL, scheduler=Shuffled(seed), combiner=naive))
        )
    )


def test_total_order_does_not_wait_for_a_silent_stream() -> None:
    run = SplitJoin(Earliest(), 3, WINDOW, always, TOTAL)
    run.feed(sequence("SSSRRRRRR"))
    run.network.run()
    assert len(run.pairs) == 18


# The end, and changes on the way.


class _WantsAllHeads(Aligned):
    """Reads only when something stands at every input."""

    def may_read(self, heads: Heads) -> str | None:
        return super().may_read(heads) if all(head is not None for head in heads.values()) else None


@pytest.mark.parametrize("precision", [Precision(Ordering.NONE), OUTER, INNER, TOTAL])
def test_the_last_tuples_results_come_without_further_input(precision: Precision) -> None:
    run = SplitJoin(Earliest(), 4, WINDOW, always, precision)
    run.feed(MIXED)
    run.network.run()
    assert check.exactly_once(run.pairs, expected(MIXED, WINDOW, always)) == []
    if precision is INNER:
        mergers = {**MERGERS, Ordering.INNER: _WantsAllHeads}
        naive = SplitJoin(Earliest(), 4, WINDOW, always, precision, mergers=mergers)
        naive.feed(MIXED)
        naive.network.run()
        assert check.exactly_once(naive.pairs, expected(MIXED, WINDOW, always)) != []


class _SwitchesAtOnce(Merger):
    """Follows new settings as soon as the first input has them."""

    def next_work(self, network: Network) -> Iterator[Step] | None:
        for queue in self.queues.values():
            if queue and isinstance(queue[0], Change):
                ordering = queue[0].precision.ordering
                if type(self._policy) is not self._policies[ordering]:
                    self._policy = self._policies[ordering](list(self.queues), queue[0].position)
        return super().next_work(network)


ORDERINGS = [Precision(Ordering.NONE), OUTER, Precision(Ordering.OUTER, tuples_per_star=4), INNER, TOTAL]


def _changed(before: Precision, after: Precision, seed: int, **settings: Any) -> list[str]:
    first, second = MIXED[:HALF], MIXED[HALF:]
    run = played([*first, after, *second], WINDOW, precision=before, scheduler=Shuffled(seed), **settings)
    found = [] if run.ended else ["it did not come to its end"]
    found += check.exactly_once(run.pairs, expected(MIXED, WINDOW, always))
    out = messages(run)
    for part, precision in ((range(HALF), before), (range(HALF, len(MIXED)), after)):
        mine = [each for each in out if isinstance(each, Result) and each.newer.position in part]
        if precision.ordering is not Ordering.NONE and precision.tuples_per_star == 1:
            found += check.outer_order(mine)
        if precision.by_partner:
            found += check.inner_order(mine)
        if precision.ordering is Ordering.TOTAL:
            found += check.total_order(mine)
        closing = sum(isinstance(each, Star) and each.last and each.position in part for each in out)
        if precision.tuples_per_star == 1 and closing != len(part) * (precision.ordering is not Ordering.NONE):
            found.append(f"{closing} stars for {len(part)} tuples")
    return found


@pytest.mark.parametrize("before", ORDERINGS)
@pytest.mark.parametrize("after", ORDERINGS)
def test_the_punctuation_can_be_changed_on_the_way(before: Precision, after: Precision) -> None:
    for seed in range(2):
        assert _changed(before, after, seed, buffer=[None, 1][seed % 2]) == []


class _NeverSwitches(Merger):
    """Passes new settings on and goes on by the old ones."""

    def _switch(self, barrier: Message) -> Iterator[Step]:
        yield from self._pass_on(barrier)


def test_a_merger_that_changes_before_all_its_inputs_have_breaks_the_order_or_loses_stars() -> None:
    assert _some_seed_fails(lambda seed: _changed(INNER, OUTER, seed, merger=_SwitchesAtOnce))


def test_a_merger_that_does_not_change_breaks_the_order_or_loses_stars() -> None:
    assert _some_seed_fails(lambda seed: _changed(OUTER, INNER, seed, merger=_NeverSwitches))


# Bounded buffers.


@pytest.mark.parametrize("precision", ORDERINGS)
@pytest.mark.parametrize("cores", [1, 3, 4])
def test_buffers_of_one_message_do_not_deadlock(precision: Precision, cores: int) -> None:
    for seed in range(2):
        run = played(MIXED, WINDOW, cores=cores, precision=precision, buffer=1, scheduler=Shuffled(seed))
        assert complaints(run, MIXED, WINDOW, always) == []
        nodes = [*run.distributors, *run.regions.values(), *run.mergers.values(), run.combiner]
        assert max(node.depth_max for node in nodes) == 1, "no buffer ever held more"


class _WaitsForTheStarBehind(Merger):
    """Reads a section only when its star is in the buffer too, as if results did not say where they belong."""

    def next_work(self, network: Network) -> Iterator[Step] | None:
        for queue in self.queues.values():
            if queue and isinstance(queue[0], Result) and not any(isinstance(each, Star) for each in queue):
                return None
        return super().next_work(network)


def test_a_merger_that_needs_the_star_behind_a_result_deadlocks_in_small_buffers() -> None:
    assert (
        complaints(played(MIXED, WINDOW, precision=INNER, merger=_WaitsForTheStarBehind), MIXED, WINDOW, always) == []
    )
    run = played(MIXED, WINDOW, precision=INNER, buffer=1, merger=_WaitsForTheStarBehind)
    assert not run.ended and len(run.source.sequence) < len(MIXED), "the source is still waiting for room"


@pytest.mark.parametrize("precision", [OUTER, INNER, TOTAL])
def test_a_core_that_is_a_hundred_times_slower_makes_the_others_wait_and_loses_nothing(precision: Precision) -> None:
    costs = Costs(link_us=lambda sender, receiver: 1, compare_us=lambda core: 1_000 if core == 2 else 10)
    run = played(MIXED, WINDOW, precision=precision, buffer=1, costs=costs)
    assert complaints(run, MIXED, WINDOW, always) == []
    for side in ("left", "right"):
        merger = next(each for each in run.mergers.values() if f"core 2 {side}" in each.waited_us)
        slow, fast = merger.waited_us[f"core 2 {side}"], merger.waited_us[f"core 3 {side}"]
        assert slow > 10 * fast and slow > 1_000
    assert run.source.blocked_us > 0, "the waiting reaches the root"


def test_a_slow_core_under_any_interleaving() -> None:
    for seed in range(5):
        fast = {(f"core {at}", f"core {at} {side}"): 100.0 for at in (0, 1, 3) for side in ("left", "right")}
        run = played(MIXED, WINDOW, precision=INNER, buffer=1, scheduler=Shuffled(seed, fast))
        assert complaints(run, MIXED, WINDOW, always) == []


def test_the_unbalanced_last_merger_and_a_single_core() -> None:
    run = SplitJoin(Earliest(), 28, WINDOW, always, INNER, fan_in=4)
    assert run.gathering["left"].depth() == 3 and len(run.gathering["left"].children) == 2
    for cores, fan_in in ((28, 4), (5, 3), (1, 2)):
        run = played(MIXED[:8], WINDOW, cores=cores, fan_in=fan_in, precision=INNER, scheduler=Shuffled(1))
        assert complaints(run, MIXED[:8], WINDOW, always) == []


def test_results_come_in_rising_positions_for_every_pair_of_neighbours() -> None:
    run = played(MIXED, WINDOW, precision=TOTAL, scheduler=Shuffled(4))
    for before, after in pairwise(run.results):
        assert before.position <= after.position == after.newer.position
