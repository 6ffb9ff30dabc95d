"""Result sinks of a join: parts written by the slots, made visible by the driver in one step a batch.

A slot writes its part of a batch under a staged name. Once all slots are done the driver commits the batch: it gives
the parts their names. A batch that is repeated after a crash replaces what it left, so a result appears once.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from streamjoin.durable import make_folder, put_durably, sync_folder
from streamjoin.errors import InputError, RunError
from streamjoin.failpoints import failpoint
from streamjoin.flow.periods import Ended
from streamjoin.results.jsonlines import json_lines

JOURNAL = "journal.json"
"""Where a batch begins in a file of JSON lines."""


class Part(Protocol):
    """One slot's results of one batch."""

    def __enter__(self) -> Part:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End; afterwards the part is durable."""

    def write(self, rows: pa.RecordBatch, unit: int = 0) -> None:
        """Add rows of a unit."""

    def summary(self) -> dict[str, Any]:
        """What the driver's commit needs: JSON."""


class PartWriter(Protocol):
    """The slots' side of a sink; it travels to the tasks."""

    def part(self, batch: int, slot: int, schema: pa.Schema) -> Part:
        """A part to fill."""


@dataclass(frozen=True, slots=True)
class BatchDone:
    """What the driver knows of a batch whose slots are done.

    Args:
        clock_us: when it began, as logged; by the wall clock, but it never goes back.
        marks_us: how far each stream has come with it; None for one that has not begun.
        shed: tuples that load shedding dropped in it.
        output_mark_us: how far the results have come with it; see `UnitReport`.
        ended: what each stream's rows or files said of where periods end.
    """

    number: int
    clock_us: int = 0
    marks_us: tuple[int | None, ...] = (None, None)
    shed: int = 0
    output_mark_us: int | None = None
    ended: tuple[Ended, ...] = ()


class Sink(Protocol):
    """A result sink: the driver's side."""

    def begin(self, origin: str) -> PartWriter:
        """Get ready to take batches of the checkpoint with the id `origin`; what travels to the tasks."""

    def commit(self, batch: BatchDone, parts: Sequence[dict[str, Any]]) -> None:
        """Take a batch: its rows become visible, now or by the sink's own rule. Doing it again changes nothing."""

    def finish(self, *, for_good: bool = False) -> None:
        """The streams have ended, or for good: the query has, and what it has given becomes visible."""


class _Ready:
    """A sink that is ready as it is, and shows each batch at its commit."""

    __slots__ = ()

    def begin(self, origin: str) -> Any:
        """See `Sink`."""
        return self

    def finish(self, *, for_good: bool = False) -> None:
        """See `Sink`."""


@dataclass
class Counted:
    """A part that only counts."""

    rows: int = 0

    def __enter__(self) -> Part:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        return None

    def write(self, rows: pa.RecordBatch, unit: int = 0) -> None:
        """Count."""
        self.rows += rows.num_rows

    def summary(self) -> dict[str, Any]:
        """The count."""
        return {"rows": self.rows}


@dataclass(frozen=True, slots=True)
class Discard(_Ready):
    """Results are computed in full, counted and dropped."""

    def part(self, batch: int, slot: int, schema: pa.Schema) -> Part:
        """A part that only counts."""
        return Counted()

    def commit(self, batch: BatchDone, parts: Sequence[dict[str, Any]]) -> None:
        """Nothing to show."""


@dataclass
class ParquetPart(Counted):
    """A part as a staged Parquet file; an empty part leaves none.

    Args:
        path: what the driver's commit calls it. Until then it has a name of its own: a task that was thought lost may
            still write beside the one that repeats it.
    """

    path: Path = field(default_factory=Path)
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    _writer: pq.ParquetWriter | None = None

    def __post_init__(self) -> None:
        self.staged = self.path.with_name(f"{self.path.name}.{uuid.uuid4().hex}")

    def write(self, rows: pa.RecordBatch, unit: int = 0) -> None:
        """Append a row group."""
        super().write(rows)
        if self._writer is None:
            self.staged.parent.mkdir(parents=True, exist_ok=True)
            self._writer = self._opened()
        self._writer.write_batch(rows)

    def _opened(self) -> Any:
        return pq.ParquetWriter(self.staged, self.schema)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._writer is None:
            return
        self._writer.close()
        if error is None:
            with open(self.staged, "rb+") as file:
                os.fsync(file.fileno())
        else:
            self.staged.unlink(missing_ok=True)

    def summary(self) -> dict[str, Any]:
        """Rows, and the staged file if there is one."""
        return {"rows": self.rows, "file": self.staged.name if self._writer else None}


@dataclass(frozen=True, slots=True)
class ParquetSink(_Ready):
    """A folder of Parquet files, `batch-<batch>-<slot>.parquet`.

    Args:
        folder: readers of it see whole files of committed batches only, because staged ones are in a hidden folder.
    """

    folder: Path

    @property
    def staging(self) -> Path:
        """Where parts wait for their commit."""
        return self.folder / ".staged"

    def begin(self, origin: str) -> PartWriter:
        """See `Sink`."""
        make_lasting(self.folder)
        return self

    def part(self, batch: int, slot: int, schema: pa.Schema) -> Part:
        """A staged file."""
        return ParquetPart(path=self.staging / f"batch-{batch:09d}-{slot:04d}.parquet", schema=schema)

    def commit(self, batch: BatchDone, parts: Sequence[dict[str, Any]]) -> None:
        """Give the batch's files their names, and remove what an earlier attempt with other slots left of it."""
        number = batch.number
        if not self.folder.is_dir():
            self.begin("")
        named = {part["file"].rpartition(".")[0]: part["file"] for part in parts if part["file"]}
        if lost := [self.staging / staged for name, staged in sorted(named.items())
                    if not ((self.staging / staged).exists() or (self.folder / name).exists())]:  # fmt: skip
            raise _gone(lost[0], number)
        for stale in self.folder.glob(f"batch-{number:09d}-*.parquet"):
            if stale.name not in named:
                stale.unlink()
        for name, staged in sorted(named.items()):
            if (self.staging / staged).exists():  # else committed before
                os.replace(self.staging / staged, self.folder / name)
            failpoint("batch.mid_commit")
        sync_folder(self.folder)  # before the next batch is planned, which does not do this one again
        _remove_staged(self.staging, number)


