"""What removed jobs left on a machine goes even if nobody could tell the machine, and nothing else goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import SQLAlchemyError

from backend.catalog.database import Catalog
from backend.catalog.events import record
from backend.settings import Settings
from worker import sweep
from worker.machines import Machines

from .jobs import add_job
from .test_machines import GB, add_machine, open_below
from .test_reconcile import Desk

UNKNOWN = "job_01jd3xv4e2q8r5t9w1y7z0abcd"


def make(settings: Settings, name: str) -> Path:
    """A folder with a state."""
    folder = settings.job_folder(name)
    (folder / "checkpoint-0").mkdir(parents=True)
    return folder


def removed(settings: Settings, catalog: Catalog) -> str:
    """A job that was removed by a machine with another data folder while this one was away."""
    job = add_job(catalog, wanted="deleted")
    other = settings.model_copy(update={"data": settings.data / "other"})
    desk = Desk(other, catalog)
    add_machine(catalog, "here", GB, silent_s=60)
    desk.look()
    assert desk.sent == []
    return job


@pytest.fixture
def machine(catalog: Catalog) -> Machines:
    return Machines(catalog, "here", "of here")


def test_what_a_job_left_goes_that_was_removed_while_the_machine_was_away(
    settings: Settings, catalog: Catalog, machine: Machines
) -> None:
    folder = make(settings, removed(settings, catalog))
    for _ in range(2):  # or another machine that shares the folder
        sweep.sweep(settings, machine)
        assert not folder.exists()
    assert open_below(settings.data) == [], "a fork must find no catalog open"


def test_attack_nothing_goes_of_which_the_catalog_does_not_say_so(
    settings: Settings, catalog: Catalog, machine: Machines
) -> None:
    """Folders of a known job, of a job that only another catalog or a backup knows, and of no job at all."""
    there = add_job(catalog)
    kept = [make(settings, name) for name in (there, UNKNOWN, "job_x", "notes")]
    with catalog.begin() as session:
        for name in (there, "job_x", "notes", "..", "", None):
            record(session, "job.removed", "", data={"job_id": name})
        record(session, "job.changed", "", data={"job_id": UNKNOWN})
    sweep.sweep(settings, machine)
    assert all(folder.is_dir() for folder in kept) and (settings.data / "catalog.db").exists()


def test_nothing_goes_while_the_catalog_does_not_answer(
    settings: Settings, catalog: Catalog, machine: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(settings, removed(settings, catalog))

    def fails(*_: object) -> Any:
        raise SQLAlchemyError("it does not answer")

    with monkeypatch.context() as down:
        down.setattr(catalog, "read", fails)
        sweep.sweep(settings, machine)
    assert folder.is_dir()
    sweep.sweep(settings, machine)
    assert not folder.exists()


def test_a_machine_without_jobs_has_nothing_to_sweep(settings: Settings, machine: Machines) -> None:
    sweep.sweep(settings, machine)
    assert not (settings.data / "jobs").exists()
