"""A place of results has those of one query of one checkpoint, whoever starts anew, goes on, or comes at once."""

from __future__ import annotations

import json
import shutil
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from streamjoin.cli.planning import validate
from streamjoin.errors import InputError
from streamjoin.results import owners
from streamjoin.spark.checkpoint import opened
from streamjoin.spec.joinfile import parse
from streamjoin.spec.owners import check_owners, owned_by_spark, owned_places
from streamjoin.spec.prepare import Bound, bind
from tests.conformance.alone import run_alone
from tests.duck import rows

QUERY = "SELECT ONLINE a.id, a.v, b.w FROM a JOIN b ON a.id = b.id WITHIN 10 SECONDS"
PLACES = {"parquet": "out", "jsonl": "out.jsonl"}
kinds = pytest.mark.parametrize("kind", PLACES)


@pytest.fixture(autouse=True)
def streams(tmp_path: Path) -> None:
    for name, value in (("a", "v"), ("b", "w")):
        (tmp_path / name).mkdir()
        for number in range(2):
            lines = "".join(f"2024-01-01 00:00:0{number},{number}{k},{k}\n" for k in range(1 + number))
            (tmp_path / name / f"{number}.csv").write_text(f"ts,id,{value}\n{lines}")


def text(results: str, checkpoint: str = "state", *, query: str = f"query: {QUERY}", run: str = "") -> str:
    own = f"results: {{{results}}}\n" if results else ""
    return (
        "streams:\n"
        "  a: {source: csv, path: a, time: ts, delay: 1s, schema: {ts: timestamp, id: int64, v: int64}}\n"
        "  b: {source: csv, path: b, time: ts, delay: 1s, schema: {ts: timestamp, id: int64, w: int64}}\n"
        f"{query}\n{own}run: {{checkpoint: {checkpoint}, slots: 2{run}}}\n"
    )


def bound(folder: Path, *given: str, **named: str) -> Bound:
    return bind(parse(text(*given, **named), base=folder))


def start(one: Bound) -> None:
    """What `run` does, without Spark."""
    check_owners(one)
    run_alone(one)


def results(folder: Path, place: str) -> list[int]:
    path = folder / place
    if path.suffix == ".jsonl":
        return sorted(json.loads(line)["id"] for line in path.read_text().splitlines())
    return sorted(row[0] for row in rows(f"SELECT id FROM '{path}/*.parquet'"))


@kinds
def test_a_checkpoint_that_begins_anew_over_its_earlier_results_is_refused(kind: str, tmp_path: Path) -> None:
    to = f"{kind}: {PLACES[kind]}"
    start(bound(tmp_path, to, run=", files_per_batch: 1"))
    assert results(tmp_path, PLACES[kind]) == [0, 10, 11]
    shutil.rmtree(tmp_path / "state")
    one = bound(tmp_path, to)
    for refused in (lambda: check_owners(one), lambda: run_alone(one)):
        with pytest.raises(InputError, match=rf"{PLACES[kind]} has results of the checkpoint that was in ") as told:
            refused()
        assert told.value.field == f"results.{kind}" and "remove that f" in told.value.message
    (tmp_path / "join.yaml").write_text(text(to))
    with pytest.raises(InputError, match="has results of the checkpoint"):
        validate(tmp_path / "join.yaml")
    assert results(tmp_path, PLACES[kind]) == [0, 10, 11]
    # The way out: the folder as a whole, or what can be seen of it.
    if kind == "parquet":
        shutil.rmtree(tmp_path / "out")
    else:
        (tmp_path / "out.jsonl").unlink()
    shutil.rmtree(tmp_path / "state", ignore_errors=True)
    start(bound(tmp_path, to))
    assert results(tmp_path, PLACES[kind]) == [0, 10, 11]


@kinds
def test_two_checkpoints_do_not_share_a_place(kind: str, tmp_path: Path) -> None:
    to = f"{kind}: {PLACES[kind]}"
    start(bound(tmp_path, to, "one"))
    with pytest.raises(InputError, match=rf"has results of another checkpoint, {tmp_path}/one; remove"):
        start(bound(tmp_path, to, "two"))
    start(bound(tmp_path, to, "one"))  # which goes on
    assert results(tmp_path, PLACES[kind]) == [0, 10, 11]


@kinds
def test_what_somebody_else_left_in_a_place_is_not_touched(kind: str, tmp_path: Path) -> None:
    foreign = tmp_path / "out.jsonl" if kind == "jsonl" else tmp_path / "out" / "theirs.parquet"
    foreign.parent.mkdir(exist_ok=True)
    foreign.write_text('{"id": 1}\n')
    for _ in range(2):  # also by a checkpoint that the first attempt made
        with pytest.raises(InputError, match=r"has something in it already.* nothing says that it is of checkpoint"):
            run_alone(bound(tmp_path, f"{kind}: {PLACES[kind]}"))
    assert foreign.read_text() == '{"id": 1}\n'
    # A checkpoint that has run with results elsewhere does not take it for its own either.
    start(bound(tmp_path, f"{kind}: own.{kind}", "used"))
    with pytest.raises(InputError, match="nothing says"):
        start(bound(tmp_path, f"{kind}: {PLACES[kind]}", "used"))
    foreign.unlink()
    start(bound(tmp_path, f"{kind}: {PLACES[kind]}", "used"))  # nothing is in it


