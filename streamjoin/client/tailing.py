"""Following a job's results over a websocket: each snapshot once and in order, also across lost connections.

A tail goes on behind the last snapshot that it handed over in full, or that the platform said has nothing for it.
Snapshots may come in several frames, and very large ones only in part: their rows are then fetched by a one-time query.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from streamjoin.client.calls.asking import API, ask
from streamjoin.client.errors import AnswerError, Conflict, NoAnswer, StreamJoinApiError, from_document, from_reply
from streamjoin.client.retry import Patience, pause_s
from streamjoin.client.steps import (
    Connect,
    Emit,
    Exchange,
    Fetch,
    Flow,
    Hear,
    Lost,
    Pause,
    Request,
    Say,
    SocketStep,
    Step,
)

PATH = f"{API}/ws"
SUBPROTOCOL = "streamjoin.v1"
ID = "1"
NOW = "now"
OLDEST = "oldest"
HEARTBEAT_S = 5.0
HEARTBEAT_S_MAX = 60.0
HEARTBEATS_MISSED = 4
"""So many without a word, and the connection is dead."""
OTHER_RESULTS = "other_results"
"""Of a place in results that are not the job's, or no longer."""
PASSING = ("unavailable", "rate_limited", "internal", "still_running")
"""Codes of errors that another attempt may get over."""


class Expired(Conflict):
    """What was to come next is no longer kept: retention removed it before it was read."""


@dataclass(frozen=True, slots=True)
class News:
    """One snapshot.

    Args:
        snapshot: its id; a tail with it as `after` goes on behind it.
        columns: `{name, type}` of the rows' values. Whole numbers beyond 2**53 and decimals are texts.
        dropped: snapshots before this one that the platform left out because they were read too slowly; 0 unless the
            tail allows it by `skip`.
        results: which results it is of: a job that begins anew may have the same ids again. None where the platform
            does not say.
    """

    snapshot: str
    columns: tuple[dict[str, str], ...]
    rows: list[list[Any]]
    dropped: int = 0
    results: str | None = None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        names = [column["name"] for column in self.columns]
        return (dict(zip(names, row, strict=True)) for row in self.rows)


@dataclass(frozen=True, slots=True)
class _Ended:
    """The job is gone; nothing more will come."""


Conversation = Generator[Step | SocketStep | Fetch | Emit[News], Any, Lost | _Ended]


