"""What jobs tell about themselves: events, metrics, logs, snapshots, and rows missing from their results."""

from __future__ import annotations

from typing import Any, Literal

from streamjoin.client.calls.asking import API, ask, given_only, pages, path_of
from streamjoin.client.retry import Patience, fetch, send
from streamjoin.client.shapes import Event, Metrics, RejectedCount, RejectedRow
from streamjoin.client.steps import Exchange, Flow, Request


def job_events(patience: Patience, job: str) -> Flow[Event]:
    """What happened to a job, newest first."""
    yield from pages(patience, path_of("jobs", job, "events"))


def all_events(patience: Patience) -> Flow[Event]:
    """What happened anywhere on the platform, newest first."""
    yield from pages(patience, f"{API}/events")


def job_metrics(patience: Patience, job: str, *, minutes: float = 5.0) -> Exchange[Metrics]:
    """What the job's drivers reported."""
    request = Request("GET", path_of("jobs", job, "metrics"), params={"minutes": str(minutes)}, repeatable=True)
    return (yield from ask(patience, request))


def job_logs(patience: Patience, job: str, *, which: Literal["driver", "spark"] = "driver") -> Exchange[str]:
    """The end of a log of the job."""
    request = Request("GET", path_of("jobs", job, "logs"), params={"which": which}, repeatable=True)
    reply = yield from send(request, patience)
    return reply.body.decode("utf-8", "replace")


def job_snapshots(patience: Patience, job: str) -> Flow[dict[str, Any]]:
    """The snapshots of a job's results, newest first."""
    yield from pages(patience, path_of("jobs", job, "snapshots"))


def rejected_counts(patience: Patience, job: str) -> Exchange[list[RejectedCount]]:
    """How many rows are missing from a job's results, by stream and reason."""
    request = Request("GET", path_of("jobs", job, "rejected"), params={"limit": 1}, repeatable=True)
    found: list[RejectedCount] = (yield from ask(patience, request))["counts"]
    return found


def rejected_rows(
    patience: Patience, job: str, *, stream: str | None = None, reason: str | None = None, before: str | None = None
) -> Flow[RejectedRow]:
    """The rows that are missing from a job's results, as far as they are kept, newest first.

    Args:
        stream, reason: only those of this stream, or with this reason.
        before: only those before the one with this id.
    """
    yield from pages(
        patience, path_of("jobs", job, "rejected"), given_only(stream=stream, reason=reason, starting_after=before)
    )


def download_rejected(
    patience: Patience,
    job: str,
    *,
    stream: str | None = None,
    reason: str | None = None,
    format: Literal["ndjson", "csv"] = "ndjson",
) -> Flow[bytes]:
    """The same rows as a file, oldest first, piece by piece; for the arguments see `rejected`."""
    path = path_of("jobs", job, "rejected", "download")
    yield from fetch(Request("GET", path, params=given_only(stream=stream, reason=reason, format=format)), patience)
