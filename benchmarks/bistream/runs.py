"""One run: a join fed batch by batch to the engine's units, each of which counts as a machine of its own.

There are as many slots as units, so what is routed is what would travel between machines. Units work one after the
other in this process, without Spark; a batch counts as done when its slowest unit is.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.bistream.feeds import KEYS, Feed
from streamjoin.counts import add_counts
from streamjoin.engine.loop import Brought, Loop
from streamjoin.operators import registry
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query
from streamjoin.state.memory import MemoryStates


@dataclass(frozen=True, slots=True)
class Setting:
    """A system of the paper: JM16 is a matrix of 4 x 4, JB16-CR4 a biclique of 8 + 8 units in 4 + 4 subgroups.

    Args:
        units: all of them.
        groups: of each stream; 1 for random routing, which probes all units of the other side.
    """

    system: str
    units: int
    groups: int = 1

    @property
    def name(self) -> str:
        """As the paper has it."""
        return f"{self.system}{self.units}" + (f"-CR{self.groups}" if self.groups > 1 else "")

    def knobs(self, feed: Feed, keys: int) -> tuple[str, dict[str, object]]:
        """The operator and its settings, for so many keys."""
        if self.system == "JM":
            side = round(self.units**0.5)
            return "matrix", {"rows": side, "columns": side}
        half: dict[str, object] = {"r_units": self.units // 2, "s_units": self.units // 2}
        if self.groups == 1:
            return "biclique", {**half, "routing": "random"}
        half |= {"routing": "contrand", "r_groups": self.groups, "s_groups": self.groups}
        if feed.is_band:
            bounds = [keys * part // self.groups for part in range(1, self.groups)]
            half |= {"r_bounds": bounds, "s_bounds": bounds}
        return "biclique", half


@dataclass(slots=True)
class Batch:
    """What one batch did.

    Args:
        fed: tuples of both streams so far, this batch's included.
        stored: bytes, by unit of the join.
        sent: bytes that were routed to units of the join.
        seconds: of each unit of the join.
        spent_s: processor time of everything, routing and groups included.
        results: pairs, or changed groups.
        folded: see `UnitReport.folded`, added up.
    """

    fed: int
    stored: list[int]
    sent: int
    seconds: list[float]
    spent_s: float
    results: int
    folded: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Input:
    """What is fed.

    Args:
        rows: of each stream in a batch.
        rate_per_s: tuples of each stream.
        window_s: WITHIN; None joins the full history.
        keys: see `Feed.rows`.
    """

    batches: int
    rows: int
    rate_per_s: float = 100_000.0
    window_s: float | None = None
    keys: int = KEYS


def run(feed: Feed, setting: Setting, given: Input, *, grouped: bool = False) -> Iterator[Batch]:
    """Feed a join, batch by batch; `grouped` with the query's aggregates."""
    window_s = given.window_s
    within = "" if window_s is None else f" WITHIN {round(window_s * 1e6)} MICROSECONDS"
    text = feed.groups.format(within) if grouped else feed.query + within
    streams = {name: StreamSchema(name, feed.columns[side], "ts", "us", 0) for side, name in enumerate("rs")}
    plan = plan_query(text, streams)
    name, knobs = setting.knobs(feed, given.keys)
    states = [MemoryStates() for _ in plan.stages]
    operators = registry.build_all(name, knobs, plan, setting.units)
    loop = Loop(plan, operators, lambda stage: states[stage], setting.units)
    joins, sent_before = len(operators[0].units), 0
    for number in range(given.batches):
        pieces = [[feed.rows(side, number * given.rows, given.rows, given.rate_per_s, given.keys)] for side in range(2)]
        brought = Brought(pieces, 1_000_000 * number, begins=not number)
        begun_s = time.process_time()
        results = sum(part.num_rows for _, part in loop.batch(brought))
        loop.commit(brought)
        spent_s = time.process_time() - begun_s
        reports = loop.reports[:joins]
        sent = sum(counts["sent_bytes"] for counts in loop.counts)
        folded: dict[str, int] = {}
        for report in loop.reports[joins:]:
            add_counts(folded, report.folded)
        yield Batch(
            2 * given.rows * (number + 1), [one.stored_bytes for one in reports], sent - sent_before,
            [sum(one.seconds.values()) for one in reports], spent_s, results, folded,
        )  # fmt: skip
        sent_before = sent