class _Tail:
    """One tail over all its connections.

    Args:
        begin: `now`, `oldest`, or the snapshot behind which to go on; `given` is the first, which is the caller's.
        results: which results that snapshot is of, as the caller or the platform said; None where nobody did.
    """

    def __init__(
        self, patience: Patience, subscription: dict[str, Any], begin: str, results: str | None = None
    ) -> None:
        self.patience = patience
        self.subscription = subscription
        self.begin = self.given = begin
        self.results = results
        self.columns: tuple[dict[str, str], ...] = ()
        self.parts: list[list[Any]] = []
        self.heartbeat_s = HEARTBEAT_S
        self.heard_s = time.monotonic()

    def follow(self) -> Flow[News]:
        attempt = 0
        while True:
            begun = self.begin
            outcome = yield from self.connection()
            if isinstance(outcome, _Ended):
                return
            attempt = 1 if self.begin != begun else attempt + 1
            if time.monotonic() - self.heard_s > self.patience.deadline_s:
                raise NoAnswer(
                    f"{self.patience.host} was not heard of for {self.patience.deadline_s:g} s: {outcome.why}"
                )
            yield Pause(pause_s(attempt))

    def connection(self) -> Conversation:
        """One connection, to its end."""
        self.parts = []
        asked = {**self.subscription, "from": self.begin}
        if self.results is not None and self.begin not in (NOW, OLDEST):
            asked["results"] = self.results
        subscribe = {"type": "subscribe", "id": ID, "payload": asked}
        steps: tuple[SocketStep, ...] = (
            Connect(PATH, SUBPROTOCOL, self.patience.timeout_s),
            Say('{"type": "connection_init"}'),
            Say(json.dumps(subscribe)),
        )
        for step in steps:
            came = yield step
            if isinstance(came, Lost):
                return self.judged(came)
        failure: StreamJoinApiError | None = None
        while True:
            heard = yield Hear(max(self.heartbeat_s * HEARTBEATS_MISSED, 1.0))
            if isinstance(heard, Lost):
                return self.judged(heard)
            self.heard_s = time.monotonic()
            kind, payload = _frame(heard, self.patience.host)
            if kind == "next":
                yield from self.take(payload)
            elif kind == "progress" and payload.get("snapshot") and not self.parts:
                self.begin = payload["snapshot"]
            elif kind == "schema":
                self.columns = tuple({**column, "name": str(column["name"])} for column in payload["columns"])
                # From here on "now" is a place: what is committed while we are away comes, too.
                self.begin = payload.get("snapshot") or (OLDEST if self.begin == NOW else self.begin)
                self.results = payload.get("results")  # earlier platforms do not say
            elif kind == "connection_ack":
                told_s = float(payload.get("heartbeat_s") or HEARTBEAT_S)
                self.heartbeat_s = told_s if 0 < told_s <= HEARTBEAT_S_MAX else HEARTBEAT_S
            elif kind == "error":
                failure = from_document(payload)
            elif kind == "complete":
                return self.completed(str(payload.get("reason")), failure)

    def take(self, payload: dict[str, Any]) -> Flow[News]:
        """Hand over a snapshot once all of it has come."""
        rows = payload["rows"]
        if any(not isinstance(row, list) or len(row) != len(self.columns) for row in rows):
            raise ValueError(f"a row has not the {len(self.columns)} values that were told before")
        self.parts += rows
        if payload.get("more"):
            return
        rows, self.parts = self.parts, []
        snapshot = str(payload["snapshot"])
        gap = payload.get("gap")
        if payload.get("truncated"):
            rows = yield from self.fetch(gap["last"] if gap else self.begin, snapshot)
        # Before it is handed over: whoever stops right there has it.
        self.begin = snapshot
        yield Emit(News(snapshot, self.columns, rows, int(payload.get("dropped") or 0), self.results))
        # Whoever was busy with it has not waited for the platform.
        self.heard_s = time.monotonic()

    def fetch(self, after: str, upto: str) -> Exchange[list[list[Any]]]:
        """All rows of a snapshot that is too large to be sent."""
        question = {name: value for name, value in self.subscription.items() if name != "backpressure"}
        question |= {"upto": upto, "format": "json"}
        if after not in (NOW, OLDEST):
            question["after"] = after
        patience = self.patience.for_answer(None)
        rows: list[list[Any]] = []
        while True:
            page = yield from ask(patience, Request("POST", f"{API}/queries", json=question, repeatable=True))
            if page.get("error"):
                raise from_document(page["error"])
            if page.get("truncated") and not page.get("cursor"):
                # Its time was over, or its bytes were too many: fewer rows at once, from the same place on.
                if not (limit := len(page["rows"]) // 2):
                    raise ValueError(f"not one row of snapshot {upto} came in time")
                question["limit"] = limit
                continue
            rows += page["rows"]
            if not page.get("cursor"):
                return rows
            if page["cursor"] == question.get("cursor"):
                raise ValueError("the same page comes again and again")
            question["cursor"] = page["cursor"]

    def completed(self, reason: str, failure: StreamJoinApiError | None) -> Lost | _Ended:
        """What the platform's last word means; raises where going on would leave something out, or fail again."""
        if reason == "deleted":
            return _Ended()
        if reason == "resync":
            if failure is not None and failure.subcode == OTHER_RESULTS:
                if self.begin == self.given:
                    raise failure
                self.begin = OLDEST  # the job began anew while nobody listened
                return Lost(str(failure))
            raise Expired(
                f"what follows snapshot {self.begin} of {self.subscription['job']} is no longer kept; begin without "
                "`after`, or keep results for longer",
                status=409, code="expired",
            )  # fmt: skip
        if failure is not None and failure.code not in PASSING:
            raise failure
        if reason == "restarted":
            self.begin = OLDEST
        return Lost(str(failure) if failure is not None else f"the platform ended the subscription: {reason}")

    def judged(self, lost: Lost) -> Lost:
        """The same, if another attempt may get over it; raises for what it would only repeat."""
        if 400 <= lost.status < 500 and lost.status not in (408, 429):
            raise from_reply(lost.status, lost.body, self.patience.host)
        if 4400 <= lost.status < 4500 and lost.status not in (4408, 4429):
            raise from_document({"detail": lost.why}, lost.status - 4000)
        return lost


def tail(
    patience: Patience,
    job: str,
    *,
    after: str | None = None,
    results: str | None = None,
    select: Iterable[str] | None = None,
    where: str | None = None,
    skip: bool = False,
) -> Flow[News]:
    """Follow a job's results: each snapshot as it is committed, until the job is deleted.

    It goes on by itself when the connection or the platform is lost, and gives up when nothing was heard for the
    client's `deadline_s`. After a change that lets the job begin anew, its new results follow.

    Args:
        after: begin behind this snapshot, or at the `oldest` that is kept; only what is new unless given.
        results: which results that snapshot is of, as its `News` or `Answer` said: where the job began anew since then,
            this is refused as a `Conflict`, and not gone on with in other results.
        select, where: which columns, and which results.
        skip: where we read too slowly, let the platform leave out whole snapshots and count them. Otherwise they are
            fetched, however late.
    Raises:
        Expired: what was to come next is no longer kept.
    """
    subscription: dict[str, Any] = {"job": job, "backpressure": "drop" if skip else "disconnect"}
    if select is not None:
        subscription["select"] = list(select)
    if where is not None:
        subscription["where"] = where
    yield from _Tail(patience, subscription, after or NOW, results).follow()


def _frame(text: str, host: str) -> tuple[str, dict[str, Any]]:
    try:
        frame = json.loads(text)
        payload = frame.get("payload") or {}
        return str(frame["type"]), {**payload}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise AnswerError(f"{host} sent a frame that is none: {text[:80]}", code="bad_frame") from None
