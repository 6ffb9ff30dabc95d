"""Which places of results a job's queries may have: those that are their own, or nobody's."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamjoin.durable import make_folder, put_durably
from streamjoin.operators import registry
from streamjoin.plan.stages import Plan
from streamjoin.results.owners import Claim, Place, check_owner, owned, place_of, take_back
from streamjoin.results.parts import Sink
from streamjoin.spec.job import IDENTITY_FILE, RecordedQuery, queries_of, recorded, recorded_query
from streamjoin.spec.prepare import Bound
from streamjoin.state.generation import last_logged
from streamjoin.state.root import ObjectRoot

SPARKS = "spark"
"""The folder of a checkpoint that Spark's own join has."""
NOTED_FILE = "results.json"
"""Says, in a checkpoint, where the results of its queries went."""


def check_owners(bound: Bound, *, is_brought: bool = True) -> None:
    """Refuse places that have results of somebody else, before anything starts and without writing anything.

    Args:
        is_brought: whether a checkpoint whose state is in a store is what that says; else nothing is said of one that
            may be there.
    Raises:
        InputError: one has; the message says whose, as far as known, and the way out.
    """
    checkpoint = bound.file.checkpoint
    if registry.is_sparks(bound.operator):
        if (place := _sparks_place(bound)) is not None:
            check_owner(place, _sparks_claim(bound, checkpoint / SPARKS))
        return
    if not is_brought and isinstance(bound.file.states, ObjectRoot) and not (checkpoint / IDENTITY_FILE).exists():
        return
    known = bound.earlier.names_of_queries if bound.earlier else ()
    for query in (*bound.queries, *(one for one in bound.stopped if one.name in known)):
        if query.file.results.parquet is None and query.file.results.jsonl is None:
            continue
        asks = recorded_query(query.name, query.plan.queries[0])
        if (place := place_of(query.sink(), was_unnamed=_was_unnamed(checkpoint, asks))) is not None:
            check_owner(place, claim(checkpoint, asks))


@contextmanager
def owned_by_spark(bound: Bound, checkpoint: Path) -> Iterator[None]:
    """Hold the place that Spark's own sink writes to.

    Raises:
        InputError: it has results of somebody else, or another job writes there.
    """
    if (place := _sparks_place(bound)) is None:
        yield
        return
    folder = checkpoint / SPARKS
    mine = _sparks_claim(bound, folder)
    check_owner(place, mine)
    if not mine.id:
        mine = replace(mine, id=uuid.uuid4().hex)
        make_folder(folder)
        put_durably(folder / IDENTITY_FILE, json.dumps({"id": mine.id}).encode())
    with owned(place, mine):
        yield


def _sparks_place(bound: Bound) -> Place | None:
    results = bound.file.results
    if results.parquet is not None:
        return Place(bound.file.resolve(results.parquet), "spark", "results.parquet")
    if results.jsonl is not None and results.jsonl != "-":
        return Place(bound.file.resolve(results.jsonl), "spark", "results.jsonl")
    return None


@contextmanager
def owned_places(
    checkpoint: Path, plans: Sequence[Plan], sinks: Mapping[str, Sink], *, is_fenced: bool = False
) -> Iterator[None]:
    """Hold the places that sinks write to, and note them in the checkpoint, which is held.

    Args:
        plans: with the queries.
        sinks: of each query, by its name.
        is_fenced: see `Claim`.
    Raises:
        InputError: a place has results of somebody else, or another job writes there.
    """
    asked = {query.name: query for plan in plans for query in queries_of(plan)}
    places: dict[str, tuple[Place, Claim]] = {}
    for name, sink in sinks.items():
        if (place := place_of(sink, was_unnamed=_was_unnamed(checkpoint, asked[name]))) is not None:
            places[name] = place, replace(claim(checkpoint, asked[name]), is_fenced=is_fenced)
    noted, came_along = _noted(checkpoint), _noted_in(checkpoint) != os.path.abspath(checkpoint)
    with ExitStack() as stack:
        for name, (place, mine) in places.items():
            stack.enter_context(owned(place, mine))
            before = [Path(os.path.realpath(path)) for path in (noted or {}).get(name, ())]
            if place.real in before:
                continue
            done = last_logged(checkpoint / "offsets", "commits")
            # Of the places where they may be now, the first one that is the checkpoint's own.
            any(take_back(Place(one, place.kind, place.field), mine, done, came_along=came_along) for one in before)
        _note(checkpoint, {name: str(place.real) for name, (place, _) in places.items()})
        yield


