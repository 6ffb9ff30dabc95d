"""What a registered relation is: an entry of `relations:` of a join file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backend.entries import relative_to
from streamjoin.sources.relation import AnyRelation
from streamjoin.spec.inputs import open_relation
from streamjoin.spec.joinfile import JoinFile, of_content

_RELATION = "relation"
_PLACE = f"relations.{_RELATION}"
_STREAMS = {"stream": {"source": "generator", "kind": "band.r", "time": "ts"}}
"""A join file has a stream, whatever else it has."""


def one_relation(entry: Mapping[str, Any]) -> JoinFile:
    """A join file with this relation, whose rules it must keep.

    Raises:
        InputError: the entry is wrong; its field is relative to the entry.
    """
    content = {"streams": _STREAMS, "relations": {_RELATION: dict(entry)}, "query": "SELECT ONLINE"}
    with relative_to(_PLACE):
        return of_content(content)


def opened_relation(entry: Mapping[str, Any]) -> AnyRelation:
    """Its files, and its columns: those of the first file where they are not given.

    Raises:
        InputError: it cannot be opened; its field is relative to the entry.
    """
    file = one_relation(entry)
    with relative_to(_PLACE):
        return open_relation(file, _RELATION)
