"""A case: columns, rows, conditions, window, operator and index; run by the engine in this process, and compared."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.engine.operator import Operator
from streamjoin.engine.router import Router
from streamjoin.engine.routing import Route, Tuples
from streamjoin.intake.intake import Intake, Piece
from streamjoin.operators.biclique import Biclique, Routing
from streamjoin.operators.handshake import Handshake
from streamjoin.operators.matrix import Matrix
from streamjoin.operators.splitjoin import SplitJoin
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query

from ..histories import cut
from ..local import LocalRun
from . import meaning
from .kinds import arrow_type, plain, to_arrow
from .terms import Node, Term, node

Row = dict[str, Any]
Joined = tuple[Any, ...]
"""Row numbers of r and s, and the values of items."""
STREAMS = ("r", "s")
MEMORY = Path("/dev/shm")
"""Where state of a few rows goes: a case should not wait for a disk."""


@dataclass(frozen=True)
class Window:
    """WITHIN: of a time, of rows, or none."""

    before_us: int | None = None
    after_us: int = 0
    rows: int | None = None

    def __str__(self) -> str:
        if self.rows is not None:
            return f" WITHIN {self.rows} ROWS"
        if self.before_us is None:
            return ""
        return f" WITHIN ({self.before_us} MICROSECONDS, {self.after_us} MICROSECONDS)"


@dataclass(frozen=True)
class Way:
    """An operator that a case may be run by.

    Args:
        build: bounds of value ranges -> the operator.
        knobs: of a join file.
        needs: an equality, a band, or nothing.
    """

    build: Callable[[Bounds], Operator]
    knobs: str
    needs: str = ""


Bounds = tuple[tuple[int, ...], tuple[int, ...]]
WAYS: dict[str, Way] = {
    "biclique": Way(lambda _: Biclique(1, 2), "name: biclique, routing: random, r_units: 1, s_units: 2"),
    "biclique by hash": Way(
        lambda _: Biclique(2, 3, Routing.HASH), "name: biclique, routing: hash, r_units: 2, s_units: 3", "equality"
    ),
    "biclique by contrand": Way(
        lambda _: Biclique(3, 2, Routing.CONTRAND, 2, 2),
        "name: biclique, routing: contrand, r_units: 3, s_units: 2, r_groups: 2, s_groups: 2",
        "equality",
    ),
    "biclique by value ranges": Way(
        lambda bounds: Biclique(3, 3, Routing.CONTRAND, len(bounds[0]) + 1, len(bounds[1]) + 1, bounds),
        "name: biclique, routing: contrand, r_units: 3, s_units: 3",
        "band",
    ),
    "matrix": Way(lambda _: Matrix(2, 1), "name: matrix, rows: 2, columns: 1"),
    "splitjoin": Way(lambda _: SplitJoin(2), "name: splitjoin, cores: 2"),
    "handshake": Way(lambda _: Handshake(2, 3), "name: handshake, workers: 2, block: 3"),
}


@dataclass(frozen=True)
class Case:
    """One case.

    Args:
        columns: (name, kind) of each stream's columns, besides id and ts.
        rows: of each stream in arrival order; "ts" is in us and never falls.
        conjuncts: the WHERE clause.
        items: computed columns of the SELECT list.
        operator: a name of WAYS.
        batches: into how many the rows are cut.
    """

    columns: Mapping[str, tuple[tuple[str, str], ...]]
    rows: Mapping[str, Sequence[Row]]
    conjuncts: tuple[Term, ...]
    window: Window = field(default_factory=Window)
    operator: str = "biclique"
    index: str = "auto"
    batches: int = 1
    seed: int | None = None
    items: tuple[Term, ...] = ()

    @property
    def query(self) -> str:
        """As the engine gets it."""
        where = " AND ".join(map(str, self.conjuncts)) or "TRUE"
        items = "".join(f", {item} AS v{place}" for place, item in enumerate(self.items))
        return f"SELECT ONLINE r.id AS r_id, s.id AS s_id{items} FROM r, s WHERE {where}{self.window}"

    def schema(self, stream: str) -> pa.Schema:
        """Of a stream."""
        columns = [(name, arrow_type(kind)) for name, kind in self.columns[stream]]
        return pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us", tz="UTC")), *columns])

    def batch(self, stream: str, first: int, rows: Sequence[Row]) -> pa.RecordBatch:
        """Rows of a stream, the first of which has this number."""
        columns = [(name, kind, [row[name] for row in rows]) for name, kind in self.columns[stream]]
        ids = pa.array(range(first, first + len(rows)), pa.int64())
        times = to_arrow("timestamp", [row["ts"] for row in rows])
        arrays = [ids, times, *(to_arrow(kind, values) for _, kind, values in columns)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema(stream))

    def pieces(self, stream: str) -> list[pa.RecordBatch]:
        """A stream's rows, one piece a batch."""
        found, first = [], 0
        for rows in cut(self.rows[stream], self.batches):
            found.append(self.batch(stream, first, rows))
            first += len(rows)
        return found

    def plan(self) -> JoinPlan:
        """By the index that was asked for, or by the best if that one cannot answer the query."""
        streams = {stream: StreamSchema(stream, self.schema(stream), "ts") for stream in STREAMS}
        plan = plan_query(self.query, streams)
        known = plan.predicate
        able = {"auto": True, "scan": True, "hash": known.equalities, "tree": known.equalities or known.ranges}
        return replace(plan, index=self.index if able[self.index] else "auto")

    def way(self, plan: JoinPlan) -> Way:
        """The operator that was asked for, or one for every query if it cannot route this one."""
        way = WAYS[self.operator]
        known = plan.predicate
        able = {"": True, "equality": known.equalities, "band": any(found.is_band for found in known.ranges)}
        if not able[way.needs] or (way.needs == "band" and known.equalities):
            return WAYS["biclique"]
        return way

    def near(self) -> Callable[[int, int], bool]:
        """Whether rows i of R and j of S are inside the window."""
        r, s = self.rows["r"], self.rows["s"]
        if self.window.rows is not None:
            order = {arrival: place for place, arrival in enumerate(self._arrivals())}
            # How many of the other stream had arrived before each row.
            before = {
                (stream, number): sum(order[(other, partner)] < order[(stream, number)] for partner in range(len(rows)))
                for stream, other, rows in (("r", "s", s), ("s", "r", r))
                for number in range(len(self.rows[stream]))
            }
            count = self.window.rows
            return lambda i, j: (
                before[("r", i)] - count <= j < before[("r", i)] or before[("s", j)] - count <= i < before[("s", j)]
            )
        if self.window.before_us is None:
            return lambda i, j: True
        low, high = -self.window.before_us, self.window.after_us
        return lambda i, j: low <= s[j]["ts"] - r[i]["ts"] <= high

    def _arrivals(self) -> Iterator[tuple[str, int]]:
        # In a batch the streams take turns, R first.
        first = [0, 0]
        for parts in zip(*(cut(self.rows[stream], self.batches) for stream in STREAMS), strict=True):
            for place in range(max(map(len, parts))):
                for side, stream in enumerate(STREAMS):
                    if place < len(parts[side]):
                        yield stream, first[side] + place
            first = [start + len(part) for start, part in zip(first, parts, strict=True)]

    def wanted(self) -> Counter[Joined]:
        """The pairs, by oracle 1; with items the values of these follow."""
        pairs = meaning.pairs(self.conjuncts, self.rows["r"], self.rows["s"], self.near())
        if not self.items:
            return pairs
        return Counter(
            (i, j, *(meaning.item_of(item, {"r": self.rows["r"][i], "s": self.rows["s"][j]}) for item in self.items))
            for i, j in pairs.elements()
        )

    def found(self) -> Counter[Joined]:
        """The same, by the engine."""
        plan = self.plan()
        batches = list(zip(*([[piece] for piece in self.pieces(stream)] for stream in STREAMS), strict=True))
        way = self.way(plan)
        operator = way.build(bounds(plan, self) if way.needs == "band" else ((), ()))
        folder = MEMORY if MEMORY.is_dir() else None
        with tempfile.TemporaryDirectory(prefix="streamjoin-typed-", dir=folder) as state:
            job = LocalRun(plan, operator, Path(state))
            results = list(job.run([*batches, *job.drain()]))
        return Counter(row for rows in results for row in zip(*map(plain, rows.columns), strict=True))

    @property
    def size(self) -> int:
        """For comparing cases: characters and rows."""
        return len(self.query) + 20 * sum(map(len, self.rows.values()))


