"""Of queries that share stored tuples beside other parts some end: the rest goes on, and others start over them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from streamjoin.plan.sharing import key_text
from streamjoin.spec.job import IDENTITY_FILE, order_of, recorded

from .test_bundles import rows_in, streams, write
from .test_starting_queries import alone, batch_of, file_of, go_on

HEAD = "SELECT ONLINE a.id AS a, b.id AS b FROM a, b WHERE"
REACH = "WITHIN 60 MICROSECONDS"
BOTH = f"{HEAD} a.k = b.k AND a.x = b.x {REACH}"
ONE = f"{HEAD} a.k = b.k {REACH}"
LEFT = "SELECT ONLINE a.id AS a, b.id AS b FROM a LEFT JOIN b ON a.k = b.k WITHIN 10 MICROSECONDS"
HASH = "operator: {name: biclique, routing: hash, r_units: 2, s_units: 2}\n"


def few_values(seed: int) -> list[pa.RecordBatch]:
    """Streams where x is one of three, as two rows with the same k often have."""
    return [
        rows.set_column(3, "x", pa.array([x % 3 for x in rows.column("x").to_pylist()], pa.int64()))
        for rows in streams(seed)
    ]


def job_of(folder: Path, queries: Mapping[str, str], stopped: Sequence[str] = (), extra: str = HASH) -> Path:
    return file_of(folder, "job", queries, stopped, extra)


def check(folder: Path, queries: Mapping[str, str], ended: Mapping[str, int], extra: str = HASH) -> None:
    """Each query gave what it gives alone, to its end or until so many batches were done."""
    for name, query in queries.items():
        every = alone(folder, f"{name}-alone", query, extra)
        until = ended.get(name, 99)
        wanted = Counter({row: n for row, n in every.items() if max(batch_of(i) for i in row if i is not None) < until})
        got = rows_in(folder / "job" / name)
        assert wanted and got == wanted, f"{name}: {wanted - got} missing, {got - wanted} too many"


@pytest.mark.parametrize(
    ("queries", "stopped"),
    [
        ({"both": BOTH, "one": ONE}, "one"),
        ({"one": ONE, "both": BOTH}, "one"),
        ({"both": BOTH, "one": ONE, "again": BOTH.replace("60", "30")}, "one"),
        ({"both": BOTH, "none": f"{HEAD} a.x < b.x AND ABS(a.k - b.k) < 2 {REACH}"}, "none"),
        ({"one": ONE, "other": ONE.replace("a.", "l.").replace("b.", "r.").replace("a, b", "a AS l, b AS r")}, "one"),
        ({"swapped": f"{HEAD} a.x = b.x AND a.k = b.k {REACH}", "both": BOTH}, "swapped"),
    ],
    ids=["fewer keys", "the first one", "two are left", "no key", "other names", "another order of keys"],
)
def test_those_left_are_routed_as_all_were_at_every_later_start(
    queries: Mapping[str, str], stopped: str, tmp_path: Path
) -> None:
    extra = HASH if "none" not in queries else HASH.replace("routing: hash, ", "")
    write(tmp_path, few_values(71))
    queries = {**queries, "left": LEFT}
    plans = [
        go_on(job_of(tmp_path, queries, ended, extra), until).job.plan.parts[0].plan
        for ended, until in (([], 1), ([stopped], 2), ([stopped], 3), ([stopped], None))
    ]
    assert len({tuple(map(key_text, plan.predicate.equalities)) for plan in plans}) == 1
    check(tmp_path, queries, {stopped: 1}, extra)
    found = recorded(tmp_path / "job-checkpoint")
    assert found is not None and found.order == tuple(queries)


@pytest.mark.parametrize("stopped", ["both", "one", "again"])
def test_a_checkpoint_that_has_forgotten_who_ended_goes_on(stopped: str, tmp_path: Path) -> None:
    """Versions before wrote an order without it."""
    write(tmp_path, few_values(72))
    queries = {"both": BOTH, "one": ONE, "again": BOTH.replace("60", "30"), "left": LEFT}
    go_on(job_of(tmp_path, queries), 1)
    go_on(job_of(tmp_path, queries, [stopped]), 2)
    path = tmp_path / "job-checkpoint" / IDENTITY_FILE
    known = json.loads(path.read_text())
    known["queries"]["order"].remove(stopped)
    path.write_text(json.dumps(known))
    job = go_on(job_of(tmp_path, queries, [stopped])).job
    assert order_of(job.plan) == tuple(queries)
    check(tmp_path, queries, {stopped: 1})
