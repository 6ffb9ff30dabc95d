"""Queries of several kinds in one job: each gives what it gives alone, and each stream is read once for all."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.engine import entering
from streamjoin.engine.loop import Brought, Loop
from streamjoin.engine.operator import Operator
from streamjoin.errors import InputError
from streamjoin.flow.punctuation import Punctuation
from streamjoin.intake.intake import Intake
from streamjoin.operators import registry
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.sharing import SharedJoin
from streamjoin.plan.stages import Bundle, Cascade, Plan, entries_of, parts_at
from streamjoin.query import plan_query
from streamjoin.spark import tasks
from streamjoin.spark.run import report
from streamjoin.spec.job import Job
from streamjoin.spec.joinfile import load
from streamjoin.spec.prepare import Bound, bind
from streamjoin.state.store import StateStore

from .alone import run_alone, task
from .loops import OPERATORS, cut

DISORDER_US = 15
COLUMNS = pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("k", pa.int64()), ("x", pa.int64())])
STREAMS = {name: StreamSchema(name, COLUMNS, "ts", "us", DISORDER_US) for name in "abc"}
HEAD = "SELECT ONLINE a.id AS a, b.id AS b"
PAIRS = "FROM a, b WHERE a.k = b.k"
THREE = f"{HEAD}, c.id AS c FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k"

SHARING = ("windows", "three", "again", "counted", "nearer")
"""All but the last have a join of a and b that finds the same."""

QUERIES = {
    "pairs": f"{HEAD} {PAIRS} WITHIN 20 MICROSECONDS",
    "near": f"{HEAD} {PAIRS} AND a.x < 60 WITHIN 5 MICROSECONDS",
    "rows": f"{HEAD} {PAIRS} WITHIN 7 ROWS",
    "left": f"{HEAD} FROM a LEFT JOIN b ON a.k = b.k AND b.x > 30 WITHIN 10 MICROSECONDS",
    "full": "SELECT ONLINE x.id AS a, y.id AS b FROM a AS x FULL JOIN b AS y ON x.k = y.k WITHIN 25 MICROSECONDS",
    "semi": "SELECT ONLINE b.id AS b FROM b LEFT SEMI JOIN a ON a.k = b.k AND a.x > b.x WITHIN 8 MICROSECONDS",
    "anti": "SELECT ONLINE a.id AS a FROM a LEFT ANTI JOIN b ON a.k = b.k WITHIN 12 MICROSECONDS",
    "windows": f"SELECT ONLINE a.k AS k, WINDOW_START() AS since, COUNT(*) AS n, SUM(b.x) AS x {PAIRS} "
    "WITHIN 20 MICROSECONDS GROUP BY a.k, TUMBLE(40 MICROSECONDS)",
    "changed": f"SELECT ONLINE a.k AS k, COUNT(*) AS n {PAIRS} WITHIN 30 MICROSECONDS GROUP BY a.k "
    "EMIT EVERY 10 MICROSECONDS",
    "distinct": f"SELECT DISTINCT ONLINE a.k AS k, b.x AS x {PAIRS} WITHIN 9 MICROSECONDS",
    "of one": "SELECT ONLINE a.k AS k, MAX(a.x) AS x FROM a GROUP BY a.k, TUMBLE(50 MICROSECONDS)",
    "three": f"{THREE} WITHIN 20 MICROSECONDS",
    "again": "SELECT ONLINE a.x AS x, b.x AS y, c.id AS c FROM a JOIN b ON a.k = b.k JOIN c ON a.k = c.k AND b.x < c.x "
    "WITHIN 20 MICROSECONDS",
    "counted": f"SELECT ONLINE b.x AS x, COUNT(*) AS n {PAIRS} WITHIN 20 MICROSECONDS GROUP BY b.x CUMULATIVE",
    "nearer": f"{THREE} WITHIN 6 MICROSECONDS",
    "three left": "SELECT ONLINE c.id AS c, a.id AS a, b.id AS b FROM c LEFT JOIN a ON c.k = a.k "
    "LEFT JOIN b ON a.k = b.k WITHIN 9 MICROSECONDS FOR a, 15 MICROSECONDS FOR b, 4 MICROSECONDS FOR c",
    "latest": f"{HEAD} FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.ts >= b.ts WITHIN 1 SECOND",
    "waits": f"{HEAD}, c.id AS c FROM a JOIN b ON a.k = b.k LEFT JOIN c ON b.k = c.k WITHIN 9 MICROSECONDS",
    "twice": "SELECT ONLINE x.id AS x, y.id AS y, c.id AS c FROM a AS x JOIN a AS y ON x.k = y.k AND x.id < y.id "
    "JOIN c ON y.k = c.k WITHIN 12 MICROSECONDS",
    "itself": "SELECT ONLINE x.id AS a, y.id AS b FROM a AS x, a AS y WHERE x.k = y.k AND x.id < y.id "
    "WITHIN 15 MICROSECONDS",
}

Found = Counter[tuple[Any, ...]]


def streams(seed: int, rows: int = 90) -> list[pa.RecordBatch]:
    """Rows of a, b and c: out of order within the delay, some without a key."""
    dice = random.Random(seed)
    made = []
    for number in range(3):
        found = []
        for place in range(rows):
            ts = 2 * place + dice.randint(0, DISORDER_US - 1)
            key = None if dice.random() < 0.08 else dice.randint(0, 5)
            found.append({"ts": ts, "id": 1000 * number + place, "k": key, "x": dice.randint(0, 99)})
        made.append(pa.RecordBatch.from_pylist(found, schema=COLUMNS))
    return made


def plans_of(names: Sequence[str], known: Mapping[str, StreamSchema] = STREAMS) -> dict[str, JoinPlan | Cascade]:
    return {name: plan_query(QUERIES[name], known) for name in names}


def loop_of(plan: Plan, operator: str, folder: Path) -> Loop:
    """A loop over any plan, each part of which has the operator's units."""
    name, knobs = OPERATORS[operator]
    operators: dict[int, Operator] = {}
    for part, numbers in ((part.plan, part.numbers) for part in plan.parts):
        if any(stage.asof for stage in part.stages):
            built = registry.build_all("asof", {}, part, 2)
        else:
            built = registry.build_all(name, knobs, part, 2)
        operators |= dict(zip(numbers, built, strict=True))
    ordered = tuple(operators[stage.number] for stage in plan.stages)
    return Loop(plan, ordered, lambda stage: StateStore(folder, stage, sync=False), 2)


