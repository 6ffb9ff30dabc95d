"""Starting, stopping and deleting a job, and waiting until it is where it was to go."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from streamjoin.client.calls.asking import ask, if_given, path_of
from streamjoin.client.calls.jobs import get_job
from streamjoin.client.errors import StreamJoinApiError
from streamjoin.client.retry import Patience, keyed
from streamjoin.client.shapes import Job
from streamjoin.client.steps import Exchange, Pause, Request

LOOK_S = 0.5
LOOK = "first_look"
"""The step of a start whose driver has looked at the streams and found nothing to read yet."""
FIRST_BATCH = "first_batch"
"""That of one that has committed a batch; the event of it is forgotten after a while."""
AT_END = "reached the end"
"""The reason of a job that is done."""


class WaitedTooLong(StreamJoinApiError):
    """A job did not come to where it was to go in the time that was given, or will not."""


def start_job(
    patience: Patience, job: str, *, version: int | None = None, wait_s: float | None = None
) -> Exchange[Job]:
    """Let a job run.

    Args:
        version: the one that is meant; refused if it is not the newest. Whatever is there, if not given.
        wait_s: return once its first batch is committed, it has found nothing to read yet or it is done, or raise when
            it is not within so many seconds, or is to stop.
    """
    found = yield from _act(patience, job, "start", version)
    if wait_s is None:
        return found
    # Of one that is at rest the next generation is meant: it may have been done before.
    generation = found["generation"] + (found["observed"] == "stopped")
    return (yield from _running(patience, found, wait_s, generation))


def stop_job(patience: Patience, job: str, *, version: int | None = None, wait_s: float | None = None) -> Exchange[Job]:
    """Let a job stop after the batch that runs; for `version` and `wait_s` see `start`."""
    found = yield from _act(patience, job, "stop", version)
    return (yield from _settled(patience, found, ("stopped", "failed"), wait_s))


def restart_job(
    patience: Patience, job: str, *, version: int | None = None, wait_s: float | None = None
) -> Exchange[Job]:
    """Stop a job and start it again; for `version` and `wait_s` see `start`."""
    found = yield from _act(patience, job, "restart", version)
    if wait_s is None:
        return found
    return (yield from _running(patience, found, wait_s, found["generation"] + 1))


def rescale_job(
    patience: Patience, job: str, slots: int, *, version: int | None = None, wait_s: float | None = None
) -> Exchange[Job]:
    """Give a job another number of slots; for `version` and `wait_s` see `start`."""
    before: Job = yield from get_job(patience, job)
    found = yield from _act(patience, _id_of(before), "rescale", version, {"slots": slots})
    if wait_s is None or found["wanted"] != "running":
        return (yield from _settled(patience, found, ("stopped", "failed"), wait_s))
    # A running job takes it over by its next generation, unless nothing changed.
    generation = found["generation"] + (found["version"] != before["version"])
    return (yield from _running(patience, found, wait_s, generation))


def delete_job(
    patience: Patience, job: str, *, version: int | None = None, wait_s: float | None = None
) -> Exchange[None]:
    """Delete a job with its state and its results.

    Args:
        version: see `start`.
        wait_s: return once all of it is gone, or raise when it is not within so many seconds.
    """
    # By its id: another job may get the name while we wait.
    found: Job = yield from ask(patience, Request("DELETE", path_of("jobs", job), headers=if_given(version)))
    if wait_s is None:
        return
    ends_s = time.monotonic() + wait_s
    while True:
        try:
            found = yield from get_job(patience, _id_of(found))
        except StreamJoinApiError as failure:
            if failure.status == 404:
                return
            raise
        yield from _sleep(found, ends_s, "gone", wait_s)


def wait_for_job(
    patience: Patience,
    job: str,
    phases: Iterable[str],
    *,
    wait_s: float = 120.0,
    generation_min: int = 0,
    or_done: bool = False,
    first_batch: bool = False,
) -> Exchange[Job]:
    """Wait until a job is in one of `phases`.

    Args:
        generation_min: and until it was launched so often.
        or_done: of a job that is to run: also until it has reached its end, and no longer than it is to run.
        first_batch: and until its driver has committed a batch, or has looked and found nothing to read yet.
    Raises:
        WaitedTooLong: it was not within `wait_s`, or it failed; the message has the reason.
    """
    wanted = tuple(phases)
    goal = " or ".join(wanted)
    ends_s = time.monotonic() + wait_s
    while True:
        found = yield from get_job(patience, job)
        is_there = found["phase"] in wanted and found["generation"] >= generation_min
        if is_there and not (first_batch and _is_before_first_batch(found)):
            return found
        if or_done and found["wanted"] != "running":
            if found["reason"] == AT_END and found["generation"] >= generation_min:
                return found
            raise WaitedTooLong(
                f"job {found['name']} is {found['phase']} and not {goal}: it ended, or was stopped or removed, "
                f"meanwhile{_why(found)}; start it again if it is to run",
                code="job_not_wanted",
            )
        yield from _sleep(found, ends_s, "past its first look at what there is to read" if is_there else goal, wait_s)


def _act(patience: Patience, job: str, action: str, version: int | None, body: Any = None) -> Exchange[Job]:
    request = Request("POST", path_of("jobs", job, action), json=body, headers=if_given(version))
    return (yield from ask(patience, keyed(request)))


def _settled(patience: Patience, job: Job, phases: tuple[str, ...], wait_s: float | None) -> Exchange[Job]:
    if wait_s is None:
        return job
    return (yield from wait_for_job(patience, _id_of(job), phases, wait_s=wait_s))


def _running(patience: Patience, job: Job, wait_s: float, generation_min: int) -> Exchange[Job]:
    found = wait_for_job(
        patience, _id_of(job), ("running",), wait_s=wait_s, generation_min=generation_min, or_done=True,
        first_batch=True,
    )  # fmt: skip
    return (yield from found)


def _is_before_first_batch(job: Job) -> bool:
    """Whether the driver that runs it has committed nothing yet, and may still fail at what it reads."""
    start, run = job["last_start"], job["last_run"]
    if start is not None and start["generation"] >= job["generation"]:
        return False
    return run is None or run["generation"] < job["generation"] or not {LOOK, FIRST_BATCH} & run["steps"].keys()


def _id_of(job: Job) -> str:
    """The id of a job that the platform told of.

    Raises:
        ValueError: it is none.
    """
    id = job["id"]
    if not isinstance(id, str) or not id:
        raise ValueError("a job without an id")
    return id


def _why(job: Job) -> str:
    return f": {job['reason']}" if job.get("reason") else ""


def _sleep(job: Job, ends_s: float, goal: str, wait_s: float) -> Exchange[None]:
    if job["phase"] == "failed":
        raise WaitedTooLong(f"job {job['name']} failed{_why(job)}", code="job_failed")
    if time.monotonic() >= ends_s:
        raise WaitedTooLong(
            f"job {job['name']} is {job['phase']} and not {goal} after {wait_s:g} s{_why(job)}", code="waited_too_long"
        )
    yield Pause(LOOK_S)
