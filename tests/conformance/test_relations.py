"""Streams joined with relations, by `lookup`, against a nested loop and DuckDB."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from streamjoin.engine.loop import Brought, Loop
from streamjoin.errors import InputError, StateError
from streamjoin.flow.punctuation import lowest_mark_us
from streamjoin.index.table import Table
from streamjoin.operators import registry
from streamjoin.operators.lookup import Lookup
from streamjoin.plan.join import RESULT_TIME
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Cascade
from streamjoin.plan.window import S
from streamjoin.query import plan_query
from streamjoin.relations import sorting
from streamjoin.relations.versions import Tables, Versions
from streamjoin.state import rewrite
from streamjoin.state.store import StateStore

from .loops import cut

DISORDER_US = 15
STREAM = pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("k", pa.int64()), ("x", pa.int64())])
RELATION = pa.schema([("id", pa.int64()), ("k", pa.int64()), ("x", pa.int64()), ("name", pa.string())])
INPUTS = {
    **{name: StreamSchema(name, STREAM, "ts", "us", DISORDER_US) for name in "ab"},
    **{name: StreamSchema.of_relation(name, RELATION) for name in "cd"},
}
BATCHES = 4

Row = dict[str, Any]
Condition = Callable[..., bool]


def equal(one: Any, other: Any) -> bool:
    return one is not None and one == other


def given(*values: Any) -> bool:
    return all(value is not None for value in values)


QUERIES: dict[str, tuple[str, Condition, int | None]] = {
    "equality": (
        "SELECT ONLINE a.id, c.id, c.name FROM a JOIN c ON a.k = c.k",
        lambda a, c: equal(a["k"], c["k"]),
        None,
    ),
    "relation first": ("SELECT ONLINE a.id, c.id FROM c, a WHERE a.k = c.k", lambda a, c: equal(a["k"], c["k"]), None),
    "equality and band": (
        "SELECT ONLINE a.id, c.id FROM a JOIN c ON a.k = c.k AND ABS(a.x - c.x) <= 9 AND a.x > 3 AND c.x < 48",
        lambda a, c: equal(a["k"], c["k"]) and abs(a["x"] - c["x"]) <= 9 and a["x"] > 3 and c["x"] < 48,
        None,
    ),
    "band": (
        "SELECT ONLINE a.id, c.id FROM a, c WHERE a.x BETWEEN c.x - 2 AND c.x + 3",
        lambda a, c: c["x"] - 2 <= a["x"] <= c["x"] + 3,
        None,
    ),
    "two bands": (
        "SELECT ONLINE a.id, c.id FROM a, c WHERE ABS(a.x - c.x) <= 6 AND ABS(a.k - c.k) <= 1",
        lambda a, c: given(a["k"], c["k"]) and abs(a["x"] - c["x"]) <= 6 and abs(a["k"] - c["k"]) <= 1,
        None,
    ),
    "inequality": ("SELECT ONLINE a.id, c.id FROM a JOIN c ON a.x < c.x - 30", lambda a, c: a["x"] < c["x"] - 30, None),
    "scan": (
        "SELECT ONLINE a.id, c.id FROM a, c WHERE (a.x + c.x) % 7 = 0",
        lambda a, c: (a["x"] + c["x"]) % 7 == 0,
        None,
    ),
    "every pair": ("SELECT ONLINE a.id, c.id FROM a, c WHERE a.x < 9", lambda a, c: a["x"] < 9, None),
    "NULL is NULL": (
        "SELECT ONLINE a.id, c.id FROM a, c WHERE a.k IS NOT DISTINCT FROM c.k",
        lambda a, c: a["k"] == c["k"],
        None,
    ),
    "text": (
        "SELECT ONLINE a.id, c.id FROM a, c WHERE CONCAT('n', CAST(a.x AS VARCHAR)) = c.name",
        lambda a, c: f"n{a['x']}" == c["name"],
        None,
    ),
    "two relations": (
        "SELECT ONLINE a.id, c.id, d.name FROM a JOIN c ON a.k = c.k JOIN d ON c.x = d.x",
        lambda a, c, d: equal(a["k"], c["k"]) and c["x"] == d["x"],
        None,
    ),
    "one relation twice": (
        "SELECT ONLINE a.id, p.id, q.id FROM a JOIN c AS p ON a.k = p.k JOIN c AS q ON a.x = q.x",
        lambda a, p, q: equal(a["k"], p["k"]) and a["x"] == q["x"],
        None,
    ),
    "after two streams": (
        "SELECT ONLINE a.id, b.id, c.id FROM a JOIN b ON a.k = b.k JOIN c ON b.x = c.x WITHIN 20 MICROSECONDS",
        lambda a, b, c: equal(a["k"], b["k"]) and b["x"] == c["x"],
        20,
    ),
    "between two streams": (
        "SELECT ONLINE a.id, b.id, c.id FROM a JOIN c ON a.x = c.x JOIN b ON c.k = b.k WITHIN 20 MICROSECONDS",
        lambda a, b, c: a["x"] == c["x"] and equal(c["k"], b["k"]),
        20,
    ),
    "on both sides": (
        "SELECT ONLINE a.id, b.id, c.id, d.id FROM a JOIN c ON a.x = c.x JOIN b ON c.k = b.k JOIN d "
        "ON b.x = d.x WITHIN 80 MICROSECONDS",
        lambda a, b, c, d: a["x"] == c["x"] and equal(c["k"], b["k"]) and b["x"] == d["x"],
        80,
    ),
    "two streams with a reach each": (
        "SELECT ONLINE a.id, b.id, c.id FROM a JOIN c ON a.x = c.x JOIN b ON c.k = b.k WITHIN 9 MICROSECONDS FOR a, 40 "
        "MICROSECONDS FOR b",
        lambda a, b, c: a["x"] == c["x"] and equal(c["k"], b["k"]) and -40 <= b["ts"] - a["ts"] <= 9,
        None,
    ),
    "a window of two sides": (
        "SELECT ONLINE a.id, b.id, c.id FROM a JOIN b ON a.k = b.k JOIN c ON a.x = c.x WITHIN (9 MICROSECONDS, 40 "
        "MICROSECONDS)",
        lambda a, b, c: a["x"] == c["x"] and equal(a["k"], b["k"]) and -9 <= b["ts"] - a["ts"] <= 40,
        None,
    ),
    "two streams of full history": (
        "SELECT ONLINE a.id, b.id, c.id FROM a, b, c WHERE a.k = b.k AND a.x = b.x AND c.x = a.x",
        lambda a, b, c: equal(a["k"], b["k"]) and a["x"] == b["x"] == c["x"],
        None,
    ),
}  # fmt: skip


def stream(seed: int, count: int = 60, keys: int = 5) -> pa.RecordBatch:
    """Rows out of order by less than the allowed delay; some keys are NULL, and many values come twice."""
    chosen = random.Random(seed)
    times = sorted(chosen.randrange(6 * count) for _ in range(count))
    return pa.RecordBatch.from_arrays(
        [
            pa.array([max(time - chosen.randrange(DISORDER_US), 0) for time in times]),
            pa.array(range(count)),
            pa.array([chosen.choice([None, *range(keys)]) for _ in times], pa.int64()),
            pa.array([chosen.randrange(50) for _ in times]),
        ],
        schema=STREAM,
    )


def relation(seed: int, count: int = 80, keys: int = 7) -> pa.RecordBatch:
    """Rows with duplicates, NULLs, and keys that no stream has."""
    chosen = random.Random(seed)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(range(count), pa.int64()),
            pa.array([chosen.choice([None, *range(1, keys)]) for _ in range(count)], pa.int64()),
            pa.array([chosen.randrange(60) for _ in range(count)], pa.int64()),
            pa.array([chosen.choice([None, f"n{chosen.randrange(50)}"]) for _ in range(count)], pa.string()),
        ],
        schema=RELATION,
    )


DATA = {"a": stream(1), "b": stream(2), "c": relation(3), "d": relation(4)}
SMALL = {"a": stream(1, 30, 2), "b": stream(2, 30, 2), "c": relation(3, 30, 3), "d": relation(4, 30, 3)}


def data_for(plan: Cascade) -> dict[str, pa.RecordBatch]:
    """What a nested loop is done with in a second."""
    return SMALL if len(plan.streams) + len(plan.relations) > 3 else DATA


def planned(text: str, inputs: Mapping[str, StreamSchema] = INPUTS) -> Cascade:
    plan = plan_query(text, inputs)
    assert isinstance(plan, Cascade)
    return plan


def blocks(rows: pa.RecordBatch, size: int = 13) -> Iterator[tuple[pa.RecordBatch, int]]:
    for first in range(0, rows.num_rows, size):
        yield rows.slice(first, size), 0


class Job:
    """A job in this process, with its relations in versions in its folder.

    Args:
        parts: of how many units each reads a part of a relation; None where relations are sorted.
    """

    parts: int | None = None

    def __init__(self, plan: Cascade, folder: Path, operator: str = "biclique", units: int = 2) -> None:
        self.plan, self.folder = plan, folder
        name = registry.choose(plan) if registry.refusal(operator, plan) else operator
        knobs = {"biclique": {"routing": "random", "r_units": units, "s_units": 2}}.get(name, {})
        operators = registry.build_all(name, knobs, plan, units)
        self.loop = Loop(
            plan, operators, lambda stage: StateStore(folder / "state", stage, sync=False), 2,
            tables=Tables(folder / "relations"),
        )  # fmt: skip
        self.versions: dict[str, int] = {}

    def take(self, data: Mapping[str, pa.RecordBatch] = DATA) -> None:
        """Read every relation anew."""
        for one in self.plan.relations:
            plans = {
                stage.number: query
                for stage in self.plan.stages
                for query in stage.plan.queries
                if stage.table is not None and query.streams[S].name == one.name
            }
            version = Versions(self.folder / "relations", one.name, sync=False).read(
                blocks(data[one.name]), plans, "test", units=dict.fromkeys(plans, self.parts) if self.parts else None
            )
            assert version is not None
            for stage, parts in version.stages.items():
                self.loop.operators[stage].check_relation(parts)
            self.versions[one.name] = version.number

    def batch(self, pieces: Sequence[Sequence[pa.RecordBatch]], *, commit: bool = True) -> Counter[Any]:
        brought = Brought(pieces, 1_000_000 * self.loop.version, versions=self.versions)
        found = Counter(
            row
            for _, part in self.loop.batch(brought)
            for row in zip(*(column.to_pylist() for column in part.columns), strict=True)
        )
        if commit:
            self.loop.commit(brought)
        return found


def nested_loop(
    plan: Cascade, condition: Condition, within_us: int | None, data: Mapping[str, pa.RecordBatch] = DATA
) -> Counter[Any]:
    """Every combination for which the condition holds, its streams within the window."""
    found: Counter[Any] = Counter()
    called = [*zip(plan.names, plan.streams, strict=True), *zip(plan.relation_names, plan.relations, strict=True)]
    for parts in itertools.product(*(data[schema.name].to_pylist() for _, schema in called)):
        times = [part["ts"] for part in parts if "ts" in part]
        if (within_us is None or max(times) - min(times) <= within_us) and condition(*parts):
            row = {name: part for (name, _), part in zip(called, parts, strict=True)}
            found[tuple(row[e.stream][e.name] for _, e in plan.select)] += 1  # type: ignore[attr-defined]
    return found


@pytest.fixture(params=["in memory", "in runs"])
def runs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Relations that are sorted at once, and such that need many runs and become many segments."""
    if request.param == "in runs":
        monkeypatch.setattr(sorting, "RUN_BYTES", 700)
        monkeypatch.setattr(sorting, "SEGMENT_BYTES", 300)
        monkeypatch.setattr(sorting, "_SAMPLED", 2)
    return str(request.param)


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("query", QUERIES)
def test_every_condition_joins_exactly(query: str, tmp_path: Path) -> None:
    text, condition, within_us = QUERIES[query]
    plan = planned(text)
    data = data_for(plan)
    wanted = nested_loop(plan, condition, within_us, data)
    assert len(wanted) > 5
    job = Job(plan, tmp_path)
    job.take(data)
    found: Counter[Any] = Counter()
    for pieces in cut([data[one.name] for one in plan.streams]):
        found += job.batch(pieces)
    assert found == wanted


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("index", ["hash", "tree", "scan"])
def test_every_index_gives_the_same(index: str, tmp_path: Path) -> None:
    text, condition, _ = QUERIES["equality and band"]
    plan = plan_query(text, INPUTS, index=index)
    assert isinstance(plan, Cascade)
    job = Job(plan, tmp_path)
    job.take()
    assert job.batch([[DATA["a"]]]) == nested_loop(plan, condition, None)


