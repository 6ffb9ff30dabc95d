"""Relations: registering them, looking at them, their versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamjoin.client.calls.asking import API, ask, given_only, if_given, if_match, pages, path_of
from streamjoin.client.retry import Patience, keyed, send
from streamjoin.client.shapes import Relation, RelationInJob, RelationSample
from streamjoin.client.steps import Exchange, Flow, Request


def list_relations(
    patience: Patience, *, source: str | None = None, owner: str | None = None, since: str | None = None
) -> Flow[Relation]:
    """All relations, newest first.

    Args:
        source: only those with it, such as `csv`.
        owner: only those of this user: an id, or "me".
        since: only those that were made at this time (ISO 8601) or later.
    """
    yield from pages(patience, f"{API}/relations", given_only(source=source, owner=owner, since=since))


def get_relation(patience: Patience, relation: str) -> Exchange[Relation]:
    """One relation."""
    return (yield from ask(patience, Request("GET", path_of("relations", relation), repeatable=True)))


def create_relation(
    patience: Patience, name: str, spec: Mapping[str, Any], *, secrets: Mapping[str, str] | None = None
) -> Exchange[Relation]:
    """Register a relation.

    Args:
        spec: an entry of `relations:` of a join file, without a password in its URL.
        secrets: the `password` of a database; never shown again.
    """
    body = given_only(name=name, spec=dict(spec), secrets=dict(secrets) if secrets else None)
    return (yield from ask(patience, keyed(Request("POST", f"{API}/relations", json=body))))


def change_relation(
    patience: Patience,
    relation: str,
    *,
    spec: Mapping[str, Any] | None = None,
    secrets: Mapping[str, str] | None = None,
    version: int | None = None,
) -> Exchange[Relation]:
    """Change a relation.

    Args:
        secrets: as for `create_relation`; an empty mapping forgets them.
        version: which one is changed; refused if it is not the newest. Whatever is there, if not given.
    """
    body = given_only(spec=spec, secrets=secrets)
    return (
        yield from ask(patience, Request("PATCH", path_of("relations", relation), json=body, headers=if_match(version)))
    )


def delete_relation(patience: Patience, relation: str, *, version: int | None = None) -> Exchange[None]:
    """Remove a relation; its files stay. For `version` see `change`."""
    yield from send(Request("DELETE", path_of("relations", relation), headers=if_given(version)), patience)


def look_at_relation(
    patience: Patience, spec: Mapping[str, Any], *, secrets: Mapping[str, str] | None = None
) -> Exchange[RelationSample]:
    """Look at a relation without registering it."""
    body = given_only(spec=dict(spec), secrets=dict(secrets) if secrets else None)
    return (yield from ask(patience, Request("POST", f"{API}/relations/test", json=body, repeatable=True)))


def sample_relation(patience: Patience, relation: str) -> Exchange[RelationSample]:
    """Look at a registered relation."""
    return (yield from ask(patience, Request("POST", path_of("relations", relation, "sample"), repeatable=True)))


def relation_versions(patience: Patience, relation: str) -> Exchange[list[RelationInJob]]:
    """A relation's versions in each job that joins it."""
    request = Request("GET", path_of("relations", relation, "versions"), repeatable=True)
    found: dict[str, list[RelationInJob]] = yield from ask(patience, request)
    return found["data"]


def refresh_relation(patience: Patience, relation: str) -> Exchange[list[str]]:
    """Have the running jobs that join a relation look for a new version now; their names."""
    request = Request("POST", path_of("relations", relation, "refresh"), repeatable=True)
    found: dict[str, list[str]] = yield from ask(patience, request)
    return found["jobs"]
