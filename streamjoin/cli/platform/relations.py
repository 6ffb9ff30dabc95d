"""`streamjoin relations`: the tables that streams are joined with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cyclopts

from streamjoin.cli.platform.common import HERE, File, Format, Output, Version, Where, note, show
from streamjoin.cli.platform.entries import NO_SPEC, name_of, read_entry, refuse_all_bad, show_rows

app = cyclopts.App(name="relations", help="Relations registered with the platform, and versions of a join file's.")
COLUMNS = ("name", "spec.source", "spec.path", "version", "updated_at", "id")
FIELDS = ("name", "spec", "secrets")


@app.command(name=["ls", "list"])
def list_relations(*, output: Output = "table", where: Where = HERE) -> None:
    """List all relations, newest first."""
    with where.client() as client:
        show(list(client.relations.list()), output, COLUMNS)


@app.command
def get(relation: str, *, output: Output = "yaml", where: Where = HERE) -> None:
    """Show a relation.

    Parameters
    ----------
    relation
        Its id or name.
    """
    with where.client() as client:
        show(client.relations.get(relation), output, COLUMNS)


@app.command
def create(name: str | None = None, *, file: File, output: Output = "yaml", where: Where = HERE) -> None:
    """Register a relation.

    The file has the fields of an entry of `relations:` in a join file, with `name` and `secrets` among them:

    ```
    name: customers
    source: sql
    url: postgresql://reader@db/shop
    table: customers
    secrets: {password: ...}
    ```

    Or `spec:` has the entry, with `name` and `secrets` beside it.

    Parameters
    ----------
    name
        Its name, unless the file has it.
    """
    with where.client() as client:
        entry = read_entry(file, "relation", FIELDS)
        made = client.relations.create(name_of(entry, name, "relation"), entry["spec"], secrets=entry.get("secrets"))
        note(f"relation {made['name']} is registered as {made['id']}")
        show(made, output, COLUMNS)


@app.command
def update(relation: str, *, file: File, version: Version = None, output: Output = "yaml", where: Where = HERE) -> None:
    """Change a relation; jobs take it over when they are changed themselves.

    Parameters
    ----------
    relation
        Its id or name.
    """
    with where.client() as client:
        entry = read_entry(file, "relation", FIELDS)
        changed = client.relations.change(relation, spec=entry["spec"], secrets=entry.get("secrets"), version=version)
        show(changed, output, COLUMNS)


@app.command(name="test")
def look_at(*, file: File, output: Output = "table", where: Where = HERE) -> None:
    """Look at a relation without registering it: columns, first rows, size, and how skewed values are.

    Bad records are told with their reasons; exit status 1 if there are no others.
    """
    with where.client() as client:
        entry = read_entry(file, "relation", FIELDS)
        _show_sample(client.relations.test(entry["spec"], secrets=entry.get("secrets")), output, entry["spec"])


@app.command
def sample(relation: str, *, output: Output = "table", where: Where = HERE) -> None:
    """Look at a registered relation.

    Parameters
    ----------
    relation
        Its id or name.
    """
    with where.client() as client:
        _show_sample(client.relations.sample(relation), output)


@app.command
def delete(relation: str, *, where: Where = HERE) -> None:
    """Remove a relation, but not its files; refused while a job uses it.

    Parameters
    ----------
    relation
        Its id or name.
    """
    with where.client() as client:
        client.relations.delete(relation)
        note(f"relation {relation} is removed")


def _show_sample(sample: Any, output: Format, spec: Mapping[str, Any] = NO_SPEC) -> None:
    rows = "" if sample["row_count"] is None else f"{sample['row_count']:,} rows, "
    files = "" if sample["files"] is None else f"{sample['bytes']:,} bytes, in {sample['files']:,} files"
    show_rows(sample, output, f", of {rows}{files}" if files else "", spec)
    refuse_all_bad(sample)