@pytest.mark.parametrize("operator", ["biclique", "matrix", "splitjoin", "handshake"])
def test_every_operator_has_its_streams_joined_with_them(operator: str, tmp_path: Path) -> None:
    text, condition, within_us = QUERIES["between two streams"]
    plan = planned(text)
    job = Job(plan, tmp_path, operator)
    job.take()
    found: Counter[Any] = Counter()
    drains = sum(one.drain_batches for one in job.loop.operators)
    for pieces in cut([DATA[one.name] for one in plan.streams]):
        found += job.batch(pieces)
    for _ in range(drains):
        brought = Brought([[], []], 1_000_000 * job.loop.version, drains=True, versions=job.versions)
        for _, part in job.loop.batch(brought):
            found.update(zip(*(column.to_pylist() for column in part.columns), strict=True))
        job.loop.commit(brought)
    assert found == nested_loop(plan, condition, within_us)


@pytest.mark.parametrize(
    ("query", "given"),
    [
        ("SELECT ONLINE a.id FROM a LEFT SEMI JOIN c ON TRUE", 1),
        ("SELECT ONLINE a.id FROM a LEFT SEMI JOIN c ON c.x > 3", 1),
        ("SELECT ONLINE a.id FROM a LEFT ANTI JOIN c ON c.x > 3", 0),
        ("SELECT ONLINE a.id FROM a LEFT ANTI JOIN c ON c.x > 30", 1),
        ("SELECT ONLINE a.id FROM a CROSS JOIN c", 2),
        ("SELECT ONLINE a.id FROM a, c WHERE c.x > 3", 2),
        ("SELECT ONLINE a.id FROM a LEFT JOIN c ON c.x > 3", 2),
    ],
)
def test_rows_of_which_no_column_is_kept_are_counted(query: str, given: int, tmp_path: Path) -> None:
    a = pa.RecordBatch.from_pylist([{"ts": 1, "id": 1, "k": 1, "x": 9}], STREAM)
    c = pa.RecordBatch.from_pylist([{"id": at, "k": 1, "x": 9, "name": "n"} for at in (1, 2)], RELATION)
    job = Job(planned(query), tmp_path)
    job.take({"c": c})
    assert job.batch([[a]]).total() == given


