"""As-of joins beside other joins, against nested loops: disorder, slots, operators and cuts, repeated batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.engine.loop import Brought
from streamjoin.operators import registry
from streamjoin.operators.asof import step
from streamjoin.plan import tree
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Cascade, asof_stages, joins_as_of_only
from streamjoin.query import plan_query

from . import test_relations as relations
from .loops import cut, given, joined, loop_of
from .test_asof import COLUMNS, DISORDER_US, rows
from .test_asof_deletes import changes

NAMES = ("t", "q", "c")
STREAMS = {name: StreamSchema(name, COLUMNS, "ts", "us", DISORDER_US) for name in NAMES}
ENDING = {**STREAMS, "q": StreamSchema("q", COLUMNS, "ts", "us", DISORDER_US, key=("k",))}
Row = dict[str, Any]
SELECT = "SELECT ONLINE t.id AS t, q.id AS q, c.id AS c, q.ts AS at, c.ts AS other FROM"


@dataclass(frozen=True)
class Part:
    """Rows of the streams so far, by name; None where there is none of a stream."""

    of: dict[str, Row | None]
    hi: int
    until: float

    def value(self, name: str, column: str) -> Any:
        row = self.of.get(name)
        return None if row is None else row[column]


Flow = list[Part]


@dataclass(frozen=True)
class Oracle:
    """Nested loops over whole streams, with the reach of each."""

    streams: dict[str, list[Row]]
    reach_us: dict[str, float]

    def flow(self, name: str) -> Flow:
        return [Part({name: row}, row["ts"], row["ts"] + self.reach_us[name]) for row in self.streams[name]]

    def join(self, left: Flow, right: Flow, on: Callable[[Part, Part], Any], kind: str = "INNER") -> Flow:
        found: Flow = []
        matched: set[int] = set()
        for one in left:
            met = False
            for place, other in enumerate(right):
                hi, until = max(one.hi, other.hi), min(one.until, other.until)
                if on(one, other) and hi <= until:
                    met = True
                    matched.add(place)
                    found.append(Part(one.of | other.of, hi, until))
            if not met and kind in ("LEFT", "FULL"):
                found.append(one)
        if kind in ("RIGHT", "FULL"):
            found += [other for place, other in enumerate(right) if place not in matched]
        return found

    def as_of(
        self, left: Flow, right: str, keys: Sequence[tuple[str, str]], by: str, *, keeps: bool, older: bool = False
    ) -> Flow:
        """`keys` are (stream, column) of the left rows, by the name of the column that they are equal to."""
        found: Flow = []
        for part in left:
            at, best = part.value(by, "ts"), None
            for row in self.streams[right]:
                alike = all(
                    row[column] is not None and part.value(name, column) == row[column] for name, column in keys
                )
                if at is None or not alike or not (row["ts"] < at if older else row["ts"] <= at):
                    continue
                if at - row["ts"] <= self.reach_us[right] and (best is None or row["ts"] >= best["ts"]):
                    best = row
            if best is not None and all(value is None for name, value in best.items() if name not in ("ts", "k")):
                best = None  # only where the key is k, rows have nothing else
            if best is not None or keeps:
                found.append(Part(part.of | {right: best}, part.hi, part.until))
        return found

    def given(self, flow: Flow) -> Counter[Any]:
        return Counter(
            (*(part.value(name, "id") for name in NAMES), part.value("q", "ts"), part.value("c", "ts")) for part in flow
        )


def same(name: str, other: str, column: str) -> Callable[[Part, Part], Any]:
    def on(one: Part, two: Part) -> bool:
        value = one.value(name, column)
        return value is not None and value == two.value(other, column)

    return on


def as_of_first(o: Oracle) -> Flow:
    return o.join(o.as_of(o.flow("t"), "q", [("t", "k")], "t", keeps=False), o.flow("c"), same("t", "c", "sym"))


def enriched(o: Oracle) -> Flow:
    return o.as_of(o.join(o.flow("t"), o.flow("c"), same("t", "c", "sym")), "q", [("t", "k")], "t", keeps=True)


def enriched_by_the_other(o: Oracle) -> Flow:
    pairs = o.join(o.flow("t"), o.flow("c"), same("t", "c", "k"))
    return o.as_of(pairs, "q", [("t", "k"), ("c", "sym")], "c", keeps=False, older=True)


def unmatched_enriched(o: Oracle) -> Flow:
    return o.as_of(o.join(o.flow("t"), o.flow("c"), same("t", "c", "sym"), "LEFT"), "q", [("t", "k")], "c", keeps=True)


def after_a_comma(o: Oracle) -> Flow:
    return o.join(o.flow("c"), o.as_of(o.flow("t"), "q", [("t", "k")], "t", keeps=True), same("c", "t", "sym"))


def outer_after(o: Oracle) -> Flow:
    return o.join(o.as_of(o.flow("t"), "q", [("t", "k")], "t", keeps=True), o.flow("c"), same("q", "c", "sym"), "FULL")


def twice(o: Oracle) -> Flow:
    latest = o.as_of(o.flow("t"), "q", [("t", "k")], "t", keeps=False)
    return o.as_of(latest, "c", [("q", "sym")], "t", keeps=True, older=True)


def filtered(o: Oracle) -> Flow:
    every = as_of_first(o)
    return [
        part for part in every
        if part.value("q", "id") % 3 != 1 and part.value("t", "id") > 9 and part.value("c", "x") != part.value("q", "x")
    ]  # fmt: skip


def in_brackets(o: Oracle) -> Flow:
    return o.join(o.flow("c"), o.as_of(o.flow("t"), "q", [("t", "k")], "t", keeps=True), same("c", "q", "sym"), "FULL")


QUERIES: dict[str, tuple[str, Callable[[Oracle], Flow]]] = {
    "as-of first": ("t ASOF JOIN q ON t.k = q.k AND t.ts >= q.ts JOIN c ON t.sym = c.sym", as_of_first),
    "pairs enriched": (
        "t JOIN c ON t.sym = c.sym ASOF LEFT JOIN q ON t.k = q.k AND t.ts >= q.ts",
        enriched,
    ),
    "by the other's time": (
        "t JOIN c ON t.k = c.k ASOF JOIN q ON q.k = t.k AND c.sym = q.sym AND q.ts < c.ts",
        enriched_by_the_other,
    ),
    "by a time that may be missing": (
        "t LEFT JOIN c ON t.sym = c.sym ASOF LEFT JOIN q ON t.k = q.k AND c.ts >= q.ts",
        unmatched_enriched,
    ),
    "after a comma": ("c, t ASOF LEFT JOIN q ON t.k = q.k AND t.ts >= q.ts WHERE c.sym = t.sym", after_a_comma),
    "in brackets": (
        "c FULL JOIN (t ASOF LEFT JOIN q ON t.k = q.k AND t.ts >= q.ts) ON c.sym = q.sym",
        in_brackets,
    ),
    "after brackets": ("(t JOIN c ON t.sym = c.sym) ASOF LEFT JOIN q ON t.k = q.k AND t.ts >= q.ts", enriched),
    "outer after it": (
        "t ASOF LEFT JOIN q ON t.k = q.k AND t.ts >= q.ts FULL JOIN c ON q.sym = c.sym",
        outer_after,
    ),
    "twice": ("t ASOF JOIN q ON t.k = q.k AND t.ts >= q.ts ASOF LEFT JOIN c ON q.sym = c.sym AND t.ts > c.ts", twice),
    "filtered": (
        "t ASOF JOIN q ON t.k = q.k AND t.ts >= q.ts JOIN c ON t.sym = c.sym "
        "WHERE q.id % 3 <> 1 AND t.id > 9 AND c.x <> q.x",
        filtered,
    ),
}
WITHIN: dict[str, tuple[str, tuple[float, float, float]]] = {
    "one span": ("WITHIN 30 MICROSECONDS", (30, 30, 30)),
    "one each": ("WITHIN 12 MICROSECONDS FOR t, 90 MICROSECONDS FOR q, 25 MICROSECONDS FOR c", (12, 90, 25)),
}


def of(histories: Sequence[pa.RecordBatch], reaches_us: Sequence[float]) -> Oracle:
    return Oracle(
        {name: history.to_pylist() for name, history in zip(NAMES, histories, strict=True)},
        dict(zip(NAMES, reaches_us, strict=True)),
    )


def planned(query: str, streams: dict[str, StreamSchema] = STREAMS) -> Cascade:
    found = plan_query(query, streams)
    assert isinstance(found, Cascade)
    return found


def in_order(plan: Cascade, histories: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    return [histories[NAMES.index(name)] for name in plan.names]


def by(plan: Cascade, operator: str) -> str:
    """An operator for the joins that are not as of a row, where there are any."""
    return registry.ASOF.name if joins_as_of_only(plan) else operator


@pytest.mark.parametrize("operator", ["biclique by hash", "splitjoin", "matrix", "asof"])
@pytest.mark.parametrize("within", WITHIN)
@pytest.mark.parametrize("query", QUERIES)
def test_every_stage_gives_what_nested_loops_give(query: str, within: str, operator: str, tmp_path: Path) -> None:
    asked, oracle = QUERIES[query]
    span, reaches_us = WITHIN[within]
    plan = planned(f"{SELECT} {asked} {span}")
    for seed, (batches, pieces, slots) in enumerate([(6, 2, 2), (23, 1, 3)]):
        histories = [rows(10 * seed + number, 90) for number in range(3)]
        o = of(histories, reaches_us)
        wanted = o.given(oracle(o))
        loop = loop_of(plan, by(plan, operator), tmp_path / str(seed), slots, 3)
        assert joined(loop, in_order(plan, histories), batches, pieces, repeated=seed == 1) == wanted
        assert wanted.total() > 20


@pytest.mark.parametrize("query", ["as-of first", "pairs enriched", "by the other's time", "after a comma", "twice"])
def test_without_within_any_row_may_be_the_latest(query: str, tmp_path: Path) -> None:
    asked, oracle = QUERIES[query]
    plan = planned(f"{SELECT} {asked}")
    histories = [rows(40 + number, 50) for number in range(3)]
    o = of(histories, [float("inf")] * 3)
    assert joined(loop_of(plan, by(plan, "matrix"), tmp_path, units=3), in_order(plan, histories), 9) == o.given(
        oracle(o)
    )


@pytest.mark.parametrize("query", ["as-of first", "pairs enriched", "after a comma", "twice"])
def test_rows_that_end_their_key_do_so_in_any_stage(query: str, tmp_path: Path) -> None:
    asked, oracle = QUERIES[query]
    span, reaches_us = WITHIN["one each"]
    plan = planned(f"{SELECT} {asked} {span}", ENDING)
    histories = [rows(50, 90), changes(51, ("k",), 90), rows(52, 90)]
    o = of(histories, reaches_us)
    wanted = o.given(oracle(o))
    assert (
        joined(loop_of(plan, by(plan, "biclique by hash"), tmp_path, units=3), in_order(plan, histories), 12) == wanted
    )
    without = planned(f"{SELECT} {asked} {span}")
    assert (
        joined(loop_of(without, by(without, "matrix"), tmp_path / "values", units=3), in_order(plan, histories), 12)
        != wanted
    )


def test_what_comes_out_is_grouped(tmp_path: Path) -> None:
    asked, oracle = QUERIES["pairs enriched"]
    span, reaches_us = WITHIN["one span"]
    query = f"SELECT ONLINE q.sym, COUNT(*) AS n, COUNT(q.id) AS with_one FROM {asked} {span} GROUP BY q.sym, "
    histories = [rows(60 + number, 90) for number in range(3)]
    o = of(histories, reaches_us)
    wanted: dict[Any, list[int]] = {}
    for part in oracle(o):
        counts = wanted.setdefault((part.value("q", "sym"), part.hi // 40), [0, 0])
        counts[0] += 1
        counts[1] += part.value("q", "id") is not None
    plan = planned(f"{query}TUMBLE(40 MICROSECONDS)")
    found = joined(loop_of(plan, "matrix", tmp_path, units=3), in_order(plan, histories), 8, repeated=True)
    assert found == Counter((sym, *counts) for (sym, _), counts in wanted.items())


def test_state_is_flat(tmp_path: Path) -> None:
    """Versions leave when no pair can look by the time of its older part any more."""
    asked, _ = QUERIES["pairs enriched"]
    plan = planned(f"{SELECT} {asked} WITHIN 15 MICROSECONDS")
    assert asof_stages(plan)[0].asof.at is not None
    loop = loop_of(plan, "matrix", tmp_path, units=2)
    kept, results = [], 0
    for number in range(120):
        made = [
            {"ts": 20 * number + at, "id": number, "k": (number + at) % 5, "sym": "ab"[at % 2], "x": 0}
            for at in range(20)
        ]
        pieces = [[pa.RecordBatch.from_pylist(made, COLUMNS)]] * 3
        brought = Brought(pieces, 1_000_000 * number)
        results += sum(part.num_rows for _, part in loop.batch(brought))
        loop.commit(brought)
        kept.append(sum(sum(report.stored_rows) for report in loop.reports))
    assert results > 10_000 and max(kept[60:]) <= max(kept[15:60]) < 700


def test_marks_of_what_comes_out_hold(tmp_path: Path) -> None:
    """What the as-of stage gives further comes to a window join that would have let go of its partners otherwise."""
    asked, oracle = QUERIES["as-of first"]
    plan = planned(f"{SELECT} {asked} WITHIN 5 MICROSECONDS")
    histories = [rows(70, 150), rows(71, 40), rows(72, 150)]  # the right stream is behind
    o = of(histories, (5, 5, 5))
    loop = loop_of(plan, "biclique by hash", tmp_path, units=2)
    found = Counter(
        row
        for parts in given(loop, in_order(plan, histories), 40, 1)
        for part in parts
        for row in zip(*(column.to_pylist() for column in part.columns), strict=True)
    )
    assert found == o.given(oracle(o)) and found.total() > 3


@pytest.mark.parametrize("broken", ["by the newest part", "let go by the newest part", "until of both", "where first"])
def test_easy_mistakes_are_caught(broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query, span = "pairs enriched", "one span"
    if broken == "by the newest part":
        monkeypatch.setattr(step, "looked_up_at", lambda plan, left: (left.column("__ts").to_numpy(), None))
        monkeypatch.setattr(tree._Building, "_as_of", _own_time(tree._Building._as_of))
    elif broken == "let go by the newest part":
        monkeypatch.setattr(step.AsOfStep, "_oldest_wanted", lambda self, mark, oldest: oldest)
    elif broken == "until of both":
        query = "as-of first"
        carried = tree._carried
        monkeypatch.setattr(
            tree, "_carried", lambda left, right, later, join: carried(left, right, later, _plain(join))
        )
    else:
        query = "filtered"
        parts = tree.parts_of
        monkeypatch.setattr(tree, "parts_of", lambda *args, as_of: parts(*args))
    asked, oracle = QUERIES[query]
    words, reaches_us = WITHIN[span]
    plan = planned(f"{SELECT} {asked} {words}")
    wrong = 0
    for seed in range(4):
        histories = [rows(80 + 3 * seed + number, 90) for number in range(3)]
        o = of(histories, reaches_us)
        loop = loop_of(plan, "matrix", tmp_path / str(seed), units=1)
        wrong += joined(loop, in_order(plan, histories), 30, 1) != o.given(oracle(o))
    assert wrong


def _own_time(as_of: Any) -> Any:
    def changed(self: Any, plan: Any, asof: Any, left: Any, right: Any) -> Any:
        made = as_of(self, plan, asof, left, right)
        return tree.replace(made, asof=tree.replace(made.asof, at=None))

    return changed


def _plain(join: Any) -> Any:
    return tree.replace(join, asof=None)


@pytest.mark.parametrize("operator", ["asof", "lookup"])
@pytest.mark.parametrize(
    "asked",
    [
        "a ASOF LEFT JOIN b ON a.k = b.k AND a.ts >= b.ts LEFT JOIN c ON b.x = c.x",
        "a JOIN c ON a.x = c.x ASOF LEFT JOIN b ON c.k = b.k AND a.ts >= b.ts",
    ],
)
def test_a_relation_before_and_after(asked: str, operator: str, tmp_path: Path) -> None:
    plan = relations.planned(f"SELECT ONLINE a.id, b.id, c.id FROM {asked}")
    data = {name: rows.to_pylist() for name, rows in relations.DATA.items()}

    def latest(row: Row, key: Any) -> Row | None:
        fits = [b for b in data["b"] if key is not None and b["k"] == key and b["ts"] <= row["ts"]]
        return max(reversed(fits), key=lambda b: b["ts"], default=None)

    wanted: Counter[Any] = Counter()
    for a in data["a"]:
        if asked.startswith("a JOIN"):
            for c in data["c"]:
                if a["x"] == c["x"]:
                    wanted[a["id"], (latest(a, c["k"]) or {}).get("id"), c["id"]] += 1
        else:
            b = latest(a, a["k"])
            met = [c["id"] for c in data["c"] if b is not None and b["x"] == c["x"]]
            wanted.update((a["id"], b["id"] if b else None, c) for c in met or [None])
    assert wanted.total() > 50
    job = relations.Job(plan, tmp_path, operator)
    job.take()
    found: Counter[Any] = Counter()
    for pieces in cut([relations.DATA[name] for name in "ab"]):
        found += job.batch(pieces)
    for _ in range(2):
        last = Brought([[], []], 1_000_000 * job.loop.version, drains=True, versions=job.versions)
        for _, part in job.loop.batch(last):
            found.update(zip(*(column.to_pylist() for column in part.columns), strict=True))
        job.loop.commit(last)
    assert found == wanted