def run(loop: Loop, names: Sequence[str], rows: Sequence[pa.RecordBatch], *, repeated: bool) -> dict[str, Found]:
    """The rows of each query, to the end of input; with `repeated` each batch is done twice, by other slots."""
    found = {name: Found() for name in names}
    ends = Job(loop.plan, loop.operators, 2, Path()).meeting_batches + 1
    batches = [*cut(rows, 5), *[[[] for _ in rows]] * ends]
    for number, pieces in enumerate(batches):
        brought = Brought(pieces, 1_000_000 * number, drains=number >= 5)
        if repeated:
            loop.slots = 1 + number % 4
            list(loop.batch(brought))
            loop.slots = 1 + (number + 2) % 3
        for query, part in loop.batch(brought):
            found[names[query]].update(zip(*(column.to_pylist() for column in part.columns), strict=True))
        loop.commit(brought)
    return found


def bundle_of(names: Sequence[str], known: Mapping[str, StreamSchema] = STREAMS) -> Bundle:
    """Queries of pairs with one sort of window are one part, as in a join file; each other query is one."""
    plans = plans_of(names, known)
    shared = [name for name in ("pairs", "near") if name in plans]
    parts: list[Any] = []
    if len(shared) == 2:
        joins = tuple(plan for name in shared if isinstance(plan := plans[name], JoinPlan))
        parts.append((tuple(shared), SharedJoin(tuple(shared), joins)))
    parts += [((name,), plan) for name, plan in plans.items() if len(shared) < 2 or name not in shared]
    return Bundle(tuple(parts))


