"""Reading relations anew: what becomes a version, what does not, and what is told of it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.cli.commands import app
from streamjoin.errors import InputError, StateError
from streamjoin.relations.history import READING_US_MAX, USES_KEPT, History, Look, Reading, versions_known
from streamjoin.relations.versions import Versions
from streamjoin.sources.relation import Relation
from streamjoin.spark.refresh import Refreshing
from streamjoin.spark.relations import told
from streamjoin.spec import relations as spec_relations
from streamjoin.spec.job import Job
from streamjoin.spec.joinfile import load, parse
from streamjoin.spec.prepare import bind
from streamjoin.spec.relations import read_relations
from tests.servers.process import comes_true

pytestmark = pytest.mark.slow

TEXT = """\
streams: {a: {source: parquet, path: a, time: ts}}
relations: {rates: {source: SOURCE, path: rates, refresh: 10min}}
query: SELECT ONLINE a.id, rates.said, VERSION(rates) FROM a LEFT JOIN rates ON a.k = rates.k
run: {checkpoint: checkpoint}
"""


def write(folder: Path, columns: dict[str, Any], name: str = "rates/rates.parquet") -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), folder / name)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A job that has read its relation once."""
    write(tmp_path, {"ts": [0], "id": [1], "k": [1]}, "a/a.parquet")
    write(tmp_path, {"k": [1, 2], "said": [1, 1]})
    (tmp_path / "join.yaml").write_text(TEXT.replace("SOURCE", "parquet"))
    return started(tmp_path)


def started(folder: Path) -> Job:
    job = bind(load(folder / "join.yaml")).job()
    read_relations(job)
    return job


def now_us() -> int:
    return time.time_ns() // 1_000


def refreshing(job: Job, clock: Callable[[], float] = lambda: 0.0) -> Refreshing:
    return Refreshing(job, {"rates": told(Versions(job.tables, "rates").load(1))}, clock)


def test_a_changed_relation_becomes_a_version_and_one_that_has_not_changed_does_not(job: Job, tmp_path: Path) -> None:
    looking = refreshing(job)
    looking.refresh("rates")
    assert looking.known["rates"]["version"] == 1 and looking.known["rates"]["refreshes"] == 0
    write(tmp_path, {"more": ["x"] * 3, "k": [1, 2, 3], "said": [2] * 3})
    looking.refresh("rates")
    known = looking.known["rates"]
    assert (known["version"], known["rows"], known["refreshes"], known["problem"]) == (2, 3, 1, None)
    assert known["reading_rows"] is None
    assert [(one["version"], one["state"]) for one in versions_known(job.tables, "rates")] == [(2, "next"), (1, "kept")]


def gone(folder: Path) -> None:
    (folder / "rates/rates.parquet").unlink()
    (folder / "rates").rmdir()


def emptied(folder: Path) -> None:
    (folder / "rates/rates.parquet").unlink()


def of_another_type(folder: Path) -> None:
    write(folder, {"k": ["1"], "said": [2]})


def without_a_column(folder: Path) -> None:
    write(folder, {"k": [1], "told": [2]})


def damaged(folder: Path) -> None:
    (folder / "rates/rates.parquet").write_bytes(b"PAR1 and no more")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (gone, "rates does not exist"),
        (emptied, "rates has no files any more"),
        (of_another_type, 'its column "k" is string now, and was int64; give it that type again, or start'),
        (without_a_column, 'it has no column "said" any more; it has k, told'),
        (damaged, "rates.parquet"),
    ],
)
def test_what_cannot_be_read_leaves_the_old_version_and_is_counted_and_told(
    change: Callable[[Path], None], problem: str, job: Job, tmp_path: Path
) -> None:
    change(tmp_path)
    looking = refreshing(job)
    looking.refresh("rates")
    looking.refresh("rates")
    known = looking.known["rates"]
    assert problem in known["problem"] and known["refresh_failures"] == 2
    assert Versions(job.tables, "rates").numbers() == [1]
    assert not list((job.tables / "rates").glob(".*"))
    write(tmp_path, {"k": [1], "said": [2]})
    looking.refresh("rates")
    assert known["problem"] is None and known["refresh_failures"] == 2 and known["version"] == 2


