"""The state directory of a job.

    <root>/<stage>/<unit>/<version>.json              manifests
    <root>/<stage>/<unit>/<version>-<n>.arrow         segments, named by the version that first holds them

A segment stays in the directory of the unit that wrote it. Units that take it over name it as `../<unit>/<name>`; the
one that lets it go at last lists it as dropped, and removes it.

Segments are written and fsynced first, then the manifest is renamed into place: what a manifest names exists. Files are
written under a temporary name, so a reader never sees half of one. Nobody else has that name: a task that was thought
lost and the one that repeats it may write the same segment at once, on two machines.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from streamjoin.durable import have_folder, put_durably, replacing, sync_file, temporary_beside
from streamjoin.engine.state import Opened, UnitState
from streamjoin.engine.unit import UnitReport
from streamjoin.errors import StateError
from streamjoin.failpoints import failpoint
from streamjoin.index.files import mapped_segment, write_rows
from streamjoin.index.segment import SegmentInfo
from streamjoin.state import manifest

_SYNCS = 32
KEPT_VERSIONS = 10
"""Versions kept, the newest one included; Spark never replays further back than the last batch."""


class StateStore:
    """Reads and writes the state of one stage's units below a local directory.

    Args:
        root: the job's state directory.
        stage: which join of a pipeline; 0 for a binary join.
        sync: fsync every file; off only for tests that never crash.
    """

    def __init__(self, root: Path, stage: int = 0, *, sync: bool = True) -> None:
        self.root = Path(root)
        self.stage = stage
        self.sync = sync
        self._attached: dict[int, dict[Path, pa.RecordBatch]] = {}

    def directory(self, unit: int) -> Path:
        """Where a unit's files are."""
        return self.root / str(self.stage) / str(unit)

    def load(self, unit: int, version: int) -> UnitState:
        """A unit's state at `version`; version 0 is empty and needs no file.

        Raises:
            StateError: the version is missing or damaged, or the job begins anew over state of an earlier run.
        """
        if version == 0:
            # The first batch may be repeated, but nothing comes after it before it is committed.
            if max(self.versions(unit), default=0) > 1:
                raise StateError(
                    f"unit {unit} has later state below {self.root}, but its offsets begin anew; keep or remove "
                    "the two together"
                )
            return UnitState(0)
        path = self.directory(unit) / f"{version}.json"
        try:
            return manifest.load(path.read_bytes(), path.name)
        except FileNotFoundError:
            raise StateError(
                f"unit {unit} has no state of version {version} below {self.root}: the state and the offsets of this "
                "checkpoint do not belong together"
            ) from None

    def check_units(self, units: int, version: int) -> None:
        """Make sure that the state of `version` is of so many units at most; of fewer there would be one missing.

        Raises:
            StateError: it is of more.
        """
        if more := [unit for unit in self.units() if unit >= units and version in self.versions(unit)]:
            raise StateError(
                f"the state below {self.root} has units up to {max(more)}, and the operator has {units}; start with as "
                "many as before, or with another checkpoint"
            )

    def live_tuples(self, units: Iterable[int], version: int) -> int:
        """Tuples of both streams that these units store or send on at `version`; one that two store counts twice.

        Raises:
            StateError: as `load`.
        """
        states = (self.load(unit, version) for unit in units)
        return sum(info.rows for state in states for info in state.tuples())

    def open_segment(self, unit: int, info: SegmentInfo) -> pa.RecordBatch:
        """A segment's rows, mapped into memory.

        Raises:
            StateError: the file is missing, shorter than written, or unreadable.
        """
        path = self._path(unit, info.file)
        attached = self._attached.setdefault(unit, {})
        if (rows := attached.get(path)) is not None:
            return rows
        with contextlib.suppress(FileNotFoundError):
            if info.bytes and (size := path.stat().st_size) != info.bytes:
                raise StateError(
                    f"segment {path} is damaged: it has {size:,} bytes where its manifest says {info.bytes:,}; restore "
                    "the checkpoint from a copy, or start the job anew with another checkpoint"
                )
        attached[path] = batch = mapped_segment(path, info.rows, "manifest")
        return batch

    def _path(self, unit: int, name: str) -> Path:
        return Path(os.path.normpath(self.directory(unit) / name))

    def prepare(self, units: Collection[int], version: int, opened: Opened = UnitState.named) -> None:
        """All of it is on this machine."""

    def writer(self, unit: int, version: int | str) -> SegmentWriter:
        """Where the segments that first appear in `version` go; names of files begin with it."""
        return SegmentWriter(self, unit, version)

    def commit(self, unit: int, state: UnitState, report: UnitReport) -> None:
        """Make `state` the unit's state of its version: durable and in one step."""
        path = self.directory(unit) / f"{state.version}.json"
        failpoint("unit.before_manifest")
        self.write(path, manifest.dump(state, report))
        failpoint("unit.after_manifest")

    def settle(self) -> None:
        """Each commit has waited by itself."""

    def collect(self, unit: int, version: int) -> None:
        """Remove the version that falls out of the kept ones, and the segments it was the last to name.

        Units are at most one version apart, and only one of them names a segment in each version. So when the unit that
        dropped it comes here, nobody else has a kept version that names it.
        A crash in between leaves files that nothing names; `sweep` removes them at the next start.
        """
        failpoint("state.before_collect")
        old = version - KEPT_VERSIONS
        if old < 1:
            return
        path = self.directory(unit) / f"{old}.json"
        with contextlib.suppress(FileNotFoundError):
            for name in self.load(unit, old).dropped if path.exists() else ():
                self._path(unit, name).unlink(missing_ok=True)
            path.unlink()

    def collect_left(self, units: Collection[int], version: int) -> None:
        """The same for units that left: of all but these. What they stored was dropped or handed over."""
        for unit in self.units():
            if unit not in units:
                self.collect(unit, version)
                with contextlib.suppress(OSError):  # as long as one of its versions is kept, or a file handed over
                    self.directory(unit).rmdir()

    def detach_except(self, unit: int, state: UnitState) -> None:
        """Forget mapped segments of a unit that its state no longer names."""
        live = {self._path(unit, info.file) for info in state.named()}
        attached = self._attached.get(unit, {})
        self._attached[unit] = {path: rows for path, rows in attached.items() if path in live}

    def versions(self, unit: int) -> list[int]:
        """The versions there are, oldest first."""
        return sorted(int(path.stem) for path in self.directory(unit).glob("*.json"))

    def units(self) -> list[int]:
        """The units that have a directory."""
        stage = self.root / str(self.stage)
        return sorted(int(path.name) for path in stage.iterdir()) if stage.is_dir() else []

    def sweep(self) -> int:
        """Remove files that no manifest names, and return how many. Only while no task is running."""
        kept: set[Path] = set()
        for unit in self.units():
            for version in self.versions(unit):
                state = self.load(unit, version)
                names = [f"{version}.json", *(info.file for info in state.named()), *state.dropped]
                kept |= {self._path(unit, name) for name in names}
        there = {self._path(unit, path.name) for unit in self.units() for path in self.directory(unit).iterdir()}
        for path in there - kept:
            # A task of a batch that was interrupted may have taken its own file away meanwhile.
            path.unlink(missing_ok=True)
        return len(there - kept)

    def write(self, path: Path, content: bytes) -> None:
        """Put a file into place: durable and in one step."""
        if self.sync:
            put_durably(path, content)
            return
        with replacing(path) as temporary:
            temporary.write_bytes(content)


