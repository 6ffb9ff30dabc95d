"""Snapshots by punctuations that rows or files are: at each close exactly what is earlier than its end has been shown.

Every operator, with disorder and with one stream far behind; each batch is done twice, and by a driver of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.engine.loop import Brought, Loop
from streamjoin.flow.periods import Ended
from streamjoin.flow.punctuation import lowest_mark_us
from streamjoin.plan.ending import Ending, EndsByFile, EndsByRow
from streamjoin.plan.join import RESULT_TIME
from streamjoin.plan.stages import Cascade, Query, decided_stages, entry_of
from streamjoin.query import plan_query
from streamjoin.results.block import BlockRef, KeyCode, cut, decode
from streamjoin.results.description import Description
from streamjoin.results.ledger import Ledger
from streamjoin.results.policy import Collected, PairPolicy
from streamjoin.results.snapshot import Snapshot
from streamjoin.results.splitting import SPLIT_UNIT
from streamjoin.results.stores.memory import MemoryStore
from streamjoin.state.store import StateStore

from . import test_relations as relations
from .check import KEYED, NAMES, OPERATORS, plan
from .histories import history
from .loops import AT_ONCE, loop_of
from .loops import cut as cut_streams
from .test_three_streams import BY, QUERIES, STREAMS, rows

BATCHES = 12
BEHIND = 3
"""So many batches the last stream is late."""
CODE = KeyCode(ordered=True)
ENDINGS: dict[str, Ending] = {"by row": EndsByRow("k", pa.scalar(2, pa.int64())), "by file": EndsByFile()}


@dataclass
class Store:
    """What a query's sink does, without Spark: blocks of whole batches, and a new driver for each of them."""

    query: Query
    schema: pa.Schema | None = None
    store: MemoryStore = field(default_factory=MemoryStore)
    given: Counter[Any] = field(default_factory=Counter)
    shown: Counter[Any] = field(default_factory=Counter)
    closes: list[tuple[int, Counter[Any]]] = field(default_factory=list)
    split: int = 0

    def driver(self) -> Ledger:
        found = Ledger(self.store, "j", Description(self.query.emitted, CODE), PairPolicy(), publish=self._show)
        found.take_over()
        return found

    def batch(
        self, number: int, parts: Sequence[pa.RecordBatch], marks_us: Any, mark_us: int | None, ended: Any
    ) -> None:
        self.given += _rows(parts)
        ledger, refs = self.driver(), list[BlockRef]()
        if found := [part for part in parts if part.num_rows]:
            blocks = cut(
                pa.concat_batches(found), CODE, generation=ledger.head.generation, batch=number, unit=0,
                first_number=0, block_bytes=1 << 20,
            )  # fmt: skip
            for ref, content in blocks:
                self.store.put_blocks("j", [(ref.key, content)])
                refs.append(ref)
        collected = Collected(number, number, marks_us, refs, output_mark_us=mark_us, ended=ended)
        ledger.commit(collected)
        ledger.commit(collected)  # one that is repeated changes nothing
        ended_us = ledger.head.state.ended_us
        if ended_us is not None and (not self.closes or self.closes[-1][0] != ended_us):
            self.closes.append((ended_us, Counter(self.shown)))

    def _show(self, snapshot: Snapshot) -> None:
        found = dict(self.store.get_blocks("j", [block.key for block in snapshot.blocks]))
        self.shown += _rows([decode(block, found[block.key]) for block in snapshot.blocks])
        self.split += sum(block.key.unit == SPLIT_UNIT for block in snapshot.blocks)

    def check(self, ends_us: Sequence[int], *, splits: bool = True) -> None:
        """At each close all results before its end, and no other; and periods end where they should.

        Args:
            splits: whether there are blocks with rows on both sides of an end.
        """
        assert len(self.closes) > 3
        for ended_us, shown in self.closes:
            assert shown == Counter({row: count for row, count in self.given.items() if row[0] < ended_us})
        assert [ended_us for ended_us, _ in self.closes if ended_us not in ends_us] == []
        assert (self.split > 0) == splits


def _rows(parts: Sequence[pa.RecordBatch]) -> Counter[Any]:
    """(time, row) of each result."""
    return Counter((row[RESULT_TIME], str(sorted(row.items()))) for part in parts for row in part.to_pylist())


def ends_of(ending: Ending, streams: Sequence[Sequence[Sequence[pa.RecordBatch]]], times: str = "ts") -> list[int]:
    """Where periods end, of each stream's pieces batch by batch: the later of the first ones, of the second ones..."""

    def of_stream(batches: Sequence[Sequence[pa.RecordBatch]]) -> list[int]:
        pieces = [piece for pieces in batches for piece in pieces]
        found = [[(row["ts_us"], row["k"]) for row in _with_time(piece, times)] for piece in pieces]
        if isinstance(ending, EndsByRow):
            return sorted(ts_us + 1 for piece in found for ts_us, k in piece if k == ending.value.as_py())
        return list(accumulate((max((ts_us for ts_us, _ in piece), default=-(2**62) - 1) + 1 for piece in found), max))

    return list(accumulate(map(max, zip(*map(of_stream, streams), strict=False)), max))


