"""Versions of relations while a job runs: which ones are still needed, and what is told of them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Any

from streamjoin.relations.history import History
from streamjoin.relations.versions import Version, Versions
from streamjoin.spark.offsetlog import logged_in, versions_joined
from streamjoin.spec.job import Job
from streamjoin.state.store import KEPT_VERSIONS


def keep_versions(job: Job, batch: int) -> None:
    """Remove versions that no kept version of the state names, once a batch is done, and that no later one can join.

    Cost: lists a folder a relation; reads the offsets of the kept batches where there is more than one version.
    """
    for name in job.relations:
        versions = Versions(job.tables, name)
        if len(versions.numbers()) < 2:
            continue
        needed: set[int] = set()
        for kept in range(max(batch - KEPT_VERSIONS + 1, 0), batch + 2):
            with contextlib.suppress(FileNotFoundError):  # not planned yet
                needed.add(versions_joined(logged_in(job.offsets), kept).get(name, 0))
        versions.keep(needed)


def note_use(job: Job, batch: int, known: Mapping[str, dict[str, Any]]) -> None:
    """Note which version of each relation a batch has joined.

    Args:
        known: by relation, what is told of it; `joined` is the version that was joined last.
    Cost: one small file; where a version is joined for the first time, as much as its history has.
    """
    if not job.relations:
        return
    for name, number in versions_joined(logged_in(job.offsets), batch).items():
        if name in known and known[name].get("joined") != number:  # else its query has ended since
            version = Versions(job.tables, name).load(number)
            History(job.tables, name).used(version, batch, time.time_ns() // 1_000)
            known[name]["joined"] = number


def told(version: Version) -> dict[str, Any]:
    """What a report says of a version."""
    return {
        "version": version.number, "rows": version.rows, "bad": version.bad, "bytes": version.bytes,
        "read_us": version.read_us,
    }  # fmt: skip
