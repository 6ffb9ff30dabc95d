"""Which conjunct is the main one changes the work and not the results (ESJ: main and secondary predicates)."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest

from streamjoin.errors import InputError
from streamjoin.index.layout import layout_of
from streamjoin.operators.biclique import Biclique
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.window import R
from streamjoin.query import plan_query

from .check import pairs_of
from .histories import History, history
from .local import LocalRun

CONJUNCTS = ("r.k = s.k", "r.n = s.n", "r.x - s.x BETWEEN -5 AND 5", "r.y < s.y")
TEXT = f"SELECT ONLINE r.id AS r_id, s.id AS s_id FROM r, s WHERE {' AND '.join(CONJUNCTS)} WITHIN 500 MICROSECONDS"


@pytest.fixture(scope="module")
def given() -> History:
    return history(19, r=300, s=300)


def planned(given: History, main: str | None, text: str = TEXT) -> JoinPlan:
    return plan_query(text, {"r": given.schema("r"), "s": given.schema("s")}, main=main)


def joined(plan: JoinPlan, given: History) -> tuple[Counter[tuple[int, int]], int]:
    """The pairs, and how many candidates were compared."""
    with tempfile.TemporaryDirectory() as folder:
        job = LocalRun(plan, Biclique(2, 2), Path(folder))
        pairs = Counter(pairs_of(list(job.run(given.cuts(4)))))
    return pairs, sum(report.comparisons for batch in job.reports for report in batch)


@pytest.mark.parametrize("main", CONJUNCTS)
def test_results_do_not_depend_on_the_main_predicate(main: str, given: History) -> None:
    pairs, _ = joined(planned(given, main), given)
    assert pairs and pairs == joined(planned(given, None), given)[0]


def test_comparisons_do(given: History) -> None:
    compared = {main: joined(planned(given, main), given)[1] for main in CONJUNCTS}
    assert compared["r.y < s.y"] > 2 * compared["r.x - s.x BETWEEN -5 AND 5"]
    # The candidates are those of the main one alone, whatever else is asked for.
    alone = TEXT.replace(" AND ".join(CONJUNCTS), "r.y < s.y")
    assert compared["r.y < s.y"] == joined(planned(given, None, alone), given)[1]


@pytest.mark.parametrize(
    ("main", "index"),
    [
        ("r.k = s.k", "hash of r.k, then r.x"),
        ("s.n = r.n", "hash of r.n, then r.x"),
        ("r.y < s.y", "tree over r.y"),
        ("r.x - s.x BETWEEN -5 AND 5", "grid over r.x and r.y"),
    ],
)
def test_the_index_is_over_the_main_predicate(main: str, index: str, given: History) -> None:
    if main == "s.n = r.n":
        with pytest.raises(InputError, match="is not an equality or range"):
            planned(given, main)
        main = "r.n = s.n"
    assert str(layout_of(planned(given, main), R)).startswith(index)


@pytest.mark.parametrize(
    ("main", "message"),
    [
        ("r.k = s.x", "is not an equality or range between the two streams of this query; there are"),
        ("r.x > 5", "is not an equality or range"),
        ("r.nothing = s.k", "nothing"),
        ("", "a condition is missing"),
        ("r.k = s.k; DROP", "column"),
    ],
)
def test_what_cannot_be_the_main_predicate_is_named(main: str, message: str, given: History) -> None:
    with pytest.raises(InputError, match=message) as refused:
        planned(given, main)
    assert refused.value.field == "operator.main"
