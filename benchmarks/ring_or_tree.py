"""Where a ring joins streams faster than a tree of joins of two, and whether `auto` takes the faster one.

    python -m benchmarks.ring_or_tree

Streams of equal rates, by how many they are, how far a join reaches, and how many rows of the next stream a row
matches. Conditions are equal keys, which both look up, or `%`, which no index serves and which compares all in reach.
Each way runs in one process as in `benchmarks.orders`; the tree is the cheapest that was run. What is predicted to look
at more than 20 million pairs is not run. `its time` is that of what `auto` takes, over the fastest one's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from benchmarks.orders import COLUMNS, NEAR, SPAN_S, Ran, run_ways

STREAMS = (3, 4, 5)
REACHES_S = (1, 10)
MATCHES = (0.1, 1.0, 3.0)
"""Rows of the next stream that a row finds (PSP's p)."""
ROWS = {"=": 60_000, "%": 6_000}
"""Of a stream, by its condition."""
PAIRS_MAX = 20_000_000
TRIES = 2
HEADER = (
    "condition",
    "streams",
    "reach",
    "matches",
    "tree, s",
    "ring, s",
    "tree / ring",
    "auto takes",
    "its time",
)


def made(condition: str, streams: int, reach_s: int, matches: float) -> tuple[str, dict[str, pa.RecordBatch]]:
    """A query whose conditions are a chain, and its streams."""
    names, rows = "abcde"[:streams], ROWS[condition]
    keys = max(1, round(2 * reach_s * rows / SPAN_S / matches))
    numbers = np.random.default_rng(1)
    brought = {}
    for name in names:
        ts = np.sort(numbers.integers(0, SPAN_S * 1_000_000, rows))
        columns = [ts, np.arange(rows), numbers.integers(0, keys, rows), numbers.integers(0, keys, rows)]
        brought[name] = pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=COLUMNS)
    pairs = itertools.pairwise(names)
    joins = [f"JOIN {name} ON {_condition(condition, before, name, keys)}" for before, name in pairs]
    select = ", ".join(f"{name}.id AS {name}" for name in names)
    return f"SELECT ONLINE {select} FROM a {' '.join(joins)} WITHIN {reach_s} SECONDS", brought


def _condition(condition: str, one: str, other: str, keys: int) -> str:
    """True of one pair in so many."""
    return f"{one}.k = {other}.k" if condition == "=" else f"({one}.k + {other}.k) % {keys} = 0"


def cells(at: tuple[str, int, int, float], ran: Ran | None) -> Sequence[str]:
    """A line of the table."""
    condition, streams, reach_s, matches = at
    begun = [condition, f"{streams}", f"{reach_s} s", f"{matches:g}"]
    found = {} if ran is None else fastest(ran)
    took = [f"{found[kind]:.3f}" if kind in found else "-" for kind in ("tree", "ring")]
    if ran is None or len(found) < 2:
        return [*begun, *took, "-", "-", "-"]
    taken = "-" if ran.of_auto is None else ran.of_auto.plan
    return [*begun, *took, f"{found['tree'] / found['ring']:.2f}", taken, f"{ran.times(ran.of_auto):.2f}"]


def fastest(ran: Ran) -> Mapping[str, float]:
    """`tree` and `ring` -> seconds of the fastest one, of those that were run."""
    found: dict[str, float] = {}
    for way, took_s in zip(ran.ways, ran.took_s, strict=True):
        kind = "ring" if way.numbered is None else "tree"
        found[kind] = min(took_s, found.get(kind, took_s))
    return found


def lines(every: Mapping[tuple[str, int, int, float], Ran | None]) -> Iterator[str]:
    """The table, and what it comes to."""
    yield "| " + " | ".join(HEADER) + " |"
    yield "| --- |" + " --: |" * (len(HEADER) - 1)
    for at, ran in every.items():
        yield "| " + " | ".join(cells(at, ran)) + " |"
    both = [ran for ran in every.values() if ran is not None and len(fastest(ran)) == 2]
    near = sum(ran.times(ran.of_auto) <= NEAR for ran in both)
    wins = sum((found := fastest(ran))["ring"] < found["tree"] for ran in both)
    yield f"\nthe ring is faster in {wins} of {len(both)}; what auto takes is within a fifth of the fastest in {near}"
    predicted = [ran for ran in every.values() if ran is not None]
    yield (
        "predictions within a factor of two of what was measured: "
        f"{sum(ran.near for ran in predicted)} of {sum(len(ran.ways) for ran in predicted)}"
    )


def main() -> None:
    """Run all, and print the table."""
    pa.set_cpu_count(1)
    run_ways(*made("=", 3, 1, 0.1), tries=1)  # compiles
    every = itertools.product(ROWS, STREAMS, REACHES_S, MATCHES)
    print(*lines({at: run_ways(*made(*at), TRIES, PAIRS_MAX) for at in every}), sep="\n")


if __name__ == "__main__":
    main()
