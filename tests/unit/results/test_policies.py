"""When snapshots close: ESJ, section 3.2, item by item (H1 to H7 of the checklist)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamjoin.flow.periods import Ended
from streamjoin.flow.punctuation import lowest_mark_us
from streamjoin.results.block import BlockRef
from streamjoin.results.policy import (
    BLOCKS_A_SNAPSHOT_MAX,
    Collected,
    Cut,
    EpochPolicy,
    Open,
    Outcome,
    PairPolicy,
    Policy,
    PunctuationPolicy,
)
from streamjoin.results.snapshot import FIRST, SnapshotId
from streamjoin.results.stores.store import BlockKey

S = 1_000_000
_numbers = count()


def block(rows: int = 1, time_us: int = 0, size: int | None = None) -> BlockRef:
    """A block that is equal to no other."""
    key = BlockKey(0, 0, 1, 0, 0, next(_numbers))
    return BlockRef(key, rows, rows * 10 if size is None else size, 0, time_us, time_us, 0, 0, 0)


class Run:
    """A policy with what it remembers, as the ledger keeps it."""

    def __init__(self, policy: Policy, state: Open | None = None, waiting: Sequence[BlockRef] = ()) -> None:
        self.policy = policy
        self.state = state or Open()
        self.waiting = list(waiting)
        self.cuts: list[Cut] = []
        self.next = 0

    def add(
        self,
        *blocks: BlockRef,
        clock_us: int = 0,
        marks_us: tuple[int | None, int | None] = (None, None),
        ended: tuple[Sequence[int], Sequence[int]] = ((), ()),
        mark_us: int | None = None,
    ) -> list[tuple[str, int]]:
        """A batch: id and rows of each snapshot that closed."""
        told = tuple(Ended(tuple(ends_us)) for ends_us in ended)
        out = self.policy.collect(
            self.state,
            self.waiting,
            Collected(
                self.next, clock_us, marks_us, blocks,
                output_mark_us=lowest_mark_us(marks_us) if mark_us is None else mark_us, ended=told,
            ),
        )  # fmt: skip
        self.next += 1
        return self.keep(out)

    def finish(self, *, for_good: bool = False) -> list[tuple[str, int]]:
        return self.keep(self.policy.finish(self.state, self.waiting, for_good=for_good))

    def keep(self, out: Outcome) -> list[tuple[str, int]]:
        state = Open.from_json(json.loads(json.dumps(out.state.to_json())))
        assert state == out.state
        self.state, self.waiting = state, out.waiting
        self.cuts += out.cuts
        return [(str(cut.id), sum(ref.rows for ref in cut.blocks)) for cut in out.cuts]


# ---- epochs -----------------------------------------------------------------------------------------------------


def test_an_epoch_has_what_was_collected_since_the_last_one_and_its_end_belongs_to_it() -> None:
    run = Run(EpochPolicy(span_us=S))
    assert run.add(block(1), clock_us=1) == []
    assert run.add(block(2), clock_us=S) == []  # exactly on the epoch: still in it
    assert run.add(block(4), clock_us=S + 1) == [("1.0", 3)]
    assert run.add(block(8), clock_us=2 * S) == []
    assert run.add(clock_us=2 * S + 1) == [("2.0", 12)]


def test_the_id_is_the_epoch_that_ended_and_not_the_one_that_noticed() -> None:
    run = Run(EpochPolicy(span_us=S))
    run.add(block(1), clock_us=7 * S)
    assert run.add(block(2), clock_us=20 * S) == [("7.0", 1)]
    assert run.add(clock_us=21 * S) == [("20.0", 2)]


def test_a_pair_that_met_late_is_in_the_open_snapshot_whatever_its_time() -> None:
    run = Run(EpochPolicy(span_us=S))
    run.add(block(1, time_us=5 * S), clock_us=S)
    closed = run.add(block(1, time_us=6 * S), clock_us=2 * S)
    late = block(1, time_us=-100 * S)
    run.add(late, clock_us=2 * S)
    run.add(clock_us=3 * S)
    assert closed == [("1.0", 1)]
    assert late in run.cuts[1].blocks and len(run.cuts[1].blocks) == 2


def test_whole_batches_are_not_split_and_still_close_at_once_when_there_is_enough() -> None:
    whole = Run(EpochPolicy(span_us=S, threshold_rows=10, whole_batches=True))
    assert whole.add(block(8), clock_us=1) == []
    assert whole.add(*[block(8)] * 5, clock_us=2) == [("1.0", 48)]
    assert whole.add(*[block(0)] * (BLOCKS_A_SNAPSHOT_MAX + 5), clock_us=3) == [("1.1", 0)]
    split = Run(EpochPolicy(span_us=S, threshold_rows=10))
    split.add(block(8), clock_us=1)
    assert split.add(*[block(8)] * 5, clock_us=2) == [("1.0", 16), ("1.1", 16), ("1.2", 16)]


def test_an_epoch_may_be_a_number_of_batches() -> None:
    run = Run(EpochPolicy(span_us=None, batches=3))
    closed = [found for clock in range(10) for found in run.add(block(1), clock_us=-clock * S)]
    assert closed == [("1.0", 3), ("2.0", 3), ("3.0", 3)]
    assert run.finish() == [("4.0", 1)]


def test_an_empty_epoch_gives_no_snapshot() -> None:
    run = Run(EpochPolicy(span_us=S))
    assert [run.add(clock_us=clock * S) for clock in range(10)] == [[]] * 10
    assert run.finish() == []
    assert run.state.last == FIRST


def test_what_is_left_at_the_end_becomes_a_snapshot_once() -> None:
    run = Run(EpochPolicy(span_us=S, delayed=0.5, threshold_rows=100))
    run.add(block(1), clock_us=4 * S)
    assert run.finish() == [("4.0", 1)]
    assert run.finish() == []
    assert run.add(block(2), clock_us=4 * S) == []
    assert run.finish() == [("4.1", 2)]


# ---- immediate commits ------------------------------------------------------------------------------------------


def test_a_batch_with_ten_thresholds_gives_ten_snapshots_with_rising_ids_in_one_epoch() -> None:
    run = Run(EpochPolicy(span_us=S, threshold_rows=800))
    assert run.policy.rows_max == 100
    assert run.add(*(block(100) for _ in range(80)), clock_us=S) == [(f"1.{part}", 800) for part in range(10)]
    assert run.waiting == []


def test_an_immediate_commit_does_not_begin_the_epoch_anew() -> None:
    run = Run(EpochPolicy(span_us=S, threshold_rows=100))
    assert run.add(block(90), clock_us=1) == []
    assert run.add(block(10), clock_us=2) == [("1.0", 100)]
    assert run.add(block(5), clock_us=S) == []
    assert run.add(block(1), clock_us=S + 1) == [("1.1", 5)]


def test_an_epoch_whose_results_have_all_gone_at_once_gives_nothing_more() -> None:
    run = Run(EpochPolicy(span_us=S, threshold_rows=10))
    assert run.add(block(10), clock_us=S) == [("1.0", 10)]
    assert run.add(clock_us=2 * S) == []


def test_the_threshold_may_be_bytes() -> None:
    run = Run(EpochPolicy(span_us=S, threshold_rows=None, threshold_bytes=1000))
    assert run.add(block(1, size=999)) == []
    assert run.add(block(2, size=1)) == [("0.0", 3)]
    assert run.policy.rows_max is None


def test_whichever_threshold_comes_first_counts() -> None:
    policy = EpochPolicy(span_us=S, threshold_rows=100, threshold_bytes=1000)
    assert Run(policy).add(block(100, size=1)) == [("0.0", 100)]
    assert Run(policy).add(block(1, size=1000)) == [("0.0", 1)]
    assert Run(policy).add(block(99, size=999)) == []


def test_immediate_commits_can_be_switched_off() -> None:
    run = Run(EpochPolicy(span_us=S, threshold_rows=10, immediate=False))
    assert run.policy.rows_max is None
    assert run.add(block(1000), clock_us=S) == []
    assert run.add(clock_us=2 * S) == [("1.0", 1000)]


def test_a_manifest_is_never_longer_than_it_may_be() -> None:
    run = Run(EpochPolicy(span_us=S, threshold_rows=None, immediate=False))
    one = block(1)
    run.add(*[one] * (BLOCKS_A_SNAPSHOT_MAX * 2 + 5), clock_us=S)
    assert [len(cut.blocks) for cut in run.cuts] == [BLOCKS_A_SNAPSHOT_MAX] * 2
    assert len(run.waiting) == 5


# ---- delayed commits --------------------------------------------------------------------------------------------


def delaying(**more: int | bool | None) -> EpochPolicy:
    return EpochPolicy(**{"span_us": S, "threshold_rows": 100, "delayed": 0.5, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(("rows", "closed"), [(49, []), (50, [("1.0", 50)]), (99, [("1.0", 99)])])
def test_less_than_a_part_of_the_threshold_waits(rows: int, closed: list[tuple[str, int]]) -> None:
    run = Run(delaying())
    run.add(block(rows), clock_us=S)
    assert run.add(clock_us=2 * S) == closed


def test_the_id_of_a_delayed_snapshot_is_the_epoch_of_its_commit() -> None:
    run = Run(delaying())
    run.add(block(49), clock_us=S)
    assert run.add(block(30), clock_us=2 * S) == []
    assert run.add(clock_us=3 * S) == [("2.0", 79)]


def test_forty_nine_that_waited_and_sixty_are_one_snapshot_at_once_only_with_immediate_commits() -> None:
    at_once, at_its_end = Run(delaying()), Run(delaying(immediate=False))
    for run in (at_once, at_its_end):
        run.add(block(49), clock_us=S)
    assert at_once.add(block(51), block(9), clock_us=2 * S) == [("2.0", 100)]
    assert at_its_end.add(block(51), block(9), clock_us=2 * S) == []
    assert at_its_end.add(clock_us=3 * S) == [("2.0", 109)]


def test_one_row_is_shown_at_the_fourth_epoch_and_the_count_begins_anew() -> None:
    run = Run(delaying(delays=3))
    for epoch in range(1, 5):
        assert run.add(*([block(1)] if epoch == 1 else []), clock_us=epoch * S) == []
    assert run.add(block(2), clock_us=5 * S) == [("4.0", 1)]
    for epoch in range(6, 9):
        assert run.add(clock_us=epoch * S) == []
    assert run.add(clock_us=9 * S) == [("8.0", 2)]


def test_any_commit_resets_the_count_of_delays() -> None:
    run = Run(delaying(delays=3))
    run.add(block(1), clock_us=1 * S)
    run.add(clock_us=2 * S)
    assert run.add(clock_us=3 * S) == [] and run.state.postponed == 2
    assert run.add(block(99), clock_us=3 * S) == [("3.0", 100)]
    assert run.state.postponed == 0
    assert run.add(block(1), clock_us=3 * S) == []
    closed = [run.add(clock_us=epoch * S) for epoch in range(4, 9)]
    assert closed == [[], [], [], [("6.0", 1)], []]


def test_a_silent_job_shows_how_far_it_is_by_an_empty_snapshot_only_where_commits_are_delayed() -> None:
    delayed, plain = Run(delaying(delays=3)), Run(EpochPolicy(span_us=S, threshold_rows=100))
    for epoch in range(1, 10):
        delayed.add(clock_us=epoch * S)
        plain.add(clock_us=epoch * S)
    assert [(str(cut.id), cut.blocks) for cut in delayed.cuts] == [("4.0", ()), ("8.0", ())]
    assert plain.cuts == []


@pytest.mark.parametrize(("rows", "size", "waits"), [(49, 499, True), (50, 499, False), (49, 500, False)])
def test_it_waits_only_while_it_has_little_of_both(rows: int, size: int, waits: bool) -> None:
    run = Run(delaying(threshold_bytes=1000))
    run.add(block(rows, size=size), clock_us=S)
    assert (run.add(clock_us=2 * S) == []) is waits


def test_delayed_commits_can_be_switched_off() -> None:
    run = Run(EpochPolicy(span_us=S, threshold_rows=100, delayed=None))
    run.add(block(1), clock_us=S)
    assert run.add(clock_us=2 * S) == [("1.0", 1)]


@pytest.mark.parametrize("policy", [EpochPolicy(span_us=S), delaying(), delaying(delays=1)])
def test_a_long_silence_costs_nothing_and_gives_few_snapshots(policy: EpochPolicy) -> None:
    run = Run(policy)
    run.add(block(1), clock_us=S)
    begun_s = time.process_time()
    closed = run.add(block(2), clock_us=100_000_000 * S)
    assert time.process_time() - begun_s < 5
    assert 1 <= len(closed) <= 4 and sum(rows for _, rows in closed) == 1
    run.add(clock_us=100_000_004 * S)
    assert sum(len(cut.blocks) for cut in run.cuts) == 2


def test_ids_rise_although_the_clock_goes_back() -> None:
    run = Run(EpochPolicy(span_us=S, threshold_rows=10))
    closed = []
    for clock in (5, 3, -4, 2, 5, 6, 1, 7, 8):
        closed += run.add(block(10), block(1), clock_us=clock * S)
    found = [cut.id for cut in run.cuts]
    assert found == sorted(set(found)) and found[0] == SnapshotId(5, 0)
    assert sum(rows for _, rows in [*closed, *run.finish()]) == 99


def test_epochs_before_1970_give_rising_ids_too() -> None:
    run = Run(EpochPolicy(span_us=S))
    for clock in range(-5, 3):
        run.add(block(1), clock_us=clock * S)
    found = [cut.id for cut in run.cuts]
    assert found == sorted(set(found)) and len(found) == 7 and found[0] > FIRST


# ---- punctuations -----------------------------------------------------------------------------------------------


def test_nothing_closes_while_only_one_stream_punctuates() -> None:
    run = Run(PunctuationPolicy(S))
    for mark in range(1, 10):
        assert run.add(block(1, time_us=0), marks_us=(mark * S, None)) == []
        assert run.add(block(1, time_us=0), marks_us=(None, mark * S)) == []
    assert len(run.waiting) == 18 and run.finish() == []
    # With no later run that could close it, it is one snapshot; and if there is one after all, it goes on behind it.
    ((last, rows),) = run.finish(for_good=True)
    assert rows == 18 and run.finish(for_good=True) == []
    after = run.add(block(1, time_us=0), marks_us=(20 * S, 20 * S))
    assert sum(rows for _, rows in after) == 1 and all(name > last for name, _ in after)


def test_three_of_r_and_one_of_s_are_one_pair_and_the_next_of_s_is_the_second() -> None:
    run = Run(PunctuationPolicy(S))
    blocks = [block(1, time_us=period * S + 1) for period in range(3)]
    for mark, found in zip((1, 2, 3), blocks, strict=True):
        assert run.add(found, marks_us=(mark * S, 0)) == ([] if mark > 1 else [("1.0", 0)])
    assert run.add(marks_us=(3 * S, 1 * S)) == [("2.0", 1)]
    assert run.add(marks_us=(3 * S, 1 * S)) == []
    for _ in range(5):
        assert run.add(marks_us=(9 * S, 2 * S - 1)) == []
    assert run.add(marks_us=(9 * S, 2 * S)) == [("3.0", 1)]
    assert [cut.blocks for cut in run.cuts[1:]] == [(blocks[0],), (blocks[1],)]


@pytest.mark.parametrize(
    "before", [EpochPolicy(span_us=S), PunctuationPolicy(S)], ids=["epochs of the clock", "shorter periods"]
)
def test_periods_close_whatever_was_counted_before(before: Policy) -> None:
    earlier = Run(before)
    earlier.add(block(1, time_us=0), clock_us=1_760_000_000 * S, marks_us=(100 * S, 100 * S))
    earlier.add(block(2, time_us=110 * S), clock_us=1_760_000_000 * S, marks_us=(110 * S, 110 * S))
    run = Run(PunctuationPolicy(60 * S), earlier.state, earlier.waiting)
    closed = run.add(marks_us=(120 * S, 120 * S))
    assert run.waiting == [] and sum(rows for _, rows in closed) >= 2
    assert all(cut.id > earlier.state.last for cut in run.cuts)


def test_epochs_of_the_clock_close_what_waited_by_periods() -> None:
    earlier = Run(PunctuationPolicy(S))
    earlier.add(block(1, time_us=0), block(2, time_us=9 * S), marks_us=(5 * S, 5 * S))
    run = Run(EpochPolicy(span_us=S), earlier.state, earlier.waiting)
    assert [rows for _, rows in run.add(block(4), clock_us=2 * S)] == [2], (
        "at once, as its period is not counted any more"
    )
    assert [rows for _, rows in run.add(clock_us=3 * S)] == [4]
    assert all(cut.id > earlier.state.last for cut in run.cuts)


def test_periods_of_before_rules_were_noted_are_counted_on() -> None:
    run = Run(PunctuationPolicy(S), Open(epoch=3))
    assert run.add(block(1, time_us=0), marks_us=(3 * S, 3 * S)) == []
    assert [rows for _, rows in run.add(marks_us=(4 * S, 4 * S))] == [1]


def test_many_pairs_at_once_close_in_order_of_event_time() -> None:
    run = Run(PunctuationPolicy(S))
    run.add(marks_us=(0, 0))
    blocks = [block(period + 1, time_us=period * S) for period in (4, 0, 2, 7, 5)]
    assert run.add(*blocks, marks_us=(6 * S, 9 * S)) == [("2.0", 1), ("3.0", 3), ("4.0", 5), ("5.0", 6)]
    assert [ref.rows for ref in run.waiting] == [8]


@pytest.mark.parametrize("first", [-5, -1, 0, 3])
def test_a_result_at_the_end_of_a_period_belongs_to_the_next(first: int) -> None:
    run = Run(PunctuationPolicy(S))
    last, begin = block(1, time_us=(first + 1) * S - 1), block(2, time_us=(first + 1) * S)
    run.add(last, begin, marks_us=((first + 1) * S, (first + 1) * S))
    assert [cut.blocks for cut in run.cuts] == [(last,)]
    assert run.waiting == [begin]


def test_a_late_result_goes_into_the_next_open_pair() -> None:
    run = Run(PunctuationPolicy(S))
    run.add(block(1, time_us=0), marks_us=(3 * S, 3 * S))
    late, in_time = block(2, time_us=-50 * S), block(4, time_us=4 * S)
    assert run.add(late, in_time, marks_us=(3 * S + 1, 3 * S + 1)) == []
    assert run.add(marks_us=(5 * S, 5 * S)) == [("3.0", 2), ("4.0", 4)]
    assert run.cuts[-2].blocks == (late,)


def test_periods_without_results_share_the_snapshot_of_the_last() -> None:
    run = Run(PunctuationPolicy(S))
    run.add(marks_us=(0, 0))
    assert run.add(marks_us=(10**12 * S, 10**12 * S)) == [("2.0", 0)]


def test_how_much_there_is_closes_no_pair() -> None:
    run = Run(PunctuationPolicy(S))
    assert run.policy.rows_max is None and run.policy.period_us == S
    assert run.add(*(block(10**9, time_us=0) for _ in range(100)), marks_us=(None, None)) == []


# ---- punctuations that rows and files are -----------------------------------------------------------------------


def test_nothing_closes_while_only_one_stream_has_ended_a_period() -> None:
    run = Run(PairPolicy())
    assert run.policy.rows_max is None and run.policy.period_us is None
    for mark in range(1, 10):
        assert run.add(block(1, time_us=0), marks_us=(99 * S, 99 * S), ended=((mark * S,), ())) == []
    assert len(run.waiting) == 9 and run.finish() == []
    assert run.add(marks_us=(99 * S, 99 * S), ended=((), (S,))) == [("1.0", 9)]
    run.add(block(2, time_us=5 * S), marks_us=(99 * S, 99 * S))
    assert run.finish() == [] and run.finish(for_good=True) == [("2.0", 2)]


def test_three_ends_of_r_and_one_of_s_are_one_pair_and_the_next_of_s_is_the_second() -> None:
    run = Run(PairPolicy())
    blocks = [block(1, time_us=period * S + 1) for period in range(3)]
    assert run.add(*blocks, marks_us=(9 * S, 9 * S), ended=((S, 2 * S, 3 * S), ())) == []
    assert run.add(marks_us=(9 * S, 9 * S), ended=((), (S,))) == [("1.0", 1)]
    assert run.add(marks_us=(9 * S, 9 * S)) == []
    assert run.add(marks_us=(9 * S, 9 * S), ended=((), (3 * S,))) == [("2.0", 2)], "the later of the two ends it"
    assert [cut.blocks for cut in run.cuts] == [(blocks[0],), (blocks[1], blocks[2])]


def test_a_pair_waits_for_the_marks_of_the_streams_and_of_the_output() -> None:
    run = Run(PairPolicy())
    run.add(block(1, time_us=0), marks_us=(0, 0), ended=((S,), (2 * S,)))
    assert run.add(marks_us=(2 * S, 2 * S), mark_us=2 * S - 1) == []
    assert run.add(marks_us=(2 * S, 2 * S), mark_us=2 * S) == [("1.0", 1)]


def test_pairs_without_results_share_the_snapshot_of_the_last_that_closes_with_them() -> None:
    run = Run(PairPolicy())
    ends = (S, 2 * S, 3 * S, 4 * S)
    found = block(3, time_us=S)
    assert run.add(found, marks_us=(9 * S, 9 * S), ended=(ends, ends)) == [("1.0", 3), ("2.0", 0)]


# ---- any batches ------------------------------------------------------------------------------------------------

EPOCHS = st.builds(
    EpochPolicy,
    span_us=st.sampled_from([None, 1, 3, 10]),
    batches=st.integers(1, 4),
    threshold_rows=st.none() | st.integers(1, 40),
    threshold_bytes=st.none() | st.integers(1, 400),
    immediate=st.booleans(),
    delayed=st.none() | st.floats(0.1, 1),
    delays=st.integers(1, 4),
)
POLICIES = EPOCHS | st.builds(PunctuationPolicy, st.integers(1, 7)) | st.just(PairPolicy())
MARKS = st.none() | st.integers(-30, 30)
BATCH = st.tuples(
    st.integers(-20, 40), st.tuples(MARKS, MARKS), st.lists(st.tuples(st.integers(1, 30), st.integers(-40, 40)))
)
BATCHES = st.lists(BATCH, max_size=12)
Batches = list[tuple[int, tuple[int | None, int | None], list[tuple[int, int]]]]


def collected(batches: Batches, rising: bool) -> list[tuple[int, tuple[int | None, int | None], list[BlockRef]]]:
    clock, marks = 0, [-(10**9), -(10**9)]
    found = []
    for step, given_marks, content in batches:
        clock = clock + abs(step) if rising else step
        for side, mark in enumerate(given_marks):
            marks[side] = max(marks[side], -(10**9) if mark is None else mark)
        pair = tuple(None if mark == -(10**9) else mark for mark in marks)
        found.append((clock, (pair[0], pair[1]), [block(rows, at) for rows, at in content]))
    return found


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(POLICIES, BATCHES, st.booleans())
def test_each_result_is_in_one_snapshot_ids_rise_and_a_replay_from_any_batch_cuts_the_same(
    policy: Policy, batches: Batches, rising: bool
) -> None:
    given_batches = collected(batches, rising)
    run = Run(policy)
    before: list[tuple[Open, list[BlockRef], int]] = []
    for clock, marks, blocks in given_batches:
        before.append((run.state, list(run.waiting), len(run.cuts)))
        run.add(*blocks, clock_us=clock, marks_us=marks, ended=_ends(clock))
    run.finish()
    found = [ref for cut in run.cuts for ref in cut.blocks] + run.waiting
    assert sorted(ref.key.number for ref in found) == [
        ref.key.number for _, _, blocks in given_batches for ref in blocks
    ]
    if isinstance(policy, EpochPolicy):
        assert run.waiting == []
        assert found == [ref for _, _, blocks in given_batches for ref in blocks]  # in the order they were collected
    ids = [cut.id for cut in run.cuts]
    assert ids == sorted(set(ids)) and all(id > FIRST for id in ids)
    for start, (state, waiting, cuts) in enumerate(before):
        again = Run(policy, Open.from_json(json.loads(json.dumps(state.to_json()))), waiting)
        again.next = start
        for clock, marks, blocks in given_batches[start:]:
            again.add(*blocks, clock_us=clock, marks_us=marks, ended=_ends(clock))
        again.finish()
        assert again.cuts == run.cuts[cuts:]


def _ends(clock: int) -> tuple[Sequence[int], Sequence[int]]:
    """Where a batch's rows end periods."""
    return [clock % 7] * (clock % 3), [clock % 5, clock % 11][: clock % 4]


