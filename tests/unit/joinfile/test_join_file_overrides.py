"""`--set FIELD=VALUE`: a field of the join file, by its dotted name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streamjoin.errors import InputError
from streamjoin.spec.joinfile import JoinFile, parse

from .conftest import Changes

Override = Callable[..., JoinFile]


@pytest.fixture
def override(folder: Path, text_of: Callable[[Changes], str]) -> Override:
    return lambda field, value, **changes: parse(text_of(changes), base=folder, overrides={field: value})


def test_nested_fields_are_set(override: Override) -> None:
    assert override("streams.orders.delay", "5s").streams["orders"].delay == 5_000_000
    assert override("operator.name", "matrix").operator.name == "matrix"
    assert override("operator.r_bounds", "[1, 2]").operator.knobs == {"r_bounds": [1, 2]}
    assert override("run.slots", "7").slots == 7
    assert override("run.strict", "true").run.strict is True


def test_whole_sections_are_set(override: Override) -> None:
    assert override("results", "{parquet: out}").results.parquet == "out"


def test_section_that_is_there_but_empty_is_filled(override: Override) -> None:
    assert override("operator.name", "matrix", operator=None).operator.name == "matrix"


def test_query_is_taken_as_it_is(override: Override) -> None:
    for query in ("SELECT ONLINE a.b: c", "[SELECT", "'a'"):
        assert override("query", query).query == query


def test_value_that_is_no_yaml_is_a_text(override: Override) -> None:
    assert override("results.jsonl", "out: [1.jsonl").results.jsonl == "out: [1.jsonl"


def test_settings_of_spark_keep_their_dots(override: Override) -> None:
    found = override("run.spark.spark.sql.shuffle.partitions", "5").run.spark
    assert found == {"spark.sql.shuffle.partitions": "5"}


@pytest.mark.parametrize(
    ("field", "value", "named", "message"),
    [
        ("", "1", None, "--set takes FIELD=VALUE with a field such as operator.name"),
        (".", "1", None, "--set takes FIELD=VALUE"),
        ("operator.", "1", None, "--set takes FIELD=VALUE"),
        ("operater.name", "matrix", "operater", 'did you mean "operator"'),
        ("operator", "matrix", "operator", "needs a mapping such as {name: matrix}"),
        ("operator.name", "", "operator.name", "is empty"),
        ("query.x", "1", "query.x", "there is no such field to set"),
        ("results.jsonl.x", "1", "results.jsonl.x", "there is no such field to set"),
        ("streams.order.delay", "1s", "streams.order.delay", "there is no such stream; streams are orders, payments"),
        ("run.slots", "two", "run.slots", 'needs a whole number, not "two"'),
        ("run.slots", "[1", "run.slots", "needs a whole number"),
        ("run.slots", "{a: 1, a: 2}", "run.slots", "needs a whole number"),
        ("run.slots", "*a", "run.slots", "needs a whole number"),
        ("run.slots", "!!python/object:x y", "run.slots", "needs a whole number"),
        ("run.slots", "[" * 5_000, "run.slots", "needs a whole number"),
        ("base", "/etc", "base", "there is no such field"),
        (".".join("a" * 3_000), "1", "a", "there is no such field"),
    ],
)
def test_wrong_setting_is_refused(field: str, value: str, named: str | None, message: str, override: Override) -> None:
    with pytest.raises(InputError) as refused:
        override(field, value)
    assert message in refused.value.message
    assert refused.value.field == named
    assert len(str(refused.value)) < 300
