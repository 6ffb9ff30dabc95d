"""Every operator gives the reference's pairs: over conditions, windows, times, keys, cuts, crashes and rescaling."""

from __future__ import annotations

import pytest

from streamjoin.operators.biclique import Biclique, Routing
from streamjoin.operators.handshake import Handshake

from .check import ANY, IN_TURN, KEYED, NAMES, OPERATORS, REPRESENTATIVES, RUNS, WINDOWS, check, in_turn
from .conditions import CONDITIONS
from .histories import history

DELAYS_US = [5, 40, 1000]
SIZES = [(0, 0), (1, 0), (0, 1), (1, 1), (2, 50), (50, 2), (0, 50), (200, 200)]
WITH_EQUALITY = [
    name
    for name, (where, _) in CONDITIONS.items()
    if (" = s." in where or "NOT DISTINCT" in where) and " OR " not in where
]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_every_condition_joins_exactly_in_every_window(condition: str, window: str) -> None:
    # Two of the four by turns; all that there are, below.
    turn = (list(CONDITIONS).index(condition) + list(WINDOWS).index(window)) % 2
    for number, operator in enumerate(REPRESENTATIVES[turn::2]):
        check(OPERATORS[operator], history(number), condition, window)


@pytest.mark.slow
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("operator", ANY)
@pytest.mark.parametrize("one", IN_TURN)
def test_every_operator_joins_every_condition_in_every_window(one: bool, operator: str, condition: str) -> None:
    for number, window in in_turn(WINDOWS, one, (ANY, operator), (CONDITIONS, condition)):
        check(OPERATORS[operator], history(number), condition, window)


@pytest.mark.parametrize("operator", KEYED)
@pytest.mark.parametrize("condition", WITH_EQUALITY)
@pytest.mark.parametrize("one", IN_TURN)
def test_routing_by_key_loses_nothing(one: bool, condition: str, operator: str) -> None:
    for number, window in in_turn(WINDOWS, one, (KEYED, operator), (WITH_EQUALITY, condition)):
        check(KEYED[operator], history(number), condition, window)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("operator", NAMES)
def test_crashes_and_rescaling_change_nothing(operator: str, run: str) -> None:
    chosen = OPERATORS[operator]
    turn = (list(OPERATORS).index(operator) + list(RUNS).index(run)) % 2
    for number, window in enumerate(list(WINDOWS)[turn::2]):
        check(chosen, history(number, r=60, s=50), "equality, then band", window, run=RUNS[run], batches=6, pieces=2)


@pytest.mark.parametrize("shape", ["in order", "all equal", "before 1970", "gaps of w", "far future"])
@pytest.mark.parametrize("operator", NAMES)
def test_event_times_of_every_shape(operator: str, shape: str) -> None:
    chosen = OPERATORS[operator]
    # A far-future row makes everything after it late, so there it comes last.
    check(chosen, history(3, time_shape=shape), "equality", "20 us", batches=5)


@pytest.mark.parametrize("delay_us", DELAYS_US)
@pytest.mark.parametrize("operator", NAMES)
@pytest.mark.parametrize("one", IN_TURN)
def test_disorder_inside_the_allowed_delay_loses_nothing(one: bool, operator: str, delay_us: int) -> None:
    chosen = OPERATORS[operator]
    disordered = history(5, r=80, s=70, time_shape="disordered", delay_us=delay_us)
    for _, window in in_turn(("20 us", "only after", "same time"), one, (OPERATORS, operator), (DELAYS_US, delay_us)):
        check(chosen, disordered, "equality", window, batches=9, period_us=7)


@pytest.mark.parametrize("shape", ["uniform", "zipf", "one hot", "all distinct", "all null"])
@pytest.mark.parametrize("operator", NAMES)
def test_keys_of_every_shape(operator: str, shape: str) -> None:
    check(OPERATORS[operator], history(7, key_shape=shape), "equality", "20 us")


@pytest.mark.parametrize("operator", NAMES)
def test_null_keys_join_null_keys_where_null_is_not_distinct(operator: str) -> None:
    given = history(8, key_shape="all null")
    job = check(OPERATORS[operator], given, "null-safe equality", "full history")
    assert "null_keys" not in job.counts and job.counts["routed"] == len(given.r) + len(given.s)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("operator", NAMES)
@pytest.mark.parametrize("one", IN_TURN)
def test_streams_of_every_size_and_a_silent_one(one: bool, operator: str, sizes: tuple[int, int]) -> None:
    r, s = sizes
    for _, window in in_turn(("20 us", "7 rows", "full history"), one, (OPERATORS, operator), (SIZES, sizes)):
        check(OPERATORS[operator], history(11, r=r, s=s), "equality", window)


@pytest.mark.parametrize("window", ["20 us", "only after"])
def test_the_archive_period_changes_memory_and_not_results(window: str) -> None:
    stored = []
    for period_us in (1, 2, 20, 200, 10**9):
        run = check(Biclique(2, 2), history(13, r=150, s=150), "band", window, batches=12, period_us=period_us)
        stored.append(sum(sum(report.stored_rows) for reports in run.reports for report in reports))
    assert stored == sorted(stored)
    assert 1.1 * stored[0] < stored[-1], "a segment of a longer period goes no later"


@pytest.mark.parametrize("index", ["auto", "tree", "scan"])
@pytest.mark.parametrize(
    "condition", ["equality", "null-safe equality", "band", "two bands", "float inequality", "text inequality"]
)
def test_every_index_gives_the_same_pairs(condition: str, index: str) -> None:
    for window in WINDOWS:
        check(Biclique(2, 2), history(17), condition, window, index=index)


@pytest.mark.parametrize("batches", [1, 2, 5, 40])
def test_cutting_into_batches_changes_nothing(batches: int) -> None:
    for operator in map(OPERATORS.__getitem__, REPRESENTATIVES):
        check(operator, history(19), "two bands", "20 us", batches=batches, pieces=3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "operator",
    [Handshake(4, 1), Handshake(4, 3, threshold=5), Handshake(4, 1000), Handshake(4, 3, balance=False), Handshake(5)],
    ids=str,
)
def test_what_a_chain_sends_on_changes_no_pair(operator: Handshake) -> None:
    for seed, window in enumerate(["20 us", "only after", "same time", "7 rows"]):
        shaped = history(seed, r=70, s=60, time_shape="disordered", delay_us=15)
        check(operator, shaped, "equality", window, batches=9, period_us=None if window == "7 rows" else 7)


def test_contrand_on_a_band_probes_every_subgroup_the_band_meets() -> None:
    # Keys stand on and next to every boundary; a map that probes one subgroup alone loses pairs here.
    operator = Biclique(4, 5, Routing.CONTRAND, 4, 3, bounds=((10, 20, 40), (15, 45)))
    for seed in range(5):
        check(operator, history(seed, r=120, s=120), "band", "full history")


def test_a_probe_late_by_the_whole_delay_finds_its_partner_a_window_away() -> None:
    import numpy as np

    from .histories import History, make_rows

    rng = np.random.default_rng(0)
    # s@100 is stored; R then reaches 130, and its tuple at 120 comes 10 = D late, exactly w = 20 after s.
    r = make_rows(rng, [90, 130, 120, 119], [1, 1, 1, 1])
    s = make_rows(rng, [80, 100, 110, 111], [1, 1, 1, 1])
    for operator in map(OPERATORS.__getitem__, REPRESENTATIVES):
        check(operator, History(r, s, delay_us=10), "equality", "20 us", batches=4, period_us=1)
