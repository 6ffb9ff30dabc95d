"""What of a join lies where, and who reads or writes it: executors on other machines must reach their part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from streamjoin.errors import InputError
from streamjoin.results.stores.registry import STORES
from streamjoin.sources.registry import INPUTS
from streamjoin.spec.job import dead_letters_folder, state_folder, tables_folder
from streamjoin.spec.joinfile import JoinFile
from streamjoin.spec.sections import ResultsFile
from streamjoin.state.root import ObjectRoot


@dataclass(frozen=True, slots=True)
class Place:
    """Where a part of a join lies.

    Args:
        what: the part, for people.
        where: a path, a URI, or hosts.
        of_executors: whether executors read or write it; else the driver alone does.
        field: of the join file, which says where it is.
        is_local: whether it is a path, which another machine need not have.
    """

    what: str
    where: str
    of_executors: bool
    field: str
    is_local: bool = True


def places(file: JoinFile) -> tuple[Place, ...]:
    """Every place of a join."""
    return (*_of_checkpoint(file), *_of_inputs(file), *_of_results(file))


def _of_checkpoint(file: JoinFile) -> Iterator[Place]:
    field, root = "run.checkpoint", file.checkpoint
    states = file.states
    if isinstance(states, ObjectRoot):
        # Executors find beside the state what their batch reads, and leave there what they put aside.
        yield Place("checkpoint", str(root), False, field)
        yield Place("state", states.place, True, "run.state", is_local=False)
        yield Place("rejected rows", str(dead_letters_folder(root)), False, field)
    else:
        # A task looks up there which offsets its batch goes to.
        yield Place("checkpoint", str(root), True, field)
        where = state_folder(root) if states is None else states
        yield Place("state", str(where), True, field if states is None else "run.state")
        yield Place("rejected rows", str(dead_letters_folder(root)), True, field)
    if file.relations:
        yield Place("relations as read", str(tables_folder(root)), True, field)


def _of_inputs(file: JoinFile) -> Iterator[Place]:
    for section, what, of_executors in (("streams", "stream", True), ("relations", "relation", False)):
        entries: Mapping[str, Any] = getattr(file, section)
        for name, entry in entries.items():
            kind = INPUTS[entry.source]
            for field, path in kind.files(entry).items():
                yield Place(f"{what} {name}", str(file.resolve(path)), of_executors, f"{section}.{name}.{field}")
            if hosts := kind.hosts(entry):
                yield Place(f"{what} {name}", hosts, of_executors, f"{section}.{name}", is_local=False)


def _of_results(file: JoinFile) -> Iterator[Place]:
    if file.queries is None:
        yield from _of_result(file, file.results, "results", "results")
    for name, query in (file.queries or {}).items():
        yield from _of_result(file, query.results, f"results of {name}", f"queries.{name}.results")


def _of_result(file: JoinFile, results: ResultsFile, what: str, place: str) -> Iterator[Place]:
    if results.parquet is not None:
        yield Place(what, str(file.resolve(results.parquet)), True, f"{place}.parquet")
    if results.jsonl is not None:
        # Executors write to the checkpoint, and the driver puts together what they wrote.
        yield Place(
            f"{what} before they are committed", str(file.checkpoint / "staged-results"), True, "run.checkpoint"
        )
        target = "standard output" if results.jsonl == "-" else str(file.resolve(results.jsonl))
        yield Place(what, target, False, f"{place}.jsonl", is_local=results.jsonl != "-")
    if results.store is not None:
        kind = STORES[results.store]
        for field, path in kind.files(results).items():
            yield Place(what, str(file.resolve(path)), True, f"{place}.{field}")
        if hosts := kind.hosts(results):
            yield Place(what, ",".join(hosts), True, place, is_local=False)


def is_usual(file: JoinFile) -> bool:
    """Whether tasks run on this machine, and state is in the checkpoint: then the file itself says what lies where."""
    return file.cluster is None and file.states in (None, state_folder(file.checkpoint))


def places_text(file: JoinFile) -> str:
    """The place that each part lies in, as a table for people."""
    head = ("part", "who touches it", "where it lies")
    both = "driver, tasks" if file.cluster is None else "driver, executors"
    rows = [(place.what, both if place.of_executors else "driver", place.where) for place in places(file)]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in (0, 1)]
    lines = [f"{what:<{widths[0]}}  {who:<{widths[1]}}  {where}" for what, who, where in (head, *rows)]
    where = "this machine" if file.cluster is None else file.run.master
    return "\n".join([f"tasks run on {where}", "", *lines])


def check_reach(file: JoinFile) -> None:
    """Refuse places that executors on other machines would not find.

    Raises:
        InputError: the first of them, and the ways out.
    """
    if file.cluster is None or file.run.shared:
        return
    for place in places(file):
        if place.of_executors and place.is_local:
            raise InputError(
                f"{place.what} would lie in {place.where}, a folder of this machine alone, and executors of "
                f"{file.run.master} could not reach it; mount the folder at the same path on all its machines and set "
                "run.shared: true (on a platform STREAMJOIN_SPARK_SHARED=true), or set run.master: local",
                field=place.field,
            )
