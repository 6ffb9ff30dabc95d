"""What ATR and CTR are predicted to cost: by hand, and beside what the operators do."""

from __future__ import annotations

import pytest

from streamjoin.operators.costs.prediction import StreamStatistics
from streamjoin.operators.costs.psp import StepTimes
from streamjoin.operators.costs.replicated import aligned, aligned_copies, coordinated, cover_hosts, of_two
from streamjoin.operators.costs.several import Known, Several, Share

ORDERS = ((1, 2), (0, 2), (1, 0))
JOINS_ALONE = StepTimes(join=1.0, send=0.0, hop=0.0)


def chain(times: StepTimes = JOINS_ALONE) -> Several:
    """a with b, b with c: 100 tuples of 20 bytes a second each, windows of 10 s, one of a thousand pairs matches."""
    shares = (Share(frozenset([0, 1]), 0.001, 1.0), Share(frozenset([1, 2]), 0.001, 1.0))
    return Several((Known(100.0, 20.0, 10.0, 10.0),) * 3, shares, times)


def test_copies_follow_from_reaches_and_segments() -> None:
    assert aligned_copies((10, 20, 10), 0, 100, 9) == (1.0, 1.3, 1.2)
    assert aligned_copies((10, 20, 10), 1, 10, 3) == (3.0, 1.0, 3.0), "there are no more nodes"


def test_hosts_are_as_many_as_segments_or_as_nodes_without_copies() -> None:
    assert [cover_hosts(10, 5, nodes, 2) for nodes in (2, 4, 5, 100)] == [1, 2, 3, 3]
    assert cover_hosts(11, 5, 100, 1) == 4


def test_aligned_by_hand() -> None:
    cost = aligned(chain(), ORDERS, (1.0, 1.5, 2.0), 0)
    assert cost.memory_bytes == 1_000 * 20 * (1 + 1.5 + 2)
    assert cost.sent_per_s == 100 * 4.5 and cost.bytes_per_s == 100 * 20 * 4.5
    # One partial result of each tuple. Those of a and b have a tuple of the master from the first round on; c meets b
    # at the 1.5 nodes that have both.
    assert cost.comparisons_per_s == pytest.approx(100 * 1_000 * (2 + 2 + 1.5 + 1))
    alone = aligned(chain(), ORDERS, (1.0,) * 3, 0)
    assert alone.comparisons_per_s == chain().ring(ORDERS, (1,) * 3).comparisons_per_s


def test_coordinated_by_hand() -> None:
    cost = coordinated(chain(), ORDERS, (2.0, 3.0, 2.0), 2)
    assert cost.memory_bytes == 2 * 3 * 1_000 * 20
    # a and c meet b first; then each has one partial result.
    assert cost.sent_per_s == pytest.approx(100 * (3 + 2 + 2 + 2 + 3 + 2))
    assert cost.bytes_per_s == pytest.approx(100 * 20 * (3 + 2 + 3) + 100 * 40 * (2 + 2 + 2))
    assert cost.comparisons_per_s == chain().ring(ORDERS, (1,) * 3).comparisons_per_s


def test_one_node_does_all_for_a_row_of_aligned_and_hosts_of_a_hop_share_it_in_coordinated() -> None:
    known = chain(StepTimes(join=1.0, send=0.0, hop=5.0))
    alone = aligned(known, ORDERS, (1.0,) * 3, 0)
    assert alone.response_s == pytest.approx(5.0 + alone.work_s / known.rate_per_s)
    hops = coordinated(known, ORDERS, (2.0, 3.0, 4.0), 2)
    assert hops.response_s == pytest.approx(2 * 5.0 + hops.work_s / known.rate_per_s / 2)


def test_of_two_streams() -> None:
    found = of_two(StreamStatistics(10, 100, 1_000), StreamStatistics(20, 50, 500), (1, 2), (1, 3), 0.5)
    assert found.memory_bytes == 10 * 1_000 + 2 * 20 * 500
    assert found.bytes_per_s == 10 * 100 + 3 * 20 * 50 and found.busiest_bytes_per_s == found.bytes_per_s / 2
    assert found.replication == pytest.approx((100 + 3 * 50) / 150)
    assert found.comparisons_per_s == 100 * 500 + 50 * 1_000
    assert of_two(StreamStatistics(1, 0, 0), StreamStatistics(1, 0, 0), (1, 1), (1, 1), 1).replication == 0
