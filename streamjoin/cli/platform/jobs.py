"""`streamjoin jobs`: joins that the platform runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal

import cyclopts

from streamjoin.cli.platform.anew import Yes, agree, tell
from streamjoin.cli.platform.common import (
    HERE,
    File,
    Output,
    Version,
    Wait,
    WaitS,
    Where,
    note,
    read_document,
    show,
    warn,
)
from streamjoin.cli.platform.jobfile import change_of, draft_of
from streamjoin.cli.platform.registering import check_registered, entries_of, registered
from streamjoin.cli.platform.rejected import RejectedOutput, RowLimit, Rows, show_counts, show_rows
from streamjoin.errors import InputError

if TYPE_CHECKING:
    from streamjoin.client import Client

app = cyclopts.App(name="jobs", help="Jobs of the platform: joins that run, or are to.")
COLUMNS = ("name", "phase", "wanted", "streams", "operator.name", "generation", "version", "reason", "id")
EVENTS = ("at", "severity", "kind", "message")
CHANGES = ("field", "before", "after", "effect")
LOOK_S = 1.0
Own = Annotated[
    str | None,
    cyclopts.Parameter(
        name="--own", help="Which of the file's `queries:` is the job's own; the first that runs unless given."
    ),
]


@app.command(name="ls")
def list_jobs(
    *, phase: str | None = None, owner: str | None = None, since: str | None = None, output: Output = "table",
    where: Where = HERE,
) -> None:  # fmt: skip
    """List all jobs, newest first.

    Parameters
    ----------
    phase
        Only those in it, such as running.
    owner
        Only those of this user: an id, or me.
    since
        Only those that were made at this time or later.
    """
    with where.client() as client:
        show(list(client.jobs.list(phase=phase, owner=owner, since=since)), output, COLUMNS)


@app.command
def get(job: str, *, output: Output = "yaml", where: Where = HERE) -> None:
    """Show a job.

    Parameters
    ----------
    job
        Its id or name.
    """
    with where.client() as client:
        show(client.jobs.get(job), output, COLUMNS)


@app.command
def validate(*, file: File, own: Own = None, output: Output = "table", where: Where = HERE) -> None:
    """Check a job's file against the registered streams; exit status 2 where it is wrong.

    Whether a job that has begun may become this, `streamjoin jobs update JOB -f FILE --dry-run` tells.
    """
    with where.client() as client:
        found = client.jobs.validate(**_looked_at(client, file, own))
        if output in ("json", "yaml"):
            show(found, output)
        elif found["valid"]:
            print(f"this is right: {found['summary']}")
        else:
            for place in found["diagnostics"]:
                print(_place(place))
    if not found["valid"]:
        sys.exit(2)


@app.command
def explain(*, file: File, own: Own = None, output: Output = "table", where: Where = HERE) -> None:
    """Show how a job's file would run, and what every operator would cost."""
    with where.client() as client:
        found = client.jobs.explain(**_looked_at(client, file, own))
        if output in ("json", "yaml"):
            show(found["plan"], output)
        else:
            print(found["text"])


@app.command
def preview(*, file: File, own: Own = None, output: Output = "table", where: Where = HERE) -> None:
    """Show up to 20 rows that a job's file would give, from samples of the streams, or why there are none."""
    with where.client() as client:
        found = client.jobs.preview(**_looked_at(client, file, own))
        if output in ("json", "yaml"):
            show(found, output)
        else:
            print(found["text"])


@app.command
def create(
    name: str | None = None, *, file: File, own: Own = None,
    start: Annotated[bool, cyclopts.Parameter(negative=())] = False, wait: Wait = False,
    timeout: WaitS = 120.0, output: Output = "yaml", where: Where = HERE,
) -> None:  # fmt: skip
    """Create a job from a join file, or from query, others beside it as queries, operator, results and run.

    Where the file has whole sections `streams:` and `relations:`, those that are not there yet are registered first;
    relative paths in it are paths of this machine. Of a file with queries alone, one is the job's own.

    Parameters
    ----------
    name
        Its name, unless the file has it.
    start
        Let it run at once.
    """
    with where.client() as client:
        document = read_document(file)
        called = name or document.get("name")
        if not called:
            raise InputError("a job needs a name: streamjoin jobs create NAME -f FILE, or `name:` in the file")
        draft = _draft(document, own)
        with registered(client, entries_of(document, file, client.host)):
            job = client.jobs.create(str(called), start=start, **draft)
        if start and wait:
            job = client.jobs.wait(job["id"], ("running",), wait_s=timeout, or_done=True, first_batch=True)
        note(f"job {job['name']} is {job['phase']} as {job['id']}")
        show(job, output, COLUMNS)


