"""Whose results are in a folder of Parquet files or in a file of JSON lines.

Files are named and lines are cut back by the batches of a checkpoint, so a place has the results of one query of one
checkpoint. A mark in the place says which one, and whoever writes there holds a lock on the mark.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from streamjoin.durable import sync_folder
from streamjoin.errors import InputError
from streamjoin.results.parts import JOURNAL, JsonLinesSink, ParquetSink, make_lasting

SPARKS_LOG = "_spark_metadata"
"""Where Spark's own sink says which files count; its readers see no others."""
_BATCH = re.compile(r"batch-(\d{9,})-\d{4,}\.parquet")
_NAME_BYTES_MAX = 200
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
"""What file systems say that have no locks; there the mark alone has to do."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Who is about to write.

    Args:
        id: of the checkpoint; empty for one that is new.
        checkpoint: its folder.
        query: the query's name.
        called: all names that the query has had in this checkpoint.
        planned: the last batch that was planned; -1 before the first.
        noted: by query, where its results went when that was last noted; None for a checkpoint from before it was.
        section: what of the join file the query's results are in, such as `queries.pairs.`.
        is_fenced: a driver of the same checkpoint that still runs elsewhere stops before it writes again.
    """

    id: str
    checkpoint: Path
    query: str = ""
    called: frozenset[str] = frozenset([""])
    planned: int = -1
    noted: Mapping[str, str] | None = None
    section: str = ""
    is_fenced: bool = False

    def has(self, owner: Mapping[str, str] | None) -> bool:
        """Whether a mark is the claim's own."""
        if owner is None or not self.id:
            return False
        return owner["checkpoint"] == self.id and owner["query"] in self.called


@dataclass(frozen=True, slots=True)
class Place:
    """A place of results.

    Args:
        path: a folder, or a file.
        kind: `parquet` for a folder of ours, `jsonl` for a file of ours, `spark` for a folder of Spark's own sink.
        field: where a join file names it.
        journals: where a file's journal may be, in the checkpoint.
    """

    path: Path
    kind: Literal["parquet", "jsonl", "spark"]
    field: str
    journals: tuple[Path, ...] = ()

    @property
    def real(self) -> Path:
        """The same without links."""
        return Path(os.path.realpath(self.path))

    @property
    def mark(self) -> Path:
        """What says whose it is: in a folder, or beside a file. No reader takes its name for one of results."""
        if self.kind != "jsonl":
            return self.real / ".owner.json"
        name = self.real.name
        if len(name.encode()) > _NAME_BYTES_MAX:
            name = hashlib.sha256(name.encode()).hexdigest()
        return self.real.with_name(f".{name}.owner.json")

    def content(self) -> str | None:
        """The name of something in it that readers would take for results; None where there is nothing."""
        try:
            if self.kind == "jsonl":
                return self.path.name if self.path.stat().st_size else None
            with os.scandir(self.path) as entries:
                return min((entry.name for entry in entries if _is_read(entry)), default=None)
        except FileNotFoundError:
            return None
        except OSError as cause:
            raise InputError(f"{self.path} cannot be looked at: {cause.strerror}", field="results") from None

    def fits(self, planned: int) -> bool:
        """Whether what is in it may be of a checkpoint that has planned batches up to this one."""
        if self.kind == "jsonl":
            return any(self._continues(journal) for journal in self.journals)
        if self.kind == "spark":
            return (self.path / SPARKS_LOG).is_dir()
        batches = [int(found[1]) for name in os.listdir(self.path) if (found := _BATCH.fullmatch(name))]
        return bool(batches) and max(batches) <= planned and not (self.path / SPARKS_LOG).exists()

    def _continues(self, journal: Path) -> bool:
        try:
            return int(json.loads(journal.read_text())["begun"]) <= self.path.stat().st_size
        except (OSError, ValueError, KeyError, TypeError):
            return False


def _is_read(entry: os.DirEntry[str]) -> bool:
    """Whether readers of a folder would look at it: a file, or a folder of a partition."""
    if entry.name == SPARKS_LOG:
        return True
    return entry.name[0] not in "._" and ("=" in entry.name or not entry.is_dir())


def place_of(sink: object, *, was_unnamed: bool = False) -> Place | None:
    """The place that a sink writes to; None where it has its own way to know whose results are there.

    Args:
        was_unnamed: its query was its job's only one and had no name before, so its journal may still be there.
    """
    if isinstance(sink, ParquetSink):
        return Place(sink.folder, "parquet", "results.parquet")
    if isinstance(sink, JsonLinesSink) and sink.target != "-":
        folders = (sink.staging, *([sink.staging.parent] if was_unnamed else []))
        return Place(Path(sink.target), "jsonl", "results.jsonl", tuple(folder / JOURNAL for folder in folders))
    return None


