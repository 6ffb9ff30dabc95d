"""Whether the tree that `explain` takes for the cheapest is, by running all trees of some queries.

    python -m benchmarks.orders

Each tree runs in one process, without Spark, over the same rows of streams whose rates, reaches and keys differ.
Printed are the seconds of a processor that each took against those predicted, and how much longer the predicted winner
took than the fastest. Other work of the machine hardly changes them.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from streamjoin.engine.loop import Brought, Loop
from streamjoin.explain.candidates import Way
from streamjoin.explain.sampling import Look
from streamjoin.explain.several import Ways, ways
from streamjoin.operators import registry
from streamjoin.operators.ordering import Candidate, Known, choice
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Cascade
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
"""Trees that are predicted to look at more are not run: all of them have the same results."""
NEAR = 1.2


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
    """A tree of a query."""
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


def run(plan: Cascade, streams: Sequence[pa.RecordBatch]) -> float:
    """Seconds of a processor that all batches take."""
    states = [MemoryStates() for _ in plan.stages]
    loop = Loop(plan, registry.build_all("biclique", {}, plan, 1), lambda stage: states[stage], 1)
    begun_s = time.process_time()
    for number in range(BATCHES):
        ends = [np.searchsorted(rows.column("ts").to_numpy(), (number + np.arange(2)) * SPAN_S * 1e6 / BATCHES)
                for rows in streams]  # fmt: skip
        pieces = [
            [rows.slice(int(first), int(last - first))] for rows, (first, last) in zip(streams, ends, strict=True)
        ]
        brought = Brought(pieces, 1_000_000 * number)
        for _ in loop.batch(brought):
            pass
        loop.commit(brought)
    return time.process_time() - begun_s


def taken(ways: Sequence[Way]) -> Way:
    """What `auto` takes: the tree with the least work, where it has clearly less than the order of FROM."""
    candidates = [Candidate(place, way.plan, way.cost.work_s, way.is_written, True) for place, way in enumerate(ways)]
    number = choice(Known("the rates of the sample", candidates)).number
    return next(way for way in ways if way.is_written) if number is None else ways[number]


def main() -> None:
    """Run the trees of each query, and print what was predicted and what was measured."""
    pa.set_cpu_count(1)
    run(planned(*made(1)), list(made(1)[1].values()))  # compiles
    least = auto = tried = right = runs = 0
    for seed in itertools.count(1):
        if tried == QUERIES:
            break
        query, streams = made(seed)
        every = [way for way in looked(query, streams).found if way.setting.startswith("tree")]
        trees = [way for way in every if way.cost.looked_at_per_s * SPAN_S < PAIRS_MAX]
        if len(trees) < 2:
            continue
        # In turn, so that what else the machine does meets all of them.
        plans = [planned(query, streams, way.setting.removeprefix("tree: ")) for way in trees]
        tries = [[run(plan, list(streams.values())) for plan in plans] for _ in range(TRIES)]
        took_s = [min(of_plan) for of_plan in zip(*tries, strict=True)]
        print(f"\n{query}")
        for way, seconds in zip(trees, took_s, strict=True):
            runs += 1
            right += 0.5 <= way.cost.work_s * SPAN_S / seconds <= 2
            print(f"  {way.plan:<24} measured {seconds:6.3f} s, predicted work {way.cost.work_s * SPAN_S:6.3f} s")
        tried += 1
        least += took_s[0] <= NEAR * min(took_s)
        of_auto = taken(every)
        took_auto_s = took_s[trees.index(of_auto)] if of_auto in trees else float("inf")
        auto += took_auto_s <= NEAR * min(took_s)
        print(f"  the predicted winner took {took_s[0] / min(took_s):.2f} times what the fastest took, and what auto "
              f"takes {took_auto_s / min(took_s):.2f} times")  # fmt: skip
    print(f"\npredicted winners within a fifth of the fastest: {least} of {tried}")
    print(f"what auto takes, which keeps the order of FROM unless another is clearly better: {auto} of {tried}")
    print(f"predictions within a factor of two of what was measured: {right} of {runs}")


if __name__ == "__main__":
    main()
