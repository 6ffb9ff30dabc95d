"""PSP's formulas, by figures that were worked out by hand."""

from __future__ import annotations

import pytest

from streamjoin.operators.costs import StreamStatistics
from streamjoin.operators.costs.psp import (
    Met,
    StepTimes,
    bandwidth_bytes_per_s,
    best_length,
    bounds_of_length,
    central_s,
    latency_of_lengths_s,
    latency_s,
    partials,
    rate_per_s,
    ring,
    ring_s,
    sent_tuples,
)

MANY = [Met(500, 0.1)] * 2
MANY_TIMES = StepTimes(join=10e-6, send=1e-6, hop=1e-3)
FEW = [Met(100, 0.02)] * 2
FEW_TIMES = StepTimes(join=1e-4, send=10e-3, hop=1e-3)


def test_work_of_a_tuple_counts_the_pairs_that_are_compared() -> None:
    assert partials(MANY) == (1, 50)
    assert central_s(MANY, MANY_TIMES) == pytest.approx(10e-6 * (500 + 50 * 500))
    assert ring_s(MANY, [4, 4], MANY_TIMES, 4) == pytest.approx(0.255 + 1e-6 * 4 * 51)
    assert central_s(MANY, StepTimes(0, 0, 0, insert=2, purge=3)) == 5


def test_a_tuple_is_stored_once_and_let_go_by_each_node_that_keeps_its_stream() -> None:
    times = StepTimes(join=0.0, send=0.0, hop=0.0, insert=2.0, purge=3.0)
    assert [ring_s(FEW, [8, 8], times, own) for own in (1, 4)] == [5, 14]
    assert rate_per_s(FEW, 4, times) == 4 / 14
    assert latency_s(FEW, 4, times) == 14 / 4
    assert latency_of_lengths_s(FEW, [4, 4], 4, times, own=2) == 8 / 4


def test_equal_streams_cost_what_the_paper_simplifies_it_to() -> None:
    """Equation 2: L_PSP = L_C (1 + T_s N / (lambda W T_j))."""
    for nodes in (1, 3, 20):
        factor = 1 + FEW_TIMES.send * nodes / (100 * FEW_TIMES.join)
        assert ring_s(FEW, [nodes] * 2, FEW_TIMES, nodes) == pytest.approx(central_s(FEW, FEW_TIMES) * factor)


def test_a_stream_in_fewer_nodes_is_sent_less() -> None:
    assert sent_tuples([Met(10, 0.5), Met(10, 0.5), Met(10, 0.5)], [1, 4, 2]) == 1 + 4 * 5 + 2 * 25


@pytest.mark.parametrize(
    ("met", "times", "bounds", "best", "latency"),
    [(MANY, MANY_TIMES, (9.23, 23.09), 9, 0.0324), (FEW, FEW_TIMES, (10.9, 8.26), 8, 0.03725)],
)
def test_the_best_length_is_near_the_lower_of_both_bounds(
    met: list[Met], times: StepTimes, bounds: tuple[float, float], best: int, latency: float
) -> None:
    assert bounds_of_length(met, times) == pytest.approx(bounds, rel=2e-3)
    assert best_length(met, times, 100) == best
    assert latency_s(met, best, times) == pytest.approx(latency, rel=2e-3)
    assert best_length(met, times, 3) == 3


def test_more_nodes_never_beat_the_limit_of_the_rate() -> None:
    limit = 100 * FEW_TIMES.join / FEW_TIMES.send / central_s(FEW, FEW_TIMES)
    rates = [rate_per_s(FEW, nodes, FEW_TIMES) for nodes in (1, 10, 1_000)]
    assert rates == sorted(rates) and limit * 0.99 < rates[-1] < limit


def test_without_sending_the_rounds_bound_the_length() -> None:
    first, second = bounds_of_length(MANY, StepTimes(join=10e-6, send=0, hop=1e-3))
    assert first < second


def test_bandwidth_is_what_the_shortest_slice_needs() -> None:
    assert bandwidth_bytes_per_s([Met(100, 1), Met(60, 1)], [10, 3], 80, FEW_TIMES) == pytest.approx(80 / (1e-4 * 10))


def test_two_streams_are_stored_once_and_sent_to_every_node() -> None:
    found = ring(StreamStatistics(10, 100, 1_000), StreamStatistics(20, 50, 500), (3, 2))
    assert (found.memory_bytes, found.bytes_per_s, found.replication) == (20_000, 6_000, 3)
    assert found.comparisons_per_s == 100 * 500 + 50 * 1_000 and found.busiest_bytes_per_s == 2_000