def naive(policy: EpochPolicy, batches: Iterable[tuple[int, list[BlockRef]]]) -> list[tuple[int, list[int]]]:
    """Epoch after epoch, result after result: (epoch, numbers of the blocks) of each snapshot."""
    cuts: list[tuple[int, list[int]]] = []
    waiting: list[BlockRef] = []
    running, postponed = None, 0
    assert policy.span_us is not None

    def part(field: str, of: int | None) -> float:
        return 0.0 if of is None else sum(getattr(ref, field) for ref in waiting) / of

    for clock, blocks in batches:
        epoch = next(epoch for epoch in range(-1, 10**6) if clock <= epoch * policy.span_us)
        while running is not None and running < epoch:
            enough = policy.delayed is None or max(
                part("rows", policy.threshold_rows), part("size", policy.threshold_bytes)
            ) >= policy.delayed  # fmt: skip
            if not enough and postponed < policy.delays:
                postponed += 1
            elif waiting or postponed:
                cuts.append((running, [ref.key.number for ref in waiting]))
                waiting, postponed = [], 0
            running += 1
        running = epoch
        for ref in blocks:
            waiting.append(ref)
            full = max(part("rows", policy.threshold_rows), part("size", policy.threshold_bytes)) >= 1
            if policy.immediate and full:
                cuts.append((running, [ref.key.number for ref in waiting]))
                waiting, postponed = [], 0
    if waiting:
        cuts.append((running or 0, [ref.key.number for ref in waiting]))
    return cuts