def unmark(folder: Path) -> None:
    """As it was before there were marks."""
    for found in (*folder.rglob(".*owner.json"), *folder.rglob("state*/results.json")):
        found.unlink()


def more(folder: Path) -> None:
    for name, value in (("a", "v"), ("b", "w")):
        (folder / name / "2.csv").write_text(f"ts,id,{value}\n2024-01-01 00:00:02,20,0\n")


@kinds
def test_results_from_before_there_were_marks_are_adopted_by_their_checkpoint_alone(kind: str, tmp_path: Path) -> None:
    to = f"{kind}: {PLACES[kind]}"
    start(bound(tmp_path, to, run=", files_per_batch: 1"))
    unmark(tmp_path)
    with pytest.raises(InputError, match="nothing says"):
        start(bound(tmp_path, to, "other"))
    more(tmp_path)
    start(bound(tmp_path, to))
    assert results(tmp_path, PLACES[kind]) == [0, 10, 11, 20]
    with pytest.raises(InputError, match="another checkpoint"):
        start(bound(tmp_path, to, "third"))


@kinds
def test_a_checkpoint_with_fewer_batches_than_a_place_without_a_mark_does_not_adopt_it(
    kind: str, tmp_path: Path
) -> None:
    to = f"{kind}: {PLACES[kind]}"
    start(bound(tmp_path, to, run=", files_per_batch: 1"))
    start(bound(tmp_path, "discard: true", "state2"))
    unmark(tmp_path)
    with pytest.raises(InputError, match="nothing says"):
        start(bound(tmp_path, to, "state2"))


@kinds
@pytest.mark.parametrize("marked", [True, False], ids=["with its mark", "without"])
def test_a_job_goes_on_after_its_checkpoint_and_its_place_moved(kind: str, marked: bool, tmp_path: Path) -> None:
    start(bound(tmp_path, f"{kind}: {PLACES[kind]}"))
    (tmp_path / "far").mkdir()
    (tmp_path / "state").rename(tmp_path / "far" / "state")
    (tmp_path / PLACES[kind]).rename(tmp_path / "far" / PLACES[kind])
    if kind == "jsonl" and marked:
        (tmp_path / ".out.jsonl.owner.json").rename(tmp_path / "far" / ".out.jsonl.owner.json")
    if kind == "parquet" and not marked:
        (tmp_path / "far" / "out" / ".owner.json").unlink()
    more(tmp_path)
    moved = bound(tmp_path, f"{kind}: far/{PLACES[kind]}", "far/state")
    start(moved)
    assert results(tmp_path, f"far/{PLACES[kind]}") == [0, 10, 11, 20]
    with pytest.raises(InputError, match=r"another checkpoint, .*/far/state"):
        start(bound(tmp_path, f"{kind}: far/{PLACES[kind]}", "new"))


def test_results_that_did_not_move_are_not_confused_with_others(tmp_path: Path) -> None:
    start(bound(tmp_path, "parquet: out"))
    start(bound(tmp_path, "parquet: theirs", "other"))
    (tmp_path / "theirs" / ".owner.json").unlink()
    with pytest.raises(InputError, match="nothing says"):
        start(bound(tmp_path, "parquet: theirs"))


@kinds
def test_two_at_once_cannot_write_to_one_place(kind: str, tmp_path: Path) -> None:
    one, two = (bound(tmp_path, f"{kind}: {PLACES[kind]}", name) for name in ("one", "two"))
    check_owners(two)
    writes = rf"another job writes its results to .*, with checkpoint {tmp_path}/one;"
    held = owned_places(one.file.checkpoint, [one.plan], {"": one.sink()})
    with opened(one.job()), held, pytest.raises(InputError, match=writes):
        run_alone(two)
    assert not list(tmp_path.rglob("*.parquet"))


