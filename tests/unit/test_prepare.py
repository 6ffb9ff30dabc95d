"""Binding and explaining a join file look at each of its inputs once, however many queries it has."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin import prepare, sampling
from streamjoin.explain import explain
from streamjoin.joinfile import load
from streamjoin.prepare import bind

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

    counted(prepare, "open_schema")
    counted(prepare, "open_relation")
    counted(sampling, "first_rows")
    pq.write_table(pa.table({"id": [1]}), tmp_path / "names.parquet")
    (tmp_path / "join.yaml").write_text(FILE)
    bound = bind(load(tmp_path / "join.yaml"))
    assert len(bound.queries) == 3
    assert opened == {"open_schema": 2, "open_relation": 1}
    found = explain(bound)
    assert found.statistics is not None
    assert opened["first_rows"] == 2