def check(names: Sequence[str], operator: str, folder: Path, seed: int, *, repeated: bool = False) -> None:
    """Compare each query in a bundle with the same query in a job of its own."""
    given, bundle = streams(seed), bundle_of(names)
    by_name = dict(zip("abc", given, strict=True))
    together = run(
        loop_of(bundle, operator, folder / "together"),
        bundle.names_of_queries,
        [by_name[name] for name in bundle.names],
        repeated=repeated,
    )
    for name, plan in plans_of(names).items():
        read = [by_name[stream.name] for stream in plan.streams]
        alone = run(loop_of(plan, operator, folder / name), [name], read, repeated=False)[name]
        assert alone, name
        missing, more = alone - together[name], together[name] - alone
        assert not missing and not more, f"{name}: {missing} missing, {more} too many"


@pytest.mark.parametrize("operator", ["biclique by hash", "matrix", "splitjoin"])
def test_each_query_gives_what_it_gives_alone(operator: str, tmp_path: Path) -> None:
    check([name for name in QUERIES if name != "rows" or operator != "matrix"], operator, tmp_path, 41)


@pytest.mark.parametrize("operator", ["biclique by hash", "handshake"])
def test_a_join_that_several_ask_for_alike_is_one_stage_with_the_columns_of_all(operator: str, tmp_path: Path) -> None:
    bundle = bundle_of(SHARING)
    first = bundle.stages[0]
    assert [part.names[0] for part in parts_at(bundle, first.number)] == ["windows", "three", "again", "counted"]
    assert len(bundle.stages) == 7 and len(entries_of(bundle, 0)) == 2
    assert {name for name, _ in first.plan.queries[0].select} >= {"a.k", "a.x", "b.x", "a.id"}
    check(SHARING, operator, tmp_path, 50, repeated=True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"{THREE} WITHIN 20 MICROSECONDS", f"{THREE} WITHIN 19 MICROSECONDS"),
        (f"{THREE} WITHIN 20 MICROSECONDS", f"{THREE} WITHIN 20 MICROSECONDS FOR a, 19 MICROSECONDS FOR b, "
         "20 MICROSECONDS FOR c"),
        (f"{THREE} WITHIN 20 MICROSECONDS", f"{THREE.replace('a.k = b.k', 'a.k = b.k AND a.x > 1')} "
         "WITHIN 20 MICROSECONDS"),
        (f"{THREE} WITHIN 20 MICROSECONDS", f"{THREE.replace('a JOIN b', 'a LEFT JOIN b')} WITHIN 20 MICROSECONDS"),
        (f"{THREE} WITHIN 20 MICROSECONDS", f"{THREE} WHERE b.x < 50 WITHIN 20 MICROSECONDS"),
    ],
    ids=["another reach", "another reach of one stream", "another condition", "another kind", "another selection"],
)  # fmt: skip
def test_joins_that_differ_are_stages_of_their_own(one: str, other: str) -> None:
    plans = tuple(plan_query(text, STREAMS) for text in (one, other))
    assert len(Bundle(((("one",), plans[0]), (("other",), plans[1]))).stages) == 4


def test_a_silence_that_others_must_know_of_keeps_stages_apart() -> None:
    silent = {name: replace(stream, idle_us=1_000_000) for name, stream in STREAMS.items()}
    streams = {**silent, "d": replace(silent["c"], name="d")}
    texts = (QUERIES["three"], QUERIES["three"].replace("JOIN c", "JOIN d AS c"))
    both = Bundle(tuple(((str(number),), plan_query(text, streams)) for number, text in enumerate(texts)))
    assert len(both.stages) == 4
    without = Bundle(tuple(((str(number),), plan_query(text, {**STREAMS, "d": replace(STREAMS["c"], name="d")}))
                           for number, text in enumerate(texts)))  # fmt: skip
    assert len(without.stages) == 3


