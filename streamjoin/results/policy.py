"""When a snapshot closes: a pure function of what was collected, so that a replay after a crash cuts the same.

Epoch commit: an epoch is a span of the collecting clock (the batch's start, as logged) or a number of batches. At its
end what was collected since the last commit becomes a snapshot. *Immediate* commit does not wait for the end once
enough has come together; *delayed* commit waits on while there is little. Punctuation commit: a snapshot closes when
all streams' punctuations of a period have met, and all pairs of it. Source: ESJ, section 3.2.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from streamjoin.flow.periods import Ended, Ends, closing
from streamjoin.results.block import ROWS_A_BLOCK_MIN, BlockRef
from streamjoin.results.snapshot import FIRST, SnapshotId

EPOCH_US = 1_000_000
THRESHOLD_ROWS = 100_000
DELAYS = 3
BLOCKS_A_SNAPSHOT_MAX = 1 << 15
"""A manifest lists every block, and stores take a few MiB at a time: what has more blocks becomes several snapshots."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What one batch gave.

    Args:
        clock_us: the batch's start, as logged.
        marks_us: how far each stream has come with it; None for one that has not begun.
        blocks: in the order of (unit, number).
        shed: tuples that load shedding dropped in the batch.
        output_mark_us: no later batch has a result of an earlier time, but for those of late tuples; None before both
            streams have begun.
        ended: what each stream's rows or files said of where periods end.
    """

    batch: int
    clock_us: int
    marks_us: tuple[int | None, ...]
    blocks: Sequence[BlockRef]
    shed: int = 0
    output_mark_us: int | None = None
    ended: tuple[Ended, ...] = ()


@dataclass(frozen=True, slots=True)
class Open:
    """What a policy remembers between two batches, besides the blocks that wait.

    Args:
        epoch: the running epoch, or the first period that is not closed; None before the first batch.
        last: the newest snapshot.
        postponed: commits put off since that one.
        ends: of each stream, where periods end that it has told; only where rows or files end them.
        ended_us: where the last period ended that is closed.
        rule: by which rule `epoch` counts; None where that was not noted.
    """

    epoch: int | None = None
    last: SnapshotId = FIRST
    postponed: int = 0
    ends: tuple[Ends, ...] = ()
    ended_us: int | None = None
    rule: str | None = None

    def is_counted_by(self, rule: str) -> bool:
        """Whether `epoch` is a number of this rule; where none was noted it is taken for one."""
        return self.rule in (None, rule)

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; `from_json` reads it back."""
        told: dict[str, Any] = {"rule": self.rule} if self.rule else {}
        if self.ends:
            told |= {"ends": [one.to_json() for one in self.ends], "ended_us": self.ended_us}
        return {"epoch": self.epoch, "last": [self.last.epoch, self.last.part], "postponed": self.postponed, **told}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Open:
        """The inverse of `to_json`."""
        ends = tuple(map(Ends.from_json, value.get("ends", ())))
        last = SnapshotId(*value["last"])
        return Open(value["epoch"], last, value["postponed"], ends, value.get("ended_us"), value.get("rule"))


@dataclass(frozen=True, slots=True)
class Cut:
    """A snapshot closes: its id and what is in it."""

    id: SnapshotId
    blocks: tuple[BlockRef, ...]


@dataclass(slots=True)
class Outcome:
    """What a policy makes of a batch.

    Args:
        state: to remember.
        waiting: blocks that are in no snapshot yet, oldest first.
        cuts: the snapshots that close, oldest first.
    """

    state: Open
    waiting: list[BlockRef]
    cuts: list[Cut] = field(default_factory=list)

    def cut(self, epoch: int, blocks: Sequence[BlockRef] | None = None, *, whole: bool = False) -> None:
        """Close a snapshot with `blocks`, or with all that wait. Ids rise even where a clock went back.

        Args:
            whole: it is one however many there are; else those with too many become several, which are shown together.
        """
        if blocks is None:
            blocks, self.waiting = self.waiting, []
        most = max(len(blocks), 1) if whole else BLOCKS_A_SNAPSHOT_MAX
        for first in range(0, max(len(blocks), 1), most):
            last = self.state.last
            id = SnapshotId(epoch, 0) if epoch > last.epoch else SnapshotId(last.epoch, last.part + 1)
            self.cuts.append(Cut(id, tuple(blocks[first : first + most])))
            self.state = replace(self.state, last=id, postponed=0)


class Policy(Protocol):
    """When snapshots close."""

    @property
    def rows_max(self) -> int | None:
        """Rows of a block at most; None for as many as fit."""

    @property
    def period_us(self) -> int | None:
        """Results of different periods of event time never share a block; None where periods do not matter."""

    def ends_us(self, state: Open, collected: Collected) -> Sequence[int]:
        """Times with which snapshots end that close with a batch: no block given to `collect` may lie across one."""

    def collect(self, state: Open, waiting: Sequence[BlockRef], collected: Collected) -> Outcome:
        """Add a batch."""

    def finish(self, state: Open, waiting: Sequence[BlockRef], *, for_good: bool = False) -> Outcome:
        """The streams have ended, or for good: the query has, and nothing can come after it."""


