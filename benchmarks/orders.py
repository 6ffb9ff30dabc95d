"""Whether the way that `explain` takes for the cheapest is, by running the ways of some queries.

    python -m benchmarks.orders

Each tree and each ring runs in one process, without Spark, over the same rows of streams whose rates, reaches and keys
differ. Printed are the seconds of a processor that each took against those predicted, and how much longer the predicted
winner took than the fastest. Other work of the machine hardly changes them.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.engine.loop import Brought, Loop
from streamjoin.explain.candidates import Way
from streamjoin.explain.sampling import Look
from streamjoin.explain.several import Ways, ways
from streamjoin.operators import registry
from streamjoin.operators.ordering import Candidate, Known, choice
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Cascade, Plan
from streamjoin.query import plan_query
from streamjoin.settings.trees import parse_tree
from streamjoin.state.memory import MemoryStates

COLUMNS = pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("k", pa.int64()), ("j", pa.int64())])
SPAN_S = 60
BATCHES = 6
SAMPLE_ROWS = 20_000
QUERIES = 40
TRIES = 3
PAIRS_MAX = 3_000_000
"""Ways that are predicted to look at more are not run: all of them have the same results."""
NEAR = 1.2
BICLIQUE = {"name": "biclique"}


def made(seed: int) -> tuple[str, dict[str, pa.RecordBatch]]:
    """A query over three or four streams, and their rows."""
    chosen = random.Random(seed)
    numbers = np.random.default_rng(seed)
    names = "abc" if seed % 2 else "abcd"
    keys, others = chosen.choice([50, 500, 5_000]), chosen.choice([50, 500, 5_000])
    joins = [
        f"JOIN {name} ON {chosen.choice(names[:place])}.{(of := chosen.choice('kj'))} = {name}.{of}"
        for place, name in enumerate(names)
        if place
    ]
    reaches = ", ".join(f"{chosen.choice([1, 2, 5])} SECONDS FOR {name}" for name in names)
    streams = {}
    for name in names:
        rows = chosen.choice([5_000, 20_000, 80_000])
        ts = np.sort(numbers.integers(0, SPAN_S * 1_000_000, rows))
        columns = [ts, np.arange(rows), numbers.integers(0, keys, rows), numbers.integers(0, others, rows)]
        streams[name] = pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=COLUMNS)
    select = ", ".join(f"{name}.id AS {name}" for name in names)
    return f"SELECT ONLINE {select} FROM a {' '.join(joins)} WITHIN {reaches}", streams


def planned(query: str, streams: Mapping[str, pa.RecordBatch], tree: str | None = None) -> Cascade:
    """A tree of a query, the order of FROM unless another is asked for."""
    schemas = {name: StreamSchema(name, COLUMNS, "ts", "us", 0) for name in streams}
    plan = plan_query(query, schemas, tree=parse_tree(tree))
    assert isinstance(plan, Cascade)
    return plan


def looked(query: str, streams: Mapping[str, pa.RecordBatch]) -> Ways:
    """What `explain` says of it, from the first rows of each stream."""
    plan = planned(query, streams)
    sampled = Look(plan, tuple(rows.slice(0, SAMPLE_ROWS) for rows in streams.values()))
    found = ways(plan, sampled, sampled.statistics(), registry.build_all("biclique", {}, plan, 1), 1)
    assert found is not None
    return found


def run(plan: Plan, streams: Sequence[pa.RecordBatch], operator: Mapping[str, Any] = BICLIQUE) -> tuple[float, int]:
    """Seconds of a processor that all batches take, and how many results there are.

    Args:
        plan: a tree; a ring is planned from it.
        operator: as a join file has it.
    """
    name, knobs = operator["name"], {knob: value for knob, value in operator.items() if knob not in ("name", "tree")}
    planned_for = registry.planned(name, knobs, plan, 1)
    states = [MemoryStates() for _ in planned_for.stages]
    loop = Loop(planned_for, registry.build_all(name, knobs, planned_for, 1), lambda stage: states[stage], 1)
    begun_s, results = time.process_time(), 0
    for number in range(BATCHES):
        ends = [np.searchsorted(rows.column("ts").to_numpy(), (number + np.arange(2)) * SPAN_S * 1e6 / BATCHES)
                for rows in streams]  # fmt: skip
        pieces = [
            [rows.slice(int(first), int(last - first))] for rows, (first, last) in zip(streams, ends, strict=True)
        ]
        brought = Brought(pieces, 1_000_000 * number)
        results += sum(rows.num_rows for _, rows in loop.batch(brought))
        loop.commit(brought)
    return time.process_time() - begun_s, results


@dataclass(frozen=True, slots=True)
class Ran:
    """Ways of a query that were run: seconds of a processor, beside what was predicted.

    Args:
        ways: with the least predicted work first.
        took_s: by way.
        of_auto: what `auto` takes, None where that was not run.
    """

    ways: Sequence[Way]
    took_s: Sequence[float]
    of_auto: Way | None

    def times(self, way: Way | None) -> float:
        """How many times as long as the fastest a way took."""
        return float("inf") if way is None else self.took_s[self.ways.index(way)] / min(self.took_s)

    @property
    def near(self) -> int:
        """How many predictions of work were within a factor of two."""
        pairs = zip(self.ways, self.took_s, strict=True)
        return sum(0.5 <= way.cost.work_s * SPAN_S / took_s <= 2 for way, took_s in pairs)

    def lines(self) -> Iterable[str]:
        """What was measured of each way, and predicted."""
        for way, seconds in zip(self.ways, self.took_s, strict=True):
            yield f"  {way.plan:<24} measured {seconds:6.3f} s, predicted work {way.cost.work_s * SPAN_S:6.3f} s"


def run_ways(
    query: str, streams: Mapping[str, pa.RecordBatch], tries: int = TRIES, pairs_max: float = PAIRS_MAX
) -> Ran | None:
    """Run trees and rings of a query in turn, so that what else the machine does meets all of them; the best of tries.

    None where fewer than two of them are predicted to look at no more than `pairs_max` pairs.

    Raises:
        AssertionError: two ways differ in how many results they have.
    """
    every = [way for way in looked(query, streams).found if not way.is_baseline]
    ways = [way for way in every if way.cost.looked_at_per_s * SPAN_S < pairs_max]
    if len(ways) < 2:
        return None
    rows = list(streams.values())
    plans = [planned(query, streams, _tree(way)) for way in ways]
    turns = [[run(plan, rows, {**BICLIQUE, **way.operator}) for plan, way in zip(plans, ways, strict=True)]
             for _ in range(tries)]  # fmt: skip
    took_s = [min(seconds for seconds, _ in of_way) for of_way in zip(*turns, strict=True)]
    assert len({results for turn in turns for _, results in turn}) == 1, f"ways differ in their results: {query}"
    of_auto = taken(every)
    return Ran(ways, took_s, of_auto if of_auto in ways else None)


def _tree(way: Way) -> str | None:
    return None if way.numbered is None else way.setting.removeprefix("tree: ")


def taken(ways: Sequence[Way]) -> Way:
    """What `auto` takes: the way with the least work, where it has clearly less than the order of FROM."""
    candidates = [
        Candidate(place, way.plan, way.cost.work_s, way.is_written, way.numbered is not None)
        for place, way in enumerate(ways)
    ]
    number = choice(Known("the rates of the sample", candidates)).number
    return next(way for way in ways if way.is_written) if number is None else ways[number]


def main() -> None:
    """Run the ways of each query, and print what was predicted and what was measured."""
    pa.set_cpu_count(1)
    run_ways(*made(1), tries=1)  # compiles
    ran: list[Ran] = []
    for seed in itertools.count(1):
        if len(ran) == QUERIES:
            break
        query, streams = made(seed)
        if (found := run_ways(query, streams)) is None:
            continue
        ran.append(found)
        print(f"\n{query}", *found.lines(), sep="\n")
        of_least, of_auto = found.times(found.ways[0]), found.times(found.of_auto)
        print(f"  the predicted winner took {of_least:.2f} times what the fastest took, and what auto takes "
              f"{of_auto:.2f} times", flush=True)  # fmt: skip
    least = sum(one.times(one.ways[0]) <= NEAR for one in ran)
    auto = sum(one.times(one.of_auto) <= NEAR for one in ran)
    print(f"\npredicted winners within a fifth of the fastest: {least} of {len(ran)}")
    print(f"what auto takes, which keeps the order of FROM unless another is clearly better: {auto} of {len(ran)}")
    print("predictions within a factor of two of what was measured: "
          f"{sum(one.near for one in ran)} of {sum(len(one.ways) for one in ran)}")  # fmt: skip


if __name__ == "__main__":
    main()
