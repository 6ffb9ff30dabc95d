"""State stays as large as a window over a whole day of the streams' time, whatever kind of query keeps it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.engine.loop import Brought
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query

from .loops import loop_of

MINUTE_US = 60_000_000
BATCH_MINUTES = 30
BATCHES = 24 * 60 // BATCH_MINUTES
ROWS = 40
"""Of each stream in a batch."""
KEYS = 9
SETTLED = BATCHES // 4
"""By then everything has been let go of for the first time: windows take an hour."""
COLUMNS = pa.schema([("ts", pa.timestamp("us")), ("id", pa.int64()), ("k", pa.int64()), ("x", pa.int64())])
STREAMS = {
    name: StreamSchema(name, COLUMNS, "ts", "us", MINUTE_US, key=("k",) if name == "q" else ()) for name in "abcq"
}
WITHIN = "WITHIN 60 MINUTES"
KINDS = {
    "inner": f"SELECT ONLINE a.id AS a, b.id AS b FROM a JOIN b ON a.k = b.k {WITHIN}",
    "left": f"SELECT ONLINE a.id AS a, b.id AS b FROM a LEFT JOIN b ON a.k = b.k {WITHIN}",
    "full": f"SELECT ONLINE a.id AS a, b.id AS b FROM a FULL JOIN b ON a.k = b.k AND a.x < b.x {WITHIN}",
    "semi": f"SELECT ONLINE a.id AS a FROM a LEFT SEMI JOIN b ON a.k = b.k {WITHIN}",
    "anti": f"SELECT ONLINE a.id AS a FROM a LEFT ANTI JOIN b ON a.k = b.k AND a.x < b.x {WITHIN}",
    "as of": "SELECT ONLINE a.id AS a, q.id AS q FROM a ASOF JOIN q ON a.k = q.k AND a.ts >= q.ts",
    "as of beside a join": "SELECT ONLINE a.id AS a, b.id AS b, q.id AS q FROM a JOIN b ON a.k = b.k "
    f"ASOF LEFT JOIN q ON a.k = q.k AND a.ts >= q.ts {WITHIN}",
    "three streams": "SELECT ONLINE a.id AS a, b.id AS b, c.id AS c FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k "
    "AND c.x < b.x WITHIN 20 MINUTES FOR a, 60 MINUTES FOR b, 10 MINUTES FOR c",
    "outer of three": "SELECT ONLINE a.id AS a, b.id AS b, c.id AS c FROM a JOIN b ON a.k = b.k "
    "LEFT JOIN c ON b.k = c.k AND c.x < b.x WITHIN 20 MINUTES FOR a, 60 MINUTES FOR b, 10 MINUTES FOR c",
    "tumbling": f"SELECT ONLINE a.k, COUNT(*) AS n, SUM(b.x) AS x FROM a JOIN b ON a.k = b.k {WITHIN} "
    "GROUP BY a.k, TUMBLE(15 MINUTES)",
    "hopping": "SELECT ONLINE k, x, COUNT(*) AS n FROM a GROUP BY k, x, HOP(20 MINUTES, 60 MINUTES)",
    "over the window": f"SELECT ONLINE a.k, b.x, COUNT(*) AS n FROM a JOIN b ON a.k = b.k {WITHIN} GROUP BY a.k, b.x "
    "EMIT EVERY 20 MINUTES",
    "cumulative": f"SELECT ONLINE a.k, COUNT(*) AS n, MAX(b.x) AS x FROM a JOIN b ON a.k = b.k {WITHIN} "
    "GROUP BY a.k CUMULATIVE EMIT EVERY 20 MINUTES",
    "distinct": f"SELECT ONLINE DISTINCT a.k, b.x FROM a JOIN b ON a.k = b.k {WITHIN}",
}


def a_day() -> Iterator[list[list[pa.RecordBatch]]]:
    """Each batch's rows of `a`, `b`, `c` and `q`, in disorder within a minute."""
    chosen = np.random.default_rng(11)
    for number in range(BATCHES):
        pieces = []
        for _ in "abcq":
            times = number * BATCH_MINUTES * MINUTE_US + chosen.integers(0, BATCH_MINUTES * MINUTE_US, ROWS)
            times = np.sort(times) - chosen.integers(0, MINUTE_US, ROWS)
            columns = [
                pa.array(times.clip(0), pa.timestamp("us")),
                pa.array(np.arange(ROWS) + number * ROWS),
                pa.array(chosen.integers(0, KEYS, ROWS)),
                pa.array(chosen.integers(0, 5, ROWS)),
            ]
            pieces.append([pa.RecordBatch.from_arrays(columns, schema=COLUMNS)])
        yield pieces


RUNS = {
    "full": ("full", "matrix"),
    "left, biclique": ("left", "biclique at random"),
    "as of beside a join": ("as of beside a join", "matrix"),
    "tumbling": ("tumbling", "matrix"),
    "three streams at once": ("three streams", "ring"),
}
SOAK = {
    "inner, handshake": ("inner", "handshake"),
    "full, splitjoin": ("full", "splitjoin"),
    "as of": ("as of", "asof"),
    **{kind: (kind, "matrix") for kind in ("left", "semi", "anti", "outer of three", "hopping", "cumulative")},
    **{kind: (kind, "matrix") for kind in ("over the window", "distinct")},
}


def sizes_over_a_day(query: str, operator: str, folder: Path) -> tuple[list[int], list[int], int]:
    """After each batch the rows that are kept, and the bytes on disk; and how many results there were."""
    plan = plan_query(query, STREAMS)
    names = [stream.name for stream in plan.streams]
    loop = loop_of(plan, operator, folder, units=2)
    rows, on_disk, results = [], [], 0
    for number, pieces in enumerate(a_day()):
        brought = Brought([pieces["abcq".index(name)] for name in names], 1_000_000 * number)
        results += sum(part.num_rows for _, part in loop.batch(brought))
        loop.commit(brought)
        rows.append(sum(sum(one.stored_rows) + sum(one.outbox_rows) + one.waiting_results for one in loop.reports))
        on_disk.append(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()))
    return rows, on_disk, results


def is_flat(sizes: list[int]) -> bool:
    """Whether the evening's largest is the morning's, but for what chance makes of it."""
    return max(sizes[-SETTLED:]) <= 1.1 * max(sizes[SETTLED : 2 * SETTLED])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "operator"),
    [
        *(pytest.param(*run, id=name) for name, run in RUNS.items()),
        *(pytest.param(*run, id=name, marks=pytest.mark.soak) for name, run in SOAK.items()),
    ],
)
def test_state_is_as_large_in_the_evening_as_in_the_morning(kind: str, operator: str, tmp_path: Path) -> None:
    rows, on_disk, results = sizes_over_a_day(KINDS[kind], operator, tmp_path)
    assert results > BATCHES
    assert is_flat(rows) and is_flat(on_disk)


@pytest.mark.slow
def test_without_a_window_it_grows_and_that_is_seen(tmp_path: Path) -> None:
    rows, on_disk, _ = sizes_over_a_day(KINDS["inner"].replace(WITHIN, ""), "matrix", tmp_path)
    assert not is_flat(rows) and not is_flat(on_disk)
