"""ARCHITECTURE's recipes, followed: an operator, a source and a store, of one entry each, and everything has them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from jsonschema_rs import Draft202012Validator

import streamjoin
from streamjoin.engine.loop import Brought, Loop
from streamjoin.engine.routing import Route, Tuples
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
from streamjoin.spec.reference import with_tables
from streamjoin.spec.schema import join_file_schema, table_of
from streamjoin.state.memory import MemoryStates
from tests.conformance.check import RUNS, WINDOWS, check
from tests.conformance.conditions import CONDITIONS
from tests.conformance.histories import history
from tests.recipes.copies import Copies
from tests.recipes.copies.kind import COPIES
from tests.recipes.shelf import SHELF
from tests.recipes.ticks import TICKS

PRODUCT = Path(streamjoin.__file__).parent
RECIPES = Path(__file__).parent
QUERY = "SELECT ONLINE a.k AS a, b.k AS b FROM a, b WHERE a.k = b.k WITHIN 1 SECOND"


@pytest.fixture(autouse=True)
def entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that the product is told of the three: an entry each."""
    monkeypatch.setattr(registry, "KINDS", (*registry.KINDS, COPIES))
    monkeypatch.setitem(registry.REGISTRY, "copies", COPIES)
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
    loop = Loop(bound.plan, job.operators, lambda stage: states, 2)
    return [rows for _, rows in loop.batch(Brought(pieces, 0))]


def test_the_join_file_takes_the_knob_of_the_new_operator_and_no_others() -> None:
    (operator,) = bind(of_content(content(operator={"name": "copies", "copies": 3}))).job().operators
    assert operator == Copies(3)
    for wrong, field, says in (
        ({"name": "copies", "copies": 0}, "copies", "0 is not a whole number from 1 to"),
        ({"name": "copies", "rows": 2}, "rows", "copies has no such knob; its knobs are copies, archive_period"),
        ({"name": "matrix", "copies": 2}, "copies", "matrix has no such knob"),
    ):
        with pytest.raises(InputError) as raised:
            bind(of_content(content(operator=wrong)))
        assert raised.value.field == f"operator.{field}" and says in str(raised.value)
    with pytest.raises(InputError, match=r"operators are .*spark-shuffled, copies, auto"):
        bind(of_content(content(operator={"name": "copy"})))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_new_operator_joins_exactly(condition: str) -> None:
    place = list(CONDITIONS).index(condition)
    for number, window in enumerate(WINDOWS):
        run = list(RUNS)[(place + number) % len(RUNS)]
        check(Copies(1 + number % 3), history(number, r=60, s=50), condition, window, run=RUNS[run], pieces=2)


class Forgetful(Copies):
    """Leaves out the last copy."""

    def route(self, side: int, tuples: Tuples) -> list[Route]:
        """See `Operator`."""
        return [Route(one.rows, one.targets[: max(self.copies - 1, 1)]) for one in super().route(side, tuples)]


def test_an_operator_that_leaves_pairs_out_is_found() -> None:
    with pytest.raises(AssertionError, match="pairs missing"):
        check(Forgetful(3), history(1, r=60, s=50), "equality", "full history")


def test_its_page_has_its_settings() -> None:
    page = (RECIPES / "copies.md").read_text()
    assert "| `copies` | whole number, 1 to 4096 | one per slot |" in page
    assert with_tables(page, table_of) == page


def test_explain_offers_it_beside_the_others() -> None:
    found = explain(bind(of_content(content(operator={"name": "copies"}))))
    assert (found.chosen, found.stages) == ("copies", (Copies(2),))
    assert [one.refusal for one in found.options if one.name == "copies"] == [None]
    assert "copies" not in registry.compared(found.plan)  # unless somebody names it


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
    assert schema.is_valid(content(operator={"name": "copies", "copies": 3}))
    assert not schema.is_valid(content(operator={"name": "copies", "copies": "many"}))
    assert not schema.is_valid(content(operator={"name": "matrix", "copies": 3}))
    assert not schema.is_valid(content(streams={"a": {"source": "ticks", "time": "ts", "ticks": "many"}}))
    assert "| `ticks` | ticks | whole number, 1 or more |  | how many ticks there are |" in table_of("streams")
    assert "| `shelf` | shelf | text |  | the name of the shelf |" in table_of("stores")
    assert not keeps_state("operator.copies")
    assert not keeps_state("streams.a.ticks") and not keeps_state("results.shelf")


def test_explain_samples_the_source() -> None:
    found = explain(bind(of_content(content())))
    assert found.statistics is not None
    assert [round(one.rate_per_s) for one in found.statistics] == [1, 1]


@pytest.mark.parametrize("operator", ["biclique", "copies"])
def test_the_join_runs_from_the_source_into_the_store(operator: str, tmp_path: Path) -> None:
    run = {"checkpoint": str(tmp_path / "state")}
    bound = bind(of_content(content(operator={"name": operator}, run=run)))
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


def test_the_recipes_take_so_many_files() -> None:
    """Beside an entry each, and a page for what is not in the table of settings."""
    own = {"test_recipes.py", "__init__.py"}
    files = {path.relative_to(RECIPES).as_posix() for path in RECIPES.rglob("*.*") if path.suffix in (".py", ".md")}
    assert files - own == {"copies/__init__.py", "copies/kind.py", "copies.md", "ticks.py", "shelf.py"}


OF_TWO_STREAMS = ("biclique", "matrix", "splitjoin", "handshake", "aligned", "coordinated")


@pytest.mark.parametrize("name", OF_TWO_STREAMS)
def test_nothing_but_the_registry_names_an_operator(name: str) -> None:
    """A join of samples is one cell of a matrix, which is the simplest there is; any other would do."""
    package = f"streamjoin.operators.{name}"
    assert _who_imports(lambda module: module == package or module.startswith(f"{package}."), package) == {
        "operators/registry.py", *({"explain/preview.py"} if name == "matrix" else ()),
    }  # fmt: skip


KIND_MODULES = {
    **{
        f"streamjoin.operators.{name}.kind": "operators/registry.py"
        for name, kind in registry.REGISTRY.items()
        if not kind.is_sparks
    },
    **{f"streamjoin.results.stores.{name}.kind": "results/stores/registry.py" for name in STORES},
    "streamjoin.sources.generated_kind": "sources/registry.py",
}


@pytest.mark.parametrize("module", KIND_MODULES)
def test_one_product_file_knows_of_a_kind(module: str) -> None:
    """So adding one touches its folder, that file and its page; nothing else of the product could name it."""
    assert _who_imports(module.__eq__) == {KIND_MODULES[module]}


def _who_imports(is_it: Callable[[str], bool], but: str = "") -> set[str]:
    """Product files, outside of the package `but`, that import a module which `is_it`."""
    folder = PRODUCT.parent.joinpath(*but.split(".")) if but else None
    return {
        path.relative_to(PRODUCT).as_posix()
        for path in PRODUCT.rglob("*.py")
        if folder is None or not path.is_relative_to(folder)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module is not None and is_it(node.module)
    }
