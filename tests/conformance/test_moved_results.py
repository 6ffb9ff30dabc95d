"""A query whose results go elsewhere from a start on: each row is in one of the places, once."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from streamjoin.errors import InputError, RunError
from streamjoin.failpoints import FailpointError
from streamjoin.results.answer import ask
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.spec.joinfile import JoinFile, parse
from streamjoin.spec.moved import NOTED_FILE
from streamjoin.spec.outputs import store_job, store_spec
from streamjoin.spec.prepare import bind
from tests import duck
from tests.failing import failing_at

from .alone import run_alone
from .test_going_on import arrive

TEXT = """\
query: 'SELECT ONLINE r.id AS r, s.id AS s FROM r, s WHERE r.k = s.k WITHIN 20 SECONDS'
streams:
  r: {{source: parquet, path: r, time: ts, delay: 2s}}
  s: {{source: parquet, path: s, time: ts, delay: 2s}}
operator: {{name: biclique, r_units: 2, s_units: 2}}
results: {{{results}}}
run: {{checkpoint: checkpoint, files_per_batch: 1, slots: 2}}
"""
FIRST = "store: sqlite, path: one.db, job: pairs, snapshot: {batches: 100}"
OTHER = {
    "another file": "store: sqlite, path: two.db, job: pairs, snapshot: {batches: 100}",
    "another name": "store: sqlite, path: one.db, job: others, snapshot: {batches: 100}",
}


def file_of(folder: Path, results: str) -> JoinFile:
    return parse(TEXT.format(results=results), base=folder)


def kept(file: JoinFile) -> list[tuple[int, int]]:
    reader = Reader(store_spec(file).open(), store_job(file))
    return [(row["r"], row["s"]) for part in ask(reader, Question()) for row in part.to_pylist()]


def wanted(folder: Path) -> Counter[Any]:
    r, s = (f"'{folder}/{stream}/*.parquet'" for stream in "rs")
    rows = duck.rows(
        f"SELECT r.id, s.id FROM {r} r, {s} s WHERE r.k = s.k AND abs(epoch_us(r.ts) - epoch_us(s.ts)) <= 20e6"
    )
    assert len(rows) > 50
    return Counter(rows)


@pytest.mark.parametrize("end", ["it stops", "it dies once a batch is in the store"])
@pytest.mark.parametrize("to", OTHER)
def test_what_waits_where_results_went_before_is_completed_there(to: str, end: str, tmp_path: Path) -> None:
    for number in range(4):
        arrive(tmp_path, number)
    first, other = file_of(tmp_path, FIRST), file_of(tmp_path, OTHER[to])
    if end == "it stops":
        run_alone(bind(first), lambda batch: batch < 2)
    else:
        with failing_at("batch.after_commit", 2), pytest.raises(FailpointError):
            run_alone(bind(first))
    assert not kept(first), "all of it waits"
    with failing_at("batch.before_commit"), pytest.raises(FailpointError):
        run_alone(bind(other))
    before = kept(first)
    assert before
    run_alone(bind(other))
    assert Counter(before + kept(other)) == wanted(tmp_path) and kept(first) == before
    arrive(tmp_path, 4)
    run_alone(bind(first))  # and back
    assert Counter(kept(first) + kept(other)) == wanted(tmp_path)


PAIRS = "SELECT ONLINE r.id AS r, s.id AS s FROM r, s WHERE r.k = s.k WITHIN 20 SECONDS"
GROUPS = "SELECT ONLINE r.k, COUNT(*) AS n FROM r, s WHERE r.k = s.k WITHIN 20 SECONDS GROUP BY r.k CUMULATIVE"


@pytest.mark.parametrize("is_copied", [False, True])
def test_groups_that_have_not_changed_since_are_where_results_went_before_unless_that_was_copied(
    is_copied: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = (
        parse(TEXT.format(results=f"store: sqlite, path: {name}.db").replace(PAIRS, GROUPS), base=tmp_path)
        for name in ("one", "two")
    )

    def groups(file: JoinFile) -> dict[int, int]:
        found = ask(Reader(store_spec(file).open(), store_job(file)), Question())
        return {row["k"]: row["n"] for part in found for row in part.to_pylist()}

    arrive(tmp_path, 0)
    arrive(tmp_path, 1)
    run_alone(bind(one))
    before = groups(one)
    if is_copied:
        for path in tmp_path.glob("one.db*"):
            shutil.copy(path, tmp_path / path.name.replace("one", "two"))
    arrive(tmp_path, 2)
    run_alone(bind(two))
    said = f"go to sqlite {tmp_path}/two.db as join from now on: it is told of groups that change from now on, and"
    assert [said in record.message for record in caplog.records] == [True]
    r, s = (f"'{tmp_path}/{stream}/*.parquet'" for stream in "rs")
    wanted = duck.rows(
        f"SELECT r.k, count(*) FROM {r} r, {s} s WHERE r.k = s.k AND abs(epoch_us(r.ts) - epoch_us(s.ts)) <= 20e6 "
        "GROUP BY 1"
    )
    assert before | groups(two) == dict(wanted)
    assert (groups(two) == dict(wanted)) is is_copied
    run_alone(bind(two))
    assert len(caplog.records) == 1, "it is said once"


def test_a_store_that_was_removed_holds_nobody_back_and_one_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for number in range(3):
        arrive(tmp_path, number)
    first, other = file_of(tmp_path, FIRST), file_of(tmp_path, OTHER["another file"])
    run_alone(bind(first), lambda batch: batch < 1)
    for path in tmp_path.glob("one.db*"):
        path.unlink()
    (tmp_path / "one.db").write_text("something else" * 100)
    with pytest.raises(RunError, match=rf"one\.db as pairs until now, .* or remove .*{NOTED_FILE} to go on without"):
        run_alone(bind(other))
    (tmp_path / "one.db").unlink()
    run_alone(bind(other))
    assert kept(other)


def test_no_password_is_noted(tmp_path: Path) -> None:
    from streamjoin.results.stores.spec import StoreSpec
    from streamjoin.spec.moved import _Kept

    class Sink:
        spec = StoreSpec("cassandra", (("hosts", "127.0.0.1"), ("username", "u"), ("password", "s3cret")))
        job = "j"

    noted = _Kept.of(Sink())  # type: ignore[arg-type]
    assert "s3cret" not in str(noted.to_json()) + repr(noted)
    assert ("password", "s3cret") in noted.spec(Sink.spec).settings
    assert _Kept.from_json(noted.to_json()).is_at(noted)
    assert _Kept.from_json({"kind": "cassandra", "settings": {}, "job": "j", "since": 5}).elsewhere.batch == 5, "once"


@pytest.mark.parametrize("end", ["it stops", "it dies once a batch is there"])
def test_a_batch_is_in_one_of_two_folders(end: str, tmp_path: Path) -> None:
    for number in range(4):
        arrive(tmp_path, number)
    first, other = file_of(tmp_path, "parquet: one"), file_of(tmp_path, "parquet: two")
    if end == "it stops":
        run_alone(bind(first), lambda batch: batch < 2)
    else:
        with failing_at("batch.after_commit", 3), pytest.raises(FailpointError):
            run_alone(bind(first))
    run_alone(bind(other))
    arrive(tmp_path, 4)
    run_alone(bind(first))
    one, two = (duck.rows(f"SELECT r, s FROM '{tmp_path}/{place}/*.parquet'") for place in ("one", "two"))
    assert one and two and Counter(one + two) == wanted(tmp_path)


@pytest.mark.parametrize("first", ["parquet: one", FIRST])
def test_results_stay_in_a_store_or_outside_of_one(first: str, tmp_path: Path) -> None:
    arrive(tmp_path, 0)
    run_alone(bind(file_of(tmp_path, first)))
    other = FIRST if first != FIRST else "jsonl: out.jsonl"
    with pytest.raises(InputError, match=r"^results: the results of this query were in (a|no) store when") as refused:
        bind(file_of(tmp_path, other))
    assert refused.value.field == "results"
    bind(file_of(tmp_path, other), anew=True)


@pytest.mark.parametrize("first", [FIRST, "parquet: one"])
def test_a_copy_of_a_job_has_its_own_results_and_leaves_those_of_its_original(first: str, tmp_path: Path) -> None:
    job, copy = tmp_path / "job", tmp_path / "copy"
    job.mkdir()
    for number in range(4):
        arrive(job, number)
    with failing_at("batch.after_commit", 2), pytest.raises(FailpointError):
        run_alone(bind(file_of(job, first)))
    shutil.copytree(job, copy)
    run_alone(bind(file_of(job, first)))
    before = stored(job, first)
    other = "parquet: two" if "parquet" in first else first.replace("one.db", "two.db")
    for results in (first, other):  # where it is, and elsewhere
        again = tmp_path / f"again {results == first}"
        shutil.copytree(copy, again)
        run_alone(bind(file_of(again, results)))
        found = stored(again, first) + (stored(again, results) if results != first else Counter())
        assert found == wanted(job)
        assert stored(job, first) == before == wanted(job)


def stored(folder: Path, results: str) -> Counter[Any]:
    if "parquet" in results:
        return Counter(duck.rows(f"SELECT r, s FROM '{folder}/{results.split(': ')[1]}/*.parquet'"))
    return Counter(kept(file_of(folder, results)))
