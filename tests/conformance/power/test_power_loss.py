"""A job goes on exactly from whatever a power loss leaves of its folder: nothing lost, nothing twice."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

from . import job
from .disk import Disk, File, Folder, Loss, Tree, build, everything, names_only, nothing_more, some, zeros
from .record import SYNCS, Replay, needs_strace, record

LOSSES: dict[str, Loss] = {
    "nothing more": nothing_more,
    "names only": names_only,
    "zeros": zeros,
    **{f"some {seed}": some(seed) for seed in range(3)},
}
TRIED = 1
"""Of the folders that a loss may leave, by `make test`; `make soak` tries all."""


@dataclass(frozen=True)
class Recorded:
    """A job that has done its work, with all that it did to its folder."""

    folder: Path
    kind: str

    @property
    def trace(self) -> Path:
        """What strace wrote."""
        return self.folder / "trace"

    def left(self, loss: Loss, unsynced: str | None = None) -> Iterator[tuple[int, Tree]]:
        """What a loss leaves at each moment, where it differs from what was left before.

        Args:
            unsynced: of files and folders that match it no sync counts.
        """
        before: Tree | None = None
        replay = Replay(self.folder / "job", lambda path: unsynced is not None and path.match(unsynced))
        for number, call in enumerate(replay.changes(self.trace)):
            # In between a file may only have become longer.
            if call.name in SYNCS or call.name.startswith(("rename", "mkdir", "unlink")):
                tree = loss(replay.disk)
                if tree != before:
                    before = tree
                    yield number, tree

    def wrong_after(self, tree: Tree, place: Path) -> str | None:
        """What is wrong with a job that goes on from a folder; None where it is exact."""
        text, wanted = job.text_of(self.folder, self.kind), job.wanted(self.folder)
        build(tree, place)
        try:
            job.run(place, text)
            found = job.results(place, text)
        except Exception as failure:
            return f"{type(failure).__name__}: {failure}"
        if found == wanted:
            return None
        return f"missing {_less(wanted, found)}, too many {_less(found, wanted)}"


def _less(left: dict[str, Counter], right: dict[str, Counter]) -> dict[str, int]:
    return {name: (left[name] - right[name]).total() for name in left}


def recording(folder: Path, kind: str) -> Recorded:
    needs_strace()
    job.write_input(folder)
    command = [sys.executable, "-m", "tests.conformance.power.job", str(folder), kind]
    record(command, folder / "trace", os.environ, 300)
    return Recorded(folder, kind)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recording(tmp_path_factory.mktemp("power"), "biclique")


def contents(folder: Path) -> Tree:
    return {path.name: contents(path) if path.is_dir() else path.read_bytes() for path in sorted(folder.iterdir())}


def check(recorded: Recorded, place: Path, tried: int | None) -> None:
    """Go on from so many folders that each loss may leave, evenly; None for all."""
    place.mkdir()
    for name, loss in LOSSES.items():
        left = list(recorded.left(loss))
        assert len(left) > TRIED
        for number, tree in left if tried is None else left[len(left) // tried // 2 :: len(left) // tried]:
            wrong = recorded.wrong_after(tree, place / f"{name} {number}")
            assert wrong is None, f"{name} after change {number}: {wrong}"


@pytest.mark.slow
def test_after_a_power_loss_a_job_goes_on_exactly(recorded: Recorded, tmp_path: Path) -> None:
    replay = Replay(recorded.folder / "job")
    for _ in replay.changes(recorded.trace):
        pass
    tree = everything(replay.disk)
    there = contents(recorded.folder / "job")
    for shared in (tree["out"], there["out"]):  # SQLite maps it into memory, and makes it anew
        assert isinstance(shared, dict)
        shared.pop("results.db-shm", None)
    assert tree == there, "what was recorded is not what was written"
    check(recorded, tmp_path / "left", TRIED)


@pytest.mark.soak
@pytest.mark.slow
def test_a_power_loss_while_a_state_is_given_more_units(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    check(recording(tmp_path / "job", "splitjoin that grows"), tmp_path / "left", TRIED)


@pytest.mark.soak
@pytest.mark.parametrize("kind", job.OPERATORS)
def test_all_that_a_power_loss_may_leave(kind: str, tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    check(recording(tmp_path / "job", kind), tmp_path / "left", None)


NEEDED = {
    "checkpoint/.job.json.*": "names only",
    "checkpoint/.runs.json.*": "names only",
    "checkpoint/sources": "nothing more",
    "checkpoint/offsets/metadata": "names only",
    "checkpoint/offsets/offsets": "nothing more",
    "checkpoint/state": "nothing more",
    "checkpoint/state/0": "nothing more",
    "checkpoint/state/0/*": "nothing more",
    "checkpoint/state/0/*/.*.arrow.*": "names only",
    "checkpoint/state/0/*/.*.json.*": "names only",
    "checkpoint/dead-letters": "nothing more",
    "out/files": "nothing more",
    "out/lines.jsonl": "nothing more",
    "out/results.db-wal": "nothing more",
    "checkpoint/staged-results/lines": "nothing more",
}
"""What has to be synced, and the loss that shows it otherwise."""


@pytest.mark.slow
@pytest.mark.parametrize("unsynced", NEEDED)
def test_without_a_sync_a_power_loss_shows(unsynced: str, recorded: Recorded, tmp_path: Path) -> None:
    left = list(recorded.left(LOSSES[NEEDED[unsynced]], unsynced))
    for number, tree in reversed(left[::4]):
        if recorded.wrong_after(tree, tmp_path / str(number)) is not None:
            return
    raise AssertionError(f"nobody misses a sync of {unsynced}")


def path(text: str) -> PurePosixPath:
    return PurePosixPath(text)


def test_a_disk_keeps_what_was_synced_and_may_keep_more() -> None:
    disk = Disk()
    disk.create(path("a"), Folder())
    disk.create(path("a/x"), File(bytearray(b"one")))
    assert nothing_more(disk) == {} and names_only(disk) == {"a": {"x": b""}}
    disk.sync(path("a/x"))
    disk.sync(path("a"))
    assert nothing_more(disk) == {}, "nobody synced the folder's own name"
    disk.sync(path(""))
    assert nothing_more(disk) == {"a": {"x": b"one"}}
    disk.file(path("a/x")).data += b" two"
    disk.create(path("a/.y"), File(bytearray(b"three")))
    disk.rename(path("a/.y"), path("a/y"))
    disk.remove(path("a/x"))
    assert nothing_more(disk) == {"a": {"x": b"one"}}
    assert names_only(disk) == {"a": {"y": b""}} and zeros(disk) == {"a": {"y": bytes(5)}}
    assert everything(disk) == {"a": {"y": b"three"}}
    names = {tuple(some(seed)(disk)["a"]) for seed in range(40)}
    assert names == {("x",), (".y", "x"), ("x", "y"), ("y",)}, "changes of a folder are on disk in their order"
    disk.sync(path("a"))
    assert nothing_more(disk) == {"a": {"y": b""}}