def test_records_none_of_which_can_be_read_are_no_version(job: Job, tmp_path: Path) -> None:
    (tmp_path / "join.yaml").write_text(TEXT.replace("SOURCE", "csv").replace("checkpoint: c", "checkpoint: d"))
    gone(tmp_path)
    (tmp_path / "rates").mkdir()
    (tmp_path / "rates/rates.csv").write_text("k,said\n1,1\n")
    job = started(tmp_path)
    (tmp_path / "rates/rates.csv").write_text("k,said\nx,1\ny,2\n")
    looking = refreshing(job)
    looking.refresh("rates")
    assert looking.known["rates"]["problem"] == "none of its 2 records can be read"
    (tmp_path / "rates/rates.csv").write_text("k,said\n")
    looking.refresh("rates")
    assert looking.known["rates"]["version"] == 2 and looking.known["rates"]["rows"] == 0


def test_it_is_looked_at_when_it_is_due_and_when_somebody_asks(job: Job) -> None:
    now = [0.0]
    looking = refreshing(job, lambda: now[0])
    assert not looking.is_due("rates")
    now[0] = 600.0
    assert looking.is_due("rates")
    looking.refresh("rates")
    assert not looking.is_due("rates")
    History(job.tables, "rates").ask()
    assert looking.is_due("rates") and not looking.is_due("rates")


def test_a_job_that_stops_gives_up_the_version_that_it_reads(job: Job, tmp_path: Path) -> None:
    write(tmp_path, {"k": [1], "said": [2]})
    looking = refreshing(job)
    looking.stop()
    looking.refresh("rates")
    assert Versions(job.tables, "rates").numbers() == [1] and looking.known["rates"]["refresh_failures"] == 0


def test_what_somebody_asked_for_is_read_by_the_next_job_where_one_stops_meanwhile(job: Job, tmp_path: Path) -> None:
    write(tmp_path, {"k": [1], "said": [2]})
    History(job.tables, "rates").ask()
    looking = refreshing(job)
    assert looking.is_due("rates")
    looking.stop()
    looking.refresh("rates")
    assert Versions(job.tables, "rates").numbers() == [1]
    looking = refreshing(job)  # a database would not be read at a start, as it was a while ago
    assert looking.is_due("rates") and not looking.is_due("rates")
    looking.refresh("rates")
    assert Versions(job.tables, "rates").numbers() == [1, 2]
    assert not refreshing(job).is_due("rates"), "it is answered"


def test_what_somebody_asked_for_that_cannot_be_read_is_answered_as_well(job: Job, tmp_path: Path) -> None:
    damaged(tmp_path)
    History(job.tables, "rates").ask()
    looking = refreshing(job)
    assert looking.is_due("rates")
    looking.refresh("rates")
    assert looking.known["rates"]["refresh_failures"] == 1 and not refreshing(job).is_due("rates")


