"""What the API can be asked, one conversation each; `client` runs them.

Every conversation gets the client's patience first. Names of things are ids or names; both are taken.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any, Literal
from urllib.parse import quote

from streamjoin.client.answer import Answer, joined, read_answer
from streamjoin.client.errors import AnswerError, StreamJoinApiError
from streamjoin.client.retry import Patience, fetch, keyed, send
from streamjoin.client.shapes import (
    Diagnostics,
    Diff,
    Event,
    Explanation,
    FileEntry,
    Job,
    Metrics,
    Preview,
    Pushed,
    RejectedCount,
    RejectedRow,
    Relation,
    RelationSample,
    Sample,
    Stream,
    Upload,
)
from streamjoin.client.steps import Emit, Exchange, Flow, Pause, Reply, Request
from streamjoin.errors import InputError

API = "/api/v1"
PAGE = 100
LOOK_S = 0.5


class WaitedTooLong(StreamJoinApiError):
    """A job did not come to where it was to go, in the time that was given."""


def list_streams(patience: Patience) -> Flow[Stream]:
    """All streams, newest first."""
    yield from _pages(patience, f"{API}/streams")


def get_stream(patience: Patience, stream: str) -> Exchange[Stream]:
    """One stream."""
    return (yield from ask(patience, Request("GET", _path("streams", stream), repeatable=True)))


def create_stream(
    patience: Patience, name: str, spec: Mapping[str, Any], *, secrets: Mapping[str, str] | None = None
) -> Exchange[Stream]:
    """Register a stream.

    Args:
        spec: an entry of `streams:` of a join file.
        secrets: what connects to it; never shown again.
    """
    body = _given(name=name, spec=dict(spec), secrets=dict(secrets) if secrets else None)
    return (yield from ask(patience, keyed(Request("POST", f"{API}/streams", json=body))))


def change_stream(
    patience: Patience,
    stream: str,
    *,
    spec: Mapping[str, Any] | None = None,
    secrets: Mapping[str, str] | None = None,
    version: int | None = None,
) -> Exchange[Stream]:
    """Change a stream.

    Args:
        version: which one is changed; refused if it is not the newest. Whatever is there, if not given.
    """
    body = _given(spec=spec, secrets=secrets)
    return (yield from ask(patience, Request("PATCH", _path("streams", stream), json=body, headers=_match(version))))


def delete_stream(patience: Patience, stream: str) -> Exchange[None]:
    """Remove a stream."""
    yield from send(Request("DELETE", _path("streams", stream)), patience)


def look_at_stream(
    patience: Patience, spec: Mapping[str, Any], *, secrets: Mapping[str, str] | None = None
) -> Exchange[Sample]:
    """Look at a stream without registering it."""
    body = _given(spec=dict(spec), secrets=dict(secrets) if secrets else None)
    return (yield from ask(patience, Request("POST", f"{API}/streams/test", json=body, repeatable=True)))


def sample_stream(patience: Patience, stream: str) -> Exchange[Sample]:
    """Look at a registered stream."""
    return (yield from ask(patience, Request("POST", _path("streams", stream, "sample"), repeatable=True)))


def push_rows(
    patience: Patience, stream: str, rows: Iterable[Mapping[str, Any]], *, batch_id: str | None = None
) -> Exchange[Pushed]:
    """Push rows into a stream of source `push`; they are on disk when this returns.

    Args:
        batch_id: your own name of these rows. Given one, rows that get lost on the way are sent again, and are there
            once; without one they are sent once.
    """
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    request = Request(
        "POST", _path("streams", stream, "rows"), params=_given(batch_id=batch_id), content=content,
        headers={"Content-Type": "application/x-ndjson"}, repeatable=batch_id is not None,
    )  # fmt: skip
    return (yield from ask(patience, request))


def list_uploads(patience: Patience) -> Flow[Upload]:
    """All uploaded files, by name."""
    yield from _pages(patience, f"{API}/uploads", key="name")


def add_upload(patience: Patience, name: str, content: bytes) -> Exchange[Upload]:
    """Send a small file, which streams and relations read as `upload:NAME`; it is on disk when this returns.

    Sent again with the same content, nothing changes.
    """
    request = Request(
        "POST", f"{API}/uploads", params={"name": name}, content=content,
        headers={"Content-Type": "application/octet-stream"}, repeatable=True,
    )  # fmt: skip
    return (yield from ask(patience, request))


def delete_upload(patience: Patience, name: str) -> Exchange[None]:
    """Remove an uploaded file; refused while something reads it."""
    yield from send(Request("DELETE", _path("uploads", name)), patience)


def list_files(patience: Patience, folder: str | None = None) -> Flow[FileEntry]:
    """Files and folders that streams may read, folders first.

    Args:
        folder: its path; without one, the folders that may be read from are listed.
    """
    yield from _pages(patience, f"{API}/files", _given(path=folder), key="name")


def list_relations(patience: Patience) -> Flow[Relation]:
    """All relations, newest first."""
    yield from _pages(patience, f"{API}/relations")


def get_relation(patience: Patience, relation: str) -> Exchange[Relation]:
    """One relation."""
    return (yield from ask(patience, Request("GET", _path("relations", relation), repeatable=True)))


def create_relation(patience: Patience, name: str, spec: Mapping[str, Any]) -> Exchange[Relation]:
    """Register a relation.

    Args:
        spec: an entry of `relations:` of a join file.
    """
    body = {"name": name, "spec": dict(spec)}
    return (yield from ask(patience, keyed(Request("POST", f"{API}/relations", json=body))))


def change_relation(
    patience: Patience, relation: str, *, spec: Mapping[str, Any], version: int | None = None
) -> Exchange[Relation]:
    """Change a relation.

    Args:
        version: which one is changed; refused if it is not the newest. Whatever is there, if not given.
    """
    request = Request("PATCH", _path("relations", relation), json={"spec": dict(spec)}, headers=_match(version))
    return (yield from ask(patience, request))


def delete_relation(patience: Patience, relation: str) -> Exchange[None]:
    """Remove a relation; its files stay."""
    yield from send(Request("DELETE", _path("relations", relation)), patience)


def look_at_relation(patience: Patience, spec: Mapping[str, Any]) -> Exchange[RelationSample]:
    """Look at a relation without registering it."""
    body = {"spec": dict(spec)}
    return (yield from ask(patience, Request("POST", f"{API}/relations/test", json=body, repeatable=True)))


def sample_relation(patience: Patience, relation: str) -> Exchange[RelationSample]:
    """Look at a registered relation."""
    return (yield from ask(patience, Request("POST", _path("relations", relation, "sample"), repeatable=True)))


def validate(patience: Patience, /, query: str, **draft: Any) -> Exchange[Diagnostics]:
    """Check a query; mistakes are the answer.

    Args:
        draft: streams, queries, operator, results and run, as in a job.
    """
    body = _given(query=query, **draft)
    return (yield from ask(patience, Request("POST", f"{API}/jobs/validate", json=body, repeatable=True)))


def explain(patience: Patience, /, query: str, **draft: Any) -> Exchange[Explanation]:
    """Show how a query would run, and what every operator would cost."""
    body = _given(query=query, **draft)
    return (yield from ask(patience, Request("POST", f"{API}/jobs/explain", json=body, repeatable=True)))


def preview(patience: Patience, /, query: str, **draft: Any) -> Exchange[Preview]:
    """Show up to 20 rows that a query would give, from samples of the streams, or why there are none."""
    body = _given(query=query, **draft)
    return (yield from ask(patience, Request("POST", f"{API}/jobs/preview", json=body, repeatable=True)))


def list_jobs(patience: Patience) -> Flow[Job]:
    """All jobs, newest first."""
    yield from _pages(patience, f"{API}/jobs")


def get_job(patience: Patience, job: str) -> Exchange[Job]:
    """One job."""
    return (yield from ask(patience, Request("GET", _path("jobs", job), repeatable=True)))


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
    body = _given(
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
    request = Request("PATCH", _path("jobs", job), json=_given(**change), headers=_match(version))
    return (yield from ask(patience, request))


def diff_job(patience: Patience, /, job: str, **change: Any) -> Exchange[Diff]:
    """What a change would do."""
    request = Request("POST", _path("jobs", job, "diff"), json=_given(**change), repeatable=True)
    return (yield from ask(patience, request))


def start_job(patience: Patience, job: str, *, wait_s: float | None = None) -> Exchange[Job]:
    """Let a job run.

    Args:
        wait_s: return once it runs, or raise when it does not within so many seconds.
    """
    found = yield from _act(patience, job, "start")
    return (yield from _settled(patience, found, ("running",), wait_s))


def stop_job(patience: Patience, job: str, *, wait_s: float | None = None) -> Exchange[Job]:
    """Let a job stop after the batch that runs; for `wait_s` see `start`."""
    found = yield from _act(patience, job, "stop")
    return (yield from _settled(patience, found, ("stopped", "failed"), wait_s))


def restart_job(patience: Patience, job: str, *, wait_s: float | None = None) -> Exchange[Job]:
    """Stop a job and start it again; for `wait_s` see `start`."""
    found = yield from _act(patience, job, "restart")
    return (yield from _settled(patience, found, ("running",), wait_s, found["generation"] + 1))


def rescale_job(patience: Patience, job: str, slots: int, *, wait_s: float | None = None) -> Exchange[Job]:
    """Give a job another number of slots; for `wait_s` see `start`."""
    before: Job = yield from get_job(patience, job)
    found = yield from _act(patience, before["id"], "rescale", {"slots": slots})
    # A running job takes it over by its next generation, unless nothing changed.
    restarts = found["wanted"] == "running" and found["version"] != before["version"]
    generation = found["generation"] + restarts
    return (yield from _settled(patience, found, ("running", "stopped", "failed"), wait_s, generation))


def delete_job(patience: Patience, job: str, *, wait_s: float | None = None) -> Exchange[None]:
    """Delete a job with its state and its results.

    Args:
        wait_s: return once all of it is gone, or raise when it is not within so many seconds.
    """
    # By its id: another job may get the name while we wait.
    found: Job = yield from ask(patience, Request("DELETE", _path("jobs", job)))
    if wait_s is None:
        return
    ends_s = time.monotonic() + wait_s
    while True:
        try:
            found = yield from get_job(patience, found["id"])
        except StreamJoinApiError as failure:
            if failure.status == 404:
                return
            raise
        yield from _sleep(found, ends_s, "gone", wait_s)


def wait_for_job(
    patience: Patience, job: str, phases: Iterable[str], *, wait_s: float = 120.0, generation_min: int = 0
) -> Exchange[Job]:
    """Wait until a job is in one of `phases`.

    Args:
        generation_min: and until it was launched so often.
    Raises:
        WaitedTooLong: it was not within `wait_s`, or it failed; the message has the reason.
    """
    wanted = tuple(phases)
    ends_s = time.monotonic() + wait_s
    while True:
        found = yield from get_job(patience, job)
        if found["phase"] in wanted and found["generation"] >= generation_min:
            return found
        yield from _sleep(found, ends_s, " or ".join(wanted), wait_s)


def job_events(patience: Patience, job: str) -> Flow[Event]:
    """What happened to a job, newest first."""
    yield from _pages(patience, _path("jobs", job, "events"))


def all_events(patience: Patience) -> Flow[Event]:
    """What happened anywhere on the platform, newest first."""
    yield from _pages(patience, f"{API}/events")


def job_metrics(patience: Patience, job: str, *, minutes: float = 5.0) -> Exchange[Metrics]:
    """What the job's drivers reported."""
    request = Request("GET", _path("jobs", job, "metrics"), params={"minutes": str(minutes)}, repeatable=True)
    return (yield from ask(patience, request))