def check_owner(place: Place, claim: Claim) -> None:
    """Refuse a place that has something of somebody else. Nothing is written.

    Raises:
        InputError: it has; the message says whose, as far as known, and the way out.
    """
    owner = _owner(place.mark)
    if claim.has(owner):
        return
    if (content := place.content()) is None:
        return  # whoever it was of, there is nothing that could be mixed
    if owner is None and _adopts(place, claim):
        return
    what = "that file" if place.kind == "jsonl" else "that folder" if owner is not None else "what is in it"
    raise InputError(
        f"{place.path} has {_whose(place, owner, claim, content)}; remove {what}, or name another place for results",
        field=claim.section + place.field,
    )


def _whose(place: Place, owner: Mapping[str, str] | None, claim: Claim, content: str) -> str:
    if owner is None:
        such = "" if place.kind == "jsonl" else f", such as {content}"
        return f"something in it already{such}, and nothing says that it is of checkpoint {claim.checkpoint}"
    of_query = f" (query {owner['query']})" if owner["query"] else ""
    if claim.id and owner["checkpoint"] == claim.id:
        return f"results of another query of this checkpoint{of_query}"
    if owner["folder"] == os.path.abspath(claim.checkpoint):
        return f"results of the checkpoint that was in {owner['folder']} before{of_query}"
    return f"results of another checkpoint, {owner['folder']}{of_query}"


def take_back(place: Place, claim: Claim, done: int, *, came_along: bool = False) -> bool:
    """Remove the files of batches after `done` from a folder that results went to before: they come elsewhere again.

    If the checkpoint is a copy, the folder may be that of its original, and is left as it is.

    Args:
        came_along: the checkpoint was moved or copied, with it or without, so it has a mark from before.
    Returns:
        Whether the folder is the claim's own.
    """
    owner = _owner(place.mark)
    is_own = owner is not None and (came_along or owner["folder"] == os.path.abspath(claim.checkpoint))
    is_own = is_own and claim.has(owner)
    if place.kind != "parquet" or not is_own:
        return is_own
    for name in os.listdir(place.real):
        if (found := _BATCH.fullmatch(name)) and int(found[1]) > done:
            (place.real / name).unlink()
    return True


def _adopts(place: Place, claim: Claim) -> bool:
    """Whether results without a mark are those of the claim: from before there were marks, or moved without it."""
    if claim.planned < 0:
        return False
    if claim.noted is not None:
        before = [Path(claim.noted[name]) for name in claim.called if name in claim.noted]
        if not before:
            return False
        if before[0] != place.real and Place(before[0], place.kind, place.field).content() is not None:
            return False  # they are still where they were
    return place.fits(claim.planned)


@contextmanager
def owned(place: Place, claim: Claim) -> Iterator[None]:
    """Hold a place of results, and mark it as the claim's.

    Raises:
        InputError: it has something of somebody else, another process writes there, or it cannot be marked.
    """
    check_owner(place, claim)
    make_lasting(place.mark.parent)
    descriptor = _locked(place, claim)
    try:
        check_owner(place, claim)  # whoever held it until now may have written
        _mark(descriptor, place, claim)
        yield
    finally:
        os.close(descriptor)


def _locked(place: Place, claim: Claim) -> int:
    while True:
        try:
            descriptor = os.open(place.mark, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as cause:
            raise InputError(f"{place.mark} cannot be written: {cause.strerror}", field="results") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = _owner(place.mark)
            if claim.is_fenced and claim.has(owner):
                return descriptor
            os.close(descriptor)
            by = f", with checkpoint {owner['folder']}" if owner else ""
            raise InputError(
                f"another job writes its results to {place.path}{by}; name another place for those of this one",
                field=claim.section + place.field,
            ) from None
        except OSError as cause:
            if cause.errno not in _NO_LOCKS:
                os.close(descriptor)
                raise
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(place.mark)):
                return descriptor
        os.close(descriptor)  # it was removed meanwhile


def _mark(descriptor: int, place: Place, claim: Claim) -> None:
    owner = {"checkpoint": claim.id, "query": claim.query, "folder": os.path.abspath(claim.checkpoint)}
    if _owner(place.mark) == owner:
        return
    content = json.dumps(owner).encode()  # in place, since the lock is on this file
    os.pwrite(descriptor, content, 0)
    os.ftruncate(descriptor, len(content))
    os.fsync(descriptor)
    sync_folder(place.mark.parent)


def _owner(mark: Path) -> dict[str, Any] | None:
    """What a mark says; None where there is none, or one that a power cut left torn."""
    try:
        found = json.loads(mark.read_text())
        return {name: str(found[name]) for name in ("checkpoint", "query", "folder")}
    except (OSError, ValueError, KeyError, TypeError):
        return None
