"""Queries of any kind start in a job that goes on: they give what they give alone, of what is not older than they."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamjoin.cli.planning import validate
from streamjoin.engine import rebuilding, recovering
from streamjoin.engine.state import UnitState
from streamjoin.errors import InputError, UnsupportedError
from streamjoin.flow.punctuation import IDLE_TIMEOUT_US, Punctuation, StreamClock
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Bundle, entry_of
from streamjoin.query import plan_query
from streamjoin.results.answer import ask
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.spark import driver, join, requerying
from streamjoin.spec.job import Job
from streamjoin.spec.joinfile import load
from streamjoin.spec.outputs import store_job, store_spec
from streamjoin.state.store import read_manifests
from tests.servers.objects import folder_root

from .alone import run_alone
from .test_bundles import COLUMNS, DISORDER_US, Found, bound, rows_in, streams, write

FILES, ROWS = 4, 90
BASE = {
    "ab": "SELECT ONLINE a.id AS a, a.x AS ax, b.id AS b, b.x AS bx FROM a, b WHERE a.k = b.k WITHIN 60 MICROSECONDS",
    "bc": "SELECT ONLINE b.id AS b, c.id AS c, c.x AS cx FROM b, c WHERE b.k = c.k WITHIN 60 MICROSECONDS",
}
"""No key is stored as it is: what it is found by has it."""
NEW = {
    "pairs": "SELECT ONLINE a.id AS a, b.id AS b FROM a, b WHERE a.k = b.k AND a.x < 60 WITHIN 20 MICROSECONDS",
    "near": "SELECT ONLINE a.id AS a, b.id AS b FROM a, b WHERE a.k = b.k AND a.x < b.x WITHIN 30 MICROSECONDS",
    "left": "SELECT ONLINE a.id AS a, b.id AS b FROM a LEFT JOIN b ON a.k = b.k AND b.x > 30 WITHIN 10 MICROSECONDS",
    "full": "SELECT ONLINE a.id AS a, b.id AS b FROM a FULL JOIN b ON a.k = b.k AND a.x > b.x WITHIN 12 MICROSECONDS",
    "semi": "SELECT ONLINE b.id AS b FROM b LEFT SEMI JOIN a ON a.k = b.k AND a.x > b.x WITHIN 8 MICROSECONDS",
    "anti": "SELECT ONLINE a.id AS a FROM a LEFT ANTI JOIN b ON a.k = b.k WITHIN 9 MICROSECONDS",
    "three": "SELECT ONLINE a.id AS a, b.id AS b, c.id AS c FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k "
    "WITHIN 25 MICROSECONDS",
    "reaches": "SELECT ONLINE c.id AS c, a.id AS a, b.id AS b FROM c JOIN a ON c.k = a.k LEFT JOIN b ON a.k = b.k "
    "WITHIN 9 MICROSECONDS FOR a, 15 MICROSECONDS FOR b, 4 MICROSECONDS FOR c",
    "itself": "SELECT ONLINE x.id AS a, y.id AS b FROM a AS x, a AS y WHERE x.k = y.k AND x.id < y.id "
    "WITHIN 15 MICROSECONDS",
}


def file_of(folder: Path, name: str, queries: Mapping[str, str], stopped: Sequence[str] = (), extra: str = "") -> Path:
    text = "streams:\n" + "".join(
        f"  {stream}: {{source: parquet, path: {stream}, time: ts, time_unit: us, delay: {DISORDER_US}us}}\n"
        for stream in "abc"
    )
    text += "queries:\n" + "".join(
        f"  {called}: {{query: {json.dumps(query)}, results: {{parquet: {name}/{called}}}"
        f"{', stopped: true' if called in stopped else ''}}}\n"
        for called, query in queries.items()
    )
    path = folder / f"{name}.yaml"
    path.write_text(f"{text}run: {{checkpoint: {name}-checkpoint, files_per_batch: 1, slots: 2}}\n{extra}")
    return path


def batch_of(id: int) -> int:
    """The batch that brings a row."""
    return id % 1000 // -(-ROWS // FILES)


def since(rows: Found, start: int) -> Found:
    """Those of these results whose newest part came with batch `start` or later."""
    return Counter({row: n for row, n in rows.items() if max(batch_of(id) for id in row if id is not None) >= start})


def alone(folder: Path, name: str, query: str, extra: str = "") -> Found:
    path = file_of(folder, name, {"query": query}, extra=extra)
    text = path.read_text()
    begun = text.index("queries:")
    rest = text[text.index("run: ") :]
    path.write_text(f"{text[:begun]}query: {json.dumps(query)}\nresults: {{parquet: {name}}}\n{rest}")
    run_alone(bound(path))
    return rows_in(folder / name)


def go_on(path: Path, until: int | None = None) -> Any:
    return run_alone(bound(path), None if until is None else lambda batch: batch < until)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operator", "start"),
    [
        ("biclique", 1),
        *(pytest.param(name, start, marks=pytest.mark.soak) for name, start in (("biclique", 2), ("matrix", 2))),
        ("splitjoin", 1),
    ],
)
def test_queries_start_over_what_is_stored(operator: str, start: int, tmp_path: Path) -> None:
    write(tmp_path, streams(80))
    extra = f"operator: {{name: {operator}}}\n"
    go_on(file_of(tmp_path, "job", BASE, extra=extra), start)
    go_on(file_of(tmp_path, "job", BASE | NEW, extra=extra), start + 1)
    go_on(file_of(tmp_path, "job", BASE | NEW, extra=extra))
    for name, query in (BASE | NEW).items():
        every = alone(tmp_path, f"{name}-alone", query, extra)
        wanted = every if name in BASE else since(every, start)
        got = rows_in(tmp_path / "job" / name)
        assert wanted and got == wanted, f"{name}: {wanted - got} missing, {got - wanted} too many"


def job_of(folder: Path, queries: Mapping[str, str], stopped: Sequence[str] = (), extra: str = "") -> Path:
    return file_of(folder, "job", queries, stopped, extra)


def wanted_of(folder: Path, name: str, start: int) -> Found:
    return since(alone(folder, f"{name}-alone", NEW[name]), start)


GROUPS = {
    "windows": "SELECT ONLINE a.k AS k, WINDOW_START() AS since, COUNT(*) AS n FROM a, b WHERE a.k = b.k "
    "WITHIN 20 MICROSECONDS GROUP BY a.k, TUMBLE(40 MICROSECONDS)",
    "running": "SELECT ONLINE a.k AS k, COUNT(*) AS n FROM a, b WHERE a.k = b.k WITHIN 20 MICROSECONDS "
    "GROUP BY a.k CUMULATIVE",
    "distinct": "SELECT DISTINCT ONLINE a.k AS k FROM a, b WHERE a.k = b.k WITHIN 20 MICROSECONDS",
    "of one": "SELECT ONLINE a.k AS k, WINDOW_START() AS since, COUNT(*) AS n FROM a "
    "GROUP BY a.k, TUMBLE(30 MICROSECONDS)",
}


def test_groups_are_made_of_results_since_the_start(tmp_path: Path) -> None:
    given, start = streams(81), 2
    write(tmp_path, given)
    queries = BASE | {name.replace(" ", "-"): query for name, query in GROUPS.items()}
    go_on(job_of(tmp_path, BASE), start)
    go_on(job_of(tmp_path, queries), start + 1)
    go_on(job_of(tmp_path, queries))
    row_of = {row["id"]: row for rows in given for row in rows.to_pylist()}
    every = alone(
        tmp_path, "every", "SELECT ONLINE a.id AS a, b.id AS b FROM a, b WHERE a.k = b.k WITHIN 20 MICROSECONDS"
    )
    pairs = [tuple(row_of[id] for id in row) for row in since(every, start)]
    windows, running, ones = Counter[Any](), Counter[Any](), Counter[Any]()
    for a, b in pairs:
        windows[a["k"], max(a["ts"], b["ts"]) // 40 * 40] += 1
        running[a["k"]] += 1
    for row in given[0].to_pylist():
        if batch_of(row["id"]) >= start:
            ones[row["k"], row["ts"] // 30 * 30] += 1
    found = {name: rows_in(tmp_path / "job" / name.replace(" ", "-")) for name in GROUPS}
    us = {name: Counter({(k, int(at.timestamp() * 1e6), n): 1 for k, at, n in rows}) for name, rows in found.items()
          if name in ("windows", "of one")}  # fmt: skip
    assert us["windows"] == Counter({(*key, n): 1 for key, n in windows.items()})
    assert us["of one"] == Counter({(*key, n): 1 for key, n in ones.items()})
    assert {(k, n) for k, n in running.items()} <= {row[:2] for row in found["running"]}
    assert max(row[1] for row in found["running"]) == max(running.values())
    assert set(found["distinct"]) == {(k,) for k in running}


def test_queries_that_start_together_share_a_stage_and_later_ones_have_their_own(tmp_path: Path) -> None:
    write(tmp_path, streams(82))
    three = NEW["three"].replace("25", "20")
    first = BASE | {"three": three, "windows": GROUPS["windows"]}
    go_on(job_of(tmp_path, BASE), 1)
    job = go_on(job_of(tmp_path, first), 2).job
    assert [part.numbers for part in job.plan.parts] == [(0,), (1,), (2, 3), (2, 4)]
    again = three.replace("a.id AS a", "a.id AS a, a.x AS x")
    job = go_on(job_of(tmp_path, first | {"again": again})).job
    assert job.plan.parts[-1].numbers == (5, 6)
    every = alone(tmp_path, "three-alone", three)
    assert rows_in(tmp_path / "job" / "three") == since(every, 1)
    got = Counter({(a, b, c): n for (a, _, b, c), n in rows_in(tmp_path / "job" / "again").items()})
    assert got == since(every, 2) and got


def test_one_starts_as_another_ends_and_a_later_one_takes_what_a_started_one_has(tmp_path: Path) -> None:
    write(tmp_path, streams(83))
    wide = (
        NEW["left"]
        .replace("AND b.x > 30 WITHIN 10", "WITHIN 60")
        .replace("b.id AS b", "b.id AS b, b.x AS bx, a.x AS ax")
    )
    queries = {**BASE, "wide": wide}
    go_on(job_of(tmp_path, BASE), 1)
    go_on(job_of(tmp_path, queries, ["ab"]), 2)
    queries |= {"left": NEW["left"], "near": NEW["near"], "anti": NEW["anti"]}
    job = go_on(job_of(tmp_path, queries, ["ab", "bc"]), 3).job
    assert job.plan.resting == {0, 1} and job.plan.names_of_queries == ("wide", "left", "near", "anti")
    go_on(job_of(tmp_path, queries, ["ab", "bc"]))
    for name in ("left", "near", "anti"):
        assert rows_in(tmp_path / "job" / name) == wanted_of(tmp_path, name, 2), name
    ab = alone(tmp_path, "ab-alone", BASE["ab"])
    ends = Counter({row: n for row, n in ab.items() if max(batch_of(row[0]), batch_of(row[2])) < 1})
    assert rows_in(tmp_path / "job" / "ab") == ends and ends


def test_validate_says_of_a_changed_file_what_a_run_would(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, streams(84))
    go_on(job_of(tmp_path, BASE), 2)
    for queries, stopped in ((BASE, []), (BASE | NEW, []), (BASE | {"left": NEW["left"]}, ["bc"])):
        validate(job_of(tmp_path, queries, stopped))
        assert "job.yaml is right" in capsys.readouterr().out
    other = job_of(tmp_path, BASE | NEW, extra="operator: {name: biclique, r_units: 3}\n")
    with pytest.raises(InputError, match="r_units"):
        validate(other)
    with pytest.raises(InputError, match="keep the query here with stopped: true"):
        validate(job_of(tmp_path, {"ab": BASE["ab"]}))


@pytest.mark.parametrize("place", ["requery.before_note", "requery.after_note"])
def test_a_start_that_dies_is_made_good(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, streams(84))
    queries = BASE | {name: NEW[name] for name in ("left", "three", "semi")}

    def die(*given: Any) -> None:
        raise KeyboardInterrupt

    go_on(job_of(tmp_path, BASE), 2)
    with monkeypatch.context() as patch:
        patch.setattr(requerying, "failpoint", lambda name: die() if name == place else None)
        with pytest.raises(KeyboardInterrupt):
            go_on(job_of(tmp_path, queries, ["bc"]), 3)
    go_on(job_of(tmp_path, queries, ["bc"]))
    for name in ("left", "three", "semi"):
        assert rows_in(tmp_path / "job" / name) == wanted_of(tmp_path, name, 2), name
    assert not (tmp_path / "job-checkpoint" / "starting").exists()


def test_a_batch_that_began_is_finished_for_the_queries_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, streams(85))
    queries = BASE | {"left": NEW["left"]}

    def die(place: str) -> None:
        if place == "batch.before_commit":
            raise KeyboardInterrupt

    go_on(job_of(tmp_path, BASE), 1)
    with monkeypatch.context() as patch:
        patch.setattr(driver, "failpoint", die)
        with pytest.raises(KeyboardInterrupt):
            go_on(job_of(tmp_path, BASE), 2)
    go_on(job_of(tmp_path, queries, ["bc"]))
    assert rows_in(tmp_path / "job" / "left") == wanted_of(tmp_path, "left", 2)
    bc = alone(tmp_path, "bc-alone", BASE["bc"])
    assert rows_in(tmp_path / "job" / "bc") == Counter({r: n for r, n in bc.items() if max(map(batch_of, r[:2])) < 2})
    assert rows_in(tmp_path / "job" / "ab") == alone(tmp_path, "ab-alone", BASE["ab"])


def test_state_in_a_store_of_objects_has_them_too(tmp_path: Path) -> None:
    write(tmp_path, streams(86))
    queries = BASE | {name: NEW[name] for name in ("left", "three")}
    root = folder_root(tmp_path / "store")
    run_alone(bound(job_of(tmp_path, BASE)), lambda batch: batch < 2, root)
    run_alone(bound(job_of(tmp_path, queries, ["bc"])), lambda batch: batch < 3, root)
    run_alone(bound(job_of(tmp_path, queries, ["bc"])), None, root)
    for name in ("left", "three"):
        assert rows_in(tmp_path / "job" / name) == wanted_of(tmp_path, name, 2), name
    run_alone(bound(job_of(tmp_path, queries, ["bc", "left"])), None, root)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (NEW["left"].replace("WITHIN 10", "WITHIN 61"),
         "this is within 61 us, and tuples of a are stored for within 60 us"),
        (NEW["left"].replace("a.id AS a", "a.id AS a, a.ts AS ts"),
         "this reads ts of a, and of stored tuples there is id, k, x"),
        ("SELECT ONLINE a.id AS a, b.id AS b FROM a, b WHERE a.k = b.k WITHIN 5 ROWS", "its window counts rows"),
        ("SELECT ONLINE a.id AS a, b.id AS b FROM a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts WITHIN 1 SECOND",
         "this is an as-of join"),
        ("SELECT ONLINE a.id AS a, b.id AS b FROM a, b WHERE a.id = b.id WITHIN 5 MICROSECONDS",
         "tuples of a are stored only where a.k is not NULL, and this needs others"),
        ("SELECT ONLINE a.id AS a, b.id AS b FROM a, b WHERE a.k = b.k",
         "this is full history, and tuples of a are stored"),
        ("SELECT ONLINE c.id AS c, a.id AS a, b.id AS b FROM c LEFT JOIN a ON c.k = a.k AND a.x > 60 "
         "LEFT JOIN b ON c.k = b.k WITHIN 20 MICROSECONDS", "its LEFT JOIN is joined further"),
        ("SELECT ONLINE c.id AS c, b.id AS b FROM c LEFT SEMI JOIN a ON c.k = a.k JOIN b ON c.k = b.k "
         "WITHIN 20 MICROSECONDS", "its LEFT SEMI JOIN is joined further"),
    ],
    ids=["longer", "a column", "rows", "as of", "another key", "full history", "left and further", "semi and further"],
)  # fmt: skip
def test_what_is_not_stored_is_said(query: str, said: str, tmp_path: Path) -> None:
    write(tmp_path, streams(87))
    go_on(job_of(tmp_path, BASE), 1)
    with pytest.raises(InputError) as refused:
        bound(job_of(tmp_path, BASE | {"new": query}))
    assert said in str(refused.value) and refused.value.field == "queries.new.query"


def test_what_has_expired_for_a_slower_stream_is_said_and_nothing_is_changed(tmp_path: Path) -> None:
    given = streams(88)
    given[2] = given[2].slice(0, 2)  # c has come less far than b, for which tuples of a are stored
    write(tmp_path, given)
    queries = {**BASE, "three": NEW["three"].replace("25", "59")}
    go_on(job_of(tmp_path, BASE), 3)
    with pytest.raises(UnsupportedError, match=r"tuples of a are stored from .* on, and this needs them from"):
        go_on(job_of(tmp_path, queries))
    go_on(job_of(tmp_path, queries, ["three"]))
    assert rows_in(tmp_path / "job" / "ab") == alone(tmp_path, "ab-alone", BASE["ab"])


@pytest.mark.parametrize(
    ("module", "name", "broken", "query"),
    [
        (rebuilding, "all_matched", lambda bits, sequence: bits, "left"),
        (rebuilding.Rebuilding, "run", lambda self, rows: None, "pairs"),
        (rebuilding.Giver, "keys", {}, "near"),
        (recovering, "value_of", lambda keys, kind: recovering.pa.array(keys + 1), "near"),
    ],
    ids=["old rows leave as unmatched", "nothing is stored", "keys are not made again", "keys are others"],
)
def test_mutations_are_caught(
    module: Any, name: str, broken: Any, query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, streams(89))
    go_on(job_of(tmp_path, BASE), 2)
    monkeypatch.setattr(module, name, broken)
    try:
        go_on(job_of(tmp_path, {**BASE, query: NEW[query]}))
    except InputError:
        return
    monkeypatch.undo()
    assert rows_in(tmp_path / "job" / query) != wanted_of(tmp_path, query, 2)


def test_a_start_right_after_another_finds_what_that_one_has(tmp_path: Path) -> None:
    write(tmp_path, streams(90))
    itself = (
        "SELECT ONLINE x.id AS a, y.id AS b FROM c AS x, c AS y WHERE x.k = y.k AND x.id < y.id WITHIN 9 MICROSECONDS"
    )
    queries = {**BASE, "three": NEW["three"]}
    go_on(job_of(tmp_path, BASE), 2)
    go_on(job_of(tmp_path, queries, ["bc"]), 2)  # no batch comes in between
    first, second = (dict(read_manifests(tmp_path / "job-checkpoint" / "state", stage)) for stage in (2, 3))
    marks = [clock.mark_us for clock in first[0].clocks]
    # As far as what is joined before has come: else nobody could tell what it may have let go.
    assert {unit.clocks[0].mark_us for unit in second.values()} == {min(marks)}
    go_on(job_of(tmp_path, {**queries, "itself": itself}, ["bc"]))
    assert rows_in(tmp_path / "job" / "three") == wanted_of(tmp_path, "three", 2)
    wanted = since(alone(tmp_path, "itself-alone", itself), 2)
    assert rows_in(tmp_path / "job" / "itself") == wanted and wanted


def test_groups_start_on_a_stream_that_no_query_has_read_lately(tmp_path: Path) -> None:
    write(tmp_path, streams(91))
    of_c = "SELECT ONLINE c.k AS k, COUNT(*) AS n FROM c GROUP BY c.k CUMULATIVE"
    go_on(job_of(tmp_path, BASE), 1)
    go_on(job_of(tmp_path, BASE, ["bc"]), 2)
    go_on(job_of(tmp_path, {**BASE, "of-c": of_c}, ["bc"]))
    keys = Counter(row["k"] for row in streams(91)[2].to_pylist() if batch_of(row["id"]) >= 2)
    assert {row[:2] for row in rows_in(tmp_path / "job" / "of-c")} >= set(keys.items())
    assert max(row[1] for row in rows_in(tmp_path / "job" / "of-c")) == max(keys.values())


def test_topics_stay_in_the_order_in_which_spark_logs_their_offsets() -> None:
    """Spark knows its sources by their order alone, whatever queries have come and gone."""
    known = {name: StreamSchema(name, COLUMNS, "ts", "us", 5) for name in "abcd"}
    texts = (
        "SELECT ONLINE a.id AS a FROM d JOIN a ON d.k = a.k JOIN c ON a.k = c.k WITHIN 9 MICROSECONDS",
        "SELECT ONLINE b.id AS b FROM d, b WHERE d.k = b.k WITHIN 9 MICROSECONDS",
        "SELECT ONLINE c.k AS k, COUNT(*) AS n FROM c GROUP BY c.k CUMULATIVE",
    )
    one, two, three = (((name,), plan_query(text, known)) for name, text in zip("xyz", texts, strict=True))
    begun = Bundle((one, two))
    later = Bundle((one, two, three), since=(("z", 1),))
    plans = [begun, later, *(replace(later, ended=frozenset(ended)) for ended in ("x", "y", "z", "xy", "yz", "xz"))]
    orders, floors = [], []
    for plan in plans:
        entered = join._entered(Job(plan, (), 2, Path()), range(len(plan.streams)))
        orders.append(list(entered))
        floors.append(list(entered.values()))
        for number, floor in entered.items():
            own = [at for at, stages in enumerate(plan.floors) for stage in stages if number in stage.inputs]
            assert floor <= min(own, default=floor), "it is there in time"
    assert all(order == orders[0] for order in orders) and len(orders[0]) == 4
    assert all(found == sorted(found) for found in floors), "Spark reads them in that order"
    assert floors[0] != floors[1], "c enters earlier, for groups"
    # What is counted of a stream once is counted where it is read.
    assert entry_of(replace(later, ended=frozenset("x")), 0)[0].number == 2
    assert entry_of(replace(later, ended=frozenset("xy")), 0)[0].number == 0, "nobody reads it"


def test_queries_that_start_together_need_the_columns_of_all_at_a_stage_that_they_share(tmp_path: Path) -> None:
    """Each would find its own where another query stores them, and no query stores both."""
    write(tmp_path, streams(92))
    joined = "FROM a, b WHERE a.k = b.k WITHIN"
    base = {
        "ids": f"SELECT ONLINE a.id AS a, b.id AS b {joined} 60 MICROSECONDS",
        "values": "SELECT ONLINE a.x AS x, b.id AS b FROM a LEFT JOIN b ON a.k = b.k WITHIN 60 MICROSECONDS",
    }
    new = {
        name: f"SELECT ONLINE a.{column} AS {column}, COUNT(*) AS n {joined} 20 MICROSECONDS "
        f"GROUP BY a.{column} CUMULATIVE"
        for name, column in (("by-id", "id"), ("by-x", "x"))
    }
    go_on(job_of(tmp_path, base), 1)
    for name in new:
        assert bound(job_of(tmp_path, {**base, name: new[name]})).earlier is not None
    with pytest.raises(InputError, match="of a, and of stored tuples there is") as refused:
        bound(job_of(tmp_path, base | new))
    assert refused.value.field == "queries.by-id.query"
    # One after the other they share nothing.
    go_on(job_of(tmp_path, {**base, "by-id": new["by-id"]}), 2)
    go_on(job_of(tmp_path, base | new))
    assert rows_in(tmp_path / "job" / "by-x")


def test_a_start_may_have_other_units_and_results_in_a_store(tmp_path: Path) -> None:
    write(tmp_path, streams(93))
    cores = "operator: {{name: splitjoin, cores: {}}}\n".format
    go_on(job_of(tmp_path, BASE, extra=cores(2)), 2)
    file = job_of(tmp_path, {**BASE, "left": NEW["left"]}, extra=cores(3))
    file.write_text(
        file.read_text().replace("{parquet: job/left}", "{store: sqlite, path: left.db, snapshot: {batches: 1}}")
    )
    job = go_on(file).job
    assert [len(operator.units) for operator in job.operators] == [3, 3, 3]
    of_left = load(file).of("left")
    answer = ask(Reader(store_spec(of_left).open(), store_job(of_left)), Question(select=("a", "b")))
    found = Counter(tuple(row.values()) for rows in answer for row in rows.to_pylist())
    assert found == wanted_of(tmp_path, "left", 2)
    for name in BASE:
        assert rows_in(tmp_path / "job" / name) == alone(tmp_path, f"{name}-alone", BASE[name]), name


def test_a_stream_that_may_be_silent_is_not_ahead_of_what_it_has_brought(tmp_path: Path) -> None:
    """What others' progress has made of its clock is not taken over: what it brings next is not late."""
    write(tmp_path, streams(94))
    idle = {name: replace(StreamSchema(name, COLUMNS, "ts", "us", DISORDER_US), idle_us=1) for name in "abc"}
    plan = Bundle(tuple(((name,), plan_query(text, idle)) for name, text in BASE.items()))
    clock = StreamClock(9, 500, {"files": (40, 7)}, now_us=900)
    state = UnitState(1, clocks=(clock, replace(clock, mark_us=470)))
    found = rebuilding.job_clocks(plan, lambda stage: state)
    assert {number: one.mark_us for number, one in found.items()} == dict.fromkeys(range(3), 40 - DISORDER_US)