def test_it_is_what_duckdb_joins(tmp_path: Path) -> None:
    plan = planned("SELECT ONLINE a.id, c.id, c.name FROM a JOIN c ON a.k = c.k AND a.x > c.x - 20")
    job = Job(plan, tmp_path)
    job.take()
    with duckdb.connect() as database:
        for name in "ac":
            database.register(name, pa.Table.from_batches([DATA[name]]))
        wanted = database.execute("SELECT a.id, c.id, c.name FROM a JOIN c ON a.k = c.k AND a.x > c.x - 20").fetchall()
    assert job.batch([[DATA["a"]]]) == Counter(wanted) and len(wanted) > 20


KINDS = {
    "left": "SELECT a.id AS a, c.id AS c, c.name FROM a LEFT JOIN c ON a.k = c.k",
    "left, a condition on each side": (
        "SELECT a.id AS a, c.id AS c FROM a LEFT JOIN c ON a.k = c.k AND a.x > 25 AND c.x < 30"
    ),
    "left by a band": "SELECT a.id AS a, c.id AS c FROM a LEFT JOIN c ON ABS(a.x - c.x) < 1 AND a.k = 3",
    "left, then WHERE": "SELECT a.id AS a, c.id AS c FROM a LEFT JOIN c ON a.k = c.k AND c.x > 40 WHERE c.name IS NULL",
    "left of every row": "SELECT a.id AS a, c.id AS c FROM a LEFT JOIN c ON c.x > 1000",
    "right, the relation first": "SELECT a.id AS a, c.id AS c, c.name FROM c RIGHT JOIN a ON a.k = c.k AND c.x > 50",
    "semi": "SELECT a.id AS a, a.k FROM a LEFT SEMI JOIN c ON a.k = c.k AND a.x < c.x",
    "anti": "SELECT a.id AS a, a.k FROM a LEFT ANTI JOIN c ON a.k = c.k AND a.x < c.x - 30",
    "left USING": "SELECT k, a.id AS a, c.id AS c FROM a LEFT JOIN c USING (k) WHERE a.x > 10",
    "left twice": (
        "SELECT a.id AS a, c.id AS c, d.id AS d FROM a LEFT JOIN c ON a.k = c.k AND c.x > 45 LEFT JOIN d ON c.x = d.x"
    ),
    "left beside two streams": (
        "SELECT a.id AS a, b.id AS b, c.id AS c FROM a JOIN b ON a.k = b.k AND ABS(a.ts - b.ts) <= 20 LEFT JOIN c "
        "ON b.x = c.x AND c.k = 2"
    ),
    "left, then a stream": (
        "SELECT a.id AS a, b.id AS b, c.id AS c FROM a LEFT JOIN c ON a.x = c.x AND c.k = 2 JOIN b ON a.k = b.k AND "
        "ABS(a.ts - b.ts) <= 20"
    ),
    "left, then a stream to the left": (
        "SELECT a.id AS a, b.id AS b, c.id AS c FROM a LEFT JOIN c ON a.x = c.x AND c.k = 2 LEFT JOIN b ON c.k = b.k "
        "AND ABS(a.ts - b.ts) <= 20"
    ),
    "beside a stream in brackets": (
        "SELECT a.id AS a, b.id AS b, c.id AS c FROM a LEFT JOIN (b JOIN c ON b.x = c.x AND c.k < 4) ON a.k = b.k "
        "AND ABS(a.ts - b.ts) <= 20"
    ),
    "before a stream in brackets": (
        "SELECT a.id AS a, b.id AS b, c.id AS c FROM a FULL JOIN (c RIGHT JOIN b ON b.x = c.x AND c.k = 2) ON a.k = "
        "b.k AND ABS(a.ts - b.ts) <= 20"
    ),
}


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_a_partner_are_given_as_duckdb_gives_them(kind: str, tmp_path: Path) -> None:
    text = KINDS[kind]
    windowed = " WITHIN 20 MICROSECONDS" if "ABS(a.ts" in text else ""
    plan = planned(text.replace("SELECT", "SELECT ONLINE").replace(" AND ABS(a.ts - b.ts) <= 20", "") + windowed)
    job = Job(plan, tmp_path)
    job.take()
    with duckdb.connect() as database:
        for name in "abcd":
            database.register(name, pa.Table.from_batches([DATA[name]]))
        wanted = Counter(database.execute(text.replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI")).fetchall())
    assert len(wanted) > 5
    found: Counter[Any] = Counter()
    for pieces in cut([DATA[one.name] for one in plan.streams]):
        found += job.batch(pieces)
    for _ in range(3):  # those of streams wait for the end
        brought = Brought([[] for _ in plan.streams], 1_000_000 * job.loop.version, drains=True, versions=job.versions)
        for _, part in job.loop.batch(brought):
            found.update(zip(*(column.to_pylist() for column in part.columns), strict=True))
        job.loop.commit(brought)
    assert found == wanted


def test_an_unmatched_row_is_given_at_once_and_counted(tmp_path: Path) -> None:
    plan = planned("SELECT ONLINE a.id, c.id FROM a LEFT JOIN c ON a.k = c.k")
    job = Job(plan, tmp_path)
    job.take({"c": DATA["c"].slice(0, 0)})
    rows = DATA["a"].num_rows
    assert job.batch([[DATA["a"]]]) == Counter((number, None) for number in range(rows))
    assert sum(report.unmatched_rows for report in job.loop.reports) == rows
    assert sum(report.results for report in job.loop.reports) == rows


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ONLINE a.id FROM a RIGHT JOIN c ON a.k = c.k",
        "SELECT ONLINE a.id FROM a FULL JOIN c ON a.k = c.k",
        "SELECT ONLINE a.id FROM c LEFT JOIN a ON a.k = c.k",
        "SELECT ONLINE c.id FROM c LEFT SEMI JOIN a ON a.k = c.k",
        "SELECT ONLINE c.id FROM c LEFT ANTI JOIN a ON a.k = c.k",
        "SELECT ONLINE a.id FROM a, c LEFT JOIN d ON c.k = d.k WHERE a.k = c.k",
        "SELECT ONLINE a.id FROM a, c RIGHT JOIN d ON c.k = d.k WHERE a.k = c.k",
        "SELECT ONLINE a.id FROM a JOIN (c LEFT JOIN b ON b.k = c.k) ON a.k = c.k WITHIN 1 SECOND",
    ],
)
def test_a_relation_is_never_preserved(query: str) -> None:
    with pytest.raises(InputError, match="a relation is never the preserved side") as refused:
        plan_query(query, INPUTS)
    span = getattr(refused.value, "span", None)
    assert span is not None and (span.line, span.column) == (1, query.rindex("JOIN") + 6)


