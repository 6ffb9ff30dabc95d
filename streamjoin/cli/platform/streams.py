"""`streamjoin streams`: what the platform reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cyclopts

from streamjoin.cli.platform.common import HERE, File, Format, Output, RowsFile, Version, Where, note, read_rows, show
from streamjoin.cli.platform.entries import NO_SPEC, name_of, read_entry, refuse_all_bad, show_rows

app = cyclopts.App(name="streams", help="Streams that are registered with the platform.")
COLUMNS = ("name", "spec.source", "spec.time", "spec.delay", "version", "updated_at", "id")
FIELDS = ("name", "spec", "secrets")


@app.command(name=["ls", "list"])
def list_streams(
    *, source: str | None = None, owner: str | None = None, since: str | None = None, output: Output = "table",
    where: Where = HERE,
) -> None:  # fmt: skip
    """List all streams, newest first.

    Parameters
    ----------
    source
        Only those with it, such as csv or push.
    owner
        Only those of this user: an id, or me.
    since
        Only those that were registered at this time or later.
    """
    with where.client() as client:
        show(list(client.streams.list(source=source, owner=owner, since=since)), output, COLUMNS)


@app.command
def get(stream: str, *, output: Output = "yaml", where: Where = HERE) -> None:
    """Show a stream.

    Parameters
    ----------
    stream
        Its id or name.
    """
    with where.client() as client:
        show(client.streams.get(stream), output, COLUMNS)


@app.command
def create(name: str | None = None, *, file: File, output: Output = "yaml", where: Where = HERE) -> None:
    """Register a stream.

    The file has the fields of an entry of `streams:` in a join file, with `name` and `secrets` among them:

    ```
    name: sales
    source: csv
    path: /data/sales
    time: sold_at
    ```

    Or `spec:` has the entry, with `name` and `secrets` beside it.

    Parameters
    ----------
    name
        Its name, unless the file has it.
    """
    with where.client() as client:
        entry = read_entry(file, "stream", FIELDS)
        made = client.streams.create(name_of(entry, name, "stream"), entry["spec"], secrets=entry.get("secrets"))
        note(f"stream {made['name']} is registered as {made['id']}")
        show(made, output, COLUMNS)


@app.command
def update(stream: str, *, file: File, version: Version = None, output: Output = "yaml", where: Where = HERE) -> None:
    """Change a stream; jobs take it over when they are changed themselves.

    Parameters
    ----------
    stream
        Its id or name.
    """
    with where.client() as client:
        entry = read_entry(file, "stream", FIELDS)
        changed = client.streams.change(stream, spec=entry["spec"], secrets=entry.get("secrets"), version=version)
        show(changed, output, COLUMNS)


@app.command(name="test")
def look_at(*, file: File, output: Output = "table", where: Where = HERE) -> None:
    """Look at a stream without registering it: columns, first rows, and how skewed values are.

    Bad records are told with their reasons; exit status 1 if there are no others.
    """
    with where.client() as client:
        entry = read_entry(file, "stream", FIELDS)
        _show_sample(client.streams.test(entry["spec"], secrets=entry.get("secrets")), output, entry["spec"])


@app.command
def sample(stream: str, *, output: Output = "table", where: Where = HERE) -> None:
    """Look at a registered stream.

    Parameters
    ----------
    stream
        Its id or name.
    """
    with where.client() as client:
        _show_sample(client.streams.sample(stream), output)


@app.command
def push(
    stream: str,
    *,
    file: RowsFile,
    batch_id: str | None = None,
    output: Output = "json",
    where: Where = HERE,
) -> None:
    """Push rows into a stream of source `push`; they are on disk when this returns.

    Parameters
    ----------
    stream
        Its id or name.
    batch_id
        Your own name of these rows: pushed again under it, they are there once.
    """
    rows = read_rows(file)
    with where.client() as client:
        show(client.streams.push(stream, rows, batch_id=batch_id), output, ("rows", "duplicate"))


@app.command
def delete(stream: str, *, where: Where = HERE) -> None:
    """Remove a stream; refused while a job uses it.

    Parameters
    ----------
    stream
        Its id or name.
    """
    with where.client() as client:
        client.streams.delete(stream)
        note(f"stream {stream} is removed")


def _show_sample(sample: Any, output: Format, spec: Mapping[str, Any] = NO_SPEC) -> None:
    rate = "" if sample["rate_per_s"] is None else f", about {sample['rate_per_s']:,.0f} rows/s of event time"
    show_rows(sample, output, rate, spec)
    if output not in ("json", "yaml"):
        _tell_columns(sample)
    refuse_all_bad(sample)


def _tell_columns(sample: Any) -> None:
    for one in sample.get("widened", ()):
        count = f"{one['values']:,} value{'' if one['values'] == 1 else 's'}"
        note(f"{one['column']} is {one['type']} because of {count} such as {one['example']!r}; else {one['instead']}")
    if times := sample.get("times"):
        note(f"may be the event time: {', '.join(_time(one) for one in times)}")


def _time(column: Any) -> str:
    return column["name"] if column["time_unit"] is None else f"{column['name']} (time_unit: {column['time_unit']})"