def test_a_partition_that_had_its_last_row_long_ago_holds_no_start_back(tmp_path: Path) -> None:
    """As it does not hold back what is stored: without it the stream has come as far as those that it joins."""
    write(tmp_path, streams(95))
    go_on(job_of(tmp_path, BASE), 3)
    changed = 0
    for path in (tmp_path / "job-checkpoint" / "state").rglob("*.json"):
        state = json.loads(path.read_text())
        for clock in state["clocks"]:
            if clock["routers"]:
                clock["routers"]["t/1"] = [-1_000_000, clock["now_us"] - 2 * IDLE_TIMEOUT_US]
                changed += 1
        path.write_text(json.dumps(state))
    assert changed
    go_on(job_of(tmp_path, BASE | {"left": NEW["left"]}))
    assert rows_in(tmp_path / "job" / "left") == wanted_of(tmp_path, "left", 3)


@pytest.mark.parametrize("idle_us", [None, 5_000_000])
@pytest.mark.parametrize("silence_us", [1_000_000, IDLE_TIMEOUT_US + 1])
def test_a_stream_has_come_as_far_as_its_partitions_that_are_not_idle(idle_us: int | None, silence_us: int) -> None:
    streams = {name: replace(StreamSchema(name, COLUMNS, "ts", "us", DISORDER_US), idle_us=idle_us) for name in "abc"}
    plan = Bundle(tuple(((name,), plan_query(text, streams)) for name, text in BASE.items()))
    heard = [Punctuation(0, f"t/{number}", f"{number}", 1, ts_us, 0) for number, ts_us in enumerate((100, 900))]
    clock = StreamClock().advance(heard, DISORDER_US, 0, idle_us or IDLE_TIMEOUT_US)
    clock = clock.advance(heard[1:], DISORDER_US, silence_us, idle_us or IDLE_TIMEOUT_US)
    found = rebuilding.job_clocks(plan, lambda stage: UnitState(1, clocks=(clock, clock)))
    reached_us = 900 if silence_us > 5_000_000 else 100
    assert {one.mark_us for one in found.values()} == {clock.mark_us} == {reached_us - DISORDER_US}
