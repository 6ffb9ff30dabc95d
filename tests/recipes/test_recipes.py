"""ARCHITECTURE's recipes "add a source" and "add a store", followed: one module, one entry, and everything has it."""

from __future__ import annotations

import ast
from pathlib import Path

import pyarrow as pa
import pytest
from jsonschema_rs import Draft202012Validator

import streamjoin
from streamjoin.engine.loop import Brought, Loop
from streamjoin.errors import InputError
from streamjoin.explain.plans import explain
from streamjoin.operators import registry
from streamjoin.results.parts import BatchDone
from streamjoin.results.reader import Reader
from streamjoin.results.stores.registry import STORES
from streamjoin.sources.registry import SOURCES
from streamjoin.spec.changes import keeps_state
from streamjoin.spec.joinfile import of_content
from streamjoin.spec.outputs import store_job, store_sink, store_spec
from streamjoin.spec.prepare import Bound, bind
from streamjoin.spec.schema import join_file_schema, table_of
from streamjoin.state.memory import MemoryStates
from tests.recipes.shelf import SHELF
from tests.recipes.ticks import TICKS

PRODUCT = Path(streamjoin.__file__).parent
QUERY = "SELECT ONLINE a.k AS a, b.k AS b FROM a, b WHERE a.k = b.k WITHIN 1 SECOND"


@pytest.fixture(autouse=True)
def entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that the product is told of the two: an entry each."""
    monkeypatch.setitem(SOURCES, "ticks", TICKS)
    monkeypatch.setitem(STORES, "shelf", SHELF)


def content(**changes: object) -> dict[str, object]:
    """A join file over two clocks, with results on a shelf."""
    clocks = {name: {"source": "ticks", "ticks": count, "time": "ts"} for name, count in (("a", 30), ("b", 20))}
    return {"streams": clocks, "query": QUERY, "results": {"store": "shelf", "shelf": "top"}, **changes}


def joined(bound: Bound) -> list[pa.RecordBatch]:
    """All results of a join file, by the sources that its job opens, through the loop without Spark."""
    job = bound.job()
    sources = [job.open_source(side) for side in (0, 1)]
    pieces = [
        [rows for read in source.reads(source.initial(), source.latest(source.initial(), 0), 1)
         for rows, _ in read.rows(source.schema.names)]
        for source in sources
    ]  # fmt: skip
    states = MemoryStates()
    operator = registry.build(bound.operator, {}, bound.plan, 2)
    return [rows for _, rows in Loop(bound.plan, (operator,), lambda stage: states, 2).batch(Brought(pieces, 0))]


def test_the_join_file_takes_the_fields_of_the_new_source_and_no_others() -> None:
    assert of_content(content()).streams["a"].model_dump()["ticks"] == 30
    for wrong, field, says in (
        ({"ticks": 0}, "ticks", "must be at least 1"),
        ({}, "ticks", "is missing; a ticks stream needs it: how many ticks there are"),
        ({"ticks": 1, "path": "x"}, "path", "a ticks stream takes no such field; it is for parquet"),
        ({"ticks": 1, "schema": {"k": "int64"}}, "schema", "a ticks stream takes no such field"),
    ):
        with pytest.raises(InputError) as raised:
            of_content(content(streams={"a": {"source": "ticks", "time": "ts", **wrong}}))
        assert raised.value.field == f"streams.a.{field}" and says in str(raised.value)
    with pytest.raises(InputError, match="it is for ticks"):
        of_content(content(streams={"a": {"source": "csv", "path": "x", "time": "ts", "ticks": 1}}))
    with pytest.raises(InputError, match="a relation is a finite table; this is for ticks streams"):
        of_content(content(relations={"c": {"source": "ticks", "ticks": 1}}))


def test_the_join_file_takes_the_fields_of_the_new_store_and_no_others() -> None:
    with pytest.raises(InputError, match="shelf needs it: the name of the shelf"):
        of_content(content(results={"store": "shelf"}))
    with pytest.raises(InputError, match="sqlite takes no such field; it is for shelf"):
        of_content(content(results={"store": "sqlite", "path": "x", "shelf": "top"}))


def test_schema_and_tables_have_them() -> None:
    schema = Draft202012Validator(join_file_schema())
    assert schema.is_valid(content())
    assert not schema.is_valid(content(results={"store": "shelf"}))
    assert not schema.is_valid(content(streams={"a": {"source": "ticks", "time": "ts", "ticks": "many"}}))
    assert "| `ticks` | ticks | whole number, 1 or more |  | how many ticks there are |" in table_of("streams")
    assert "| `shelf` | shelf | text |  | the name of the shelf |" in table_of("stores")
    assert not keeps_state("streams.a.ticks") and not keeps_state("results.shelf")


def test_explain_samples_the_source() -> None:
    found = explain(bind(of_content(content())))
    assert found.statistics is not None
    assert [round(one.rate_per_s) for one in found.statistics] == [1, 1]


def test_the_join_runs_from_the_source_into_the_store(tmp_path: Path) -> None:
    bound = bind(of_content(content(run={"checkpoint": str(tmp_path / "state")})))
    results = joined(bound)
    assert sorted(row["a"] for rows in results for row in rows.to_pylist()) == list(range(20))
    sink = store_sink(bound.file, bound.plan)
    writer = sink.begin("origin")
    with writer.part(0, 0, bound.query.emitted) as part:
        for rows in results:
            part.write(rows, unit=0)
    sink.commit(BatchDone(0, 0), [part.summary()])
    sink.finish()
    reader = Reader(store_spec(bound.file).open(), store_job(bound.file))
    reader.refresh()
    kept = [batch for found in reader.snapshots() for _, batch in reader.rows(found.blocks)]
    assert sorted(value for batch in kept for value in batch.column("b").to_pylist()) == list(range(20))


KIND_MODULES = {
    **{f"streamjoin.operators.{name}.kind": "operators/registry.py" for name in registry.REGISTRY if name != "spark"},
    **{f"streamjoin.results.stores.{name}.kind": "results/stores/registry.py" for name in STORES},
    "streamjoin.sources.generated_kind": "sources/registry.py",
}


@pytest.mark.parametrize("module", KIND_MODULES)
def test_one_product_file_knows_of_a_kind(module: str) -> None:
    """So adding one touches its folder, that file and its page; nothing else of the product could name it."""
    knows = {
        path.relative_to(PRODUCT).as_posix()
        for path in PRODUCT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == module
    }
    assert knows == {KIND_MODULES[module]}
