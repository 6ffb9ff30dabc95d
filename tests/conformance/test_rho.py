"""ESJ's rho of the running engine, outputs by all that was looked at for them: stored tuples and places of an index."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.engine.operator import Operator
from streamjoin.operators.biclique import Biclique
from streamjoin.operators.costs.handshake import bound_bst, efficiency_bst, efficiency_hash, efficiency_naive, gain_bst
from streamjoin.operators.handshake import Handshake
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query
from streamjoin.spark.figures import rho

from .histories import TIMESTAMP
from .local import DRAIN, LocalRun

COLUMNS = pa.schema([("id", pa.int64()), ("ts", TIMESTAMP), ("k", pa.int64())])
ROWS = 1_000
CONSTANT = 3.0
"""What the big O hides here: small batches leave several segments, and each is searched."""
OPERATORS: list[Operator] = [Biclique(1, 1), Handshake(1)]


def stream(seed: int, keys: int = ROWS) -> pa.RecordBatch:
    """Each key once; or of fewer keys, each as often as the others."""
    k = np.random.default_rng(seed).permutation(ROWS) % keys
    columns = [pa.array(np.arange(ROWS)), pa.array(np.arange(ROWS)).view(TIMESTAMP), pa.array(k)]
    return pa.RecordBatch.from_arrays(columns, schema=COLUMNS)


def measured(operator: Operator, index: str, batches: int, folder: Path, keys: int = ROWS) -> tuple[float, int, int]:
    """rho, what was compared, and search steps, of both streams on their whole history."""
    streams = {name: StreamSchema(name, COLUMNS, "ts") for name in "rs"}
    plan = plan_query("SELECT ONLINE r.id AS a, s.id AS b FROM r, s WHERE r.k = s.k", streams, index=index)
    run = LocalRun(plan, operator, folder)
    r, s, step = stream(1, keys), stream(2, keys), ROWS // batches
    found = [run.batch(([r.slice(at, step)], [s.slice(at, step)])) for at in range(0, ROWS, step)]
    found.append(run.batch(DRAIN))
    results = sum(rows.num_rows for batch in found for rows in batch)
    assert results == ROWS * ROWS // keys
    every = [report for of_batch in run.reports for report in of_batch]
    compared, steps = (sum(getattr(report, what) for report in every) for what in ("comparisons", "search_steps"))
    of_query = [sum(report.queries[0][what] for report in every) for what in ("comparisons", "search_steps")]
    assert of_query == [compared, steps]
    efficiency = rho(results, compared, steps)
    assert efficiency is not None
    return efficiency, compared, steps


@pytest.mark.parametrize("operator", OPERATORS, ids=repr)
def test_a_scan_has_the_rho_of_pairwise_comparison(operator: Operator, tmp_path: Path) -> None:
    """Equation 2."""
    efficiency, compared, steps = measured(operator, "scan", 20, tmp_path)
    assert (compared, steps) == (ROWS * ROWS, 0) and efficiency == efficiency_naive(ROWS, ROWS, ROWS)


@pytest.mark.parametrize("index", ["hash", "tree"])
@pytest.mark.parametrize("operator", OPERATORS, ids=repr)
def test_an_index_has_its_searches_in_rho(operator: Operator, index: str, tmp_path: Path) -> None:
    """Equations 3 to 5. Both indexes are sorted files. Tuples of a batch search in order, from where the last ended."""
    by_batch = {batches: measured(operator, index, batches, tmp_path / str(batches)) for batches in (1, 20, 200)}
    bound, gain = bound_bst(ROWS, ROWS, ROWS, 1, CONSTANT), gain_bst(ROWS, ROWS, 1, CONSTANT)
    assert bound is not None and gain is not None
    for efficiency, compared, steps in by_batch.values():
        assert compared == ROWS and steps >= ROWS
        assert bound <= efficiency <= efficiency_hash(ROWS, ROWS, ROWS) + 0.001
        assert efficiency / efficiency_naive(ROWS, ROWS, ROWS) >= gain
    # All at once step through both streams side by side, as cheap as a hash map; fewer at a time search as in a tree.
    tree, of_a_map = efficiency_bst(ROWS, ROWS, ROWS), {"hash": 0.75, "tree": 1.0}[index]
    assert by_batch[1][0] == pytest.approx(of_a_map * efficiency_hash(ROWS, ROWS, ROWS), rel=0.01)
    assert by_batch[20][0] == pytest.approx(tree, rel=0.15) and by_batch[200][0] == pytest.approx(tree / 2, rel=0.1)


def test_on_a_single_key_an_index_has_nothing_to_gain(tmp_path: Path) -> None:
    """Without the bounds' condition pairwise comparison is best: every pair is a result, and searches come on top."""
    efficiency, compared, _ = measured(Biclique(1, 1), "hash", 20, tmp_path / "hash", keys=1)
    assert compared == ROWS * ROWS and 0.9 < efficiency < 1.0
    assert measured(Biclique(1, 1), "scan", 20, tmp_path / "scan", keys=1)[0] == 1.0