def test_a_silent_stream_holds_back_what_it_holds_back_alone(tmp_path: Path) -> None:
    """By batch: with c silent after the first one, what waits for it comes once c counts as idle."""
    known = {name: replace(stream, idle_us=2_000_000) for name, stream in STREAMS.items()}
    names = ["three", "left", "waits", "twice", "three left", "windows"]
    batches = [[*pieces[:2], pieces[2] if number < 1 else []] for number, pieces in enumerate(cut(streams(51), 6))]

    def by_batch(plan: Plan, names: Sequence[str], folder: str) -> dict[str, list[Found]]:
        loop = loop_of(plan, "biclique by hash", tmp_path / folder)
        read = ["abc".index(stream.name) for stream in plan.streams]
        found = {name: [Found() for _ in batches] for name in names}
        for number, pieces in enumerate(batches):
            brought = Brought([pieces[stream] for stream in read], 1_000_000 * number, drains=False)
            for query, part in loop.batch(brought):
                rows = zip(*(column.to_pylist() for column in part.columns), strict=True)
                found[names[query]][number].update(rows)
            loop.commit(brought)
        return found

    bundle = bundle_of(names, known)
    together = by_batch(bundle, bundle.names_of_queries, "together")
    for name, plan in plans_of(names, known).items():
        alone = by_batch(plan, [name], name)[name]
        assert together[name] == alone and any(alone), name
    assert sum(map(bool, together["waits"])) > 2


