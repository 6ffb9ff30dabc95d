"""Binding and explaining a join file look at each of its inputs once, however many queries it has."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.errors import InputError
from streamjoin.explain import sampling
from streamjoin.explain.plans import explain
from streamjoin.spark.checkpoint import opened
from streamjoin.spec import inputs
from streamjoin.spec.joinfile import load, parse
from streamjoin.spec.prepare import bind, bounded_names

FILE = """
streams:
  a: {source: generator, kind: zipf.r, time: ts, rows: 2000}
  b: {source: generator, kind: zipf.s, time: ts, rows: 2000}
relations:
  names: {source: parquet, path: names.parquet}
queries:
  near: {query: "SELECT ONLINE a.k FROM a, b WHERE a.k = b.k WITHIN 5 SECONDS"}
  far: {query: "SELECT ONLINE b.k FROM a, b WHERE a.k = b.k WITHIN 50 SECONDS"}
  all: {query: "SELECT ONLINE a.k, b.k FROM a, b WHERE a.k = b.k WITHIN 9 SECONDS"}
operator: {name: biclique}
"""


def test_each_input_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: Counter[str] = Counter()

    def counted(module: Any, name: str) -> None:
        real = getattr(module, name)

        def count(*given: Any, **named: Any) -> Any:
            opened[name] += 1
            return real(*given, **named)

        monkeypatch.setattr(module, name, count)

    counted(inputs, "open_schema")
    counted(inputs, "open_relation")
    counted(sampling, "first_rows")
    pq.write_table(pa.table({"id": [1]}), tmp_path / "names.parquet")
    (tmp_path / "join.yaml").write_text(FILE)
    bound = bind(load(tmp_path / "join.yaml"))
    assert len(bound.queries) == 3
    assert opened == {"open_schema": 2, "open_relation": 1}
    found = explain(bound)
    assert found.statistics is not None
    assert opened["first_rows"] == 2


BOUNDED = """
streams:
  a: {{source: jsonl, path: {path}, schema: {{k: int64, ts: int64}}, time: ts, time_unit: s}}
  b: {{source: generator, kind: zipf.s, time: ts{rows}}}
query: SELECT ONLINE x.k FROM a AS x, b WHERE x.k = b.k WITHIN 5 SECONDS
operator: {{name: biclique}}
"""


@pytest.mark.parametrize(
    ("path", "rows", "bounded"),
    [
        ("in/a.jsonl", ", rows: 10", ("x", "b")),
        ("in", "", ()),
        ("in/*.jsonl", ", rows: 10", ("b",)),
        ("in/a.jsonl", "", ("x",)),
    ],
)
def test_a_stream_of_one_file_or_so_many_rows_is_bounded(
    tmp_path: Path, path: str, rows: str, bounded: tuple[str, ...]
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text('{"k": 1, "ts": 1}\n')
    (tmp_path / "join.yaml").write_text(BOUNDED.format(path=path, rows=rows))
    assert bounded_names(bind(load(tmp_path / "join.yaml"))) == bounded


GUESSED = """
streams:
  a: {source: parquet, path: a, time: ts}
  b: {source: parquet, path: b, time: ts}
query: SELECT ONLINE x.k, b.k AS other FROM a AS x, b WHERE x.k = b.k WITHIN 5 SECONDS
run: {checkpoint: state}
"""


def test_a_checkpoint_keeps_the_columns_that_were_guessed_when_it_began(tmp_path: Path) -> None:
    times = pa.array([0], pa.timestamp("us", "UTC"))
    for name in "ab":
        (tmp_path / name).mkdir()
        rows = {"ts": times, "k": [1], "d": pa.array([Decimal("1.5")], pa.decimal128(5, 1)), "a: b": ["x"]}
        pq.write_table(pa.table(rows), tmp_path / name / "1.parquet")
    (tmp_path / "join.yaml").write_text(GUESSED)
    file = load(tmp_path / "join.yaml")
    with opened(bind(file).job()):
        pass
    before = [stream.columns for stream in bind(file).plan.streams]
    for name in "ab":
        pq.write_table(pa.table({"ts": times, "k": [1.5], "new": [1]}), tmp_path / name / "2.parquet")
    assert [stream.columns for stream in bind(file).plan.streams] == before
    with opened(bind(file).job()):
        pass
    anew = bind(file, anew=True).plan.streams[0].columns
    assert (anew.field("k").type, anew.names[-1]) == (pa.float64(), "new")
    # Files without columns that the checkpoint has are of another join.
    for name in "ab":
        (tmp_path / name / "1.parquet").unlink()
    with pytest.raises(InputError, match="belongs to another join, with other streams"), opened(bind(file).job()):
        pass


def test_a_checkpoint_of_another_format_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "join.yaml").write_text(FORMER)
    file = load(tmp_path / "join.yaml")
    with opened(bind(file).job()):
        pass
    identity = bind(file).job().checkpoint / "job.json"
    identity.write_text(json.dumps({**json.loads(identity.read_text()), "format": 1, "index": "former"}))
    wanted = "has format 1 and this version of StreamJoin reads format 2; use another run.checkpoint and place"
    with pytest.raises(InputError, match=wanted), opened(bind(file).job()):
        pass


FORMER = """
streams:
  a: {source: generator, kind: zipf.r, time: ts, rows: 20}
  b: {source: generator, kind: zipf.s, time: ts, rows: 20}