@dataclass(frozen=True)
class Difference:
    """What the engine does otherwise.

    Args:
        kind: the name of its exception, or "missing" or "extra" for pairs; a case is made smaller while this stays.
        text: for people.
    """

    kind: str
    text: str


def difference(case: Case) -> Difference | None:
    """How engine and oracle 1 differ, or None."""
    want = case.wanted()
    try:
        got = case.found()
    except Exception as error:
        return Difference(type(error).__name__, f"{type(error).__name__}: {str(error)[:300]}")
    missing, extra = want - got, got - want
    if not missing and not extra:
        return None
    of_pairs = Counter(row[:2] for row in want.elements()) == Counter(row[:2] for row in got.elements())
    return Difference(
        "value" if of_pairs else "missing" if missing else "extra",
        f"{missing.total()} of {want.total()} missing: {_first(missing)}; {extra.total()} too many: {_first(extra)}",
    )


def _first(rows: Counter[Joined]) -> str:
    return ", ".join(sorted("(" + ", ".join(map(str, row)) + ")" for row in rows)[:4]) or "none"


class _Recorder(Biclique):
    """Keeps the keys that value ranges would route by."""

    def route(self, side: int, tuples: Tuples) -> list[Route]:
        assert tuples.key is not None
        object.__setattr__(self, "seen", [*getattr(self, "seen", []), *tuples.key.tolist()])
        return []


def bounds(plan: JoinPlan, case: Case) -> Bounds:
    """Value ranges that part the rows there are; the streams' differ. Any would be right."""
    keys = []
    for side, stream in enumerate(STREAMS):
        recorder = _Recorder(1, 1, Routing.CONTRAND, bounds=((), ()))
        rows = case.batch(stream, 0, case.rows[stream])
        router = Router(Intake(plan, side, lambda letters: None), recorder, 1)
        list(router.take(rows, Piece("all", "all", "rows", 0, 0)))
        keys.append(np.unique(np.array(getattr(recorder, "seen", []), np.int64)))
    r, s = keys
    thirds = sorted({int(r[r.size // 3]), int(r[2 * r.size // 3])}) if r.size else []
    return tuple(thirds), (int(s[s.size // 2]),) if s.size else ()


def both(one: Node, other: Node) -> Node:
    """The conjunction of two conditions."""
    return node("AND", one, other)