@pytest.mark.parametrize(
    ("stream_type", "relation_type"),
    [
        (pa.int32(), pa.int64()),
        (pa.int64(), pa.int8()),
        (pa.int64(), pa.float64()),
        (pa.float32(), pa.float64()),
        (pa.int64(), pa.decimal128(12, 2)),
        (pa.decimal128(10, 1), pa.decimal128(30, 4)),
        (pa.string(), pa.string()),
        (pa.date32(), pa.timestamp("us", tz="UTC")),
    ],
    ids=str,
)
def test_keys_of_other_types_are_compared_as_the_query_compares_them(
    stream_type: pa.DataType, relation_type: pa.DataType, tmp_path: Path
) -> None:
    def keys(kind: pa.DataType, numbers: list[int | None]) -> pa.Array:
        if pa.types.is_string(kind):
            return pa.array([None if number is None else f"n{number}" for number in numbers])
        if pa.types.is_decimal(kind):
            return pa.array([None if number is None else Decimal(number) for number in numbers], kind)
        if pa.types.is_timestamp(kind):
            return pa.array(numbers, pa.int32()).cast(pa.date32()).cast(kind)
        return pa.array(numbers, pa.int32()).cast(kind)

    chosen = random.Random(5)
    mine: list[int | None] = [chosen.choice([None, *range(12)]) for _ in range(40)]
    theirs: list[int | None] = [chosen.choice([None, *range(6, 18)]) for _ in range(40)]
    a = pa.RecordBatch.from_arrays([pa.array(range(40)), keys(stream_type, mine)], ["ts", "k"])
    c = pa.RecordBatch.from_arrays([pa.array(range(40)), keys(relation_type, theirs)], ["id", "k"])
    inputs = {"a": StreamSchema("a", a.schema, "ts"), "c": StreamSchema.of_relation("c", c.schema)}
    job = Job(planned("SELECT ONLINE a.ts, c.id FROM a JOIN c ON a.k = c.k", inputs), tmp_path)
    job.take({"c": c})
    wanted = Counter((i, j) for i, one in enumerate(mine) for j, other in enumerate(theirs) if equal(one, other))
    assert wanted
    assert job.batch([[a]]) == wanted


