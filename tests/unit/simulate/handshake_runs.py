"""What the tests of the handshake chain share: histories, the oracle, the checks at every step, and all states."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from simulate.handshake.blocks import ONE_BY_ONE, BlockSize
from simulate.handshake.chain import Chain
from simulate.handshake.messages import Item, StreamTuple, TupleBlock, TupleMessage
from simulate.handshake.states import State
from simulate.handshake.tasks import Task
from simulate.handshake.windows import CountWindow, FullHistory, TimeWindow, Window
from simulate.handshake.worker import Worker
from simulate.network import Candidate, Network, Scheduler, Shuffled
from simulate.stream import Stream
from streamjoin.operators.reference import count_window_join, full_history_join, time_window_join
from tests.unit.simulate.seeds import told

CROSS = Task("cross", None, None)
"""Every pair matches: each one that is lost or found twice shows."""
SIZES = [ONE_BY_ONE, BlockSize(1), BlockSize(2), BlockSize(3), BlockSize(2, dynamic=True)]
WINDOWS: list[Window] = [FullHistory(), TimeWindow(30, 30), TimeWindow(0, 25), TimeWindow(20, 5), CountWindow(3)]
Pairs = Counter[tuple[str, int, int]]


def speeds(seed: int, workers: int, ratio: float = 20.0) -> dict[tuple[str, str], float]:
    """Half of the channels are `ratio` times as likely to be next as the others."""
    line = ["in-R", *(f"w{place}" for place in range(workers)), "in-S"]
    chance = random.Random(seed)
    return {
        ends: chance.choice([1.0, ratio]) for left, right in pairwise(line) for ends in ((left, right), (right, left))
    }


def history(seed: int, r: int, s: int, keys: int = 4) -> list[StreamTuple]:
    """Tuples of both streams in one order of arrival, with counts stamped and times that rise."""
    chance = random.Random(seed)
    order = [Stream.R] * r + [Stream.S] * s
    chance.shuffle(order)
    seen: Counter[Stream] = Counter()
    rows, time = [], 0
    for stream in order:
        time += chance.randrange(10)
        rows.append(StreamTuple(stream, seen[stream], chance.randrange(keys), time, seen[stream.opposite]))
        seen[stream] += 1
    return rows


def of(rows: Sequence[StreamTuple], stream: Stream) -> list[Item]:
    """One stream of a history."""
    return [row for row in rows if row.stream is stream]


def oracle(rows: Sequence[StreamTuple], window: Window, task: Task = CROSS) -> Pairs:
    """The pairs that the definition asks for; of the simulation it uses the numbers of the window only."""

    def match(r: Any, s: Any) -> bool:
        difference = s["key"] - r["key"]
        return (task.low is None or task.low <= difference) and (task.high is None or difference <= task.high)

    dicts: list[tuple[str, dict[str, int]]] = [(row.stream.lower(), {"ts": row.time, "key": row.key}) for row in rows]
    r_rows, s_rows = ([row for side, row in dicts if side == wanted] for wanted in "rs")
    match window:
        case TimeWindow(before, after):
            pairs = time_window_join(r_rows, s_rows, match, before, after)
        case CountWindow(count):
            pairs = count_window_join(dicts, match, count)
        case _:
            pairs = full_history_join(r_rows, s_rows, match)
    return Counter((task.name, r, s) for r, s in pairs)


def found(chain: Chain) -> Pairs:
    """What the chain put out, as often as it did."""
    return Counter(chain.results.pairs)


def in_channels(network: Network, stream: Stream, sender_begins: str) -> int:
    """Tuples that are on their way."""
    return sum(
        isinstance(item, StreamTuple)
        for (sender, _), channel in network._channels.items()
        if sender.startswith(sender_begins)
        for *_, message in channel.queue
        if isinstance(message, TupleMessage | TupleBlock) and message.stream is stream
        for item in message.items
    )


def check_step(chain: Chain, fed: dict[Stream, int]) -> None:
    """Stored tuples, without copies, and those between workers are the live ones; workers rest in Processing."""
    for stream in Stream:
        live = fed[stream] - in_channels(chain.network, stream, "in-") - chain.results.left[stream]
        assert sum(chain.loads(stream)) + in_channels(chain.network, stream, "w") == live, stream
    for worker in chain.workers:
        assert worker.state is State.PROCESSING
        for stream, flow in worker.flows.items():
            shown = flow.live + (flow.copied if worker.answers(stream) else 0)
            assert all(len(instance.stores[stream]) == shown for instance in worker.instances)


def check_empty(chain: Chain) -> None:
    """Nothing is left after the end: no tuple, no copy, no key, no punctuation."""
    for worker in chain.workers:
        for stream, flow in worker.flows.items():
            assert not flow.stored and not flow.copies and not worker.punctuations[stream], (worker.name, stream)
            assert all(len(instance.stores[stream]) == 0 for instance in worker.instances)
            assert all(not getattr(instance.stores[stream], "keys", ()) for instance in worker.instances)


def play(
    rows: Sequence[StreamTuple],
    seed: int = 0,
    *,
    workers: int = 3,
    tasks: Sequence[Task] = (CROSS,),
    window: Window | None = None,
    block: BlockSize = ONE_BY_ONE,
    worker: type[Worker] = Worker,
    ratio: float | None = None,
    scheduler: Scheduler | None = None,
    end: bool = True,
    checked: bool = True,
) -> Chain:
    """One run of a history, watched at every step."""
    network = Network(scheduler or Shuffled(seed, None if ratio is None else speeds(seed, workers, ratio)))
    chain = Chain(network, workers, tasks, window, block, worker=worker)
    with told(seed, network):
        for stream in Stream:
            chain.feed(stream, of(rows, stream))
        if end:
            chain.end()
        run(chain, rows, checked=checked)
        if end and checked:
            check_empty(chain)
    return chain


def run(chain: Chain, rows: Sequence[StreamTuple], *, checked: bool = True, steps: int = 1_000_000) -> None:
    """Let things happen until nothing can, or so many have."""
    fed = {stream: len(of(rows, stream)) for stream in Stream}
    for _ in range(steps):
        if not chain.network.step():
            return
        if checked:
            check_step(chain, fed)


class _Branch:
    """Takes a given candidate; what goes to an intake, where it changes nothing of the chain, goes first."""

    def __init__(self) -> None:
        self.choice = 0
        self.branches = 0

    def pick(self, candidates: Sequence[Candidate]) -> int:
        for place, candidate in enumerate(candidates):
            if candidate.receiver.startswith("in-"):
                self.branches = 1
                return place
        self.branches = len(candidates)
        return self.choice


def _key(network: Network, workers: Sequence[Worker]) -> int:
    """All that the future and the results so far depend on."""
    channels = tuple(
        (ends, tuple(entry[3] for entry in channel.queue))
        for ends, channel in sorted(network._channels.items())
        if channel.queue
    )
    state = tuple(
        (
            *worker.marks.values(),
            *(
                (
                    tuple(flow.stored),
                    tuple(flow.copies.items()),
                    flow.sent,
                    flow.received,
                    flow.successor_load,
                    tuple(flow.unreported.items()),
                    flow.told,
                )
                for flow in worker.flows.values()
            ),
        )
        for worker in workers
    )
    return hash((channels, state, tuple(sorted(workers[0]._results.pairs))))


def every_state(chain: Chain) -> Iterator[tuple[Network, list[Worker], bool]]:
    """Every state that any order of deliveries can lead to, each once, and whether it is a last one."""
    branch = _Branch()
    chain.network._scheduler = branch
    names = [worker.name for worker in chain.workers]
    seen: set[int] = set()
    stack = [pickle.dumps(chain.network, pickle.HIGHEST_PROTOCOL)]
    while stack:
        state = stack.pop()
        choice, branches = 0, 1
        while choice < branches:
            network: Network = pickle.loads(state)
            scheduler: Any = network._scheduler
            scheduler.choice = choice
            last = not network.step()
            workers: list[Worker] = [network.actor(name) for name in names]  # type: ignore[misc]
            if last:
                yield network, workers, True
                break
            branches = scheduler.branches
            key = _key(network, workers)
            if key not in seen:
                seen.add(key)
                stack.append(pickle.dumps(network, pickle.HIGHEST_PROTOCOL))
                yield network, workers, False
            choice += 1