@kinds
def test_whoever_wrote_between_a_look_and_the_lock_is_seen(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = (bound(tmp_path, f"{kind}: {PLACES[kind]}", name) for name in ("one", "two"))
    lock = owners._locked

    def locked(place: owners.Place, claim: owners.Claim) -> int:
        monkeypatch.setattr(owners, "_locked", lock)
        run_alone(one)
        return lock(place, claim)

    monkeypatch.setattr(owners, "_locked", locked)
    with pytest.raises(InputError, match=rf"has results of another checkpoint, {tmp_path}/one; remove"):
        start(two)
    assert results(tmp_path, PLACES[kind]) == [0, 10, 11]


def test_a_job_that_goes_on_elsewhere_does_not_wait_for_its_driver_here(tmp_path: Path) -> None:
    one = bound(tmp_path, "parquet: out")
    start(one)

    def held(*, is_fenced: bool) -> AbstractContextManager[None]:
        return owned_places(tmp_path / "state", [one.plan], {"": one.sink()}, is_fenced=is_fenced)

    with held(is_fenced=False):
        with pytest.raises(InputError, match="another job writes"), held(is_fenced=False):
            pass
        with held(is_fenced=True):  # its states have an owner, and that driver notices
            pass


def test_a_link_to_a_file_of_lines_is_that_file(tmp_path: Path) -> None:
    start(bound(tmp_path, "jsonl: out.jsonl", "one"))
    (tmp_path / "link.jsonl").symlink_to("out.jsonl")
    with pytest.raises(InputError, match="another checkpoint"):
        start(bound(tmp_path, "jsonl: link.jsonl", "two"))


def test_a_mark_that_a_power_cut_left_empty_is_none(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".owner.json").write_text("")
    start(bound(tmp_path, "parquet: out"))
    (tmp_path / "out" / ".owner.json").write_text('{"checkpoint": "')
    with pytest.raises(InputError, match="nothing says"):
        start(bound(tmp_path, "parquet: out", "two"))
    start(bound(tmp_path, "parquet: out"))
    assert json.loads((tmp_path / "out" / ".owner.json").read_text())["folder"] == str(tmp_path / "state")


SECOND = QUERY.replace("10 SECONDS", "5 SECONDS")


def queries(**given: str) -> str:
    return "queries:\n" + "".join(f"  {name}: {{{fields}}}\n" for name, fields in given.items())


def asks(query: str, to: str, *more: str) -> str:
    return ", ".join((f'query: "{query}"', f"results: {{{to}}}", *more))


@kinds
def test_a_query_that_is_started_needs_a_place_of_its_own_and_a_stopped_one_keeps_its(
    kind: str, tmp_path: Path
) -> None:
    place = PLACES[kind]
    start(bound(tmp_path, f"{kind}: {place}"))
    more(tmp_path)
    # The only query gets a name, and another one beside it.
    both = queries(first=asks(QUERY, f"{kind}: {place}"), second=asks(SECOND, f"{kind}: two.{kind}"))
    start(bound(tmp_path, "", query=both))
    assert results(tmp_path, place) == [0, 10, 11, 20]
    ended = asks(QUERY, f"{kind}: {place}", "stopped: true")
    start(bound(tmp_path, "", query=queries(first=ended, second=asks(SECOND, f"{kind}: two.{kind}"))))
    third = asks(QUERY.replace("10 SECONDS", "4 SECONDS"), f"{kind}: {place}")
    with pytest.raises(InputError, match=r"results of another query of this checkpoint .query first") as told:
        start(bound(tmp_path, "", query=queries(second=asks(SECOND, f"{kind}: two.{kind}"), third=third)))
    assert told.value.field == f"queries.third.results.{kind}"
    assert results(tmp_path, place) == [0, 10, 11, 20]


def test_two_queries_do_not_swap_their_places(tmp_path: Path) -> None:
    def both(one: str, two: str) -> str:
        return queries(first=asks(QUERY, f"parquet: {one}"), second=asks(SECOND, f"parquet: {two}"))

    start(bound(tmp_path, "", query=both("one", "two")))
    start(bound(tmp_path, "", query=both("one", "two")))
    with pytest.raises(InputError, match="another query of this checkpoint"):
        start(bound(tmp_path, "", query=both("two", "one")))


def test_sparks_own_join_and_ours_do_not_share_a_folder(tmp_path: Path) -> None:
    start(bound(tmp_path, "parquet: out"))
    ours = bound(tmp_path, "parquet: out", run="}\noperator: {name: spark")
    with pytest.raises(InputError, match="has results of another checkpoint"):
        check_owners(ours)
    (tmp_path / "sparks" / "_spark_metadata").mkdir(parents=True)
    with pytest.raises(InputError, match="such as _spark_metadata, and nothing says"):
        start(bound(tmp_path, "parquet: sparks", "new"))


def test_sparks_own_join_goes_on_in_its_folder_and_begins_in_a_new_one(tmp_path: Path) -> None:
    spark = "}\noperator: {name: spark"
    mine = bound(tmp_path, "parquet: out", run=spark)
    with owned_by_spark(mine, tmp_path / "state"):
        (tmp_path / "out" / "_spark_metadata").mkdir()
        with pytest.raises(InputError, match="another job writes"), owned_by_spark(mine, tmp_path / "state"):
            pass
    with owned_by_spark(mine, tmp_path / "state"):
        pass
    with pytest.raises(InputError, match="another checkpoint"):
        check_owners(bound(tmp_path, "parquet: out", "two", run=spark))
    (tmp_path / "out" / ".owner.json").unlink()
    (tmp_path / "state" / "spark" / "offsets").mkdir()
    (tmp_path / "state" / "spark" / "offsets" / "0").touch()
    check_owners(mine)  # from before there were marks
