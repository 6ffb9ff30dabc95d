"""The simulated network itself: what it promises to the protocols that run on it."""

from __future__ import annotations

import random
from itertools import pairwise
from math import factorial
from typing import Any

import pytest

from simulate.network import Candidate, Chosen, Delivery, Earliest, Faults, Network, Shuffled, every_run
from tests.unit.simulate.seeds import expansion, told

pytestmark = pytest.mark.slow


class Listener:
    """Notes what reaches it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.heard: list[tuple[int, str, Any]] = []
        self.woken: list[tuple[int, Any]] = []

    def receive(self, sender: str, message: Any, network: Network) -> None:
        self.heard.append((network.now_us, sender, message))

    def wake(self, tag: Any, network: Network) -> None:
        self.woken.append((network.now_us, tag))

    @property
    def messages(self) -> list[Any]:
        return [message for _, _, message in self.heard]


class Repeater(Listener):
    """Answers each message with the next number, for ever."""

    def receive(self, sender: str, message: int, network: Network) -> None:
        super().receive(sender, message, network)
        network.send(self.name, sender, message + 1)


def listening(network: Network, *names: str) -> list[Listener]:
    listeners = [Listener(name) for name in names]
    for listener in listeners:
        network.add(listener)
    return listeners


@pytest.mark.parametrize("scheduler", [Earliest(), Shuffled(3)], ids=["earliest", "shuffled"])
def test_a_channel_is_fifo_whatever_the_delays(scheduler: Earliest | Shuffled) -> None:
    delays = random.Random(1)
    network = Network(scheduler, delay_us=lambda sender, receiver, message: delays.randrange(1000))
    (listener,) = listening(network, "u")
    for number in range(200):
        network.send("a", "u", ("a", number))
        network.send("b", "u", ("b", number))
    network.run()
    for sender in ("a", "b"):
        assert [m[1] for m in listener.messages if m[0] == sender] == list(range(200))
    assert all(earlier.at_us <= later.at_us for earlier, later in pairwise(network.log))


def test_earliest_lets_time_pass_as_the_delays_say() -> None:
    network = Network(Earliest(), delay_us=lambda sender, receiver, message: {"far": 500, "near": 20}[sender])
    (listener,) = listening(network, "u")
    network.send("far", "u", 1)
    network.send("near", "u", 2)
    network.wake_at("u", 100, "alarm")
    network.run()
    assert listener.heard == [(20, "near", 2), (500, "far", 1)]
    assert listener.woken == [(100, "alarm")]
    assert network.now_us == 500 and network.steps == 3


def test_what_is_ready_at_the_same_time_happens_in_the_order_it_was_made() -> None:
    network = Network(Earliest())
    (listener,) = listening(network, "u")
    for sender in ("b", "a", "c"):
        network.send(sender, "u", sender)
    network.run()
    assert listener.messages == ["b", "a", "c"]


def play(scheduler: Shuffled) -> list[Any]:
    network = Network(scheduler)
    (listener,) = listening(network, "u")
    for number in range(5):
        for sender in "abc":
            network.send(sender, "u", (sender, number))
    network.run()
    return listener.messages


def test_a_seed_is_one_run_for_ever_and_other_seeds_are_others() -> None:
    assert play(Shuffled(7)) == play(Shuffled(7))
    assert len({tuple(play(Shuffled(seed))) for seed in range(50)}) == 50


def test_a_faster_channel_comes_first_more_often() -> None:
    def rank_of_a(speeds: dict[tuple[str, str], float] | None) -> float:
        runs = [play(Shuffled(seed, speeds)) for seed in range(50)]
        return sum(run.index(("a", 4)) for run in runs) / len(runs)

    assert rank_of_a({("a", "u"): 20.0}) < 6 < rank_of_a(None) < rank_of_a({("a", "u"): 0.05})


def test_chosen_follows_its_choices_and_then_takes_the_first() -> None:
    candidates = [Candidate(0, sequence, "a", "u") for sequence in range(3)]
    scheduler = Chosen([2, 1])
    assert [scheduler.pick(candidates) for _ in range(4)] == [2, 1, 0, 0]
    assert scheduler.taken == [2, 1, 0, 0] and scheduler.open == [3, 3, 3, 3]


@pytest.mark.parametrize("lengths", [(1,), (1, 1), (2, 1), (2, 2), (1, 1, 1, 1), (3, 2, 1)])
def test_every_run_is_every_interleaving_once(lengths: tuple[int, ...]) -> None:
    seen: list[tuple[Any, ...]] = []

    def play(scheduler: Chosen) -> None:
        network = Network(scheduler)
        (listener,) = listening(network, "u")
        for sender, length in enumerate(lengths):
            for number in range(length):
                network.send(str(sender), "u", (sender, number))
        network.run()
        seen.append(tuple(listener.messages))

    runs = list(every_run(play))
    expected = factorial(sum(lengths))
    for length in lengths:
        expected //= factorial(length)
    assert len(runs) == len(seen) == len(set(seen)) == expected
    for messages in seen:
        assert sorted(messages) == sorted((s, n) for s, length in enumerate(lengths) for n in range(length))
        for sender in range(len(lengths)):
            assert [n for s, n in messages if s == sender] == list(range(lengths[sender]))


def test_every_run_of_nothing_is_one_run() -> None:
    assert len(list(every_run(lambda scheduler: Network(scheduler).run()))) == 1


def sent_with(faults: Faults) -> list[int]:
    network = Network(Earliest(), faults=faults)
    listener, other = listening(network, "u", "v")
    for number in range(5):
        network.send("a", "u", number)
        network.send("a", "v", number)
    network.run()
    assert other.messages == [0, 1, 2, 3, 4], "other channels are left alone"
    return listener.messages


@pytest.mark.parametrize(
    ("faults", "arrived"),
    [
        (Faults(), [0, 1, 2, 3, 4]),
        (Faults(lose={("a", "u", 0), ("a", "u", 3)}), [1, 2, 4]),
        (Faults(repeat={("a", "u", 2)}), [0, 1, 2, 2, 3, 4]),
        (Faults(overtake={("a", "u", 3)}), [0, 1, 3, 2, 4]),
        (Faults(overtake={("a", "u", 0)}), [0, 1, 2, 3, 4]),
        (Faults(lose={("a", "u", 1)}, overtake={("a", "u", 2)}), [2, 0, 3, 4]),
        (Faults(lose={("b", "u", 1)}), [0, 1, 2, 3, 4]),
    ],
    ids=["none", "lose", "repeat", "overtake", "nothing to overtake", "lose and overtake", "another channel"],
)
def test_faults(faults: Faults, arrived: list[int]) -> None:
    assert sent_with(faults) == arrived


def test_numbers_of_the_log_are_those_of_the_channel() -> None:
    network = Network(Earliest(), faults=Faults(lose={("a", "u", 1)}, repeat={("a", "u", 2)}))
    listening(network, "u")
    for message in "xyz":
        network.send("a", "u", message)
    network.run()
    assert network.log == [
        Delivery(0, "a", "u", 0, "x"),
        Delivery(0, "a", "u", 2, "z"),
        Delivery(0, "a", "u", 2, "z"),
    ]
    assert expansion(network).splitlines()[1] == "         0 us  a -> u #2: z"


def test_what_is_sent_to_a_crashed_actor_waits_for_the_next_of_its_name() -> None:
    network = Network(Earliest())
    first, other = listening(network, "u", "v")
    network.send("a", "u", 1)
    network.crash("u")
    network.send("a", "u", 2)
    network.send("a", "v", 3)
    network.run()
    assert first.heard == [] and other.messages == [3]
    assert network.waiting("u") == network.waiting() == 2
    (second,) = listening(network, "u")
    network.run()
    assert first.heard == [] and second.messages == [1, 2]
    assert network.actor("u") is second


def test_a_crash_can_take_what_is_on_its_way_along() -> None:
    network = Network(Earliest())
    first, other = listening(network, "u", "v")
    network.send("a", "u", 1)
    network.send("a", "v", 2)
    network.send("u", "v", 3)
    network.crash("u", lose_waiting=True)
    network.send("a", "u", 4)
    (second,) = listening(network, "u")
    network.run()
    assert first.heard == [] and second.messages == [4]
    assert other.messages == [2, 3], "what it had sent still arrives"


def test_a_crash_takes_the_timers_of_its_actor_alone() -> None:
    network = Network(Earliest())
    first, other = listening(network, "u", "v")
    for at_us in (30, 10, 20):
        network.wake_at("u", at_us, at_us)
        network.wake_at("v", at_us, at_us)
    network.crash("u")
    (second,) = listening(network, "u")
    network.run()
    assert first.woken == second.woken == []
    assert other.woken == [(10, 10), (20, 20), (30, 30)]


def test_a_message_to_nobody_waits() -> None:
    network = Network(Earliest())
    network.send("a", "u", 1)
    network.run()
    assert network.waiting("u") == 1 and network.steps == 0
    (listener,) = listening(network, "u")
    network.run()
    assert listener.messages == [1]


def test_timers_come_by_time_and_never_before_now() -> None:
    network = Network(Shuffled(5))
    (listener,) = listening(network, "u")
    for at_us in (40, 20, 20, 30):
        network.wake_at("u", at_us, at_us)
    network.run(until=lambda: network.now_us >= 30)
    network.wake_at("u", 5, "late")
    network.run()
    assert listener.woken == [(20, 20), (20, 20), (30, 30), (30, "late"), (40, 40)]


def test_a_run_that_does_not_end_is_an_error() -> None:
    network = Network(Earliest(), keep_log=False)
    for name in ("a", "b"):
        network.add(Repeater(name))
    network.send("a", "b", 0)
    with pytest.raises(RuntimeError, match="did not end within 1,000 steps"):
        network.run(steps_max=1000)
    assert network.steps == 1000 and network.log == []
    network.run(until=lambda: network.steps == 1010)
    assert network.steps == 1010


def test_a_failing_seed_tells_its_messages() -> None:
    network = Network(Earliest())
    listening(network, "u")
    network.send("a", "u", "hello")
    network.run()

    def fail() -> None:
        with told(12, network):
            raise ValueError("whatever")

    with pytest.raises(AssertionError, match=r"seed 12: ValueError: whatever\n1 deliveries:\n.*a -> u #0: hello"):
        fail()