def job_logs(patience: Patience, job: str, *, which: Literal["driver", "spark"] = "driver") -> Exchange[str]:
    """The end of a log of the job."""
    request = Request("GET", _path("jobs", job, "logs"), params={"which": which}, repeatable=True)
    reply = yield from send(request, patience)
    return reply.body.decode("utf-8", "replace")


def job_snapshots(patience: Patience, job: str) -> Flow[dict[str, Any]]:
    """The snapshots of a job's results, newest first."""
    yield from _pages(patience, _path("jobs", job, "snapshots"))


def rejected_counts(patience: Patience, job: str) -> Exchange[list[RejectedCount]]:
    """How many rows are missing from a job's results, by stream and reason."""
    request = Request("GET", _path("jobs", job, "rejected"), params={"limit": 1}, repeatable=True)
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
    yield from _pages(
        patience, _path("jobs", job, "rejected"), _given(stream=stream, reason=reason, starting_after=before)
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
    path = _path("jobs", job, "rejected", "download")
    yield from fetch(Request("GET", path, params=_given(stream=stream, reason=reason, format=format)), patience)


def query(
    patience: Patience,
    job: str,
    *,
    from_: str | int | None = None,
    to: str | int | None = None,
    key: Any = None,
    key_from: Any = None,
    key_to: Any = None,
    select: Iterable[str] | None = None,
    where: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    after: str | None = None,
    upto: str | None = None,
    aggregate: str | None = None,
    by: Iterable[str] | None = None,
) -> Exchange[Answer]:
    """Ask the results of a job once. Ranges include both ends.

    Args:
        from_, to: the results' time: ISO 8601, or integer microseconds.
        key, key_from, key_to: the results' key.
        where: a condition over the result columns.
        limit: rows at most; the answer then has a cursor, with which the same question goes on. Without a limit all
            pages are fetched, as of one snapshot.
        after, upto: only snapshots after this one, and up to that one.
        aggregate: in place of rows, such as "count, sum(price)"; `by` columns gives a row for each of their values.
    """
    body = _given(
        job=job, to=to, key=key, key_from=key_from, key_to=key_to, select=None if select is None else list(select),
        where=where, limit=limit, cursor=cursor, after=after, upto=upto, aggregate=aggregate,
        by=None if by is None else list(by), format="arrow",
    )  # fmt: skip
    if from_ is not None:
        body["from"] = from_
    parts: list[Answer] = []
    while True:
        reply = yield from send(Request("POST", f"{API}/queries", json=body, repeatable=True), patience)
        part = read_answer(reply, patience.host)
        parts.append(part)
        left = None if limit is None else limit - sum(len(answer) for answer in parts)
        # A page that came to nothing new would come to nothing again.
        if part.cursor is None or part.cursor == body.get("cursor") or left == 0:
            return joined(parts)
        body["cursor"] = part.cursor
        if left is not None:
            body["limit"] = left


def call(
    patience: Patience, method: str, path: str, *, params: Mapping[str, str | int] | None = None, json: Any = None
) -> Exchange[Any]:
    """Call any route of the API, such as `call("GET", "/api/v1/config")`; the JSON it answers with, or None.

    A POST is sent with an idempotency key, so it may be repeated.
    """
    request = Request(method.upper(), path, params=params or {}, json=json, repeatable=method.upper() == "GET")
    return (yield from ask(patience, keyed(request) if request.method == "POST" else request))


def ask(patience: Patience, request: Request) -> Exchange[Any]:
    """The JSON that a request is answered with."""
    reply = yield from send(request, patience)
    return _json(reply, patience.host)


def _pages(patience: Patience, path: str, given: Mapping[str, str] | None = None, *, key: str = "id") -> Flow[Any]:
    """Items of all pages; a page is asked for when the one before has been used up.

    Args:
        key: the field of an item that the next page comes after.
    """
    params: dict[str, str | int] = {"limit": PAGE, **(given or {})}
    while True:
        page = yield from ask(patience, Request("GET", path, params=params, repeatable=True))
        if not isinstance(page, dict) or not isinstance(page.get("data"), list):
            raise AnswerError(
                f"{patience.host}{path} gave no list; is it a StreamJoin of this version?", code="no_list"
            )
        for item in page["data"]:
            yield Emit(item)
        if not page.get("has_more") or not page["data"]:
            return
        params["starting_after"] = page["data"][-1][key]


def _act(patience: Patience, job: str, action: str, body: Any = None) -> Exchange[Job]:
    return (yield from ask(patience, keyed(Request("POST", _path("jobs", job, action), json=body))))


def _settled(
    patience: Patience, job: Job, phases: tuple[str, ...], wait_s: float | None, generation_min: int = 0
) -> Exchange[Job]:
    if wait_s is None:
        return job
    found = wait_for_job(patience, job["id"], phases, wait_s=wait_s, generation_min=generation_min)
    return (yield from found)


def _sleep(job: Job, ends_s: float, goal: str, wait_s: float) -> Exchange[None]:
    why = f": {job['reason']}" if job.get("reason") else ""
    if job["phase"] == "failed":
        raise WaitedTooLong(f"job {job['name']} failed{why}", code="job_failed")
    if time.monotonic() >= ends_s:
        raise WaitedTooLong(
            f"job {job['name']} is {job['phase']} and not {goal} after {wait_s:g} s{why}", code="waited_too_long"
        )
    yield Pause(LOOK_S)


def _json(reply: Reply, host: str) -> Any:
    if not reply.body:
        return None
    try:
        return json.loads(reply.body)
    except ValueError:
        raise AnswerError(
            f"{host} answered with something that is not JSON; does STREAMJOIN_HOST name the platform?",
            status=reply.status, code="not_json",
        ) from None  # fmt: skip


def _path(*parts: str) -> str:
    if not all(parts):
        raise InputError("a job, stream or relation is named by its id or name, which must not be empty")
    return "/".join([API, *(quote(part, safe="") for part in parts)])


def _match(version: int | None) -> dict[str, str]:
    return {"If-Match": "*" if version is None else f'"{version}"'}


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
