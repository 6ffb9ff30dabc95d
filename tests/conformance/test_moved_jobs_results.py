"""A checkpoint that was moved while its results stayed where they are, outside of its folder."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from streamjoin.failpoints import FailpointError
from streamjoin.spec.joinfile import JoinFile, parse
from streamjoin.spec.moved import _Kept
from streamjoin.spec.outputs import store_job, store_spec
from streamjoin.spec.prepare import bind
from tests import duck
from tests.failing import failing_at
from tests.relocating import WAYS, relocate

from .alone import run_alone
from .test_going_on import arrive
from .test_moved_results import GROUPS, PAIRS, TEXT, file_of, kept, wanted

STORES = [f"store: sqlite, path: {{}}/{name}.db, job: pairs, snapshot: {{{{batches: 100}}}}" for name in ("one", "two")]
FOLDERS = ["parquet: {}/one", "parquet: {}/two"]
FILES = ["jsonl: {}/one.jsonl", "jsonl: {}/two.jsonl"]


def given(folder: Path, results: str, outside: Path) -> Counter[Any]:
    if "store" in results:
        return Counter(kept(file_of(folder, results)))
    place = outside / Path(results).name
    if not place.exists() or (place.is_file() and not place.stat().st_size):
        return Counter()
    return Counter(duck.rows(f"SELECT r, s FROM '{place}{'/*.parquet' if place.is_dir() else ''}'"))


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("where", [STORES, FOLDERS, FILES], ids=["store", "parquet", "jsonl"])
def test_results_that_stay_outside_are_completed_where_they_are(where: list[str], how: str, tmp_path: Path) -> None:
    job, other, outside = tmp_path / "job", tmp_path / "far" / "off" / "job", tmp_path / "outside"
    job.mkdir()
    outside.mkdir()
    other.parent.mkdir(parents=True)
    for number in range(4):
        arrive(job, number)
    first, second = (one.format(outside) for one in where)
    place = "batch.mid_commit" if where is FILES else "batch.after_commit"
    with failing_at(place, 3), pytest.raises(FailpointError):
        run_alone(bind(file_of(job, first)))
    before = given(job, first, outside)
    relocate(how, job, other)
    if how == "copied":
        run_alone(bind(file_of(other, second)))
        assert given(job, first, outside) == before, "they are those of the original"
        return
    run_alone(bind(file_of(other, second)))
    one, two = given(other, first, outside), given(other, second, outside)
    assert two and one + two == wanted(other)
    arrive(other, 4)
    run_alone(bind(file_of(other, first)))  # and back
    assert given(other, first, outside) + given(other, second, outside) == wanted(other)


def test_a_new_job_where_a_moved_one_was_is_not_its_original(tmp_path: Path) -> None:
    job, other, outside = tmp_path / "job", tmp_path / "far" / "job", tmp_path / "outside"
    job.mkdir()
    outside.mkdir()
    for number in range(4):
        arrive(job, number)
    first, second = (one.format(outside) for one in STORES)
    run_alone(bind(file_of(job, first)), lambda batch: batch < 2)
    shutil.copytree(job, other)
    shutil.rmtree(job / "checkpoint")
    run_alone(bind(file_of(job, "discard: true")))
    run_alone(bind(file_of(other, second)))
    one, two = given(other, first, outside), given(other, second, outside)
    assert one and two and one + two == wanted(other)


def beside(folder: Path, results: str) -> JoinFile:
    """The job with a checkpoint that lies beside its original."""
    text = TEXT.replace("checkpoint: checkpoint", "checkpoint: checkpoint2").format(results=results)
    return parse(text, base=folder)


def writer(file: JoinFile) -> bytes | None:
    """What a store says of who writes there; the writer of before notices if it changes."""
    return store_spec(file).open().head(store_job(file)) if file.results.store else None


@pytest.mark.parametrize("where", [STORES, FOLDERS, FILES], ids=["store", "parquet", "jsonl"])
def test_a_copy_of_a_checkpoint_beside_it_leaves_the_results_of_its_original(where: list[str], tmp_path: Path) -> None:
    for number in range(4):
        arrive(tmp_path, number)
    first, second = (one.format(tmp_path) for one in where)
    original, copy = file_of(tmp_path, first), beside(tmp_path, second)
    place = "batch.mid_commit" if where is FILES else "batch.after_commit"
    with failing_at(place, 3), pytest.raises(FailpointError):
        run_alone(bind(original))
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "checkpoint2")
    run_alone(bind(original))
    before, wrote = given(tmp_path, first, tmp_path), writer(original)
    assert before == wanted(tmp_path)
    for _ in range(2):
        run_alone(bind(copy))
        assert given(tmp_path, first, tmp_path) == before and writer(original) == wrote
        assert given(tmp_path, second, tmp_path)
    arrive(tmp_path, 4)
    run_alone(bind(original))
    run_alone(bind(copy))
    assert given(tmp_path, first, tmp_path) == wanted(tmp_path), "both go on, each with its own"


def test_what_a_copys_original_has_in_a_store_on_the_network_is_not_the_copys(tmp_path: Path) -> None:
    job, other = tmp_path / "job", tmp_path / "other"
    (job / "checkpoint").mkdir(parents=True)
    (job / "checkpoint" / "job.json").write_text('{"id": "7"}')
    there = _Kept("cassandra", {"hosts": "127.0.0.1"}, "pairs")
    shutil.copytree(job, other)
    assert there.now(str(job / "checkpoint"), other / "checkpoint") == ()
    shutil.rmtree(job)
    assert there.now(str(job / "checkpoint"), other / "checkpoint") == (there,), "it was moved"


def test_groups_that_have_not_changed_since_are_said_to_be_where_they_are(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    job, other, outside = tmp_path / "job", tmp_path / "far" / "off" / "job", tmp_path / "outside"
    for folder in (job, outside, other.parent):
        folder.mkdir(parents=True)
    arrive(job, 0)
    arrive(job, 1)
    one, two = (TEXT.replace(PAIRS, GROUPS).format(results=f"store: sqlite, path: {outside}/{n}.db") for n in "ab")
    run_alone(bind(parse(one, base=job)))
    job.rename(other)
    run_alone(bind(parse(two, base=other)))
    (said,) = [record.message for record in caplog.records if "go to sqlite" in record.message]
    assert said.endswith(f"are in sqlite {outside}/a.db as join"), "and not in one beside the job's folder"