def test_a_stage_hears_of_partitions_of_a_stream_that_enters_later_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a bundle both are one stream: it enters at the first stage as x, and at the second one as y."""
    known = {name: replace(stream, idle_us=2_000_000) for name, stream in STREAMS.items()}
    text = "SELECT ONLINE x.id AS x FROM a AS x JOIN c ON x.k = c.k JOIN a AS y ON y.k = c.k WITHIN 9 MICROSECONDS"
    plan = Bundle(((("both",), plan_query(text, known)), *(((n,), p) for n, p in plans_of(["left"], known).items())))
    assert plan.parts[0].streams == (0, 1, 0)
    loop = loop_of(plan, "biclique by hash", tmp_path)
    job = Job(plan, loop.operators, 2, tmp_path)
    moved = [Punctuation(0, "topic/3", "topic/3", 0, None, 5)]
    monkeypatch.setattr(tasks, "partitions_read", lambda *given: moved)
    heard = []
    monkeypatch.setattr(tasks.SlotStep, "punctuate", lambda step, told, sent: heard.append((told.side, told.elsewhere)))
    with task(0, 0):
        tasks._step(job, 0)
    assert heard == [(0, None), (0, 0)]


def test_a_chain_runs_them_too(tmp_path: Path) -> None:
    check(["pairs", "near", "windows", "three", "nearer"], "handshake", tmp_path, 42)


@pytest.mark.parametrize("seed", [43, 44])
def test_repeated_batches_and_other_slots_change_nothing(seed: int, tmp_path: Path) -> None:
    check(["pairs", "near", "full", "anti", "distinct", "three left", "latest", "itself"], "biclique by hash",
          tmp_path, seed, repeated=True)  # fmt: skip


def test_a_stream_is_stamped_once_however_many_stages_it_enters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stamped: Counter[str] = Counter()
    real = Intake.stamped

    def counted(self: Intake, rows: pa.RecordBatch, *given: Any) -> Any:
        stamped[self.plan.streams[self.side].name] += rows.num_rows
        return real(self, rows, *given)

    monkeypatch.setattr(Intake, "stamped", counted)
    bundle = bundle_of(["pairs", "near", "left", "three", "of one"])
    assert [len(entries_of(bundle, stream)) for stream in range(3)] == [4, 3, 1]
    loop = loop_of(bundle, "biclique by hash", tmp_path)
    run(loop, bundle.names_of_queries, streams(45), repeated=False)
    assert stamped == {"a": 90, "b": 90, "c": 90}
    assert [counts["rows"] for counts in loop.counts] == [90, 90, 90]


def test_stages_that_wait_for_nothing_of_each_other_are_on_one_floor() -> None:
    bundle = bundle_of(["pairs", "near", "left", "windows", "three"])
    floors = [[stage.number for stage in floor] for floor in bundle.floors]
    assert floors == [[0, 1, 2], [3, 4]]  # the first join of the last two is one


def test_a_row_that_any_query_takes_is_not_counted_as_lost(tmp_path: Path) -> None:
    rows = streams(46)
    bundle = bundle_of(["near", "left", "semi"])
    loop = loop_of(bundle, "biclique by hash", tmp_path)
    run(loop, bundle.names_of_queries, rows[:2], repeated=False)
    a, b = loop.counts
    # Whoever has no key is unmatched in `left`, which takes every row of a; of b a row without one is nobody's.
    assert "null_keys" not in a and "dropped_by_selection" not in a
    assert b["null_keys"] == sum(row["k"] is None for row in rows[1].to_pylist()) > 0
    assert "dropped_by_selection" not in b


def test_queries_that_share_no_stream_are_refused() -> None:
    plans = plans_of(["left", "of one"])
    other = replace(STREAMS["c"], name="d")
    lone = plan_query("SELECT ONLINE COUNT(*) AS n FROM d GROUP BY d.k, TUMBLE(1 SECOND)", {"d": other})
    with pytest.raises(InputError, match="reads d, which no other query of the job reads") as wrong:
        Bundle((*(((name,), plan) for name, plan in plans.items()), (("lone",), lone)))
    assert wrong.value.field == "queries.lone.query"
    # Two queries of one part have each other.
    pair = plan_query("SELECT ONLINE c.id AS c FROM c, d WHERE c.k = d.k WITHIN 5 ROWS", {**STREAMS, "d": other})
    assert isinstance(pair, JoinPlan)
    two = ("one", "two"), SharedJoin(("one", "two"), (pair, pair))
    assert len(Bundle((two, *(((name,), plan) for name, plan in plans.items()))).parts) == 3


def test_a_block_lost_on_the_way_to_one_of_its_stages_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = entering.Entering.take

    def losing(self: entering.Entering, *given: Any) -> Any:
        routed = list(real(self, *given))
        yield from routed[:-1]

    monkeypatch.setattr(entering.Entering, "take", losing)
    bundle = bundle_of(["left", "three"])
    with pytest.raises(Exception, match="where its routers sent"):
        run(loop_of(bundle, "biclique by hash", tmp_path), bundle.names_of_queries, streams(47), repeated=False)


# Through a join file, with the real tasks, sinks and checkpoint.

FILED = ("pairs", "near", "left", "anti", "windows", "of one", "three", "latest")
"""Some answer on the first floor and some on the second."""


def write(folder: Path, rows: Sequence[pa.RecordBatch], files: int = 4) -> None:
    for name, stream in zip("abc", rows, strict=True):
        size = -(-stream.num_rows // files)
        (folder / name).mkdir()
        for number in range(files):
            part = pa.Table.from_batches([stream.slice(number * size, size)])
            pq.write_table(part, folder / name / f"{number}.parquet")


def file_of(folder: Path, name: str, queries: Sequence[str], extra: str = "") -> Path:
    """A join file of some queries; one has `query:`."""
    text = "streams:\n" + "".join(
        f"  {stream}: {{source: parquet, path: {stream}, time: ts, time_unit: us, delay: {DISORDER_US}us}}\n"
        for stream in "abc"
    )
    if len(queries) == 1:
        text += f"query: {json.dumps(QUERIES[queries[0]])}\nresults: {{parquet: {name}}}\n"
    else:
        text += "queries:\n" + "".join(
            f"  {query.replace(' ', '-')}: {{query: {json.dumps(QUERIES[query])}, "
            f"results: {{parquet: {name}/{query.replace(' ', '-')}}}}}\n"
            for query in queries
        )
    text += f"run: {{checkpoint: {name}-checkpoint, files_per_batch: 1, slots: 2}}\n{extra}"
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return path


def rows_in(folder: Path) -> Found:
    found = Found()
    for path in sorted(folder.glob("*.parquet")):
        found.update(tuple(row.values()) for row in pq.read_table(path).to_pylist())
    return found


def bound(path: Path) -> Bound:
    return bind(load(path))


@pytest.mark.parametrize("stops", [(), (2,), (1, 3)], ids=["straight", "one restart", "two restarts"])
def test_a_job_of_a_file_gives_each_what_it_gives_alone(stops: Sequence[int], tmp_path: Path) -> None:
    write(tmp_path, streams(48))
    together = file_of(tmp_path, "together", FILED)
    for stop in stops:
        run_alone(bound(together), lambda batch, stop=stop: batch < stop)
    run_alone(bound(together))
    for name in FILED:
        run_alone(bound(file_of(tmp_path, name.replace(" ", "-"), [name])))
        alone = rows_in(tmp_path / name.replace(" ", "-"))
        mine = rows_in(tmp_path / "together" / name.replace(" ", "-"))
        assert alone and mine == alone, name


@pytest.mark.parametrize("first", ["left", "itself"])
def test_a_late_row_is_late_once(first: str, tmp_path: Path) -> None:
    rows = streams(52)
    late = rows[0].slice(0, 9)
    rows[0] = pa.Table.from_batches([rows[0], late]).combine_chunks().to_batches()[0]
    write(tmp_path, rows)
    found = bound(file_of(tmp_path, "together", [first, "three", "of one", "itself" if first == "left" else "left"]))
    driver = run_alone(found)
    told = report(found, driver.job, driver.progress, 1.0, 0)
    assert told["late"] == {"a": late.num_rows - late["k"].null_count, "b": 0, "c": 0}


def test_the_report_counts_streams_once_and_queries_apart(tmp_path: Path) -> None:
    rows = streams(49)
    late = rows[0].slice(0, 5)  # again at the end, long after their time
    rows[0] = pa.Table.from_batches([rows[0], late]).combine_chunks().to_batches()[0]
    write(tmp_path, rows)
    found = bound(file_of(tmp_path, "together", FILED))
    driver = run_alone(found)
    told = report(found, driver.job, driver.progress, 1.0, 0)
    assert told["tuples_in"] == {"a": 95, "b": 90, "c": 90}
    assert told["late"]["a"] == 5
    assert set(told["queries"]) == {name.replace(" ", "-") for name in FILED}
    for name in FILED:
        kept = rows_in(tmp_path / "together" / name.replace(" ", "-"))
        assert told["queries"][name.replace(" ", "-")]["results"] == kept.total() > 0
    assert told["results"] == sum(counts["results"] for counts in told["queries"].values())


@pytest.mark.parametrize("queries", [("pairs", "near"), ("pairs", "left")], ids=["pairs alone", "one less"])
def test_a_query_of_a_checkpoint_is_not_left_out_without_a_word(queries: Sequence[str], tmp_path: Path) -> None:
    write(tmp_path, streams(63))
    run_alone(bound(file_of(tmp_path, "together", ("pairs", "near", "left"))), lambda batch: batch < 2)
    assert bound(file_of(tmp_path, "together", ("left", "near", "pairs"))).earlier is None  # another order is no change
    missing = "left" if "near" in queries else "near"
    with pytest.raises(
        InputError, match=f"{missing} has its place in the checkpoint; keep the query here with stopped"
    ):
        bound(file_of(tmp_path, "together", queries))
    bind(load(file_of(tmp_path, "together", queries)), anew=True)