def _sparks_claim(bound: Bound, folder: Path) -> Claim:
    """Spark keeps its logs in the folder itself, and we those of ours in a folder below."""
    return replace(claim(folder, recorded_query("", bound.plan.queries[0])), planned=last_logged(folder, "offsets"))


def claim(checkpoint: Path, query: RecordedQuery) -> Claim:
    """What a checkpoint says of whose results a query's are."""
    called = [query.name, *([""] if _was_unnamed(checkpoint, query) else [])]
    return Claim(
        str(read_note(checkpoint / IDENTITY_FILE).get("id", "")),
        checkpoint,
        query.name,
        frozenset(called),
        last_logged(checkpoint / "offsets", "offsets"),
        _likely(checkpoint),
        f"queries.{query.name}." if query.name else "",
    )


def _was_unnamed(checkpoint: Path, query: RecordedQuery) -> bool:
    """Whether it is the query of a checkpoint that had one, without a name, or has been until now."""
    found = recorded(checkpoint)
    return found is not None and any(not one.name and one.is_same(query) for one in found.queries)


def _note(checkpoint: Path, places: Mapping[str, str]) -> None:
    now = {"checkpoint": os.path.abspath(checkpoint), "places": {**(_likely(checkpoint) or {}), **places}}
    if now != read_note(checkpoint / NOTED_FILE):
        put_durably(checkpoint / NOTED_FILE, json.dumps(now, indent=1).encode())


def _likely(checkpoint: Path) -> dict[str, str] | None:
    """Where results most likely are: of the places where they may be, the first one that is there."""
    if (noted := _noted(checkpoint)) is None:
        return None
    return {name: next(filter(os.path.exists, paths), paths[0]) for name, paths in noted.items() if paths}


def _noted(checkpoint: Path) -> dict[str, tuple[str, ...]] | None:
    """Where results may be that went to the places that were noted; None where none were."""
    if not (checkpoint / NOTED_FILE).exists():
        return None
    found, before = read_note(checkpoint / NOTED_FILE), _noted_in(checkpoint)
    places = found["places"] if isinstance(found.get("places"), dict) else found  # once, without the checkpoint
    return {name: places_now(path, before, checkpoint) for name, path in places.items()}


def _noted_in(checkpoint: Path) -> str:
    """Where the checkpoint was when the places were noted."""
    found, now = read_note(checkpoint / NOTED_FILE), os.path.abspath(checkpoint)
    before = found.get("checkpoint") if isinstance(found.get("places"), dict) else now
    return before if isinstance(before, str) else now


def places_now(path: str, before: str, checkpoint: Path) -> tuple[str, ...]:
    """Where a path may be now that was noted when a checkpoint's folder was `before`, most likely first.

    What lies beside a checkpoint is moved or copied with it; what does not stays where it is, and is its original's
    where the checkpoint is a copy. That is also so if the checkpoint alone was copied to where its original is: what
    lies beside both is not the copy's.
    """
    now = os.path.abspath(checkpoint)
    if before == now:
        return (path,)
    beside = seen_from(path, before, now)
    if not is_copy(checkpoint, before):
        return (beside, path)
    return () if os.path.realpath(beside) == os.path.realpath(path) else (beside,)


def is_copy(checkpoint: Path, before: str) -> bool:
    """Whether the same checkpoint is still in the folder `before`."""
    there, mine = (read_note(Path(folder) / IDENTITY_FILE).get("id") for folder in (before, checkpoint))
    return there is not None and there == mine and not os.path.samefile(before, checkpoint)


def seen_from(path: str, before: str, now: str) -> str:
    """A path beside a checkpoint's folder `before`, where that folder is `now`."""
    return os.path.normpath(os.path.join(now, os.path.relpath(path, before)))


def read_note(path: Path) -> dict[str, Any]:
    """What a small file of a checkpoint says; nothing where it is missing or damaged."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