@app.command
def start(
    job: str, *, wait: Wait = False, timeout: WaitS = 120.0, output: Output = "table", where: Where = HERE
) -> None:
    """Let a job run; it goes on where it stopped.

    Parameters
    ----------
    job
        Its id or name.
    """
    with where.client() as client:
        show([client.jobs.start(job, wait_s=timeout if wait else None)], output, COLUMNS)


@app.command
def stop(
    job: str, *, wait: Wait = False, timeout: WaitS = 120.0, output: Output = "table", where: Where = HERE
) -> None:
    """Let a job stop after the batch that runs.

    Parameters
    ----------
    job
        Its id or name.
    """
    with where.client() as client:
        show([client.jobs.stop(job, wait_s=timeout if wait else None)], output, COLUMNS)


@app.command
def restart(
    job: str, *, wait: Wait = False, timeout: WaitS = 120.0, output: Output = "table", where: Where = HERE
) -> None:
    """Stop a job after the batch that runs, and start it again.

    Parameters
    ----------
    job
        Its id or name.
    """
    with where.client() as client:
        show([client.jobs.restart(job, wait_s=timeout if wait else None)], output, COLUMNS)


@app.command
def update(
    job: str, *, file: File, own: Own = None, version: Version = None,
    dry_run: Annotated[bool, cyclopts.Parameter(negative=(), help="Only show what would change.")] = False,
    yes: Yes = False, output: Output = "table", where: Where = HERE,
) -> None:  # fmt: skip
    """Change a job; a running one goes on with the change at a batch boundary.

    The file has the sections that change: query, queries, operator, results, run; or it is the one that made the job,
    with streams and relations as they are registered. `refresh_streams: true` takes the streams over as they are
    registered now; `start_anew: true` agrees that the job begins again without its state, where it must. Where it could
    go on with that, it needs --yes, too.

    Parameters
    ----------
    job
        Its id or name.
    """
    document = read_document(file)
    with where.client() as client:
        change = _change(client, job, document, file, own)
        if dry_run:
            found = client.jobs.diff(job, **change)
            show(found["changes"] if output in ("table", "csv") else found, output, CHANGES)
            if found["starts_anew"]:
                why = next((f": {item['reason']}" for item in found["changes"] if item.get("reason")), "")
                note(f"the job would begin again without its state; it needs `start_anew: true`{why}")
                tell(found)
        else:
            if change.get("start_anew"):
                agree(client.jobs.diff(job, **change), yes=yes)
            show([client.jobs.change(job, version=version, **change)], output, COLUMNS)


@app.command
def rescale(
    job: str, slots: int, *, wait: Wait = False, timeout: WaitS = 120.0, output: Output = "table", where: Where = HERE
) -> None:
    """Give a job another number of slots; its state stays.

    Parameters
    ----------
    job
        Its id or name.
    slots
        How many parts of the join run side by side.
    """
    with where.client() as client:
        show([client.jobs.rescale(job, slots, wait_s=timeout if wait else None)], output, COLUMNS)


@app.command
def delete(job: str, *, wait: Wait = False, timeout: WaitS = 120.0, where: Where = HERE) -> None:
    """Delete a job with its state and its results.

    Parameters
    ----------
    job
        Its id or name.
    """
    with where.client() as client:
        client.jobs.delete(job, wait_s=timeout if wait else None)
        note(f"job {job} is {'gone' if wait else 'being deleted'}")


@app.command
def events(job: str, *, limit: int = 50, output: Output = "table", where: Where = HERE) -> None:
    """Show what happened to a job, oldest first.

    Parameters
    ----------
    job
        Its id or name.
    limit
        Only so many, the newest.
    """
    with where.client() as client:
        found = [event for _, event in zip(range(limit), client.jobs.events(job), strict=False)]
        show(found[::-1], output, EVENTS)


