"""What can go wrong between a program and the platform, by name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from streamjoin.errors import InputError, StreamJoinError

TEXT_MAX = 4000
"""Letters of what a platform says that a message has at most."""


class StreamJoinApiError(StreamJoinError):
    """The platform refused a request, or could not answer it.

    Args:
        detail: one sentence that names the thing and the way out.
        status: HTTP's; 0 where there was no answer at all.
        code: stable, such as `not_found`.
        subcode: stable and finer, such as `unknown_name`; the code where there is nothing finer.
        params: what `detail` is about, for programs.
        can_retry: whether the same request may succeed later, unchanged.
        errors: the mistakes one by one: `{pointer, detail, span}`.
        request_id: by which the platform's log has it.
    """

    def __init__(
        self,
        detail: str,
        *,
        status: int = 0,
        code: str = "no_answer",
        subcode: str | None = None,
        params: Mapping[str, Any] | None = None,
        can_retry: bool = False,
        errors: Sequence[Mapping[str, Any]] = (),
        hint: str | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.code = code
        self.subcode = subcode or code
        self.params = dict(params or {})
        self.can_retry = can_retry
        self.errors = [dict(error) for error in errors]
        self.hint = hint
        self.request_id = request_id

    def __str__(self) -> str:
        parts = [self.detail]
        if len(self.errors) > 1:
            parts += [_place(error) for error in self.errors]
        if self.hint:
            parts.append(self.hint)
        if self.status >= 500 and self.request_id:
            parts.append(f"the request was {self.request_id}")
        return "; ".join(parts)


class NoAnswer(StreamJoinApiError):
    """Nobody answered in time, or the answer broke off. Whether the request had an effect is not known."""


class Unauthenticated(StreamJoinApiError):
    """No key was given, or it does not open anything."""


class Forbidden(StreamJoinApiError):
    """The key's role may not do this."""


class NotFound(StreamJoinApiError):
    """What was asked for is not there."""


class Conflict(StreamJoinApiError):
    """This cannot be done now: the state of the thing does not allow it."""


class ChangedMeanwhile(StreamJoinApiError):
    """Somebody changed the thing since the version that was to be changed."""


class Invalid(StreamJoinApiError, InputError):
    """The request is wrong; `errors` says where."""


class RateLimited(StreamJoinApiError):
    """Too many requests, and waiting longer would pass the deadline."""


class Unavailable(StreamJoinApiError):
    """Something that the platform needs does not answer."""


class AnswerError(StreamJoinApiError):
    """An answer that cannot be read: whoever answers there is no StreamJoin, or of another version."""


_BY_STATUS: dict[int, type[StreamJoinApiError]] = {
    400: Invalid, 401: Unauthenticated, 403: Forbidden, 404: NotFound, 409: Conflict, 412: ChangedMeanwhile,
    413: Invalid, 415: Invalid, 422: Invalid, 428: Invalid, 429: RateLimited, 502: Unavailable, 503: Unavailable,
    504: Unavailable,
}  # fmt: skip


def from_document(document: Mapping[str, Any], status: int | None = None) -> StreamJoinApiError:
    """The error that a problem document (RFC 9457) tells of."""
    told = document.get("status")
    number = status if status is not None else told if isinstance(told, int) else 0
    kind = _BY_STATUS.get(number, StreamJoinApiError)
    detail = str(document.get("detail") or document.get("title") or f"HTTP status {number}")[:TEXT_MAX]
    places, params = document.get("errors"), document.get("params")
    return kind(
        detail, status=number, code=str(document.get("code") or f"http_{number}"), hint=_text(document, "hint"),
        subcode=_text(document, "subcode"), params=params if isinstance(params, dict) else None,
        can_retry=bool(document.get("can_retry")),
        errors=[place for place in places if isinstance(place, dict)] if isinstance(places, list) else (),
        request_id=_text(document, "request_id"),
    )  # fmt: skip


def from_reply(status: int, body: bytes, host: str) -> StreamJoinApiError:
    """The error that a reply tells of, whoever sent it: a proxy in between knows no problem documents."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict) and ("code" in document or "detail" in document):
        return from_document(document, status)
    return from_document({"detail": f"{host} answered with HTTP status {status} and no problem document"}, status)


def _text(document: Mapping[str, Any], name: str) -> str | None:
    found = document.get(name)
    return None if found is None else str(found)[:TEXT_MAX]


def _place(error: Mapping[str, Any]) -> str:
    where = error.get("pointer")
    span = error.get("span")
    if isinstance(span, dict):
        where = f"{where or 'query'}, line {span.get('line')}, column {span.get('column')}"
    return f"{where}: {error.get('detail')}" if where else str(error.get("detail"))
