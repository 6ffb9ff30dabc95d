"""The JSON Schema of the join file, which editors complete and check YAML with. It follows from models and registries.

    python -m streamjoin.spec.schema     writes docs/join-file.schema.json and the tables of settings in docs

A schema cannot say all that `validate` checks, such as that a query is right: what it refuses is wrong, but what it
lets pass may be wrong, too. Under `x-form` a field has what forms show beside its type and description; see
`settings/setting.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from streamjoin.operators import registry
from streamjoin.operators.kind import CommonSettings, OperatorKind
from streamjoin.results.stores.registry import STORES
from streamjoin.sources.file_kinds import CsvFile
from streamjoin.sources.kind import Columns
from streamjoin.sources.registry import INPUTS, SOURCES, relation_kinds
from streamjoin.spec.joinfile import Sections
from streamjoin.spec.reference import kinds_table, pages_with_tables, settings_table, with_tables
from streamjoin.spec.sections import (
    CacheFile,
    PunctuateFile,
    RelationFile,
    ResultsFile,
    RunFile,
    ShedFile,
    SnapshotFile,
    StreamFile,
)

TARGET = Path(__file__).resolve().parents[2] / "docs" / "join-file.schema.json"
Schema = dict[str, Any]
_SECTIONS: dict[str, type[BaseModel]] = {
    "results": ResultsFile, "results.snapshot": SnapshotFile, "run": RunFile, "run.cache": CacheFile,
    "shed": ShedFile, "csv": CsvFile, "punctuate": PunctuateFile,
}  # fmt: skip
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def join_file_schema() -> Schema:
    """The schema of a whole join file."""
    whole = _tidy(Sections.model_json_schema())
    parts: dict[str, Schema] = whole.pop("$defs")
    parts["OperatorFile"] = operator_schema()
    parts["ResultsFile"] = results_schema()
    parts["StreamFile"] = _choice("a stream, of one of the sources", list(map(schema_of_stream, SOURCES)))
    parts["RelationFile"] = _choice("a finite table", list(map(schema_of_relation, relation_kinds())))
    return {
        "$schema": _DIALECT,
        "title": "StreamJoin's join file",
        **whole,
        "oneOf": [{"required": ["query"]}, {"required": ["queries"]}],
        "$defs": parts,
    }


def section_schema(section: str) -> Schema:
    """A section whose fields are the same in every join file, such as `run`; all that it needs is in it."""
    found: Schema = _inlined(_tidy(_SECTIONS[section].model_json_schema()))
    return found


def operator_schema() -> Schema:
    """`operator:`: one of the operators with its knobs; `auto` takes those of the one it stands for."""
    return _choice(
        "which operator runs the join, and its knobs",
        [
            _operator(registry.AUTO, registry.entry(registry.choose()), "the one that fits the query", is_named=False),
            *map(schema_of_operator, registry.REGISTRY),
        ],
    )


def schema_of_operator(name: str) -> Schema:
    """`operator:` of a join file that names this one."""
    kind = registry.entry(name)
    return _operator(name, kind, kind.system)


def _operator(name: str, kind: OperatorKind, says: str, *, is_named: bool = True) -> Schema:
    needed = ["name"] if is_named else []
    return variant({"name": _tag(name, says)}, [kind.settings, CommonSettings], needed)


def variant(tags: Mapping[str, Schema], models: Iterable[type[BaseModel]], needed: Iterable[str] = ()) -> Schema:
    """An object that has the fields of several models, and no others.

    Args:
        tags: fields that tell it from other variants.
    """
    found: Schema = {
        "type": "object",
        "properties": dict(tags),
        "required": list(needed),
        "additionalProperties": False,
    }
    for model in models:
        one = _inlined(_tidy(model.model_json_schema()))
        found["properties"].update(one.get("properties", {}))
        found["required"] += one.get("required", [])
    return found


def results_schema() -> Schema:
    """`results:`: files, nothing, or one of the stores."""
    one = section_schema("results")["properties"]
    ends = [{"type": "object", "properties": {field: one[field]}, "required": [field], "additionalProperties": False}
            for field in ("parquet", "jsonl", "discard")]  # fmt: skip
    return _choice("where results go", [*ends, *map(schema_of_store, STORES)])


def schema_of_stream(source: str) -> Schema:
    """An entry of `streams:` of this source."""
    kind = SOURCES[source]
    found = variant({}, [kind.settings, StreamFile], ["schema"] if kind.columns is Columns.GIVEN else [])
    if kind.columns is Columns.OWN:
        del found["properties"]["schema"]
    found["properties"]["source"] = _tag(source, kind.says)
    return found


def schema_of_relation(source: str) -> Schema:
    """An entry of `relations:` of this source."""
    kind = INPUTS[source]
    found = variant({}, [kind.settings, RelationFile])
    found["properties"]["source"] = _tag(source, kind.says)
    return found


def schema_of_store(name: str) -> Schema:
    """`results:` of a join file that names this store."""
    kind = STORES[name]
    found = variant({"store": _tag(name, kind.says)}, [kind.settings, ResultsFile], ["store"])
    found["properties"]["store"] = _tag(name, kind.says)
    for field in ("parquet", "jsonl", "discard"):
        del found["properties"][field]
    return found


def fields_of_all(kinds: Iterable[Schema]) -> dict[str, Schema]:
    """The fields of several kinds of one section together."""
    return {field: one for kind in kinds for field, one in kind["properties"].items()}


def _tag(value: str, says: str) -> Schema:
    return {"const": value, "description": says}


def _choice(says: str, variants: list[Schema]) -> Schema:
    return {"description": says, "anyOf": variants}


def _inlined(schema: Schema) -> Schema:
    """With the definitions of a model where they are named."""
    parts = schema.pop("$defs", {})

    def put(part: Any) -> Any:
        if isinstance(part, list):
            return [put(item) for item in part]
        if not isinstance(part, dict):
            return part
        inner = {name: put(value) for name, value in part.items() if name != "$ref"}
        return {**put(parts[part["$ref"].rpartition("/")[2]]), **inner} if "$ref" in part else inner

    found: Schema = put(schema)
    return found


def _tidy(schema: Any) -> Any:
    """Without titles that only repeat names, and without nulls: a field without a value is left out."""
    if isinstance(schema, list):
        return [_tidy(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        name: {field: _tidy(inner) for field, inner in value.items()} if name == "properties" else _tidy(value)
        for name, value in schema.items()
        if not (name == "title" and isinstance(value, str))
        and not (name == "default" and (value is None or isinstance(value, dict)))
    }
    choices = [choice for choice in kept.get("anyOf", []) if choice != {"type": "null"}]
    if len(choices) == 1:
        del kept["anyOf"]
        return {**choices[0], **kept}
    return {**kept, "anyOf": choices} if choices else kept


def schema_text() -> str:
    """The schema as `streamjoin schema` prints it."""
    return json.dumps(join_file_schema(), indent=1)


def table_of(name: str) -> str:
    """A table of settings for docs, by its name, such as `operator biclique` or `run`."""
    section, _, choice = name.partition(" ")
    if section == "streams":
        return kinds_table({source: _untagged(schema_of_stream(source)) for source in SOURCES})
    if section == "relations":
        return kinds_table({source: _untagged(schema_of_relation(source)) for source in relation_kinds()})
    if section == "stores":
        return kinds_table({kind: _untagged(schema_of_store(kind)) for kind in STORES})
    return settings_table(_untagged(schema_of_operator(choice) if section == "operator" else section_schema(section)))


def _untagged(found: Schema) -> Schema:
    return {field: one for field, one in found["properties"].items() if field not in ("source", "store", "name")}


def write() -> None:
    """Write the schema and the tables in docs; a test compares them."""
    TARGET.write_text(schema_text() + "\n")
    for page in pages_with_tables(TARGET.parent):
        page.write_text(with_tables(page.read_text(), table_of))


if __name__ == "__main__":
    write()
