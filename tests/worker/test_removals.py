"""Removing a job does not hold up the looks at other jobs, however long it takes."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, select

from backend.catalog.database import Catalog
from backend.catalog.models import Job, JobRevision
from backend.settings import Settings
from streamjoin.results.stores.spec import StoreSpec
from streamjoin.results.stores.sqlite import SqliteStore
from streamjoin.results.stores.store import StoreDownError
from tests.servers.process import comes_true
from worker import removal
from worker.decide import Deed
from worker.removals import AT_ONCE

from .jobs import SPEC, add_job, job_of
from .test_machines import GB, add_machine
from .test_reconcile import Desk

WAITS_S = 30.0


class SlowStore:
    """Drops results once `free` is set; `begun` lists the jobs it has started with."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.begun: list[str] = []

    def drop(self, settings: Settings, job: Job) -> None:
        self.begun.append(job.id)
        self.free.wait(WAITS_S)


@pytest.fixture
def desk(settings: Settings, catalog: Catalog) -> Desk:
    return Desk(settings, catalog)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, desk: Desk) -> Iterator[SlowStore]:
    """The only job there is."""
    made = SlowStore()
    monkeypatch.setattr(removal, "drop_results", made.drop)
    yield made
    made.free.set()
    assert comes_true(lambda: not len(desk.reconciler.removals), WAITS_S)


def jobs_left(catalog: Catalog) -> int:
    with catalog.read() as session:
        return session.scalar(select(func.count()).select_from(Job)) or 0


def test_attack_a_removal_that_takes_long_holds_up_no_other_job(desk: Desk, store: SlowStore) -> None:
    gone = add_job(desk.catalog, wanted="deleted")
    assert desk.look(wait=False) == {gone: Deed.REMOVE}
    waits = add_job(desk.catalog, wanted="running")
    assert desk.look(wait=False) == {waits: Deed.LAUNCH}
    assert job_of(desk.catalog, gone).wanted == "deleted", "it is not gone yet"
    store.free.set()
    assert comes_true(lambda: jobs_left(desk.catalog) == 1, WAITS_S)
    assert store.begun == [gone]


def test_attack_few_jobs_are_removed_at_once_and_each_of_them_once(desk: Desk, store: SlowStore) -> None:
    jobs = [add_job(desk.catalog, wanted="deleted") for _ in range(AT_ONCE + 3)]
    assert len(desk.look(wait=False)) == len(jobs)
    assert comes_true(lambda: len(store.begun) == AT_ONCE, WAITS_S)
    assert [desk.look(1, wait=False) for _ in range(3)] == [{}] * 3
    assert len(store.begun) == AT_ONCE
    assert sum(thread.name == "removal" for thread in threading.enumerate()) == AT_ONCE
    store.free.set()
    assert comes_true(lambda: jobs_left(desk.catalog) == 0, WAITS_S)
    assert sorted(store.begun) == sorted(jobs)


def test_a_removal_that_fails_is_told_and_asked_for_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    job = add_job(desk.catalog, wanted="deleted")
    with monkeypatch.context() as patched:
        patched.setattr(removal, "drop_state", lambda *_: 1 / 0)
        assert desk.look() == {job: Deed.REMOVE}
    assert f"job {job} could not be removed, and will be later" in caplog.text
    assert desk.look() == {job: Deed.REMOVE}
    assert jobs_left(desk.catalog) == 0


def test_what_two_reconcilers_remove_is_gone_once(
    settings: Settings, catalog: Catalog, desk: Desk, store: SlowStore, caplog: pytest.LogCaptureFixture
) -> None:
    other = Desk(settings, catalog)
    add_machine(catalog, "a", GB)
    job = add_job(catalog, wanted="deleted")
    for one in (desk, other):
        assert one.look(wait=False) == {job: Deed.REMOVE}
    assert comes_true(lambda: store.begun == [job, job], WAITS_S)
    store.free.set()
    assert comes_true(lambda: not len(other.reconciler.removals) and not len(desk.reconciler.removals), WAITS_S)
    assert jobs_left(catalog) == 0
    assert len(desk.sent + other.sent) == 1
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    other.reconciler.removals.ask(job)  # by a look that read the job before
    assert comes_true(lambda: not len(other.reconciler.removals), WAITS_S)
    assert store.begun == [job, job]


def test_a_job_is_gone_also_where_no_other_machine_can_be_told(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    add_machine(desk.catalog, "a", GB)
    job = add_job(desk.catalog, wanted="deleted")
    desk.down = True
    desk.look()
    assert jobs_left(desk.catalog) == 0
    assert f"other machines are not told that job {job} is gone" in caplog.text


def test_a_reason_that_stays_is_written_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    job = add_job(desk.catalog, wanted="deleted")

    def fails(*_: object) -> None:
        raise StoreDownError("it does not answer")

    monkeypatch.setattr(removal, "drop_results", fails)
    desk.look()
    assert job_of(desk.catalog, job).reason == "its results are still to be removed: it does not answer"
    monkeypatch.setattr(desk.catalog, "begin", fails)
    assert not removal.remove(desk.settings, desk.catalog, job)


def test_results_in_stores_that_the_job_had_before_go_too(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `results.store` was changed with `start_anew`; what others have there stays."""
    given = {"cassandra_hosts": ("127.0.0.1",), "hbase_host": "127.0.0.1"}
    desk.reconciler.settings = desk.settings.model_copy(update=given)
    job = add_job(desk.catalog, wanted="deleted", spec=SPEC.with_store("hbase"), incarnation=1, generation=2)
    with desk.catalog.begin() as session:
        for version, kind in enumerate(("sqlite", "cassandra", "hbase")):
            session.add(JobRevision(job_id=job, version=version, spec=SPEC.with_store(kind), streams={}))
        session.add(JobRevision(job_id=job, version=9, spec=SPEC, streams={}))
    monkeypatch.setattr(StoreSpec, "open", lambda spec: SqliteStore(tmp_path / f"{spec.kind}.db"))
    for kind in ("cassandra", "hbase"):
        store = SqliteStore(tmp_path / f"{kind}.db")
        store.prepare()
        for name in (job, f"{job}-1", "job_other"):
            store.swap_head(name, None, b"head")
        store.close()
    drop = SqliteStore.drop
    down = [tmp_path / "cassandra.db"]

    def drops(self: SqliteStore, name: str) -> None:
        if self.path in down:
            raise StoreDownError("it does not answer")
        drop(self, name)

    monkeypatch.setattr(SqliteStore, "drop", drops)
    desk.look()
    assert job_of(desk.catalog, job).reason == "its results are still to be removed: it does not answer"
    down.clear()
    desk.look()
    assert jobs_left(desk.catalog) == 0
    assert [SqliteStore(tmp_path / f"{kind}.db").jobs() for kind in ("cassandra", "hbase")] == [["job_other"]] * 2


def test_a_process_ends_whatever_is_being_removed() -> None:
    program = (
        "import threading; from worker.removals import Removals; begun = threading.Event(); "
        "removals = Removals(lambda _: (begun.set(), threading.Event().wait())); removals.ask('a'); begun.wait()"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
