"""What the commands for streams and for relations share: files that describe one, and a look at one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamjoin.cli.platform.common import Format, note, read_document, show
from streamjoin.errors import InputError


def read_entry(file: str, what: str, fields: Sequence[str]) -> dict[str, Any]:
    """The fields of a file: an entry of a join file is the `spec` itself, or stands beside other fields.

    Raises:
        InputError: the file has other fields.
    """
    document = read_document(file)
    if "spec" not in document:
        return {"spec": document}
    unknown = document.keys() - set(fields)
    if unknown or not isinstance(document["spec"], dict):
        *others, last = fields
        raise InputError(
            f"a {what}'s file has {', '.join(others)} and {last}, not {', '.join(map(str, unknown)) or 'a plain spec'}"
        )
    return document


def name_of(entry: dict[str, Any], given: str | None, what: str) -> str:
    """What the new one is called.

    Raises:
        InputError: nobody says it.
    """
    name = given or entry.get("name")
    if name is None:
        raise InputError(f"a {what} needs a name: streamjoin {what}s create NAME -f FILE, or `name:` in the file")
    return str(name)


def show_rows(sample: Any, output: Format, more: str = "") -> None:
    """Print the rows of a look.

    Args:
        more: what else there is to say about it, to a person who looks on.
    """
    if output in ("json", "yaml"):
        show(sample, output)
        return
    names = [column["name"] for column in sample["columns"]]
    # A column's name may have dots, so rows are not looked into by `show`.
    show([{str(place): value for place, value in enumerate(row)} for row in sample["rows"]], output,
         [str(place) for place in range(len(names))], names)  # fmt: skip
    note(f"{len(sample['rows'])} of {sample['rows_seen']:,} rows seen{more}")
    for reason, count in sample["bad_records"].items():
        note(f"{count:,} bad records: {reason}")