@dataclass(frozen=True, slots=True)
class EpochPolicy:
    """Snapshots by epoch.

    Args:
        span_us: length of an epoch on the collecting clock; None to count batches.
        batches: batches an epoch has, where `span_us` is None.
        threshold_rows, threshold_bytes: the size aimed at; None for no limit of this kind.
        immediate: commit as soon as the threshold is reached.
        delayed: at an epoch's end with less than this part of the threshold, wait for the next; None never waits.
        delays: so many times at most.
        whole_batches: the results of a batch are not split, so that they can be put in order when they are read.
    """

    span_us: int | None = EPOCH_US
    batches: int = 1
    threshold_rows: int | None = THRESHOLD_ROWS
    threshold_bytes: int | None = None
    immediate: bool = True
    delayed: float | None = None
    delays: int = DELAYS
    whole_batches: bool = False

    @property
    def rows_max(self) -> int | None:
        """An eighth of the threshold, so that snapshots come close to it; never so few that blocks are mostly frame."""
        return max(self.threshold_rows // 8, ROWS_A_BLOCK_MIN) if self.immediate and self.threshold_rows else None

    @property
    def period_us(self) -> int | None:
        """Event time does not matter."""
        return None

    def ends_us(self, state: Open, collected: Collected) -> Sequence[int]:
        """Event time does not matter."""
        return ()

    def epoch_of(self, collected: Collected) -> int:
        """The epoch that ends at the batch or next after it: an epoch is (previous, this]."""
        if self.span_us is None:
            return collected.batch // self.batches + 1
        return -(-collected.clock_us // self.span_us)

    @property
    def rule(self) -> str:
        """How epochs are counted; their numbers cannot be compared with those of another rule."""
        return f"{self.batches} batches" if self.span_us is None else f"{self.span_us} us"

    def collect(self, state: Open, waiting: Sequence[BlockRef], collected: Collected) -> Outcome:
        """See `Policy`.

        What waits becomes a snapshot at once if epochs are counted by another rule now, or a clock that was ahead has
        been set back.
        """
        out = Outcome(state, list(waiting))
        running = self.epoch_of(collected)
        if not state.is_counted_by(self.rule) or (state.epoch is not None and running < state.epoch):
            if out.waiting:
                out.cut(running)
        elif state.epoch is not None:
            self._end_epochs(out, state.epoch, running)
        out.state = replace(out.state, epoch=running, rule=self.rule)
        rows, size = _size(out.waiting)
        for block in collected.blocks:
            out.waiting.append(block)
            rows, size = rows + block.rows, size + block.size
            if not self.whole_batches and self._is_full(out, rows, size):
                out.cut(running)
                rows = size = 0
        if self.whole_batches and self._is_full(out, rows, size):
            out.cut(running, whole=True)
        return out

    def finish(self, state: Open, waiting: Sequence[BlockRef], *, for_good: bool = False) -> Outcome:
        """What waits becomes a snapshot."""
        out = Outcome(state, list(waiting))
        if waiting:
            out.cut(state.epoch or 0)
        return out

    def _end_epochs(self, out: Outcome, ended: int, running: int) -> None:
        """The epochs from `ended` to the one before `running` are over."""
        while ended < running:
            if self._waits(out):
                out.state = replace(out.state, postponed=out.state.postponed + 1)
            elif out.waiting or out.state.postponed:
                out.cut(ended)
            ended += 1
            # A long silence: its empty epochs are one covered range, and not a snapshot each.
            if not out.waiting and not out.state.postponed:
                ended = max(ended, running - self.delays - 1)

    def _waits(self, out: Outcome) -> bool:
        if self.delayed is None or out.state.postponed >= self.delays:
            return False
        rows, size = _size(out.waiting)
        few = self.threshold_rows is None or rows < self.delayed * self.threshold_rows
        small = self.threshold_bytes is None or size < self.delayed * self.threshold_bytes
        return few and small

    def _is_full(self, out: Outcome, rows: int, size: int) -> bool:
        many = self.threshold_rows is not None and rows >= self.threshold_rows
        large = self.threshold_bytes is not None and size >= self.threshold_bytes
        return (self.immediate and (many or large)) or len(out.waiting) >= BLOCKS_A_SNAPSHOT_MAX


@dataclass(frozen=True, slots=True)
class PunctuationPolicy:
    """Snapshots by pairs of punctuations: each stream has one at every multiple of `every_us` of its event time.

    A stream's punctuation stands where its mark has passed the end of a period: nothing inside the allowed delay can be
    older. When both streams' have come, and the mark of the results with them, which pairs that have not met yet hold
    back, the results of that period are complete and become a snapshot. A result of a late tuple goes into the next
    pair's snapshot. Periods that have no results share the snapshot of the last of them.
    """

    every_us: int

    @property
    def rule(self) -> str:
        """How periods are counted; see `EpochPolicy`."""
        return f"every {self.every_us} us"

    @property
    def rows_max(self) -> int | None:
        """As many as fit."""
        return None

    @property
    def period_us(self) -> int | None:
        """Blocks are cut where periods end."""
        return self.every_us

    def ends_us(self, state: Open, collected: Collected) -> Sequence[int]:
        """Blocks are cut already."""
        return ()

    def collect(self, state: Open, waiting: Sequence[BlockRef], collected: Collected) -> Outcome:
        """See `Policy`."""
        out = Outcome(state, [*waiting, *collected.blocks])
        if collected.output_mark_us is None:
            return out
        first_open = collected.output_mark_us // self.every_us
        epoch = state.epoch if state.is_counted_by(self.rule) else None
        if epoch is not None and first_open <= epoch:
            return out
        by_period: dict[int, list[BlockRef]] = {first_open - 1: []}
        still: list[BlockRef] = []
        for block in out.waiting:
            period = block.time_min_us // self.every_us
            if period >= first_open:
                still.append(block)
                continue
            # What came late belongs to the first pair that is not closed.
            period = period if epoch is None else max(period, epoch)
            by_period.setdefault(period, []).append(block)
        out.waiting = still
        for period in sorted(by_period):
            out.cut(out.state.last.epoch + 1, by_period[period])
        out.state = replace(out.state, epoch=first_open, rule=self.rule)
        return out

    def finish(self, state: Open, waiting: Sequence[BlockRef], *, for_good: bool = False) -> Outcome:
        """What no pair has closed waits, and a later run goes on with it; if there is none, it is one more snapshot."""
        return _waiting_on(state, waiting, for_good=for_good)


@dataclass(frozen=True, slots=True)
class PairPolicy:
    """Snapshots by punctuations that rows or files of the streams are: each stream's first one, second one, and so on.

    A stream's punctuation has arrived when its mark has passed it. A period is closed when all streams' punctuations
    of its number have arrived, and the mark of the results has passed the latest of them, which is where it ends. A
    result of a late tuple goes into the next period that closes, and periods without results share the snapshot of the
    last of those that close together.
    """

    @property
    def rows_max(self) -> int | None:
        """As many as fit."""
        return None

    @property
    def period_us(self) -> int | None:
        """Where a period ends is not known yet when its blocks are written, so they are split later."""
        return None

    def ends_us(self, state: Open, collected: Collected) -> Sequence[int]:
        """See `Policy`."""
        return closing(_told(state, collected), collected.output_mark_us, state.ended_us)

    def collect(self, state: Open, waiting: Sequence[BlockRef], collected: Collected) -> Outcome:
        """See `Policy`."""
        told = _told(state, collected)
        ends_us = closing(told, collected.output_mark_us, state.ended_us)
        by_period: list[list[BlockRef]] = [[] for _ in range(len(ends_us) + 1)]
        for block in (*waiting, *collected.blocks):
            by_period[bisect_right(ends_us, block.time_max_us)].append(block)
        out = Outcome(state, by_period.pop())
        for number, blocks in enumerate(by_period, 1):
            if blocks or number == len(by_period):
                out.cut(out.state.last.epoch + 1, blocks)
        ended_us = ends_us[-1] if ends_us else state.ended_us
        out.state = replace(out.state, ends=tuple(one.without(len(ends_us)) for one in told), ended_us=ended_us)
        return out

    def finish(self, state: Open, waiting: Sequence[BlockRef], *, for_good: bool = False) -> Outcome:
        """As with any punctuation."""
        return _waiting_on(state, waiting, for_good=for_good)


def _told(state: Open, collected: Collected) -> tuple[Ends, ...]:
    """What the streams have told with a batch."""
    before = state.ends or tuple(Ends() for _ in collected.ended)
    return tuple(
        ends.after(ended, mark_us)
        for ends, ended, mark_us in zip(before, collected.ended, collected.marks_us, strict=True)
    )


def _waiting_on(state: Open, waiting: Sequence[BlockRef], *, for_good: bool) -> Outcome:
    """What no punctuation has closed waits, and a later run goes on with it; if there is none, it is one snapshot."""
    out = Outcome(state, list(waiting))
    if waiting and for_good:
        out.cut(state.last.epoch + 1)
    return out


def _size(blocks: Sequence[BlockRef]) -> tuple[int, int]:
    return sum(block.rows for block in blocks), sum(block.size for block in blocks)