@app.command
def logs(
    job: str, *, which: Literal["driver", "spark"] = "driver",
    follow: Annotated[bool, cyclopts.Parameter(name=["--follow"], negative=())] = False, where: Where = HERE,
) -> None:  # fmt: skip
    """Show the end of a log of the job.

    Parameters
    ----------
    job
        Its id or name.
    which
        The driver's own log, or Spark's.
    follow
        Go on with what is added, until Ctrl-C.
    """
    with where.client() as client:
        shown = client.jobs.logs(job, which=which)
        sys.stdout.write(shown)
        with suppress(KeyboardInterrupt):
            while follow:
                sys.stdout.flush()
                time.sleep(LOOK_S)
                now = client.jobs.logs(job, which=which)
                sys.stdout.write(added(shown, now))
                shown = now


@app.command
def rejected(
    job: str, *, rows: Rows = False, stream: str | None = None, reason: str | None = None, limit: RowLimit = 20,
    before: str | None = None, output: RejectedOutput = "table", where: Where = HERE,
) -> None:  # fmt: skip
    """Show which rows are missing from a job's results: how many by stream and reason, or each one.

    Parameters
    ----------
    job
        Its id or name.
    stream
        Only rows of this stream.
    reason
        Only rows with this reason.
    limit
        So many rows, newest first; all of them, oldest first, with -o ndjson.
    before
        Only rows before the one with this id.
    """
    with where.client() as client:
        if output == "ndjson":
            for piece in client.jobs.download_rejected(job, stream=stream, reason=reason):
                sys.stdout.buffer.write(piece)
        elif rows:
            found = list(islice(client.jobs.rejected(job, stream=stream, reason=reason, before=before), limit + 1))
            show_rows(found[:limit], len(found) > limit, output)
        else:
            counts = client.jobs.rejected_counts(job)
            next(iter(client.jobs.rejected(job, stream=stream, reason=reason)), None)  # says where there is no such
            show_counts(
                [row for row in counts if stream in (None, row["stream"]) and reason in (None, row["reason"])], output
            )


def added(before: str, now: str) -> str:
    """What a log has more than when it was read before; both are its end, of limited length."""
    if now.startswith(before):
        return now[len(before) :]
    # The beginning fell off. A long enough end of what was shown tells where to go on.
    mark = before[-4096:]
    place = now.rfind(mark) if mark else -1
    return now[place + len(mark) :] if place >= 0 else now


def _draft(document: Mapping[str, Any], own: str | None) -> dict[str, Any]:
    found = draft_of(document, own)
    for sentence in found.told:
        warn(f"note: {sentence}")
    draft = dict(found.sections)
    if (streams := document.get("streams")) is not None:
        draft["streams"] = list(streams)
    return draft


def _looked_at(client: Client, file: str, own: str | None) -> dict[str, Any]:
    """A job's file as a draft; its streams and relations are looked at as they are registered."""
    document = read_document(file)
    draft = _draft(document, own)
    check_registered(
        client,
        entries_of(document, file, client.host),
        "or all of them with the job: streamjoin jobs create -f FILE leaves it stopped; without the platform, "
        "streamjoin validate, explain and preview look at a join file alone",
    )
    return draft


def _change(client: Client, job: str, document: Mapping[str, Any], file: str, own: str | None) -> dict[str, Any]:
    """A file as a change of a job."""
    is_whole = any(document.get(field) is not None for field in ("name", "queries", "streams", "relations"))
    before = client.jobs.get(job) if is_whole else None
    found = change_of(document, before, own)
    for sentence in found.told:
        warn(f"note: {sentence}")
    check_registered(client, entries_of(document, file, client.host), "and update the job then")
    if before is not None and document.get("streams") is not None:
        further = found.sections.get("queries", {})
        if missing := [name for name, one in before["queries"].items() if name not in further and not one["stopped"]]:
            warn(
                f"the job goes on with {', '.join(missing)}, which the file does not have; `stopped: true` ends a query"
            )
    return found.sections


def _place(place: Mapping[str, Any]) -> str:
    span = place.get("span")
    field = str(place.get("pointer") or "query").lstrip("/").replace("/", ".")
    where = [] if span and field == "query" else [field]
    if span:
        where.append(f"line {span['line']}, column {span['column']}")
    return f"{', '.join(where)}: {place['detail']}"