def _with_time(piece: pa.RecordBatch, times: str) -> list[dict[str, Any]]:
    column = piece.column(times)
    us = (column.view(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
    return [{"ts_us": ts_us, "k": k} for ts_us, k in zip(us, piece.column("k").to_pylist(), strict=True)]


def late(streams: Sequence[list[list[pa.RecordBatch]]]) -> list[list[list[pa.RecordBatch]]]:
    """Each stream's batches; the last one's are behind."""
    nothing: list[list[pa.RecordBatch]] = [[]] * BEHIND
    return [*([*stream, *nothing] for stream in streams[:-1]), [*nothing, *streams[-1]]]


def marks_of(loop: Loop) -> tuple[int | None, ...]:
    """How far each stream has come."""
    found = []
    for stream in range(len(loop.plan.streams)):
        stage, side = entry_of(loop.plan, stream)
        first = sum(len(operator.units) for operator in loop.operators[: stage.number])
        found.append(loop.reports[first].marks_us[side])
    return tuple(found)


def run(
    loop: Loop, streams: Sequence[list[list[pa.RecordBatch]]], versions: Mapping[str, int] = MappingProxyType({})
) -> Store:
    """All batches, and those that drain, into a store.

    Args:
        versions: of the plan's relations.
    """
    (query,) = loop.plan.queries
    store = Store(query)
    drains = sum(operator.drain_batches for operator in loop.operators)
    drains += decided_stages(loop.plan) + any(operator.capabilities.waits for operator in loop.operators)
    brought: Iterator[Any] = iter([*zip(*streams, strict=True), *[tuple([] for _ in streams)] * drains])
    for number, pieces in enumerate(brought):
        batch = Brought(pieces, 1_000_000 * number, drains=number >= len(streams[0]), versions=versions)
        loop.slots = 1 + number % 3
        repeated = [part for _, part in loop.batch(batch)]
        loop.slots = 1 + (number + 1) % 3
        parts = [part for _, part in loop.batch(batch)]
        assert _rows(repeated) == _rows(parts)
        last = loop.reports[-len(loop.operators[-1].units) :]
        mark_us = lowest_mark_us(report.output_mark_us for report in last)
        store.batch(number, parts, marks_of(loop), mark_us, loop.ended)
        loop.commit(batch)
    return store


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("operator", NAMES)
def test_a_period_is_closed_with_all_its_pairs(operator: str, ending: str, tmp_path: Path) -> None:
    given = history(4, r=150, s=140, time_shape="disordered", delay_us=30)
    wanted = plan(given, "equality" if operator in KEYED else "band", "20 us")
    streams = tuple(replace(stream, ending=ENDINGS[ending]) for stream in wanted.streams)
    wanted = replace(wanted, keyed=True, streams=streams)
    loop = Loop(wanted, (OPERATORS[operator],), lambda stage: StateStore(tmp_path, stage, sync=False))
    cuts = given.cuts(BATCHES, 2)
    batches = late([[r for r, _ in cuts], [s for _, s in cuts]])
    run(loop, batches).check(ends_of(ENDINGS[ending], batches))


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("operator", [*BY, *AT_ONCE])
def test_a_period_is_closed_with_all_results_of_joins_that_follow_joins(
    operator: str, ending: str, tmp_path: Path
) -> None:
    check(QUERIES["equalities in a row"][0], ENDINGS[ending], operator, tmp_path)


OTHERS = {
    "left": "SELECT ONLINE a.id AS a, b.id AS b FROM a LEFT JOIN b ON a.k = b.k WITHIN 20 MICROSECONDS",
    "full": "SELECT ONLINE a.id AS a, b.id AS b FROM a FULL JOIN b ON a.k = b.k WITHIN 20 MICROSECONDS",
    "anti": "SELECT ONLINE a.id AS a FROM a LEFT ANTI JOIN b ON a.k = b.k WITHIN 20 MICROSECONDS",
    "left, then inner": "SELECT ONLINE a.id AS a, b.id AS b, c.id AS c FROM a LEFT JOIN b ON a.k = b.k "
    "JOIN c ON a.k = c.k WITHIN 20 MICROSECONDS",
    "as of": "SELECT ONLINE a.id AS a, b.id AS b FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.ts >= b.ts",
    "groups": "SELECT ONLINE a.k, COUNT(*) AS n FROM a, b WHERE a.k = b.k WITHIN 20 MICROSECONDS "
    "GROUP BY a.k, TUMBLE(40 MICROSECONDS)",
    "groups of one stream": "SELECT ONLINE a.k, COUNT(*) AS n FROM a GROUP BY a.k, TUMBLE(40 MICROSECONDS)",
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("query", OTHERS)
def test_a_period_is_closed_with_all_rows_that_are_decided_late(query: str, ending: str, tmp_path: Path) -> None:
    check(OTHERS[query], ENDINGS[ending], "asof" if query == "as of" else "biclique by hash", tmp_path)


CHANGING = {
    "that leave": "SELECT ONLINE a.k, COUNT(*) AS n FROM a, b WHERE a.k = b.k WITHIN 20 MICROSECONDS "
    "GROUP BY a.k EMIT EVERY 7 MICROSECONDS",
    "with HAVING": "SELECT ONLINE a.k, COUNT(*) AS n, MAX(c.x) AS top FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k "
    "WITHIN 20 MICROSECONDS GROUP BY a.k HAVING COUNT(*) > 3 EMIT EVERY 7 MICROSECONDS",
    "that stay": "SELECT ONLINE a.k, COUNT(*) AS n FROM a GROUP BY a.k CUMULATIVE EMIT EVERY 7 MICROSECONDS",
    "of rows without a partner": "SELECT ONLINE a.k, COUNT(*) AS n FROM a LEFT JOIN b ON a.k = b.k "
    "WITHIN 20 MICROSECONDS GROUP BY a.k EMIT EVERY 7 MICROSECONDS",
    "after an as-of join": "SELECT ONLINE a.k, COUNT(b.id) AS n FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.ts >= b.ts "
    "WITHIN 20 MICROSECONDS GROUP BY a.k EMIT EVERY 7 MICROSECONDS",
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("query", CHANGING)
def test_a_period_is_closed_with_all_changes_of_groups_in_it(query: str, ending: str, tmp_path: Path) -> None:
    """A batch gives groups as of one moment, so no block has rows on both sides of an end."""
    operator = "asof" if "ASOF" in CHANGING[query] else "biclique by hash"
    check(CHANGING[query], ENDINGS[ending], operator, tmp_path, splits=False)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_period_is_closed_with_all_values_that_differ(ending: str, tmp_path: Path) -> None:
    query = "SELECT DISTINCT ONLINE a.k, b.x FROM a, b WHERE a.k = b.k WITHIN 20 MICROSECONDS"
    check(query, ENDINGS[ending], "matrix", tmp_path)


RELATED = {
    "inner": "SELECT ONLINE a.id AS a, c.id AS c FROM a JOIN c ON a.k = c.k",
    "left": "SELECT ONLINE a.id AS a, c.id AS c FROM a LEFT JOIN c ON a.k = c.k AND c.x > 30",
    "between two streams": "SELECT ONLINE a.id AS a, b.id AS b, c.id AS c FROM a JOIN c ON a.k = c.k AND c.id < 20 "
    "JOIN b ON c.k = b.k WITHIN 20 MICROSECONDS",
    "behind rows without a partner": "SELECT ONLINE a.id AS a, b.id AS b, c.id AS c FROM a LEFT JOIN b ON a.k = b.k "
    "LEFT JOIN c ON b.x = c.x WITHIN 20 MICROSECONDS",
    "groups": "SELECT ONLINE c.k, COUNT(*) AS n FROM a JOIN c ON a.k = c.k GROUP BY c.k, TUMBLE(40 MICROSECONDS)",
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("query", RELATED)
def test_a_period_is_closed_with_all_rows_that_meet_a_relation(query: str, ending: str, tmp_path: Path) -> None:
    inputs = {
        name: replace(stream, ending=ENDINGS[ending]) if name in "ab" else stream
        for name, stream in relations.INPUTS.items()
    }
    plan = relations.planned(RELATED[query], inputs)
    job = relations.Job(plan.keyed(), tmp_path, "matrix")
    job.take()
    batches = histories(len(plan.streams))
    run(job.loop, batches, job.versions).check(ends_of(ENDINGS[ending], batches))


def check(query: str, ending: Ending, operator: str, folder: Path, *, splits: bool = True) -> None:
    found = plan_query(query, {name: replace(stream, ending=ending) for name, stream in STREAMS.items()})
    found = found.keyed() if isinstance(found, Cascade) else replace(found, keyed=True)
    batches = histories(len(found.streams))
    run(loop_of(found, operator, folder), batches).check(ends_of(ending, batches), splits=splits)


def histories(streams: int) -> list[list[list[pa.RecordBatch]]]:
    """Of each stream, its pieces by batch."""
    return late(
        [[pieces for (pieces,) in cut_streams([rows(place + 1, 150, keys=4)], BATCHES)] for place in range(streams)]
    )


def test_the_streams_alone_would_close_periods_of_a_chain_too_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the mark of the output, pairs that have not met yet would be missing."""
    real = Store.batch

    def batch(self: Store, number: int, parts: Any, marks_us: Any, mark_us: Any, ended: tuple[Ended, ...]) -> None:
        real(self, number, parts, marks_us, lowest_mark_us(marks_us), ended)

    monkeypatch.setattr(Store, "batch", batch)
    with pytest.raises(AssertionError):
        test_a_period_is_closed_with_all_its_pairs("handshake 3", "by row", tmp_path)
