"""Asking any route: the JSON of an answer, the items of all pages, and how a request is put together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, unquote

from streamjoin.client.errors import AnswerError
from streamjoin.client.retry import Patience, keyed, send
from streamjoin.client.steps import Emit, Exchange, Flow, Reply, Request
from streamjoin.errors import InputError

API = "/api/v1"
PAGE = 100
_NEVER_KEPT: Final = (f"{API}/api-keys", f"{API}/sessions")
"""Routes that do a POST again whatever its idempotency key says."""


def ask(patience: Patience, request: Request) -> Exchange[Any]:
    """The JSON that a request is answered with."""
    reply = yield from send(request, patience)
    return _json(reply, patience.host)


def call(
    patience: Patience, method: str, path: str, *, params: Mapping[str, str | int] | None = None, json: Any = None
) -> Exchange[Any]:
    """Call any route of the API, such as `call("GET", "/api/v1/config")`; the JSON it answers with, or None.

    A POST is sent with an idempotency key, so it may be repeated; but for those whose replies hold secrets, which the
    platform keeps for nobody.
    """
    request = Request(method.upper(), path, params=params or {}, json=json, repeatable=method.upper() == "GET")
    is_kept = unquote(path.partition("?")[0]).rstrip("/") not in _NEVER_KEPT
    return (yield from ask(patience, keyed(request) if request.method == "POST" and is_kept else request))


def pages(patience: Patience, path: str, given: Mapping[str, str] | None = None, *, key: str = "id") -> Flow[Any]:
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
        last = page["data"][-1][key]
        if last == params.get("starting_after"):
            raise AnswerError(f"{patience.host}{path} gives the same page again and again", code="no_list")
        params["starting_after"] = last


def _json(reply: Reply, host: str) -> Any:
    if not reply.body:
        return None
    try:
        return json.loads(reply.body)
    except (ValueError, RecursionError):
        raise AnswerError(
            f"{host} answered with something that is not JSON; does STREAMJOIN_HOST name the platform?",
            status=reply.status, code="not_json",
        ) from None  # fmt: skip


def path_of(*parts: str) -> str:
    if not all(parts):
        raise InputError("a job, stream or relation is named by its id or name, which must not be empty")
    return "/".join([API, *(quote(part, safe="") for part in parts)])


def if_match(version: int | None) -> dict[str, str]:
    return {"If-Match": "*" if version is None else f'"{version}"'}


def if_given(version: int | None) -> dict[str, str]:
    """`If-Match` of a request that needs none: there only where a version is given."""
    return {} if version is None else if_match(version)


def given_only(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
