"""Relations in a join file: tables without time, whose names lead to one thing; no query may read one yet."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamjoin.errors import InputError, UnsupportedError
from streamjoin.query import UnsupportedQueryError
from streamjoin.spec.joinfile import parse

from .conftest import Changes, Try

CUSTOMERS = {"source": "csv", "path": "customers"}
NO_TIME = "a relation has no time; leave it out, or write the table under streams"


@pytest.fixture(autouse=True)
def customers(folder: Path) -> Path:
    """A folder of two files, three rows together."""
    path = folder / "customers"
    path.mkdir(exist_ok=True)
    (path / "1.csv").write_text("id,name\n1,Ada\n2,Bob\n")
    (path / "2.csv").write_text("id,name\n3,Cyd\n")
    return path


def with_relation(**fields: Any) -> Changes:
    return {"relations": {"customers": {**CUSTOMERS, **fields}}}


@pytest.mark.parametrize("source", ["parquet", "csv", "jsonl", "arrow"])
def test_a_relation_has_a_source_a_path_and_perhaps_a_schema(source: str, text_of: Callable[[Changes], str]) -> None:
    schema = {"id": "int64", "name": "string"}
    relation = parse(text_of(with_relation(source=source, schema=schema))).relations["customers"]
    assert (relation.source, relation.path) == (source, "customers")
    columns = relation.arrow_schema()
    assert columns is not None and columns.names == ["id", "name"]


def test_a_file_without_relations_has_none(text_of: Callable[[Changes], str]) -> None:
    assert parse(text_of({})).relations == {}


def test_a_relation_that_no_query_reads_is_right(validate: Try) -> None:
    bound = validate(with_relation())
    assert bound.plan.names == ("orders", "payments")
    assert list(bound.file.relations) == ["customers"]


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"time": "ts"}, ".time", NO_TIME),
        ({"time_unit": "ms"}, ".time_unit", NO_TIME),
        ({"delay": "2s"}, ".delay", NO_TIME),
        ({"punctuate": {"every": "1s"}}, ".punctuate", NO_TIME),
        ({"shed": {"threshold": 1, "capacity": 2}}, ".shed", "a relation has no time, and nothing of it is shed"),
        ({"source": "kafka"}, ".source", "a topic never ends, so write it under streams"),
        ({"source": "generator"}, ".source", "write the rows to files first, with streamjoin generate"),
        ({"source": "push"}, ".source", "rows are pushed into streams only"),
        ({"source": "kafka", "topic": "t"}, ".topic", "a finite table of files; this is for kafka streams"),
        ({"source": "generator", "kind": "zipf.r"}, ".kind", "a finite table of files; this is for generator streams"),
        ({"source": "orc"}, ".source", "must be 'parquet', 'csv', 'jsonl' or 'arrow', not \"orc\""),
        ({"source": 5}, ".source", "must be 'parquet', 'csv', 'jsonl' or 'arrow', not 5"),
        ({"source": ["csv"]}, ".source", "must be 'parquet', 'csv', 'jsonl' or 'arrow'"),
        ({"source": None}, ".source", "is empty"),
        ({"path": ""}, ".path", "is empty; name a file or folder"),
        ({"path": None}, ".path", "is empty"),
        ({"path": 5}, ".path", "needs a text, not 5"),
        ({"path": "a\0b"}, ".path", "has characters that no path should have"),
        ({"path": "nothing"}, ".path", "nothing does not exist"),
        ({"path": "data"}, ".path", "has no files yet, so its columns are unknown; give a schema"),
        ({"pth": "x"}, ".pth", 'there is no such field; did you mean "path"?'),
        ({"colour": 1}, ".colour", "there is no such field; fields here are source, schema, path, csv"),
        (
            {"source": "parquet", "csv": {"delimiter": ";"}},
            ".csv",
            "a parquet relation takes no such field; it is for csv",
        ),
        ({"source": "csv", "csv": {"delimiter": "ab"}}, ".csv.delimiter", '"ab" is not one ASCII character'),
        ({"schema": {}}, ".schema", "a relation needs at least one column"),
        ({"schema": {"id": "int65"}}, ".schema", 'column "id": "int65" is not a column type'),
        ({"schema": {f"c{n}": "int64" for n in range(2000)}}, ".schema", "a relation may have 1000 columns at most"),
    ],
)
def test_what_a_relation_cannot_have_is_refused_by_name(
    fields: Changes, field: str, message: str, validate: Try
) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as refused:
        validate(with_relation(**fields))
    assert refused.value.field == f"relations.customers{field}"
    assert "stream needs" not in refused.value.message


@pytest.mark.parametrize(
    ("relations", "field", "message"),
    [
        ({"customers": {"path": "x"}}, "relations.customers.source", "is missing; it is parquet, csv, jsonl or arrow"),
        (
            {"customers": {"source": "csv"}},
            "relations.customers.path",
            "is missing; a csv relation needs it: a file, a folder",
        ),
        ({"customers": None}, "relations.customers", "is empty"),
        ({"customers": "x"}, "relations.customers", "needs a mapping"),
        ([CUSTOMERS], "relations", "needs a mapping: a name and a description for each relation"),
        (None, "relations", "is empty"),
        ({"our customers": CUSTOMERS}, "relations.our customers", "a relation's name is a letter or _"),
        ({"orders": CUSTOMERS}, "relations.orders", "is the name of a stream, too; rename one"),
        ({"Orders": CUSTOMERS}, "relations.Orders", 'differs from "orders" by case only; rename one'),
        ({"a": CUSTOMERS, "A": CUSTOMERS}, "relations.A", 'differs from "a" by case only; rename one'),
    ],
)
def test_a_wrong_section_is_named(relations: Any, field: str, message: str, validate: Try) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as refused:
        validate({"relations": relations})
    assert refused.value.field == field


@pytest.mark.parametrize("name", ["customers", "Customers"])
def test_a_query_that_reads_a_relation_is_refused_at_its_place(name: str, validate: Try) -> None:
    query = f"SELECT ONLINE orders.id\nFROM orders, {name} AS c\nWHERE orders.k = c.id"
    with pytest.raises(UnsupportedQueryError, match=f'"{name}" is a relation; no operator joins') as refused:
        validate({**with_relation(), "query": query})
    span = refused.value.span
    assert span is not None and (span.line, span.column, span.end_line) == (2, 14, 2)
    assert "semi-stream join" in refused.value.message and "register the table as a stream" in refused.value.message
    assert isinstance(refused.value, UnsupportedError)


@pytest.mark.parametrize("results", [{"parquet": "customers"}, {"jsonl": "customers/out.jsonl"}])
def test_results_in_a_relation_would_change_it(results: Changes, validate: Try) -> None:
    with pytest.raises(InputError, match=r"relation customers.* would be read as its tuples"):
        validate({**with_relation(), "results": results})


def test_fields_of_relations_are_set(text_of: Callable[[Changes], str]) -> None:
    file = parse(text_of(with_relation()), overrides={"relations.customers.path": "elsewhere"})
    assert file.relations["customers"].path == "elsewhere"
    for changes, there in ((with_relation(), "relations are customers"), ({}, "there are none")):
        with pytest.raises(InputError, match=f"there is no such relation; {there}") as refused:
            parse(text_of(changes), overrides={"relations.custmers.path": "x"})
        assert refused.value.field == "relations.custmers.path"