def make_lasting(folder: Path, file: Path | None = None) -> None:
    """Make a folder for results, and a file in it.

    Raises:
        InputError: it cannot be made, or nothing in it would outlast a power loss.
    """
    try:
        make_folder(folder)
        if file is not None:
            file.touch()
        sync_folder(folder)
    except OSError as cause:
        raise InputError(
            f"{folder} cannot be made so that results in it outlast a power loss: {cause.strerror}; name a folder that "
            "may be written, on a file system whose folders can be synced",
            field="results",
        ) from None


def _gone(path: Path, batch: int) -> RunError:
    return RunError(
        f"results of batch {batch} are gone: {path} was written and is not there; if nobody removed it, the folder is "
        "not one that all machines share"
    )


def _remove_staged(staging: Path, batch: int) -> None:
    """Remove what is still staged once a batch is committed: of attempts with more slots, or of tasks thought lost."""
    for stale in staging.glob("batch-*"):
        if stale.name < f"batch-{batch + 1:09d}":
            stale.unlink(missing_ok=True)


@dataclass
class ArrowPart(ParquetPart):
    """A part as a staged Arrow stream."""

    def _opened(self) -> Any:
        return pa.ipc.new_stream(str(self.staged), self.schema)


@dataclass(frozen=True, slots=True)
class JsonLinesSink(_Ready):
    """One JSON object a line, appended to a file or to standard output.

    A file is cut back to where the batch began before it is written again, so each result stands once. What was printed
    cannot be taken back: after a crash the last batch may be printed twice.

    Args:
        target: a path, or `-` for standard output.
        staging: where parts wait for their commit.
    """

    target: str
    staging: Path

    def begin(self, origin: str) -> PartWriter:
        """See `Sink`."""
        make_lasting(self.staging)
        if self.target != "-":
            make_lasting(Path(self.target).parent, Path(self.target))
        return self

    def part(self, batch: int, slot: int, schema: pa.Schema) -> Part:
        """A staged file."""
        return ArrowPart(path=self.staging / f"batch-{batch:09d}-{slot:04d}.arrows", schema=schema)

    def commit(self, batch: BatchDone, parts: Sequence[dict[str, Any]]) -> None:
        """Append the batch."""
        files = sorted(self.staging / part["file"] for part in parts if part["file"])
        if self.target == "-":
            for path in files:
                if path.exists():
                    self._print(path, sys.stdout)
        else:
            self._append(batch.number, files)
        for path in files:
            path.unlink(missing_ok=True)
        _remove_staged(self.staging, batch.number)

    def _append(self, batch: int, files: Sequence[Path]) -> None:
        target = Path(self.target)
        if not (target.exists() and self.staging.is_dir()):
            self.begin("")
        begun = self._begin(batch, target)
        if not files and target.stat().st_size == begun:
            return
        if lost := [path for path in files if not path.exists()]:
            if target.stat().st_size > begun:
                return  # committed before: parts are removed last
            raise _gone(lost[0], batch)
        with open(target, "r+", encoding="utf-8") as file:
            file.truncate(begun)
            file.seek(begun)
            for path in files:
                self._print(path, file)
                failpoint("batch.mid_commit")
            file.flush()
            os.fsync(file.fileno())

    def _begin(self, batch: int, target: Path) -> int:
        """Where the batch begins in the file, remembered before anything of it is written.

        If results went to another file when the batch was first done, what it wrote there is removed.
        """
        journal, begun = self.staging / JOURNAL, target.stat().st_size
        staging, target = self.staging.resolve(), target.resolve()
        if journal.exists() and (known := json.loads(journal.read_text()))["batch"] == batch:
            # Journals of earlier versions say where the file is, or were of the only one.
            beside = self._noted(known, staging, target)
            is_same = target in (beside, Path(known.get("file", target)))
            if is_same and known["begun"] <= begun:
                return int(known["begun"])
            if not is_same and beside is not None and beside.exists() and beside.stat().st_size > known["begun"]:
                os.truncate(beside, known["begun"])
        names = {"file": str(target), "beside": os.path.relpath(target, staging), "staging": str(staging)}
        put_durably(journal, json.dumps({"batch": batch, "begun": begun, **names}).encode())
        return begun

    @staticmethod
    def _noted(known: dict[str, Any], staging: Path, target: Path) -> Path | None:
        """The file that a journal speaks of, which came along or stayed; None where it is that of a copy's original.

        If a checkpoint alone was copied to where its original is, the file of that one lies beside both.
        """
        if "beside" not in known:
            return Path(known.get("file", target))
        beside, file = (staging / known["beside"]).resolve(), Path(known["file"])
        before = Path(known.get("staging", staging))
        if before.exists():
            return None if before != staging and beside == file else beside
        return beside if beside.exists() else file

    @staticmethod
    def _print(path: Path, file: TextIO) -> None:
        table = pa.ipc.open_stream(pa.memory_map(str(path), "r")).read_all()
        for line in json_lines(table):
            file.write(line + "\n")
