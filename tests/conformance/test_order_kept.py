"""The order that `auto` chose, where a job goes on elsewhere, and where its units come and go."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from streamjoin.explain.order import ordered
from streamjoin.plan.stages import Cascade
from streamjoin.spark import checkpoint
from streamjoin.spec.joinfile import load
from streamjoin.spec.prepare import Bound, bind
from streamjoin.state import root
from streamjoin.state.store import StateStore
from tests import duck
from tests.servers.objects import Moods, ObjectHandler

from .alone import run_alone

SPAN_US = 4_000_000
MANY = {"a": 120, "b": 120, "c": 30}
QUERY = (
    "SELECT ONLINE a.id AS a, b.id AS b, c.id AS c FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.j AND a.x < c.x "
    "WITHIN 2 SECONDS"
)


def write(folder: Path, numbers: range, counts: Mapping[str, int] = MANY, keys: int = 3, others: int = 60) -> None:
    """A file of each stream by number, of the same time; of `k` there are few values, and of `j` many."""
    for number in numbers:
        chosen = random.Random(number)
        for name, count in counts.items():
            (folder / name).mkdir(exist_ok=True)
            columns = {
                "ts": pa.array(
                    [number * SPAN_US + place * SPAN_US // count for place in range(count)], pa.timestamp("us")
                ),
                "id": [number * 1000 + place for place in range(count)],
                "k": [chosen.randrange(keys) for _ in range(count)],
                "j": [chosen.randrange(others) for _ in range(count)],
                "x": [chosen.randrange(100) for _ in range(count)],
            }
            pq.write_table(pa.table(columns), folder / name / f"{number:03d}.parquet")


def join_file(folder: Path, host: str, operator: str = "{}", run: str = "slots: 2") -> Path:
    streams = "\n".join(f"  {name}: {{source: parquet, path: {name}, time: ts}}" for name in MANY)
    file = folder / f"{host}.yaml"
    file.write_text(
        f"streams:\n{streams}\nquery: {QUERY!r}\noperator: {operator}\nresults: {{parquet: results}}\n"
        f"run: {{checkpoint: checkpoint-{host}, files_per_batch: 1, {run}}}\n"
    )
    return file


def start(file: Path) -> Bound:
    """As a start begins."""
    checkpoint.brought(load(file))
    return ordered(bind(load(file)))


def shape(bound: Bound) -> str:
    assert isinstance(bound.plan, Cascade)
    return bound.plan.shape


def recorded(bound: Bound) -> str:
    """The order, and by what it was chosen."""
    assert bound.order is not None
    return json.dumps(bound.order.to_json())


def wanted(folder: Path) -> Counter[tuple[int, ...]]:
    tables = ", ".join(f"'{folder}/{name}/*.parquet' {name}" for name in MANY)
    near = " AND ".join(f"GREATEST(a.ts, b.ts, c.ts) <= {name}.ts + INTERVAL 2 SECONDS" for name in MANY)
    rows = duck.rows(f"SELECT a.id, b.id, c.id FROM {tables} WHERE a.k = b.k AND b.j = c.j AND a.x < c.x AND {near}")
    assert len(rows) > 30
    return Counter(rows)


def results(folder: Path) -> Counter[tuple[int, ...]]:
    return Counter(duck.rows(f"SELECT a, b, c FROM '{folder}/results/*.parquet'"))


def test_a_chosen_order_goes_along_to_another_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """State and what a start needs are objects; the other host's samples would have it choose another order."""
    store = fs.PyFileSystem(ObjectHandler(tmp_path, Moods()))
    monkeypatch.setattr(root, "opened", lambda uri: (store, uri.removeprefix("s3://")))
    write(tmp_path, range(2))

    def at(host: str) -> Path:
        return join_file(
            tmp_path, host, run=f"slots: 2, state: 's3://objects', cache: {{path: cache-{host}, size: 1g}}"
        )

    first = start(at("first"))
    assert shape(first) == "(a, (b, c))"
    run_alone(first, lambda batch: batch < 2)
    write(tmp_path, range(2, 4), keys=60, others=3)
    second = start(at("second"))
    assert shape(second) == "(a, (b, c))" and recorded(second) == recorded(first)
    run_alone(second)
    assert results(tmp_path) == wanted(tmp_path)
    # A job that is new at that host, with the later rows only, is joined in another order.
    for name in MANY:
        for number in range(2):
            (tmp_path / name / f"{number:03d}.parquet").unlink()
    assert shape(start(join_file(tmp_path, "third"))) != "(a, (b, c))"


def test_units_come_and_go_in_a_tree_that_auto_chose(tmp_path: Path) -> None:
    sizes = [1] * 2 + [3] * 3 + [1] * 4
    for number, size in enumerate(sizes):
        write(tmp_path, range(number, number + 1), {name: count * size for name, count in MANY.items()}, others=90)
    knobs = "adaptive: true, capacity: 0.005, check_every: 0s, confirmations: 1, max_units: 6"
    file = join_file(tmp_path, "here", f"{{name: auto, {knobs}}}")
    first = start(file)
    assert shape(first) == "(a, (b, c))"
    # Stopped while there are other units than at first, and started again with more slots.
    run_alone(first, lambda batch: batch < 5)
    again = start(join_file(tmp_path, "here", f"{{name: auto, {knobs}}}", "slots: 3"))
    assert recorded(again) == recorded(first)
    run_alone(again)
    assert results(tmp_path) == wanted(tmp_path)
    for stage in range(2):
        state = StateStore(tmp_path / "checkpoint-here" / "state", stage).load(0, len(sizes))
        decisions = state.values["units"]["decisions"]
        assert {name for one in decisions for name in ("added", "drained", "left") if one[name]} >= {"added", "drained"}