@pytest.mark.parametrize("query", ["equality", "band", "scan", "two relations"])
def test_an_empty_relation_gives_nothing(query: str, tmp_path: Path) -> None:
    plan = planned(QUERIES[query][0])
    job = Job(plan, tmp_path)
    job.take({name: rows.slice(0, 0) for name, rows in DATA.items()})
    assert job.batch([[DATA["a"]]]) == Counter()
    assert job.loop.reports[-1].output_mark_us is not None


@pytest.mark.usefixtures("runs")
def test_a_repeated_batch_joins_the_version_it_had_and_the_next_one_the_new_one(tmp_path: Path) -> None:
    text, condition, _ = QUERIES["equality"]
    plan = planned(text)
    later = {**DATA, "c": relation(33, 90)}
    first, second = (Job(plan, tmp_path), Job(plan, tmp_path))
    pieces = list(cut([DATA["a"]], 2))
    halves = [{**DATA, "a": pa.concat_batches(piece[0])} for piece in pieces]
    first.take()
    assert first.batch(pieces[0], commit=False) == nested_loop(plan, condition, None, halves[0])
    second.loop.version, second.loop.positions = first.loop.version, first.loop.positions
    second.take(later)
    assert second.versions == {"c": 2} and first.versions == {"c": 1}
    second.versions = first.versions  # as the batch's offsets say
    assert second.batch(pieces[0]) == nested_loop(plan, condition, None, halves[0])
    second.versions = {"c": 2}
    wanted = nested_loop(plan, condition, None, {**later, "a": halves[1]["a"]})
    assert second.batch(pieces[1]) == wanted != nested_loop(plan, condition, None, halves[1])
    state = StateStore(tmp_path / "state", 0, sync=False).load(0, 2)
    assert state.values == {"relation": "c", "version": 2}


