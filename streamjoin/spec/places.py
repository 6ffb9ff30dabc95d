"""The places of a join file on this machine: what would be read again, or cannot be written to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from streamjoin.errors import InputError
from streamjoin.results.stores.registry import STORES
from streamjoin.sources.filelog import would_read
from streamjoin.sources.registry import INPUTS
from streamjoin.spec.job import state_folder
from streamjoin.spec.joinfile import JoinFile
from streamjoin.spec.sections import RelationFile, StreamFile

_SQLITE = b"SQLite format 3\0"


def check_places(file: JoinFile) -> None:
    """Refuse, before anything runs, places that nothing can be written to, and results that would be read again."""
    results = file.results
    if results.parquet is not None:
        folder = file.resolve(results.parquet)
        if _same(folder, file.checkpoint):
            raise InputError(
                f"{folder} is the checkpoint too, whose files are no results; give each a folder of its own",
                field="results.parquet",
            )
        _check_folder(folder, "results.parquet", "Parquet results are a folder of files")
        for what, path in _inputs(file):
            if _same(folder, path) or would_read(path, folder / "batch-0-0.parquet"):
                raise InputError(
                    f"{folder} is where {what} comes from; results in it would be read as its tuples",
                    field="results.parquet",
                )
    if results.jsonl is not None and results.jsonl != "-":
        target = file.resolve(results.jsonl)
        if _is(target.is_dir):
            raise InputError(f"{target} is a folder; JSON lines results are one file, or - for standard output",
                             field="results.jsonl")  # fmt: skip
        _check_folder(target.parent, "results.jsonl", "a file lies in a folder")
        for what, path in _inputs(file):
            if would_read(path, target):
                raise InputError(
                    f"{target} is among the files of {what}; results in it would be read as its tuples",
                    field="results.jsonl",
                )
    if results.store is not None:
        for field, kept in STORES[results.store].files(results).items():
            target = file.resolve(kept)
            if _is(target.is_dir):
                raise InputError(f"{target} is a folder; the store is one file", field=f"results.{field}")
            _check_folder(target.parent, f"results.{field}", "a file lies in a folder")
            if results.store == "sqlite":
                _check_database(target, f"results.{field}")
    _check_folder(file.checkpoint, "run.checkpoint", "a checkpoint is a folder")
    if isinstance(state := file.states, Path):
        _check_state(file, state)


def _check_state(file: JoinFile, state: Path) -> None:
    """A folder of states holds nothing else: what no state names is swept there."""
    _check_folder(state, "run.state", "state is a folder, or a URI such as s3://bucket/job")
    checkpoint = Path(os.path.realpath(file.checkpoint))
    lies = Path(os.path.realpath(state))
    if lies.is_relative_to(checkpoint) and not lies.is_relative_to(state_folder(checkpoint)):
        raise InputError(
            f"{state} is in the checkpoint, where other things lie; leave run.state out to keep state in "
            f"{state_folder(file.checkpoint)}, or name a folder of its own",
            field="run.state",
        )
    if checkpoint.is_relative_to(lies):
        raise InputError(f"the checkpoint, {file.checkpoint}, is in it; name a folder of its own", field="run.state")
    uses = [(f"{what} comes from", path) for what, path in _inputs(file)]
    if file.results.parquet is not None:
        uses.append(("results go", file.resolve(file.results.parquet)))
    for what, path in uses:
        if _same(state, path) or would_read(path, state / "0" / "0" / "1.json"):
            raise InputError(f"{state} is where {what}; name a folder of its own", field="run.state")


def _inputs(file: JoinFile) -> Iterator[tuple[str, Path]]:
    """What is read from files, and where it is."""
    entries: Mapping[str, StreamFile | RelationFile]
    for what, entries in (("stream", file.streams), ("relation", file.relations)):
        for name, entry in entries.items():
            for path in INPUTS[entry.source].files(entry).values():
                yield f"{what} {name}", file.resolve(path)


def _check_folder(folder: Path, field: str, rule: str) -> None:
    """`folder` is one that can be written to, or can be made."""
    there = next(path for path in (folder, *folder.parents) if _is(path.exists))
    if not _is(there.is_dir):
        raise InputError(f"{there} is a file; {rule}", field=field)
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(f"{there} cannot be written to", field=field)


def _check_database(path: Path, field: str) -> None:
    """`path` is a database of SQLite, or is not there or empty, of which SQLite makes one."""
    try:
        with open(path, "rb") as file:
            begin = file.read(len(_SQLITE))
    except FileNotFoundError:
        return
    except OSError as cause:
        raise InputError(f"{path} cannot be read: {cause.strerror}", field=field) from None
    if begin and begin != _SQLITE:
        raise InputError(f"{path} is not a SQLite database; name another file", field=field)


def _is(question: Callable[[], bool]) -> bool:
    try:
        return question()
    except OSError:  # such as a name that is too long
        return False


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