def test_who_asks_while_a_relation_is_read_is_not_answered_by_that(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history, looking = History(job.tables, "rates"), refreshing(job)
    history.ask()
    assert looking.is_due("rates")
    monkeypatch.setattr("streamjoin.spark.refresh.refreshed", lambda *_: history.ask())
    looking.refresh("rates")
    assert looking.is_due("rates")


@pytest.mark.parametrize("fails", ["fsync", "replace"])
def test_what_is_known_of_versions_outlasts_a_full_disk(fails: str, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    history, version = History(job.tables, "rates"), Versions(job.tables, "rates").load(1)
    history.used(version, 4, 70)
    history.looked(Look(70, 3, 2, "why"))
    names = {path.name for path in history.folder.iterdir()}
    (history.folder / ".uses.jsonl.0123456789ab").write_text("by one that was killed")

    def is_full(*_: object) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, fails, is_full)
        for write in (lambda: history.used(replace(version, number=2), 5, 80), lambda: history.looked(Look(80))):
            with pytest.raises(OSError, match="No space"):
                write()
    assert [use.version for use in history.uses()] == [1] and history.look() == Look(70, 3, 2, "why")
    assert {path.name for path in history.folder.iterdir()} == names


def test_reading_beside_a_job_rests_three_quarters_of_the_time_and_a_stop_ends_a_rest(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, rests = 100.0, []
    looking = refreshing(job, lambda: now_s)

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            nonlocal now_s
            assert timeout is not None
            rests.append(timeout)
            now_s += timeout
            return len(rests) == 4

    def blocks(*_: object) -> Iterator[tuple[pa.RecordBatch, int]]:
        nonlocal now_s
        for seconds in (0.25, 1.0, 60.0, 0.5, 0.5):  # what each block takes
            now_s += seconds
            yield pa.RecordBatch.from_pydict({"k": [1], "said": [2]}), 0

    monkeypatch.setattr(Relation, "blocks", blocks)
    looking._stop = Stop()
    now_s += 1_000.0  # since the job began, which is no work
    write(tmp_path, {"k": [1], "said": [2], "more": [0]})
    looking.refresh("rates")
    assert rests == [0.75, 3.0, 5.0, 1.5]
    assert Versions(job.tables, "rates").numbers() == [1] and looking.known["rates"]["refresh_failures"] == 0


@pytest.mark.skipif(sys.platform != "linux", reason="others have no priorities of single threads")
def test_the_thread_that_reads_beside_a_job_goes_last_and_no_other_does(job: Job, tmp_path: Path) -> None:
    seen: list[int] = []

    class Looking(Refreshing):
        def refresh(self, name: str) -> None:
            seen.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
            self.stop()

    looking = Looking(job, {"rates": told(Versions(job.tables, "rates").load(1))}, iter([0.0, *[1e9] * 9]).__next__)
    thread = threading.Thread(target=looking.run)
    before = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    thread.start()
    thread.join(30)
    assert seen == [19]
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == before


def test_how_far_a_version_is_is_told_while_it_is_read_and_not_after(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history, looking = History(job.tables, "rates"), refreshing(job)
    seen: list[tuple[Reading | None, int]] = []
    monkeypatch.setattr(spec_relations, "_NOTED_EVERY_US", 0)

    def blocks(*_: object) -> Iterator[tuple[pa.RecordBatch, int]]:
        for rows in (2, 3):
            yield pa.RecordBatch.from_pydict({"k": list(range(rows)), "said": [2] * rows}), 0
            seen.append((history.reading(now_us()), looking.known["rates"]["reading_rows"]))

    write(tmp_path, {"k": [1], "said": [2]})
    monkeypatch.setattr(Relation, "blocks", blocks)
    looking.refresh("rates")
    assert [(found.version, found.rows, told) for found, told in seen if found] == [(2, 2, 2), (2, 5, 5)]
    assert history.reading(now_us()) is None and looking.known["rates"]["reading_rows"] is None
    monkeypatch.setattr(Versions, "read", lambda self, blocks, *_: [*blocks, 1 / 0])
    write(tmp_path, {"k": [1], "said": [3], "more": [0]})
    looking.refresh("rates")
    assert len(seen) == 4 and "ZeroDivisionError" in looking.known["rates"]["problem"]
    assert history.reading(now_us()) is None


def test_what_somebody_was_reading_who_died_is_told_no_more(job: Job, tmp_path: Path) -> None:
    history = History(job.tables, "rates")
    history.reads(Reading(2, 70, 0))
    assert history.reading(READING_US_MAX - 1) == Reading(2, 70, 0) and history.reading(READING_US_MAX) is None
    (history.folder / "reading.json").write_text('{"version": 2')
    assert history.reading(0) is None
    history.reads(Reading(2, 70, 0))
    started(tmp_path)
    assert history.reading(0) is None


def test_uses_are_noted_once_and_as_many_as_are_kept(job: Job) -> None:
    history, version = History(job.tables, "rates"), Versions(job.tables, "rates").load(1)
    history.used(version, 4, 70)
    history.used(version, 5, 80)  # it was repeated
    (use,) = history.uses()
    assert (use.version, use.batch, use.used_us, use.rows) == (1, 4, 70, 2)
    path = history.folder / "uses.jsonl"
    path.write_text("".join(path.read_text().replace('"version": 1', f'"version": {n}') for n in range(2, 1_100)))
    history.used(version, 4, 70)
    assert len(history.uses()) == USES_KEPT
    path.write_text(path.read_text() + '{"version": 5000, "bat')
    assert len(history.uses()) == USES_KEPT


def test_commands_list_versions_and_ask_for_a_look(
    job: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> str:
        app(["relations", *words], exit_on_error=False, result_action="return_value")
        return "".join(capsys.readouterr())

    file = str(tmp_path / "join.yaml")
    assert "rates" in (shown := run("versions", file)) and "next" in shown
    emptied(tmp_path)
    refreshing(job).refresh("rates")
    assert "rates stays as it is" in (shown := run("versions", file)) and "1 look failed so far" in shown
    assert "reading" not in shown
    History(job.tables, "rates").reads(Reading(3, 1_200_000, now_us()))
    assert "relation rates: reading version 3: 1,200,000 rows so far" in run("versions", file)
    run("refresh", file, "rates")
    assert History(job.tables, "rates").is_asked()
    with pytest.raises(InputError, match='there is no relation "rate"; relations are rates'):
        run("versions", file, "rate")
    with pytest.raises(InputError, match="no job has read rates yet"):
        run("refresh", file, "rates", "--set", "run.checkpoint=other")
    with pytest.raises(StateError, match="no job has read relation other here"):
        History(job.tables, "other").ask()


def test_a_span_that_is_too_short_or_none_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"k": [1], "said": [1]})
    for written, says in {"10ms": "once a second at most", "0s": "once a second at most", "soon": "soon"}.items():
        with pytest.raises(InputError, match=says) as refused:
            parse(TEXT.replace("10min", written).replace("SOURCE", "parquet"), base=tmp_path)
        assert refused.value.field == "relations.rates.refresh"


_READS = """
import sys
from pathlib import Path
from streamjoin.spec.joinfile import load
from streamjoin.spec.prepare import bind
from streamjoin.spec.relations import read_relations
from tests.servers.process import comes_true
read_relations(bind(load(Path(sys.argv[1]))).job())
"""


@pytest.mark.parametrize(("place", "there"), [("relation.before_version", [1]), ("relation.after_version", [1, 2])])
def test_a_kill_leaves_whole_versions_only(place: str, there: list[int], job: Job, tmp_path: Path) -> None:
    write(tmp_path, {"k": [1, 2], "said": [2, 2]})
    environment = {**os.environ, "STREAMJOIN_FAILPOINTS": f"{place}:kill"}
    killed = subprocess.run([sys.executable, "-c", _READS, str(tmp_path / "join.yaml")], env=environment, timeout=60)
    assert killed.returncode != 0
    versions = Versions(job.tables, "rates")
    assert versions.numbers() == there and [versions.load(number).rows for number in there] == [2] * len(there)
    started(tmp_path)
    assert versions.numbers() == [1, 2] and not list(versions.folder.glob(".*"))


def test_a_disk_that_is_full_does_not_end_the_looks(job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked, failures = History.looked, iter(["no space left", "still none"])

    def full(self: History, look: Any) -> None:
        if (problem := next(failures, None)) is not None:
            raise OSError(problem)
        looked(self, look)

    monkeypatch.setattr(History, "looked", full)
    monkeypatch.setattr("streamjoin.spark.refresh.POLL_S", 0.01)
    monkeypatch.setattr("streamjoin.spark.refresh._REST_S_MAX", 0.0)  # of a clock that leaps it would be long
    seconds = iter(range(0, 10**9, 1_000))
    looking = refreshing(job, lambda: float(next(seconds)))
    write(tmp_path, {"k": [1], "said": [2]})
    thread = threading.Thread(target=looking.run, daemon=True)
    thread.start()
    assert comes_true(lambda: History(job.tables, "rates").look().looked_us is not None, 60)
    looking.stop()
    thread.join(30)
    assert not thread.is_alive() and next(failures, None) is None
    assert looking.known["rates"]["reading_rows"] is None and looking.known["rates"]["problem"] is None


def test_a_version_that_is_removed_meanwhile_is_not_told_as_lost(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = Versions.numbers

    def listed_before(self: Versions) -> list[int]:
        monkeypatch.setattr(Versions, "numbers", numbers)
        return [1, 7]

    monkeypatch.setattr(Versions, "numbers", listed_before)
    assert [one["version"] for one in versions_known(job.tables, "rates")] == [1]
    (job.tables / "rates" / "8").mkdir()  # and one that is there without what it is made of is lost
    with pytest.raises(StateError):
        versions_known(job.tables, "rates")
