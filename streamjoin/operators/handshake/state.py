"""What a worker keeps between two batches, as a view of its tables and values.

    R, S             blocks at rest
    R open, S open   at a stream's head: segments that together do not fill a block yet
    R sent, S sent   on their way: the successor takes them in during the next batch
    results          results that wait, where they have an order; the value of that name has each file's query, and how
                     many of its rows have left

A worker hands blocks over by names of files, which the successor's state goes on naming. What version v has sent
travels in batch v, and the barrier between two batches acknowledges it: the successor has joined and stored it in its
version v + 1, where the sender no longer names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from streamjoin.engine.state import Rewritten, Table, UnitState
from streamjoin.engine.stored import NAMES
from streamjoin.index.segment import SegmentInfo
from streamjoin.operators.handshake.waiting import Run
from streamjoin.plan.window import R, S

Infos = tuple[SegmentInfo, ...]
Files = tuple[str, ...]

_RESULTS, _SETTLED, _UNMET = "results", "settled", "unmet"


@dataclass(frozen=True, slots=True)
class ChainState:
    """A worker's own part of its state; pairs are of R and S.

    Args:
        closed: blocks at rest, oldest first.
        open: segments at the stream's head that together do not fill a block yet.
        sent: blocks that are on their way to the successor.
        waiting: results that may not leave yet.
        settled: all results whose newer tuple has a lower sequence number have left.
        unmet: files of R and of S that the next batch joins with each other, after workers were merged.
    """

    closed: tuple[Infos, Infos] = ((), ())
    open: tuple[Infos, Infos] = ((), ())
    sent: tuple[Infos, Infos] = ((), ())
    waiting: tuple[Run, ...] = ()
    settled: int = 0
    unmet: tuple[tuple[Files, Files], ...] = ()

    @staticmethod
    def of(state: UnitState) -> ChainState:
        """The view of a worker's state."""
        closed, kept_open, sent = (
            (state.segments(names[R]), state.segments(names[S])) for names in (NAMES, _names("open"), _names("sent"))
        )
        runs = zip(state.values.get(_RESULTS, ()), state.segments(_RESULTS), strict=True)
        return ChainState(
            closed,
            kept_open,
            sent,
            tuple(Run(query, left, info) for (query, left), info in runs),
            state.values.get(_SETTLED, 0),
            tuple((tuple(r), tuple(s)) for r, s in state.values.get(_UNMET, ())),
        )

    def at_rest(self, side: int) -> Infos:
        """Everything of `side` but what is on its way; what fills no block yet comes last."""
        return self.closed[side] + self.open[side]

    def found(self, side: int, files: Files) -> Infos:
        """The segments of `side` that these files hold."""
        by_file = {info.file: info for info in (*self.at_rest(side), *self.sent[side])}
        return tuple(by_file[file] for file in files)

    @property
    def tables(self) -> dict[str, Table]:
        """The tables of the state that this is a view of."""
        of_sides = [
            (name, side, infos[side])
            for side in (R, S)
            for name, infos in ((NAMES[side], self.closed), (_names("open")[side], self.open))
        ]
        of_sides += [(_names("sent")[side], side, self.sent[side]) for side in (R, S)]
        found = {name: Table(side, infos) for name, side, infos in of_sides if infos}
        if self.waiting:
            found[_RESULTS] = Table(None, tuple(run.info for run in self.waiting))
        return found

    @property
    def values(self) -> dict[str, Any]:
        """The values of the state that this is a view of."""
        found = {
            _RESULTS: [[run.query, run.left] for run in self.waiting],
            _SETTLED: self.settled,
            _UNMET: [[list(r), list(s)] for r, s in self.unmet],
        }
        return {name: value for name, value in found.items() if value}


def requeried(state: UnitState, change: Rewritten) -> UnitState:
    """A worker's state whose tuples were written anew: results of queries that ended go, and files have new names."""
    view = ChainState.of(state)
    unmet = [(_now(change.files, r), _now(change.files, s)) for r, s in view.unmet]
    view = replace(
        view,
        waiting=tuple(
            replace(run, query=change.queries[run.query]) for run in view.waiting if run.query in change.queries
        ),
        unmet=tuple((r, s) for r, s in unmet if r and s),
    )
    return replace(state, tables=view.tables, values=view.values)


def _names(what: str) -> tuple[str, str]:
    return f"{NAMES[R]} {what}", f"{NAMES[S]} {what}"


def _now(files: Mapping[str, str | None], before: Files) -> Files:
    return tuple(now for file in before if (now := files[file]) is not None)
