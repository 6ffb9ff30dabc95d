"""Questions to the results of a job."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamjoin.client.answer import Answer, joined, read_answer
from streamjoin.client.calls.asking import API, given_only
from streamjoin.client.retry import Patience, send
from streamjoin.client.steps import Exchange, Request


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
    as_of: str | int | None = None,
    history: bool = False,
    aggregate: str | None = None,
    by: Iterable[str] | None = None,
    timeout_s: float | None = None,
) -> Exchange[Answer]:
    """Ask the results of a job once. Ranges include both ends.

    Args:
        from_, to: the results' time: ISO 8601, or integer microseconds.
        key, key_from, key_to: the results' key.
        where: a condition over the result columns.
        limit: rows at most; the answer then has a cursor, with which the same question goes on. Without a limit all
            pages are fetched, as of one snapshot.
        after, upto: only snapshots after this one, and up to that one.
        as_of: of groups that change, what they were at a snapshot, such as "41.0", or at a time.
        history: of groups that change, every change, and not the last value of each group.
        aggregate: in place of rows, such as "count, sum(price)"; `by` columns gives a row for each of their values.
        timeout_s: what the platform may take for each page, which has what was found by then; 60 s unless given. The
            client waits for so long, even where its own `timeout_s` and `deadline_s` are less.
    """
    body = given_only(
        job=job, to=to, key=key, key_from=key_from, key_to=key_to, select=None if select is None else list(select),
        where=where, limit=limit, cursor=cursor, after=after, upto=upto, aggregate=aggregate,
        as_of=as_of, history=history or None,
        by=None if by is None else list(by), timeout_s=timeout_s, format="arrow",
    )  # fmt: skip
    if from_ is not None:
        body["from"] = from_
    patience = patience.for_answer(timeout_s)
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
