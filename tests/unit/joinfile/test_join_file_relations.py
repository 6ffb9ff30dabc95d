"""Relations in a join file: tables without time, whose names lead to one thing, and which queries join."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamjoin.errors import InputError
from streamjoin.explain.plans import explain, summary
from streamjoin.explain.preview import preview
from streamjoin.spec.joinfile import parse

from .conftest import Changes, Try

CUSTOMERS = {"source": "csv", "path": "customers"}
JOIN = "SELECT ONLINE o.id, c.name FROM orders AS o JOIN customers AS c ON o.k = c.id"
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
        ({"source": "kafka", "topic": "t"}, ".topic", "a finite table; this is for kafka streams"),
        ({"source": "generator", "kind": "zipf.r"}, ".kind", "a finite table; this is for generator streams"),
        ({"source": "orc"}, ".source", "must be 'parquet', 'csv', 'jsonl', 'arrow', 'sql' or 'cassandra', not \"orc\""),
        ({"source": 5}, ".source", "must be 'parquet', 'csv', 'jsonl', 'arrow', 'sql' or 'cassandra', not 5"),
        ({"source": ["csv"]}, ".source", "must be 'parquet', 'csv', 'jsonl', 'arrow', 'sql' or 'cassandra'"),
        ({"source": None}, ".source", "is empty"),
        ({"path": ""}, ".path", "is empty; name a file or folder"),
        ({"path": None}, ".path", "is empty"),
        ({"path": 5}, ".path", "needs a text, not 5"),
        ({"path": "a\0b"}, ".path", "has characters that no path should have"),
        ({"path": "nothing"}, ".path", "nothing does not exist"),
        ({"path": "data"}, ".path", "has no files yet, so its columns are unknown; give a schema"),
        ({"pth": "x"}, ".pth", 'there is no such field; did you mean "path"?'),
        ({"colour": 1}, ".colour", "there is no such field; fields here are source, schema, refresh, path, csv"),
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
        (
            {"customers": {"path": "x"}},
            "relations.customers.source",
            "is missing; it is parquet, csv, jsonl, arrow, sql or cassandra",
        ),
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
def test_a_query_joins_a_relation_with_a_stream(name: str, validate: Try) -> None:
    query = f"SELECT ONLINE o.id, c.name FROM orders AS o JOIN {name} AS c ON o.k = c.id"
    bound = validate({**with_relation(), "query": query})
    assert bound.operator == "lookup" and bound.plan.names == ("o",)
    assert list(bound.relations) == ["customers"] and bound.relations["customers"].columns.names == ["id", "name"]
    assert summary(bound) == "o joins relation c, by lookup; allowed delay: o none"
    text = str(explain(bound))
    assert text.startswith("join        o, with relation c, in 1 stage: (o, c)\n")
    assert "relations   c: about 3 rows in 2 files, 34 bytes; read once and sorted, with id, name" in text
    assert "biclique         cannot: biclique joins streams; a stream is joined with a relation by lookup" in text
    assert "state grows" not in text
    shown = explain(bound).to_json()
    assert shown["relations"] == {"c": {"relation": "customers", "rows": None, "files": 2, "bytes": 34}}
    assert shown["stages"][0]["inputs"] == [{"stream": "o"}, {"relation": "c"}]


def test_a_preview_looks_rows_up(validate: Try) -> None:
    query = "SELECT ONLINE o.id, c.name FROM orders AS o JOIN customers AS c ON o.k = c.id"
    found = preview(validate({**with_relation(), "query": query})).to_json()
    assert found["queries"][0]["rows"] == [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}]
    assert [(one["name"], one["rows"], one["first"] is None) for one in found["streams"]] == [
        ("orders", 2, False),
        ("customers", 3, True),
    ]
    none = preview(validate({**with_relation(), "query": query.replace("= c.id", "= c.id + 100")})).to_json()
    assert none["queries"][0]["reason"] == (
        "no value of o.k is among those of (c.id + 100) in the rows that were looked at"
    )


@pytest.mark.parametrize(
    ("changes", "message", "field"),
    [
        ({"operator/name": "biclique"}, "a stream is joined with a relation by lookup", "operator.name"),
        ({"operator/name": "spark"}, "of no relation", "operator.name"),
        ({"operator/cores": 2}, "lookup has no such knob; its knobs are units", "operator.cores"),
        ({"operator/units": 0}, "1 to 4096", "operator.units"),
        ({"operator/ordering": "total"}, "a join of relation c leave in no order; leave", "operator.ordering"),
        ({"operator/main": "o.k = c.id"}, "or with a relation, has a main condition of its own", "operator.main"),
        ({"operator/archive_period": "1s"}, "an archive period is a span of time", "operator.archive_period"),
        ({"operator/index": "tree", "query": "SELECT ONLINE o.id FROM orders AS o, customers AS c"}, "tree index", ""),
    ],
)
def test_what_a_join_with_a_relation_cannot_have_is_refused_by_name(
    changes: Changes, message: str, field: str, validate: Try
) -> None:
    with pytest.raises(InputError, match=message) as refused:
        validate({**with_relation(), "query": JOIN, **changes})
    assert not field or refused.value.field == field


def test_lookup_is_refused_where_there_is_no_relation(validate: Try) -> None:
    with pytest.raises(InputError, match="lookup joins a stream with a relation, and this query reads none"):
        validate({"operator/name": "lookup"})


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