@pytest.mark.slow
def test_semi_and_anti_joins_take_a_new_version_between_batches_whatever_the_slots(tmp_path: Path) -> None:
    for kind in ("semi", "anti"):
        _check_new_versions(KINDS[kind], tmp_path / kind)


def _check_new_versions(text: str, folder: Path) -> None:
    plan = planned(text.replace("SELECT", "SELECT ONLINE"))
    versions = [relation(33 + number, 6) for number in range(BATCHES)]
    job = Job(plan, folder)
    with_first_version = 0
    for number, pieces in enumerate(cut([DATA["a"]], BATCHES)):
        job.take({"c": versions[number]})
        job.loop.slots = 1 + number % 4
        job.batch(pieces, commit=False)
        job.loop.slots = 1 + (number + 2) % 3
        found = job.batch(pieces)
        brought = pa.Table.from_batches([pa.concat_batches(pieces[0])])
        wanted, of_first = (_in_duckdb(text, brought, versions[at]) for at in (number, 0))
        assert found == wanted
        with_first_version += wanted == of_first
    assert job.versions == {"c": BATCHES} and with_first_version < BATCHES - 1


def _in_duckdb(text: str, stream: pa.Table, table: pa.RecordBatch) -> Counter[Any]:
    with duckdb.connect() as database:
        database.register("a", stream)
        database.register("c", pa.Table.from_batches([table]))
        return Counter(database.execute(text.replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI")).fetchall())


def test_crashes_and_rescaling_change_nothing(tmp_path: Path) -> None:
    text, condition, within_us = QUERIES["on both sides"]
    plan = planned(text)
    data = data_for(plan)
    job = Job(plan, tmp_path)
    job.take(data)
    found: Counter[Any] = Counter()
    for number, pieces in enumerate(cut([data[one.name] for one in plan.streams])):
        job.loop.slots = 1 + number % 4
        job.batch(pieces, commit=False)
        job.loop.slots = 1 + (number + 2) % 3
        found += job.batch(pieces)
    assert found == nested_loop(plan, condition, within_us, data)


def test_there_may_be_more_units_or_fewer_at_any_time(tmp_path: Path) -> None:
    text, condition, _ = QUERIES["equality"]
    plan = planned(text)
    job = Job(plan, tmp_path)
    job.take()
    found: Counter[Any] = Counter()
    for number, pieces in enumerate(cut([DATA["a"]], BATCHES)):
        if number:
            store = StateStore(tmp_path / "state", 0, sync=False)
            (operator,) = job.loop.operators
            job.loop.operators = (operator.with_units(1 + (number * 2) % 3),)
            after = rewrite.resized(store, number, len(operator.units), job.loop.operators[0])
            assert sum(state.totals.get("results", 0) for state in after.values()) == sum(found.values())
            rewrite.begin(store, number, {store.stage: (job.loop.operators[0].units, after)}, {})
            rewrite.complete(store)
            rewrite.forget(store)
            store.sweep()
        found += job.batch(pieces)
    assert found == nested_loop(plan, condition, None)


def test_groups_are_made_of_what_a_lookup_gives(tmp_path: Path) -> None:
    plan = planned(
        "SELECT ONLINE c.name, COUNT(*) AS n, SUM(a.x) AS total FROM a JOIN c ON a.k = c.k GROUP BY c.name, "
        "TUMBLE(1 SECOND)"
    )
    job = Job(plan, tmp_path)
    job.take()
    found: Counter[Any] = Counter()
    for pieces in cut([DATA["a"]], BATCHES):
        found += job.batch(pieces)
    for _ in range(2):
        brought = Brought([[]], 1_000_000 * job.loop.version, drains=True, versions=job.versions)
        for _, part in job.loop.batch(brought):
            found.update(zip(*(column.to_pylist() for column in part.columns), strict=True))
        job.loop.commit(brought)
    with duckdb.connect() as database:
        for name in "ac":
            database.register(name, pa.Table.from_batches([DATA[name]]))
        wanted = database.execute(
            "SELECT c.name, COUNT(*), CAST(SUM(a.x) AS BIGINT) FROM a JOIN c ON a.k = c.k GROUP BY c.name"
        ).fetchall()
    assert found == Counter(wanted) and len(wanted) > 5


def test_nothing_of_the_stream_is_stored_and_the_mark_is_the_streams(tmp_path: Path) -> None:
    plan = planned(QUERIES["equality"][0]).keyed()
    job = Job(plan, tmp_path)
    job.take()
    mark: int | None = None
    for pieces in cut([DATA["a"]], BATCHES):
        brought = Brought(pieces, 1_000_000 * job.loop.version, versions=job.versions)
        for _, rows in job.loop.batch(brought):
            times = rows.column(RESULT_TIME).to_pylist()
            by_id = dict(zip(DATA["a"].column("id").to_pylist(), DATA["a"].column("ts").to_pylist(), strict=True))
            assert times == [by_id[one] for one in rows.column(0).to_pylist()]
            assert mark is None or min(times) >= mark
        job.loop.commit(brought)
        assert all(sum(report.stored_rows) == 0 and report.segments == 0 for report in job.loop.reports)
        mark = lowest_mark_us(report.output_mark_us for report in job.loop.reports)
        seen = DATA["a"].slice(0, sum(piece.num_rows for piece in pieces[0]) * job.loop.version)
        assert mark == max(seen.column("ts").to_pylist()) - DISORDER_US


def test_a_relation_larger_than_a_segment_becomes_segments_that_do_not_overlap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorting, "RUN_BYTES", 40_000)
    monkeypatch.setattr(sorting, "SEGMENT_BYTES", 20_000)
    monkeypatch.setattr(sorting, "_SAMPLED", 16)
    plan = planned("SELECT ONLINE a.id, c.id FROM a JOIN c ON a.k = c.k")
    chosen = np.random.default_rng(1)
    keys = np.where(chosen.random(20_000) < 0.3, 7, chosen.integers(0, 5_000, 20_000))
    rows = pa.RecordBatch.from_arrays(
        [pa.array(np.arange(20_000)), pa.array(keys), pa.array(keys), pa.array(["n"] * 20_000)], schema=RELATION
    )
    job = Job(plan, tmp_path)
    job.take({"c": rows})
    version = Versions(tmp_path / "relations", "c").load(1)
    parts = version.stages[0]
    assert version.rows == 20_000 == sum(part.rows for part in parts)
    assert len(parts) > 10 and max(part.rows for part in parts) <= 2_500
    assert all(one.high <= other.low for one, other in itertools.pairwise(parts) if not one.low <= 7 <= one.high)
    files = [path.name for path in (tmp_path / "relations" / "c" / "1" / "0").iterdir()]
    assert sorted(files) == sorted(part.file for part in parts)
    stored = Counter(keys.tolist())
    found = job.batch([[DATA["a"]]])
    assert Counter(pair[0] for pair in found.elements()) == Counter(
        {row["id"]: stored[row["k"]] for row in DATA["a"].to_pylist() if stored[row["k"]]}
    )


def test_a_probe_that_misses_a_segment_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle sees it if a segment is passed over whose lowest key is the probe's."""
    monkeypatch.setattr(sorting, "RUN_BYTES", 700)
    monkeypatch.setattr(sorting, "SEGMENT_BYTES", 300)
    monkeypatch.setattr(sorting, "_SAMPLED", 2)
    of = Table.of

    def narrower(*given: Any) -> Table:
        table = of(*given)
        table.lows[:] += 1
        return table

    monkeypatch.setattr(Table, "of", staticmethod(narrower))
    text, condition, _ = QUERIES["equality"]
    plan = planned(text)
    job = Job(plan, tmp_path)
    job.take()
    assert job.batch([[DATA["a"]]]) != nested_loop(plan, condition, None)


def test_a_lost_segment_is_an_error_and_not_a_silent_hole(tmp_path: Path) -> None:
    plan = planned(QUERIES["equality"][0])
    job = Job(plan, tmp_path)
    job.take()
    (segment,) = (tmp_path / "relations" / "c" / "1" / "0").iterdir()
    content = segment.read_bytes()
    segment.unlink()
    with pytest.raises(StateError, match=r"0\.arrow is lost"):
        job.batch([[DATA["a"]]])
    segment.write_bytes(content[:100])
    with pytest.raises(StateError, match=r"0\.arrow is damaged"):
        job.batch([[DATA["a"]]])
    (tmp_path / "relations" / "c" / "1" / "version.json").unlink()
    with pytest.raises(StateError, match="version 1 of relation c is lost"):
        job.batch([[DATA["a"]]])


def test_a_version_is_there_when_it_is_whole_and_others_go(tmp_path: Path) -> None:
    plan = planned(QUERIES["equality"][0])
    plans = {0: plan.answering}
    versions = Versions(tmp_path, "c", sync=False)

    def broken() -> Iterator[tuple[pa.RecordBatch, int]]:
        yield DATA["c"], 1
        raise RuntimeError

    with pytest.raises(RuntimeError):
        versions.read(broken(), plans, "x")
    assert versions.newest() == 0
    assert versions.read(blocks(DATA["c"]), plans, "x", lambda: False) is None
    assert versions.numbers() == []
    for _ in range(3):
        versions.read(blocks(DATA["c"]), plans, "x")
    assert versions.numbers() == [1, 2, 3]
    versions.keep({2})
    assert versions.numbers() == [2, 3] and sorted(path.name for path in (tmp_path / "c").iterdir()) == ["2", "3"]


@pytest.mark.parametrize(
    ("query", "message", "place"),
    [
        ("SELECT ONLINE c.id FROM c, d WHERE c.k = d.k", '"c" and "d" are relations, and a query waits', (1, 25)),
        (
            "SELECT ONLINE a.id FROM a JOIN c ON a.k = c.k\nWITHIN 10 SECONDS",
            'and "c" is a relation, whose rows have no time; leave WITHIN out',
            (2, 1),
        ),
        (
            "SELECT ONLINE a.id FROM a, b, c WHERE a.k = c.k WITHIN 9 SECONDS FOR a,\n9 SECONDS FOR b, 1 SECOND FOR c",
            "c is a relation, whose rows have no time, so it has no reach; leave FOR c out",
            (2, 31),
        ),
        ("SELECT ONLINE a.id FROM a, b, c WHERE a.k = c.k\nWITHIN 10 ROWS", "a window of rows or of two sides", (2, 1)),
        ("SELECT ONLINE a.id FROM a ASOF JOIN c ON a.k = c.k AND a.ts >= c.x", "ASOF JOIN takes the latest", (1, 37)),
        ("SELECT ONLINE a.id FROM a JOIN (c JOIN d ON c.k = d.k) ON a.k = c.k",
         'these brackets hold "c" and "d", which are relations', (1, 40)),
        ("SELECT ONLINE a.id FROM c JOIN d ON c.k = d.k, a LEFT JOIN b ON a.k = b.k WITHIN 1 SECOND",
         '"c" and "d" are relations, and a relation is joined with a stream', (1, 32)),
        ("SELECT ONLINE a.id, c.none FROM a JOIN c ON a.k = c.k", 'no column "c.none"', (1, 21)),
        ("SELECT ONLINE a.id FROM a JOIN c ON a.k = c.name", "cannot compare int64 with string", (1, 37)),
    ],
)  # fmt: skip
def test_what_no_query_may_say_of_relations_is_refused_at_its_place(
    query: str, message: str, place: tuple[int, int]
) -> None:
    with pytest.raises(InputError, match=message) as refused:
        plan_query(query, INPUTS)
    span = getattr(refused.value, "span", None)
    assert span is not None and (span.line, span.column) == place


def test_a_relation_is_joined_with_a_stream_first() -> None:
    query = "SELECT ONLINE a.id FROM a, c, d WHERE a.k = c.k AND c.x = d.x"
    with pytest.raises(InputError, match=r"c and d are relations|d and c are relations") as refused:
        plan_query(query, INPUTS, tree=("a", ("c", "d")))
    assert refused.value.field == "operator.tree"
    plan = plan_query(query, INPUTS, tree=(("c", "a"), "d"))
    assert isinstance(plan, Cascade) and plan.shape == "((a, c), d)"


def test_a_relation_waits_for_the_input_that_leads_to_it() -> None:
    plan = planned("SELECT ONLINE a.id FROM d, c, a WHERE a.k = c.k AND c.x = d.x")
    assert plan.shape == "((a, c), d)"
    plan = planned("SELECT ONLINE a.id FROM c, a, b WHERE a.k = b.k AND b.x = c.x WITHIN 1 SECONDS")
    assert plan.shape == "((a, b), c)"
    plan = planned("SELECT ONLINE a.id FROM c, a, b WHERE a.k = b.k AND a.x = c.x WITHIN 1 SECONDS")
    assert plan.shape == "((a, c), b)"
    plan = planned("SELECT ONLINE a.id FROM d, (c, b), a WHERE a.k = b.k AND b.x = c.x AND d.k = a.k WITHIN 1 SECONDS")
    assert plan.shape == "(((b, c), a), d)"


def test_operators_of_streams_do_not_join_relations_alone_and_lookup_no_streams() -> None:
    plan = planned(QUERIES["equality"][0])
    for name in ("biclique", "matrix", "splitjoin", "handshake", "spark"):
        with pytest.raises(InputError, match="relation"):
            registry.check(name, plan)
    streams = plan_query("SELECT ONLINE a.id FROM a, b WHERE a.k = b.k WITHIN 1 SECONDS", INPUTS)
    with pytest.raises(InputError, match="this query reads none"):
        registry.check("lookup", streams)
    mixed = planned(QUERIES["after two streams"][0])
    for name in ("matrix", "lookup"):
        first, last = registry.build_all(name, {}, mixed, 3)
        assert isinstance(last, Lookup) and first.name == ("matrix" if name == "matrix" else "biclique")
