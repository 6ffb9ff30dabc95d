"""What the commands for streams and for relations share: files that describe one, and a look at one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from streamjoin.cli.platform.common import Format, note, read_document, show, warn
from streamjoin.cli.terminal import counted
from streamjoin.errors import InputError, RunError

NO_SPEC: Final[Mapping[str, Any]] = MappingProxyType({})


def read_entry(file: str, what: str, fields: Sequence[str]) -> dict[str, Any]:
    """The fields of a file: an entry of a join file as its `spec`, or the entry with the other fields in it.

    Raises:
        InputError: the file has other fields beside its `spec`.
    """
    document = read_document(file)
    if "spec" not in document:
        own = {field: document.pop(field) for field in fields if field in document}
        return {**own, "spec": document}
    unknown = document.keys() - set(fields)
    if unknown or not isinstance(document["spec"], dict):
        *others, last = fields
        raise InputError(
            f"a {what}'s file has {', '.join(others)} and {last}, not {', '.join(map(str, unknown)) or 'a plain spec'}"
        )
    return document


def name_of(entry: dict[str, Any], given: str | None, what: str) -> str:
    """What the new one is called: as the command says, else as the file does.

    Raises:
        InputError: nobody says it.
    """
    in_file = entry.get("name")
    name = given or in_file
    if name is None:
        raise InputError(f"a {what} needs a name: streamjoin {what}s create NAME -f FILE, or `name:` in the file")
    if in_file is not None and str(in_file) != str(name):
        warn(f"the {what} is called {name}, as the command says; the file says `name: {in_file}`")
    return str(name)


def show_rows(sample: Any, output: Format, more: str = "", spec: Mapping[str, Any] = NO_SPEC) -> None:
    """Print the rows of a look, and on standard error why records are bad, and which given columns have no value.

    Args:
        more: what else there is to say about it, to a person who looks on.
        spec: what was looked at, as far as it is known here.
    """
    if output in ("json", "yaml"):
        show(sample, output)
        return
    names = [column["name"] for column in sample["columns"]]
    # A column's name may have dots, so rows are not looked into by `show`.
    show([{str(place): value for place, value in enumerate(row)} for row in sample["rows"]], output,
         [str(place) for place in range(len(names))], names)  # fmt: skip
    note(f"{len(sample['rows'])} of {sample['rows_seen']:,} rows seen{more}")
    for reason, count in sorted(sample["bad_records"].items(), key=lambda bad: -bad[1]):
        warn(f"{counted(count, 'bad record')}: {reason}")
    schema = spec.get("schema")
    given = schema if isinstance(schema, Mapping) else NO_SPEC
    for place, name in enumerate(names):
        # The platform allows columns that files lack, so it cannot tell a misspelt one.
        if name in given and sample["rows"] and all(row[place] is None for row in sample["rows"]):
            warn(
                f'note: column "{name}" has no value in the {counted(len(sample["rows"]), "row")} shown; if the '
                "records have it, check how the schema spells it"
            )


def refuse_all_bad(sample: Any) -> None:
    """End with a failure where a look has found records, and none that is a row.

    Raises:
        RunError: so it is.
    """
    if sample["bad_records"] and not sample["rows_seen"]:
        count = sum(sample["bad_records"].values())
        raise RunError(f"no row can be used: {counted(count, 'record is', 'records are')} bad")
