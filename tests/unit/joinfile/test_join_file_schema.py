"""The published JSON Schema of the join file, and the tables of settings in docs: they follow from the models."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from streamjoin.cli.commands import app
from streamjoin.errors import StreamJoinError
from streamjoin.settings.text import read_yaml
from streamjoin.spec.joinfile import of_content
from streamjoin.spec.reference import pages_with_tables, with_tables
from streamjoin.spec.schema import TARGET, join_file_schema, schema_text, table_of

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "demo").rglob("*.md"))]
SECTIONS = {"streams", "relations", "query", "queries", "operator", "results", "run"}
GOOD: dict[str, Any] = {
    "streams": {
        "orders": {"source": "parquet", "path": "data/orders", "time": "ts"},
        "payments": {"source": "kafka", "servers": "h:9092", "topic": "t", "format": "json", "time": "ts",
                     "schema": {"ts": "timestamp"}},
    },
    "query": "SELECT ONLINE orders.id FROM orders, payments WHERE orders.id = payments.id WITHIN 1 SECOND",
}  # fmt: skip


def examples() -> Iterator[Any]:
    """Every YAML block of a page that is a join file, or a part of one."""
    for page in PAGES:
        for number, block in enumerate(re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)):
            content = read_yaml(block)
            if isinstance(content, dict) and content.keys() <= SECTIONS:
                yield pytest.param(content, id=f"{page.relative_to(ROOT)}-{number}")


EXAMPLES = list(examples())


@pytest.fixture(scope="module")
def schema() -> Draft202012Validator:
    """A validator by the schema as it is published."""
    return Draft202012Validator(json.loads(TARGET.read_text()))


def test_the_published_schema_is_current() -> None:
    assert TARGET.read_text() == schema_text() + "\n", "run python -m streamjoin.spec.schema"


def test_the_command_prints_the_published_schema(capsys: pytest.CaptureFixture[str]) -> None:
    app("schema", result_action="return_value")
    assert capsys.readouterr().out == TARGET.read_text()


@pytest.mark.parametrize("page", pages_with_tables(ROOT / "docs"), ids=lambda page: page.name)
def test_the_tables_of_settings_are_current(page: Path) -> None:
    assert page.read_text() == with_tables(page.read_text(), table_of), "run python -m streamjoin.spec.schema"


def test_examples_were_found() -> None:
    assert len(EXAMPLES) >= 10 and len(pages_with_tables(ROOT / "docs")) >= 5


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_right_by_the_schema(schema: Draft202012Validator, example: dict[str, Any]) -> None:
    whole = {**GOOD, **example}
    if "queries" in example:
        del whole["query"]
    assert [error.message for error in schema.iter_errors(whole)] == []
    of_content(whole)


def changed(path: str, value: Any) -> dict[str, Any]:
    """The good file with one field of another value."""
    content = copy.deepcopy(GOOD)
    *parents, last = path.split(".")
    place = content
    for name in parents:
        place = place.setdefault(name, {})
    place[last] = value
    return content


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("streems", {}),
        ("streams.orders.delai", "2s"),
        ("streams.orders.delay", 2),
        ("streams.orders.time_unit", "min"),
        ("streams.orders.csv", {"delimiter": 5}),
        ("streams.orders.shed", {"threshold": 1}),
        ("streams.orders.source", "parkett"),
        ("relations.cities", {"source": "kafka", "path": "x"}),
        ("relations.cities", {"source": "csv"}),
        ("relations.cities", {"source": "csv", "path": "x", "time": "ts"}),
        ("operator", {"name": "bclique"}),
        ("operator", {"name": "matrix", "cores": 2}),
        ("operator", {"name": "spark", "rows": 2}),
        ("operator", {"name": "biclique", "r_units": 0}),
        ("operator", {"name": "biclique", "r_units": "2"}),
        ("operator", {"name": "biclique", "routing": "nearest"}),
        ("operator", {"name": "handshake", "block": "some"}),
        ("operator", {"name": "splitjoin", "ordering": "sorted"}),
        ("operator", {"rows": 2, "name": "auto"}),
        ("results", {"store": "mysql"}),
        ("results", {"parquet": 5}),
        ("run.slots", 0),
        ("run.slots", "many"),
        ("run.strict", "yes"),
        ("run.heartbeat", 1),
        ("queries", {"second": {"query": "SELECT ONLINE 1"}}),
        ("queries.second", {}),
    ],
)
def test_what_the_schema_refuses_is_wrong(schema: Draft202012Validator, path: str, value: Any) -> None:
    wrong = changed(path, value)
    assert schema.is_valid(GOOD) and not schema.is_valid(wrong)
    with pytest.raises(StreamJoinError):
        _bound(wrong)


def _bound(content: dict[str, Any]) -> None:
    """All that is checked without looking at streams."""
    from streamjoin.operators import registry

    file = of_content(content)
    kind = registry.entry(file.operator.name if file.operator.name != registry.AUTO else registry.choose())
    registry.settings_of(kind, file.operator.knobs)


def test_every_definition_says_what_each_field_is_for() -> None:
    for name, part in join_file_schema()["$defs"].items():
        for one in part.get("anyOf", [part]):
            for field, found in one.get("properties", {}).items():
                assert found.get("description"), f"{name}.{field}"
