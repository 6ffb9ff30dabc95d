"""Jobs: making and changing them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from streamjoin.client.calls.asking import API, ask, given_only, if_match, pages, path_of
from streamjoin.client.retry import Patience, keyed
from streamjoin.client.shapes import Diff, Job
from streamjoin.client.steps import Exchange, Flow, Request


def list_jobs(
    patience: Patience, *, phase: str | None = None, owner: str | None = None, since: str | None = None
) -> Flow[Job]:
    """All jobs, newest first.

    Args:
        phase: only those in it, such as `running`.
        owner: only those of this user: an id, or "me".
        since: only those that were made at this time (ISO 8601) or later.
    """
    yield from pages(patience, f"{API}/jobs", given_only(phase=phase, owner=owner, since=since))


def get_job(patience: Patience, job: str) -> Exchange[Job]:
    """One job."""
    return (yield from ask(patience, Request("GET", path_of("jobs", job), repeatable=True)))


def create_job(
    patience: Patience,
    name: str,
    query: str,
    *,
    streams: Iterable[str] | None = None,
    queries: Mapping[str, Mapping[str, Any]] | None = None,
    operator: Mapping[str, Any] | None = None,
    results: Mapping[str, Any] | None = None,
    run: Mapping[str, Any] | None = None,
    start: bool = False,
) -> Exchange[Job]:
    """Create a job; it is stopped unless `start`.

    Args:
        streams: names; those that the query names unless given.
        queries: others beside it by name, such as `{"cheap": {"query": "SELECT ONLINE ..."}}`; their results are those
            of `job:name`.
        operator, results, run: as in a join file.
    """
    body = given_only(
        name=name, query=query, queries=queries, streams=None if streams is None else list(streams),
        operator=operator, results=results, run=run, start=start or None,
    )  # fmt: skip
    return (yield from ask(patience, keyed(Request("POST", f"{API}/jobs", json=body))))


def change_job(patience: Patience, /, job: str, *, version: int | None = None, **change: Any) -> Exchange[Job]:
    """Change a job; a running one goes on with the change at a batch boundary.

    Args:
        version: which one is changed; refused if it is not the newest. Whatever is there, if not given.
        change: query, queries, operator, results, run, refresh_streams, start_anew.
    """
    request = Request("PATCH", path_of("jobs", job), json=given_only(**change), headers=if_match(version))
    return (yield from ask(patience, request))


def diff_job(patience: Patience, /, job: str, **change: Any) -> Exchange[Diff]:
    """What a change would do."""
    request = Request("POST", path_of("jobs", job, "diff"), json=given_only(**change), repeatable=True)
    return (yield from ask(patience, request))
