"""When a request is sent again: only where that does no harm, with growing pauses, until a deadline."""

from __future__ import annotations

import random
import time
import uuid
from dataclasses import dataclass, replace

from streamjoin.client.errors import NoAnswer, StreamJoinApiError, from_reply
from streamjoin.client.steps import Exchange, Fetch, Flow, Lost, Pause, Reply, Request

PAUSE_S_MIN = 0.1
PAUSE_S_MAX = 5.0
ANSWER_S = 60.0
"""What the platform takes for an answer at most, unless its question says otherwise."""
SPARE_S = 5.0
BUSY = (429, 502, 503, 504)
"""Statuses that pass by themselves."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to try.

    Args:
        host: for messages.
        timeout_s: for one attempt.
        deadline_s: for all attempts together, pauses included.
        reach_s: the same, while nobody listens there at all.
    """

    host: str
    timeout_s: float = 30.0
    deadline_s: float = 60.0
    reach_s: float = 60.0

    def for_answer(self, timeout_s: float | None) -> Patience:
        """The same for a question to results, whose answer may begin only when its time is over.

        Args:
            timeout_s: the question's own; the platform's unless given.
        """
        least_s = (timeout_s or ANSWER_S) + SPARE_S
        return replace(self, timeout_s=max(self.timeout_s, least_s), deadline_s=max(self.deadline_s, least_s))


def keyed(request: Request) -> Request:
    """The request with an idempotency key of its own: the platform does it once, however often it arrives."""
    headers = {**request.headers, "Idempotency-Key": uuid.uuid4().hex}
    return replace(request, headers=headers, repeatable=True)


def pause_s(attempt: int, retry_after: str | None = None) -> float:
    """How long to wait before the next attempt; random, so that many clients do not come back at once.

    Args:
        attempt: how many there were.
        retry_after: what the reply asked for, in seconds.
    """
    if retry_after is not None and retry_after.isascii() and retry_after.isdigit():
        return float(retry_after) + random.uniform(0, PAUSE_S_MIN)
    return random.uniform(0.5, 1.0) * min(PAUSE_S_MAX, PAUSE_S_MIN * 2 ** min(attempt, 30))


def send(request: Request, patience: Patience) -> Exchange[Reply]:
    """Send a request, again where it may be, and return the reply of success.

    Raises:
        StreamJoinApiError: it was refused, or the last attempt before the deadline failed.
    """
    begun_s = time.monotonic()
    ends_s = begun_s + patience.deadline_s
    attempt = 0
    while True:
        left_s = max(ends_s - time.monotonic(), 0.1)
        outcome = yield replace(request, timeout_s=min(patience.timeout_s, left_s))
        attempt += 1
        retry_after = None
        if isinstance(outcome, Reply):
            if outcome.status < 400:
                return outcome
            failure = from_reply(outcome.status, outcome.body, patience.host)
            retry_after = outcome.headers.get("retry-after")
            passing = outcome.status in BUSY or failure.code == "still_running"
        else:
            failure = _no_answer(outcome, patience.host, attempt)
            passing = True
            if outcome.refused:
                ends_s = min(ends_s, begun_s + patience.reach_s)
        wait_s = pause_s(attempt, retry_after)
        if not (passing and request.repeatable) or time.monotonic() + wait_s >= ends_s:
            raise failure
        yield Pause(wait_s)


def fetch(request: Request, patience: Patience) -> Flow[bytes]:
    """Hand over a reply as it comes. It is asked for once: what was handed over cannot be taken back.

    Raises:
        StreamJoinApiError: it was refused, or broke off.
    """
    outcome = yield Fetch(replace(request, timeout_s=patience.timeout_s))
    if isinstance(outcome, Reply):
        raise from_reply(outcome.status, outcome.body, patience.host)
    if isinstance(outcome, Lost):
        raise _no_answer(outcome, patience.host, 1)


def _no_answer(lost: Lost, host: str, attempt: int) -> StreamJoinApiError:
    tried = f" after {attempt} attempts" if attempt > 1 else ""
    return NoAnswer(
        f"{host} does not answer{tried}: {lost.why}",
        hint="is the platform running, and at this address? "
        "--host chooses another, or else STREAMJOIN_HOST, or STREAMJOIN_PORT of this machine",
    )
