"""The tables of settings in docs: one line per field, from the models."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from streamjoin.settings.setting import FORM

Schema = Mapping[str, Any]
_BLOCK = re.compile(r"(<!-- settings of ([\w. -]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def settings_table(properties: Mapping[str, Schema]) -> str:
    """Fields of a schema with their types, defaults and meanings."""
    rows = [f"| `{name}` | {_kind(one)} | {_unset(one)} | {_said(one)} |" for name, one in properties.items()]
    return "\n".join(["| field | type | unless set | meaning |", "| --- | --- | --- | --- |", *rows]) + "\n"


def kinds_table(kinds: Mapping[str, Mapping[str, Schema]]) -> str:
    """Fields of several kinds of one section, and for which of them each is.

    Args:
        kinds: by name, the fields of each.
    """
    names = list(dict.fromkeys(name for properties in kinds.values() for name in properties))
    takers = {name: [kind for kind, properties in kinds.items() if name in properties] for name in names}
    rows = []
    for name, of in sorted(takers.items(), key=lambda found: len(found[1]) == len(kinds)):
        ones = {kind: kinds[kind][name] for kind in of}
        cells = [f"`{name}`", "all" if len(of) == len(kinds) else ", ".join(of)]
        rows.append(f"| {' | '.join([*cells, *(_each(ones, cell) for cell in (_kind, _unset, _said))])} |")
    head = ["| field | of | type | unless set | meaning |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*head, *rows]) + "\n"


def _each(ones: Mapping[str, Schema], cell: Callable[[Schema], str]) -> str:
    """What is said of a field by all of its kinds, or by each of them."""
    said = {kind: cell(one) for kind, one in ones.items()}
    if len(set(said.values())) == 1:
        return next(iter(said.values()))
    return "; ".join(f"{kind}: {text}" for kind, text in said.items())


def with_tables(page: str, table: Callable[[str], str]) -> str:
    """A page with its tables of settings written anew; `table` makes one by its name."""
    return _BLOCK.sub(lambda found: found[1] + table(found[2]) + found[3], page)


def pages_with_tables(docs: Path) -> list[Path]:
    """The pages that have such tables."""
    return [page for page in sorted(docs.rglob("*.md")) if _BLOCK.search(page.read_text())]


def _said(one: Schema) -> str:
    return str(one.get("description", "")).replace("|", "\\|")


def _unset(one: Schema) -> str:
    if (told := one.get(FORM, {}).get("unset")) is not None:
        return str(told)
    if "default" not in one:
        return ""
    value = one["default"]
    return f"`{str(value).lower() if isinstance(value, bool) else value}`" if value != "" else "nothing"


def _kind(one: Schema) -> str:
    if "enum" in one:
        return ", ".join(f"`{choice}`" for choice in one["enum"])
    if "const" in one:
        return f"`{one['const']}`"
    if "anyOf" in one:
        return " or ".join(map(_kind, one["anyOf"]))
    match one.get("type"):
        case None:
            return "value"
        case "integer":
            return f"whole number{_bounds(one)}"
        case "number":
            return "number"
        case "boolean":
            return "`true`, `false`"
        case "array":
            return f"list of {_kind(one['items'])}s" if "items" in one else "list"
        case "object":
            return "mapping"
        case list(several):
            return " or ".join(_kind({"type": kind}) for kind in several)
    return "span" if one.get("format") == "span" else "text"


def _bounds(one: Schema) -> str:
    least, most = one.get("minimum"), one.get("maximum")
    if most is not None and most < 2**31:
        return f", {least} to {most}"
    return f", {least} or more" if least is not None and least > -(2**53) else ""
