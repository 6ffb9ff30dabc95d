"""The network on which things take time, by times that were worked out by hand."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from simulate.network import Network
from simulate.ring.chance import Chance
from simulate.ring.messages import Query, Row, nested_loop
from simulate.ring.response import Response, respond
from simulate.timed import Timed, UnitCosts

pytestmark = pytest.mark.slow

HEADER = 16


@dataclass
class Worker:
    """Compares as often as a message says, and tells another one before and after."""

    name: str
    tells: str = ""
    began: list[tuple[int, Any]] = field(default_factory=list)

    def receive(self, sender: str, message: Any, network: Network) -> None:
        self.began.append((network.now_us, message))
        if self.tells:
            network.send(self.name, self.tells, 0)
        network.work(comparisons=message)
        if self.tells:
            network.send(self.name, self.tells, 0)

    def wake(self, tag: Any, network: Network) -> None:
        self.began.append((network.now_us, tag))
        network.work(inserts=1)


def test_a_busy_actor_lets_messages_wait_and_sends_at_once_what_it_sends_before_its_work() -> None:
    network = Timed(UnitCosts(comparison=10, hop=100), lambda message: 0)
    one, other = Worker("one", tells="other"), Worker("other")
    network.add(one)
    network.add(other)
    for comparisons in (7, 2, 5):
        network.send("outside", "one", comparisons)
    network.run()
    assert one.began == [(100, 7), (170, 2), (190, 5)]
    assert [at for at, _ in other.began] == [200, 270, 270, 290, 290, 340]
    assert network.busy_ns == {"one": 140, "other": 0}


def test_messages_cost_both_ends_by_their_bytes_and_time_under_way() -> None:
    network = Timed(
        UnitCosts(message=20, byte=2, hop=100, link_byte=3),
        lambda message: 10,
        lambda sender, receiver: sender == "near",
    )
    worker = Worker("one", tells="other")
    network.add(worker)
    network.add(Worker("other"))
    network.send("outside", "one", 0)  # half of 40 for the sender, 130 under way, as much again for the receiver
    network.run()
    assert worker.began == [(170, 0)] and network.busy_ns == {"one": 20 + 2 * 20, "other": 2 * 20}
    network.send("near", "one", 0)
    network.run()
    assert worker.began[1][0] == network.now_ns - 20 - 130 - 2 * 20


def test_a_timer_waits_until_its_actor_is_done() -> None:
    network = Timed(UnitCosts(comparison=10, insert=4), lambda message: 0)
    worker = Worker("one")
    network.add(worker)
    network.send("outside", "one", 5)
    network.wake_at("one", 30, "late")
    network.wake_at("one", 90, "last")
    network.run()
    assert worker.began == [(0, 5), (50, "late"), (90, "last")] and network.busy_ns["one"] == 58


def small_ring(**costs: float) -> Response:
    """Two streams, two nodes: an a meets three b's in the head and two in the other node, and all match."""
    query = Query((100, 100), (((0, 1), lambda a, b: True),), ((1,), (0,)))
    stored = [Row(1, ts, number, 0) for number, ts in enumerate((10, 20, 60, 70, 80))]
    return respond(UnitCosts(**costs), HEADER, [Row(0, 100, 5, 0)], query, [2, 2], stored=stored)


def test_a_small_ring_takes_what_was_worked_out_by_hand() -> None:
    found = small_ring(comparison=10, hop=100)
    # The head has its results at 30, the node after it at 120; the END leaves the head at 30.
    assert (found.results, found.result, found.cycle) == (5, (3 * 30 + 2 * 120) / 5, 230)
    assert found.through == (130 + 230) / 2 and found.busiest == 30 / 230
    assert found.sent == {"rows": 2, "ends": 2}


def test_sending_delays_the_work_of_the_sender_and_the_receiver() -> None:
    found = small_ring(comparison=10, hop=100, message=8)
    # 4 to send the row, 4 to receive it; the END leaves at 38, and is received, sent and received again.
    assert (found.result, found.cycle) == ((3 * 34 + 2 * 128) / 5, 250)
    sized = small_ring(comparison=10, hop=100, message=8, byte=1, link_byte=1)
    # A row has 32 bytes with its header, an END 16: of a row the head has 20, 32 more are under way.
    assert sized.result == (3 * 50 + 2 * (20 + 132 + 20 + 20)) / 5


@pytest.mark.parametrize("in_flight", [1, 5])
@pytest.mark.parametrize("streams", [2, 3, 4])
def test_a_ring_that_takes_time_joins_exactly_and_takes_the_same_each_time(streams: int, in_flight: int) -> None:
    load = Chance(streams, 8, 1.5, 1_000)
    rows = list(itertools.islice(load.rows(poisson=True), 60))
    costs = UnitCosts(probe=5, comparison=40, insert=3, purge=2, message=20, byte=0.5, hop=300, link_byte=1)
    found = respond(costs, 100, rows, load.query, [3] * streams, in_flight=in_flight, paced=True)
    assert Counter(found.played.results) == Counter(nested_loop(rows, load.query))
    assert found.results == len(found.played.results) > 20
    again = respond(costs, 100, rows, load.query, [3] * streams, in_flight=in_flight, paced=True)
    assert (again.result, again.cycle, again.busiest, again.sent) == (
        found.result, found.cycle, found.busiest, found.sent
    )  # fmt: skip
    assert found.result > 0 and 0 < found.busiest < 1


def test_stored_rows_lie_where_they_would_have_come_to() -> None:
    load = Chance(3, 20, 1.0, 1_000)
    rows = list(itertools.islice(load.rows(), 120))
    whole = respond(UnitCosts(hop=10), 0, rows, load.query, [4] * 3)
    part = respond(UnitCosts(hop=10), 0, rows[60:], load.query, [4] * 3, stored=rows[:60])
    assert Counter(part.played.results) == Counter(
        parts for parts in whole.played.results if max(row.order for row in parts if row) >= 60
    )
    assert [node.state for node in part.played.nodes] == [node.state for node in whole.played.nodes]
    # A window before the first row is the whole window: nothing is left that would be in no node.
    assert sum(len(state) for node in part.played.nodes for state in node.state) == 60


def test_a_row_that_must_wait_for_the_one_before_answers_later() -> None:
    load = Chance(2, 10, 1.0, 1_000)
    rows = list(itertools.islice(load.rows(), 100))
    slow, fast = UnitCosts(comparison=100, hop=400), UnitCosts(comparison=1, hop=4)
    late, soon = (
        respond(each, 0, rows[20:], load.query, [2] * 2, stored=rows[:20], paced=True) for each in (slow, fast)
    )
    # A cycle is longer than the gap, so rows queue up and wait ever longer; of the other they never wait.
    assert late.cycle > 1_000 and late.result > 5 * late.cycle
    assert soon.result < soon.cycle < 100 and soon.busiest < 0.1
