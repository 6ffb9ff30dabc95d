"""Relations: register, look at, change and remove finite tables that streams are joined with."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field, WithJsonSchema
from sqlalchemy import select

from backend.apart import bounded
from backend.api.filters import OfSource, Owner, Since, narrowed, of_source
from backend.api.registered import RELATIONS, SECRETS_MAX, RegisteredOut, Seen, opened, seen, shown
from backend.api.shapes import Body, IfMatch, Limit, Page, StartingAfter, etag, with_example
from backend.auth.actor import Actor, Operator, Viewer, owned
from backend.auth.hosts import check_place
from backend.catalog.ids import new_id, now_us
from backend.catalog.models import Relation
from backend.context import Context, InContext
from backend.entries import NAME_MAX, check_name, check_size, pointing_into_spec
from backend.given import at_most
from backend.idempotency import done_once
from backend.relations.entry import one_relation
from backend.relations.sample import look_at
from backend.relations.secrets import check_secrets, with_secrets
from backend.uploads.names import called_by_names, check_wildcards, resolved
from streamjoin.sources.registry import relation_kinds
from streamjoin.spec.schema import fields_of_all, schema_of_relation

router = APIRouter(prefix="/api/v1/relations", tags=["relations"])

_SPEC_SCHEMA = {
    "type": "object",
    "title": "RelationSpec",
    "description": "An entry of `relations:` of a join file: files or a table of a database, without time and delay.",
    "required": ["source"],
    "additionalProperties": False,
    "properties": fields_of_all(map(schema_of_relation, relation_kinds()))
    | {"source": {"type": "string", "enum": [*relation_kinds()]}},
}
Spec = Annotated[dict[str, Any], WithJsonSchema(_SPEC_SCHEMA)]
_EXAMPLE = {
    "name": "customers",
    "spec": {"source": "parquet", "path": "/data/customers", "schema": {"id": "int64", "name": "string"}},
}


Secrets = Annotated[
    dict[str, Annotated[str, Field(max_length=1024)]] | None,
    Field(max_length=SECRETS_MAX, description="The `password` of a database server: encrypted, and never shown again."),
    at_most(SECRETS_MAX),
]


class RelationIn(Body):
    """A relation to register."""

    name: str = Field(json_schema_extra={"maxLength": NAME_MAX})
    spec: Spec
    secrets: Secrets = None
    model_config = with_example(_EXAMPLE)


class RelationChange(Body):
    """What is to change; a job takes it over when the job itself is changed with `refresh_streams`."""

    spec: Spec | None = None
    secrets: Secrets = None
    model_config = with_example({"spec": _EXAMPLE["spec"]})


class RelationTest(Body):
    """A relation to look at, which need not be registered."""

    spec: Spec
    secrets: Secrets = None
    model_config = with_example({"spec": _EXAMPLE["spec"]})


class RelationOut(RegisteredOut):
    """A registered relation."""

    has_secrets: bool


class RelationSampleOut(Seen):
    """A look at a relation; `row_count` is null where only reading it all would tell, and of a database all three."""

    row_count: int | None
    bytes: int | None
    files: int | None


@router.get("")
def list_relations(
    context: InContext, actor: Viewer, request: Request, response: Response, limit: Limit = 50,
    starting_after: StartingAfter = None, source: OfSource = None, owner: Owner = None, since: Since = None,
) -> Page[RelationOut]:  # fmt: skip
    """All relations, newest first."""
    rows = of_source(narrowed(select(Relation), Relation, actor, owner, since), Relation, source)
    return RELATIONS.page(context, request, response, limit, starting_after, _shape, rows)


@router.post("", status_code=201)
@done_once
def create_relation(context: InContext, actor: Operator, body: RelationIn, response: Response) -> RelationOut:
    """Register a relation. Its files are not looked at yet; `test` does that."""
    check_name(body.name)
    spec = _checked(context, body.spec)
    relation = Relation(
        id=new_id("rel"), name=body.name, owner_id=actor.id, spec=spec, version=1,
        secrets=RELATIONS.sealed(context.settings, spec, body.secrets), created_at_us=now_us(), updated_at_us=now_us(),
    )  # fmt: skip
    RELATIONS.add(context, actor, relation, response)
    return _shape(relation)


@router.post("/test")
def test_relation(context: InContext, actor: Operator, body: RelationTest) -> RelationSampleOut:
    """Look at a relation without registering it: columns, first rows, size, and how skewed values are."""
    spec = _checked(context, body.spec)
    if body.secrets:
        check_secrets(context.settings, spec, body.secrets)
    return _sample(context, actor, spec, body.secrets)


@router.get("/{id}")
def get_relation(context: InContext, actor: Viewer, id: str, response: Response) -> RelationOut:
    """One relation, by id or name."""
    relation = RELATIONS.get(context, id)
    response.headers["ETag"] = etag(relation)
    return _shape(relation)


@router.patch("/{id}")
@owned
def change_relation(
    context: InContext, actor: Operator, id: str, body: RelationChange, response: Response, if_match: IfMatch = None
) -> RelationOut:
    """Change a relation. Jobs that are there keep the entry they were made with until they are changed themselves."""

    def checked(relation: Relation) -> dict[str, Any] | None:
        return None if body.spec is None else _checked(context, body.spec, relation.spec)

    return _shape(RELATIONS.change(context, actor, id, if_match, response, checked, body.secrets))


@router.delete("/{id}", status_code=204)
@owned
def delete_relation(context: InContext, actor: Operator, id: str, if_match: IfMatch = None) -> None:
    """Remove a relation, but not its files; refused while a job uses it."""
    RELATIONS.remove(context, actor, id, if_match)


@router.post("/{id}/sample")
def sample_relation(context: InContext, actor: Viewer, id: str) -> RelationSampleOut:
    """Look at a registered relation."""
    relation = RELATIONS.get(context, id)
    return _sample(context, actor, relation.spec, opened(context.settings, relation))


def _checked(context: Context, spec: dict[str, Any], earlier: dict[str, Any] | None = None) -> dict[str, Any]:
    """The entry as it is kept, or a problem that points into `spec`.

    Args:
        earlier: what it was before; None for a new one.
    """
    check_size(spec, earlier)
    with pointing_into_spec():
        check_wildcards(spec.get("path"))
        one_relation(spec)
    check_place(context.settings, spec)
    return spec


def _sample(context: Context, actor: Actor, entry: dict[str, Any], secrets: dict[str, str] | None) -> RelationSampleOut:
    check_place(context.settings, entry)  # also of a registered one: links move
    with pointing_into_spec(), called_by_names(context.settings):
        return bounded(actor.id, _looked_at, with_secrets(resolved(context.settings, entry), secrets))


def _looked_at(entry: dict[str, Any]) -> RelationSampleOut:
    found = look_at(entry)
    return RelationSampleOut(
        **seen(found.schema, found.rows, found.bad), row_count=found.row_count, bytes=found.bytes, files=found.files
    )


def _shape(relation: Relation) -> RelationOut:
    return RelationOut(**shown(relation), spec=relation.spec, has_secrets=relation.secrets is not None)
