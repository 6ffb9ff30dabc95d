"""A job with state in a store of objects is started elsewhere while its driver lives: no row is lost or there twice."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import pytest

from streamjoin.errors import InputError, RunError
from streamjoin.failpoints import FailpointError
from streamjoin.spark import checkpoint
from streamjoin.spec.job import Job
from streamjoin.spec.joinfile import JoinFile, parse
from streamjoin.spec.prepare import bind
from tests.failing import failing_at
from tests.servers.objects import FolderRoot, folder_root

from .alone import run_alone
from .test_going_on import arrive
from .test_moved_results import TEXT, kept, wanted

STORE = "store: sqlite, path: kept.db, job: pairs, snapshot: {batches: 1}"
WAIT_S = 60


def file_on(folder: Path, host: str, files_per_batch: int = 1, seconds: int = 20) -> JoinFile:
    """The job on a host with a checkpoint of its own; more files in a batch stand in for more that have come."""
    text = TEXT.format(results=STORE).replace("checkpoint: checkpoint", f"checkpoint: {host}")
    text = text.replace("WITHIN 20", f"WITHIN {seconds}")
    return parse(text.replace("files_per_batch: 1", f"files_per_batch: {files_per_batch}"), base=folder)


class Living:
    """A driver in a thread, which does one batch, and one more each time it is asked to."""

    def __init__(self, file: JoinFile, root: FolderRoot) -> None:
        self.failure: BaseException | None = None
        self._go, self._idle = threading.Semaphore(1), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, args=(file, root), daemon=True)
        self._thread.start()
        self._wait()

    def _run(self, file: JoinFile, root: FolderRoot) -> None:
        try:
            run_alone(bind(file), self._before, root)
        except BaseException as failure:
            self.failure = failure
        finally:
            self._idle.release()

    def _before(self, batch: int) -> bool:
        if batch:
            self._idle.release()
        return self._go.acquire(timeout=WAIT_S)

    def _wait(self) -> None:
        assert self._idle.acquire(timeout=WAIT_S)

    def batch(self) -> None:
        """Do a batch, or fail."""
        self._go.release()
        self._wait()


@pytest.fixture
def place(tmp_path: Path) -> FolderRoot:
    """Four files of each stream have come, and nobody has begun."""
    for number in range(4):
        arrive(tmp_path, number)
    return folder_root(tmp_path / "store")


def test_a_batch_that_is_done_while_another_driver_starts_is_not_lost(
    place: FolderRoot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = Living(file_on(tmp_path, "one"), place)
    look = checkpoint._check_identity

    def meanwhile(job: Job) -> checkpoint.Held:
        monkeypatch.setattr(checkpoint, "_check_identity", look)
        first.batch()
        assert first.failure is None
        return look(job)

    monkeypatch.setattr(checkpoint, "_check_identity", meanwhile)
    second = file_on(tmp_path, "two", files_per_batch=2)
    with pytest.raises(RunError, match=r"^another driver went on with the state at \S+ while this one started"):
        run_alone(bind(second), None, place)
    first.batch()
    assert isinstance(first.failure, RunError) and "another driver has taken over" in str(first.failure)
    run_alone(bind(second), None, place)
    assert Counter(kept(second)) == wanted(tmp_path)


def test_a_driver_stops_once_another_one_begins_to_take_over_though_that_one_dies(
    place: FolderRoot, tmp_path: Path
) -> None:
    first = Living(file_on(tmp_path, "one"), place)
    second = file_on(tmp_path, "two", files_per_batch=2)
    with failing_at("generation.after_fence"), pytest.raises(FailpointError):
        run_alone(bind(second), None, place)
    first.batch()
    assert isinstance(first.failure, RunError) and "another driver has taken over" in str(first.failure)
    again = file_on(tmp_path, "one")  # whose folder is the owner's own still
    run_alone(bind(again), lambda batch: batch < 2, place)
    run_alone(bind(second), None, place)
    assert Counter(kept(second)) == wanted(tmp_path)


def test_a_start_that_is_refused_leaves_the_driver_alone(place: FolderRoot, tmp_path: Path) -> None:
    first = Living(file_on(tmp_path, "one"), place)
    with pytest.raises(InputError, match="belongs to another join"):
        run_alone(bind(file_on(tmp_path, "two", seconds=30)), None, place)
    first.batch()
    assert first.failure is None
