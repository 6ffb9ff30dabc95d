"""A job before it is there: whether its query is valid, how it would run, a few rows."""

from __future__ import annotations

from typing import Any

from streamjoin.client.calls.asking import API, ask, given_only
from streamjoin.client.retry import Patience
from streamjoin.client.shapes import Diagnostics, Explanation, Preview
from streamjoin.client.steps import Exchange, Request


def validate(patience: Patience, /, query: str, **draft: Any) -> Exchange[Diagnostics]:
    """Check a query; mistakes are the answer.

    Args:
        draft: streams, queries, operator, results and run, as in a job.
    """
    body = given_only(query=query, **draft)
    return (yield from ask(patience, Request("POST", f"{API}/jobs/validate", json=body, repeatable=True)))


def explain(patience: Patience, /, query: str, **draft: Any) -> Exchange[Explanation]:
    """Show how a query would run, and what every operator would cost."""
    body = given_only(query=query, **draft)
    return (yield from ask(patience, Request("POST", f"{API}/jobs/explain", json=body, repeatable=True)))


def preview(patience: Patience, /, query: str, **draft: Any) -> Exchange[Preview]:
    """Show up to 20 rows that a query would give, from samples of the streams, or why there are none."""
    body = given_only(query=query, **draft)
    return (yield from ask(patience, Request("POST", f"{API}/jobs/preview", json=body, repeatable=True)))