query: SELECT ONLINE a.k FROM a, b WHERE a.k = b.k WITHIN 5 SECONDS
operator: {name: biclique}
"""


COMES_AND_GOES = """
streams:
  a: {source: generator, kind: zipf.r, time: ts, rows: 20}
  b: {source: generator, kind: zipf.s, time: ts, rows: 20}
QUERY
operator: {name: biclique, adaptive: true, max_units: 4}
"""
PAIRS = '"SELECT ONLINE a.k FROM a, b WHERE a.k = b.k WITHIN 5 SECONDS"'


@pytest.mark.parametrize("query", [f"query: {PAIRS}", f"queries: {{near: {{query: {PAIRS}}}}}"])
def test_units_that_were_not_set_are_those_of_the_first_start_and_not_of_more_slots(tmp_path: Path, query: str) -> None:
    text = COMES_AND_GOES.replace("QUERY", query)

    def with_slots(slots: int, *, anew: bool = False) -> Any:
        return bind(parse(text, base=tmp_path, overrides={"run.slots": str(slots)}), anew=anew)

    with pytest.raises(InputError, match="the job begins with 8 and 8"):
        with_slots(8)
    with opened(with_slots(2).job()):
        pass
    job = with_slots(8).job()
    assert (job.slots, job.operators[0].r_units, job.operators[0].s_units) == (8, 2, 2)  # type: ignore[attr-defined]
    with opened(job):
        pass
    with pytest.raises(InputError, match="the job begins with 8 and 8"):
        with_slots(8, anew=True)


READ_IN_PARTS = """
streams:
  a: {source: generator, kind: zipf.r, time: ts, rows: 20}
relations:
  names: {source: parquet, path: names.parquet}
query: "SELECT ONLINE a.k, names.id FROM a JOIN names ON a.k = names.id"
operator: {name: ssbj}
"""


def test_units_that_read_a_relation_are_those_of_the_first_start_and_others_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "names.parquet")

    def job(**overrides: str) -> Any:
        overrides = {name.replace("_", "."): value for name, value in overrides.items()}
        return bind(parse(READ_IN_PARTS, base=tmp_path, overrides=overrides)).job()

    with opened(job(run_slots="2")):
        pass
    with opened(again := job(run_slots="5")):  # as a rescale has it
        assert (again.slots, len(again.operators[0].units)) == (5, 2)
    with opened(job(run_slots="5", operator_units="2")):
        pass
    said = r"belongs to another join, with other operator \(the checkpoint began with 2 units, and this says 3\);"
    with pytest.raises(InputError, match=said), opened(job(run_slots="5", operator_units="3")):
        pass


@pytest.mark.parametrize(("knob", "name"), [("", "lookup"), ("memory: 1", "ssbj"), ("name: meshjoin", "meshjoin")])
def test_a_rule_sheds_by_rows_that_wait_and_lookup_has_none(tmp_path: Path, knob: str, name: str) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "names.parquet")
    text = READ_IN_PARTS.replace("name: ssbj", knob).replace(
        "rows: 20}", "rows: 20, shed: {threshold: 5, capacity: 9}}"
    )
    if name == "lookup":
        with pytest.raises(
            InputError, match=r"lookup stores no rows of a, .* leave shed out, or give operator.memory"
        ) as no:
            bind(parse(text, base=tmp_path))
        assert no.value.field == "streams.a.shed"
    else:
        bound = bind(parse(text, base=tmp_path))
        assert bound.operator == name and bound.job().shedding.rules[0].threshold == 5
