"""How many stored rows are looked at for each pair found: the paper's 1/rho (BiStream, sections 3.2.1 and 6)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from streamjoin.operators.biclique import Biclique
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query

from .local import LocalRun
from .test_memory import COLUMNS, DELAY_US, steady

pytestmark = pytest.mark.slow

ROWS, BATCHES, WINDOW_US = 400, 12, 2_000


@dataclass(frozen=True)
class Found:
    """Of one run, after the window was full once."""

    results: int
    comparisons: int
    pairs: int
    """What a nested loop over the live rows would look at."""


def run(where: str, index: str, folder: Path) -> Found:
    streams = {name: StreamSchema(name, COLUMNS, "ts", delay_us=DELAY_US) for name in "rs"}
    query = f"SELECT ONLINE r.id AS a, s.id AS b FROM r, s WHERE {where} WITHIN {WINDOW_US} MICROSECONDS"
    run = LocalRun(plan_query(query, streams, index=index), Biclique(1, 1), folder)
    rng = np.random.default_rng(5)
    results = comparisons = pairs = 0
    for batch in range(BATCHES):
        run.batch(([steady(batch * ROWS, ROWS, rng)], [steady(batch * ROWS, ROWS, rng)]))
        if batch < BATCHES // 2:
            continue
        results += sum(report.results for report in run.reports[-1])
        comparisons += sum(report.comparisons for report in run.reports[-1])
        pairs += ROWS * sum(sum(report.stored_rows) for report in run.reports[-1])
    assert results > 500
    return Found(results, comparisons, pairs)


@pytest.mark.parametrize("where", ["r.k = s.k", "ABS(r.k - s.k) <= 3", "r.k > s.k + 950"])
def test_an_index_looks_at_less_than_two_rows_a_pair(where: str, tmp_path: Path) -> None:
    found = run(where, "auto", tmp_path / "index")
    # Of rows with the right key only those are looked at in vain that lie in a segment across an end of the window.
    assert found.results <= found.comparisons < 2 * found.results
    nested = run(where, "scan", tmp_path / "scan")
    assert nested.results == found.results
    assert nested.comparisons > 0.5 * nested.pairs > 20 * found.comparisons