@settings(max_examples=150, deadline=None)
@given(
    st.builds(
        EpochPolicy,
        span_us=st.just(10),
        threshold_rows=st.none() | st.integers(1, 60),
        threshold_bytes=st.none() | st.integers(1, 600),
        immediate=st.booleans(),
        delayed=st.none() | st.sampled_from([0.25, 0.5, 1.0]),
        delays=st.integers(2, 4),
    ),
    st.lists(st.tuples(st.integers(0, 20), st.lists(st.integers(1, 30), max_size=6)), max_size=15),
)
def test_epochs_are_those_of_a_simple_model(policy: EpochPolicy, batches: list[tuple[int, list[int]]]) -> None:
    run, clock = Run(policy), 1
    given_batches = []
    for step, rows in batches:
        clock += step  # at most two epochs on: longer silences are cut short
        given_batches.append((clock, [block(n) for n in rows]))
    for clock, blocks in given_batches:
        run.add(*blocks, clock_us=clock)
    run.finish()
    assert [(cut.id.epoch, [ref.key.number for ref in cut.blocks]) for cut in run.cuts] == naive(policy, given_batches)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (EpochPolicy(span_us=S), EpochPolicy(span_us=10 * S)),
        (EpochPolicy(span_us=S), EpochPolicy(span_us=None, batches=3)),
        (EpochPolicy(span_us=None, batches=100), EpochPolicy(span_us=None, batches=2)),
        (EpochPolicy(span_us=None, batches=2), EpochPolicy(span_us=S)),
    ],
)
def test_epochs_that_are_counted_otherwise_go_on_from_there(before: EpochPolicy, after: EpochPolicy) -> None:
    """Numbers of seconds are far above those of ten seconds: nothing would close for years."""
    clock_us = 1_760_000_000 * S
    first = Run(before)
    first.add(block(1), clock_us=clock_us)
    run = Run(after, first.state, first.waiting)
    run.next = 1
    closed = run.add(block(2), clock_us=clock_us + S)
    assert sum(rows for _, rows in closed) >= 1, "what waited by the other rule is a snapshot at once"
    for number in range(2, 12):
        closed += run.add(block(1), clock_us=clock_us + number * S)
    ids = [cut.id for cut in (*first.cuts, *run.cuts)]
    assert ids == sorted(set(ids)) and 1 < len(ids) < 14
    assert sum(rows for _, rows in closed) + sum(ref.rows for ref in run.waiting) == 13 - sum(
        ref.rows for cut in first.cuts for ref in cut.blocks
    )
    assert sum(ref.rows for ref in run.waiting) <= 10


def test_a_head_that_does_not_say_how_epochs_are_counted_goes_on() -> None:
    old = Open.from_json({"epoch": 7, "last": [6, 0], "postponed": 0})
    run = Run(EpochPolicy(span_us=S), old, [block(1)])
    assert run.add(block(1), clock_us=7 * S) == []
    assert run.add(block(2), clock_us=8 * S) == [("7.0", 2)]


@pytest.mark.parametrize("delayed", [None, 0.5])
def test_a_clock_that_was_ahead_for_a_batch_holds_nothing_back(delayed: float | None) -> None:
    run = Run(EpochPolicy(delayed=delayed, threshold_rows=100))
    run.add(block(1), clock_us=10 * S)
    run.add(block(2), clock_us=10_000 * S)
    closed = [found for clock in range(11, 40) for found in run.add(block(1), clock_us=clock * S)]
    assert sum(rows for _, rows in closed) >= 29 - 4
    assert len({id for id, _ in closed}) == len(closed)
