"""Which of Spark's own joins can run a join file with a relation; where one cannot, validate or explain says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.errors import InputError
from streamjoin.explain.options import Option
from streamjoin.explain.plans import explain
from streamjoin.operators import registry
from streamjoin.operators.kind import Joins

from .conftest import Changes, Try

JOIN = "SELECT ONLINE o.id, c.name FROM orders AS o JOIN customers AS c ON o.k = c.id"
SPARKS = ("spark-broadcast", "spark-shuffled")
BOTH = dict.fromkeys(SPARKS)


@pytest.fixture(autouse=True)
def customers(folder: Path) -> None:
    """A relation in several formats."""
    (folder / "customers").mkdir(exist_ok=True)
    (folder / "customers" / "1.csv").write_text("id,name\n1,Ada\n2,Bob\n")
    (folder / "customers.jsonl").write_text('{"id": 1, "name": "Ada", "home": {"city": "Bonn"}}\n')
    with pa.OSFile(str(folder / "customers.arrow"), "wb") as out:
        columns = pa.schema([("id", pa.int64()), ("name", pa.string())])
        with pa.ipc.new_file(out, columns) as written:
            written.write_batch(pa.RecordBatch.from_pylist([{"id": 1, "name": "Ada"}], schema=columns))


def changes(query: str = JOIN, relation: Changes | None = None, **more: Any) -> Changes:
    return {
        "relations": {"customers": {"source": "csv", "path": "customers", **(relation or {})}},
        "query": query,
        **more,
    }


def options(validate: Try, given: Changes) -> dict[str, Option]:
    return {option.name: option for option in explain(validate(given)).options}


def reasons(validate: Try, given: Changes) -> dict[str, str | None]:
    found = options(validate, given)
    return {name: found[name].refusal for name in SPARKS}


def test_each_is_there_where_a_relation_is_joined(validate: Try) -> None:
    found = options(validate, changes())
    assert [found[name].refusal for name in SPARKS] == [None, None]
    assert found["spark"].refusal is not None and found["spark"].refusal.endswith(
        "of no relation; a relation is joined by spark-broadcast and spark-shuffled"
    )
    assert not set(SPARKS) & set(options(validate, {}))
    for name in SPARKS:
        assert validate(changes(operator={"name": name})).operator == name
        assert registry.entry(name).joins is Joins.RELATION and name not in registry.OF_RELATIONS
        with pytest.raises(InputError, match=f"{name} joins a stream with a relation, and this query reads none"):
            validate({"operator": {"name": name}})
        with pytest.raises(InputError, match=f"{name} has no knobs"):
            validate(changes(operator={"name": name, "units": 2}))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (changes(JOIN.replace("JOIN", "LEFT JOIN")), BOTH),
        (changes(JOIN.replace("JOIN", "LEFT SEMI JOIN").replace(", c.name", "")), BOTH),
        (changes(JOIN.replace("JOIN", "LEFT ANTI JOIN").replace(", c.name", "")), BOTH),
        (changes(JOIN.replace("=", "IS NOT DISTINCT FROM")), BOTH),
        (changes(**{"streams/orders/time": "arrival"}), BOTH),
        (changes(JOIN.replace("=", "<")), {"spark-broadcast": None, "spark-shuffled": "has no equality"}),
        (changes(JOIN.replace("c.name", "VERSION(c)")), dict.fromkeys(SPARKS, "leave VERSION(c) out")),
        (changes(f"{JOIN} JOIN customers AS d ON o.id = d.id"), dict.fromkeys(SPARKS, "this query reads more")),
        (
            changes(f"{JOIN} JOIN payments AS p ON o.k = p.k WITHIN 1 SECONDS"),
            dict.fromkeys(SPARKS, "this query reads more"),
        ),
        (
            changes(JOIN.replace("o.id,", "COUNT(*) AS n,") + " GROUP BY c.name, TUMBLE(1 SECONDS)"),
            dict.fromkeys(SPARKS, "gives pairs here, without groups"),
        ),
        (changes(relation={"refresh": "10min"}), dict.fromkeys(SPARKS, "relation customers has refresh; leave it out")),
        (
            changes(relation={"source": "arrow", "path": "customers.arrow"}),
            dict.fromkeys(SPARKS, "relations of parquet, csv, jsonl files, and relation customers is arrow"),
        ),
        (
            changes(relation={"csv": {"names": ["id", "name"]}}),
            dict.fromkeys(SPARKS, "and relation customers has csv.names"),
        ),
        (changes(relation={"path": "**/*.csv"}), dict.fromkeys(SPARKS, "the path of relation customers has")),
        (
            changes(relation={"source": "jsonl", "path": "customers.jsonl"}),
            dict.fromkeys(SPARKS, 'no fields of structs, and relation customers has "home.city"'),
        ),
    ],
)  # fmt: skip
def test_what_they_cannot_run_is_said_before_anything_starts(
    given: Changes, said: dict[str, str | None], validate: Try
) -> None:
    found = reasons(validate, given)
    assert {name: reason is None for name, reason in found.items()} == {name: one is None for name, one in said.items()}
    for name, one in said.items():
        assert one is None or one in str(found[name])