class SegmentWriter:
    """Writes one unit's new segments of a batch; they are durable once `finish` has returned."""

    def __init__(self, store: StateStore, unit: int, version: int | str) -> None:
        self.store = store
        self.version = version
        self.directory = store.directory(unit)
        self._written: list[tuple[Path, Path]] = []

    def save(self, rows: pa.RecordBatch, info: SegmentInfo) -> SegmentInfo:
        """Write a segment under its next name, and return its description with that name."""
        name = f"{self.version}-{len(self._written)}.arrow"
        self._make_folder()
        temporary = temporary_beside(self.directory / name)
        write_rows(temporary, rows)
        size = temporary.stat().st_size
        self._written.append((temporary, self.directory / name))
        return replace(info, file=name, bytes=size)

    def finish(self) -> None:
        """Make all segments durable and give them their names."""
        failpoint("unit.before_segments")
        if self.store.sync and self._written:
            temporaries = (temporary for temporary, _ in self._written)
            with ThreadPoolExecutor(min(len(self._written), _SYNCS)) as pool:  # the disk orders them better than we do
                list(pool.map(sync_file, temporaries))
        for temporary, path in self._written:
            os.replace(temporary, path)
        self._make_folder()
        failpoint("unit.after_segments")

    def _make_folder(self) -> None:
        if self.store.sync:
            have_folder(self.directory)
        else:
            self.directory.mkdir(parents=True, exist_ok=True)


def stages_in(root: Path) -> list[int]:
    """The stages below a state directory."""
    return sorted(int(path.name) for path in root.iterdir() if path.name.isdecimal()) if root.is_dir() else []


def read_manifests(root: Path, stage: int = 0) -> Iterator[tuple[int, UnitState]]:
    """The newest state of every unit below a state directory."""
    store = StateStore(root, stage)
    for unit in store.units():
        if versions := store.versions(unit):
            yield unit, store.load(unit, versions[-1])
