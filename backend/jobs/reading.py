"""Where the queries of drafts and jobs are read and bound: here while that is quick, else in a process apart.

Parsing and binding hold Python's lock, and the parser one of its own, so a long query would hold up every request of
this process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from backend.apart import here_or_apart
from backend.catalog.jobspec import JobSpec
from backend.jobs.texts import texts_of
from streamjoin.errors import QueryError

Given = ParamSpec("Given")
Found = TypeVar("Found")


def where_it_fits(
    who: str | None, spec: JobSpec, work: Callable[Given, Found], *given: Given.args, **named: Given.kwargs
) -> Found:
    """Do work on the queries of a draft or job: here if its texts are short, else in a process apart.

    Args:
        who: for whom; also for looks at databases that come with binding.
        work: a function of a module; see `backend.apart.bounded`.
    Raises:
        StreamJoinError, Problem: as the work does, or as `bounded` does.
    Cost: of long texts a process.
    """
    return here_or_apart(who, sum(map(len, texts_of(spec).values())), work, *given, **named)


def names_of(who: str | None, spec: JobSpec) -> dict[str, str]:
    """What the queries of a job read, by name, with the field of the first one that names it.

    Args:
        who: for whom.
    Raises:
        QueryError: a query cannot be read.
        Problem: others are being worked on.
    Cost: parses each query, see `where_it_fits`; not for use in a transaction.
    """
    return where_it_fits(who, spec, _names, spec)


def _names(spec: JobSpec) -> dict[str, str]:
    from streamjoin.query import parse

    named: dict[str, str] = {}
    texts = {"query": spec.query, **{f"queries.{name}.query": one["query"] for name, one in spec.queries.items()}}
    for field, text in texts.items():
        try:
            for name in parse(text).streams:
                named.setdefault(name, field)
        except QueryError as wrong:
            wrong.place = field
            raise
    return named
