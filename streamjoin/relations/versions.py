"""The versions of relations that a job keeps.

    <folder>/<relation>/<version>/version.json           what it was read from, and its segments by stage
    <folder>/<relation>/<version>/<stage>/<n>.arrow      segments, sorted as that stage's join needs them

A version is written under another name and renamed when it is whole: one that is there is complete, and never changes.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamjoin.durable import make_folder, sync_folder, write_durably
from streamjoin.errors import StateError
from streamjoin.failpoints import failpoint
from streamjoin.index.files import mapped_file
from streamjoin.index.layout import layout_of
from streamjoin.index.table import Part, Table
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.window import S
from streamjoin.relations.parting import Parting
from streamjoin.relations.sorting import Sorting

_FILE = "version.json"


@dataclass(frozen=True, slots=True)
class Version:
    """What is known of a version without opening its segments.

    Args:
        number: from 1.
        origin: what says whether a relation has changed since, such as its files and their sizes.
        read_us: when reading it began.
        rows: of the relation, those that can match nothing included; records that could not be read are `bad`.
        stages: by stage, its segments.
        columns: those that were read, with the types that the source had them in, as far as it has types.
    """

    number: int
    origin: str
    read_us: int
    rows: int
    bad: int
    stages: Mapping[int, tuple[Part, ...]]
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Of all segments."""
        return sum(part.bytes for parts in self.stages.values() for part in parts)

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; `from_json` reads it back."""
        return {
            "version": self.number, "origin": self.origin, "read_us": self.read_us, "rows": self.rows, "bad": self.bad,
            "bytes": self.bytes, "columns": dict(self.columns),
            "stages": {str(stage): [part.to_json() for part in parts] for stage, parts in self.stages.items()},
        }  # fmt: skip

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Version:
        """The inverse of `to_json`."""
        stages = {int(stage): tuple(Part(**part) for part in parts) for stage, parts in value["stages"].items()}
        return Version(
            value["version"], value["origin"], value["read_us"], value["rows"], value["bad"], stages,
            value.get("columns", {}),
        )  # fmt: skip


class Versions:
    """The versions of one relation.

    Args:
        folder: of all relations of the job.
        sync: fsync every file; off only for tests that never crash.
    """

    def __init__(self, folder: Path, relation: str, *, sync: bool = True) -> None:
        self.relation = relation
        self.folder = folder / relation
        self.sync = sync

    def numbers(self) -> list[int]:
        """Those that are there, oldest first."""
        if not self.folder.is_dir():
            return []
        return sorted(int(path.name) for path in self.folder.iterdir() if path.name.isdecimal())

    def newest(self) -> int:
        """The number of the newest; 0 where there is none."""
        return max(self.numbers(), default=0)

    def load(self, number: int) -> Version:
        """A version.

        Raises:
            StateError: it is missing or damaged.
        """
        path = self.folder / str(number) / _FILE
        try:
            return Version.from_json(json.loads(path.read_text()))
        except FileNotFoundError:
            raise StateError(
                f"version {number} of relation {self.relation} is lost: {path} is missing, and a batch has to be "
                "repeated with it; restore the checkpoint from a copy or start with another one"
            ) from None
        except (ValueError, KeyError, TypeError):
            raise StateError(
                f"{path} is damaged; restore the checkpoint from a copy or start with another one"
            ) from None

    def read(
        self,
        blocks: Iterable[tuple[pa.RecordBatch, int]],
        plans: Mapping[int, JoinPlan],
        origin: str,
        is_same: Callable[[], bool] = lambda: True,
        columns: Mapping[str, str] | None = None,
        units: Mapping[int, int] | None = None,
        check: Callable[[Mapping[int, tuple[Part, ...]]], None] = lambda stages: None,
    ) -> Version | None:
        """Make a new version of all rows there are.

        Args:
            blocks: (rows, how many records before and among them could not be read).
            plans: by stage, the join that the relation is S of.
            is_same: asked at the end, whether the relation is still the one that was to be read.
            columns: see `Version`.
            units: by stage, of how many units each reads a part; rows are sorted for a stage that it does not name.
            check: is given the segments by stage, and refuses a version by raising; then there is none.
        Returns:
            None where it is not.
        Cost: reads the relation once; memory of a run a stage, whatever its size.
        """
        self.sweep()
        make_folder(self.folder)
        number = self.newest() + 1
        making = self.folder / f".{number}.{os.getpid()}"
        try:
            version = self._made(number, making, blocks, plans, origin, columns or {}, units or {})
            if not is_same():
                return None
            check(version.stages)
            failpoint("relation.before_version")
            write_durably(making / _FILE, json.dumps(version.to_json()).encode())
            for stage in plans:
                sync_folder(making / str(stage))
            sync_folder(making)
            os.replace(making, self.folder / str(number))
        finally:
            shutil.rmtree(making, ignore_errors=True)  # of whatever did not become a version
        sync_folder(self.folder)
        failpoint("relation.after_version")
        return version

    def _made(
        self,
        number: int,
        making: Path,
        blocks: Iterable[tuple[pa.RecordBatch, int]],
        plans: Mapping[int, JoinPlan],
        origin: str,
        columns: Mapping[str, str],
        units: Mapping[int, int],
    ) -> Version:
        """All rows there are as segments of each stage, in a folder of their own."""
        read_us = time.time_ns() // 1_000
        sortings: dict[int, Sorting] = {}
        for stage, plan in plans.items():
            (making / str(stage)).mkdir(parents=True)
            held = (plan, making / str(stage), self.sync, number)
            sortings[stage] = Parting(*held, units=units[stage]) if stage in units else Sorting(*held)
        rows = bad = 0
        for block, bad_records in blocks:
            rows, bad = rows + block.num_rows, bad + bad_records
            for sorting in sortings.values():
                sorting.add(block)
        stages = {stage: tuple(sorting.parts()) for stage, sorting in sortings.items()}
        return Version(number, origin, read_us, rows, bad, stages, columns)

    def keep(self, wanted: Collection[int]) -> None:
        """Remove all versions but these and the newest."""
        for number in self.numbers()[:-1]:
            if number not in wanted:
                # Under another name first: what has a number is whole.
                gone = self.folder / f".{number}.gone"
                os.replace(self.folder / str(number), gone)
                shutil.rmtree(gone, ignore_errors=True)

    def sweep(self) -> None:
        """Remove what a version that never became whole has left; while nobody else makes one."""
        if self.folder.is_dir():
            for path in self.folder.iterdir():
                if path.name.startswith("."):
                    shutil.rmtree(path, ignore_errors=True)

    def open(self, stage: int, number: int, plan: JoinPlan) -> Table:
        """A version as one stage's units probe it; its segments are mapped into memory.

        Raises:
            StateError: it is missing or damaged.
        """
        parts = self.load(number).stages[stage]
        folder = self.folder / str(number) / str(stage)
        files = [mapped_file(folder / part.file, part.rows, "version") for part in parts]
        opened = [(part, file.rows) for part, file in zip(parts, files, strict=True)]
        return Table.of(number, Sorting(plan, folder).columns, opened, layout_of(plan, S), files)


class Tables:
    """The relations of a job, opened for its units; what was opened last stays mapped.

    Args:
        folder: of all relations of the job.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open: dict[tuple[str, int], tuple[tuple[int, int, int] | None, Table]] = {}

    def open(self, relation: str, stage: int, version: int, plan: JoinPlan) -> Table:
        """See `engine.slot.Tables`.

        A process may outlive a checkpoint, and another one at its place counts versions anew.
        """
        which = self._which(relation, version)
        known, found = self._open.get((relation, stage), (None, None))
        if found is None or known != which:
            found = Versions(self.folder, relation).open(stage, version, plan)
            self._open[relation, stage] = which, found
        return found

    def _which(self, relation: str, version: int) -> tuple[int, int, int] | None:
        try:
            seen = os.stat(self.folder / relation / str(version) / _FILE)
        except OSError:
            return None  # which opening it says
        return version, seen.st_ino, seen.st_mtime_ns
