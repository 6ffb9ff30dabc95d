"""A job so far: its batches added up."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from streamjoin.counts import add_counts
from streamjoin.engine.unit import QueryCounts
from streamjoin.operators.costs.handshake import imbalances
from streamjoin.operators.reading import counted
from streamjoin.spark.adapting import Adapting
from streamjoin.spark.batchreport import BatchReport, BatchTimes
from streamjoin.spark.rates import Rates

_COUNTED = ("forwarded", "folded", "holding")
"""What units count by names; what they hold is what they hold now."""
TIMES_KEPT = 10_000
"""Batches whose times a job remembers: it may run for months."""


@dataclass(slots=True)
class Progress:
    """A job so far, in this run.

    Lists are by stream; `stored_rows` are the tuples that units store, and `flow_rows` what they store of other stages.
    `open_rows` wait now until it is known whether they are matched; see `UnitReport`.
    `relations` has what is known of the version that each relation was joined in last.
    `readers` are the units that have joined relations, by number: in a batch without rows for them they tell nothing.
    `predicted` is what was predicted of them before the start.
    `units` are by stage and label: a number may be another stage's once a chain has got another length.
    `imbalances` has the sum over batches, the largest and the newest IF of each stream, see `imbalance`.
    `traffic` is with the store of its state, and empty where that is in a folder.
    `step_times` are those of a ring's nodes: set, measured or assumed.
    `reconnects` counts how often its query was started again because a Python worker did not connect to Spark in time.
    """

    streams: int = 2
    batches: int = 0
    results: int = 0
    tuples_in: list[int] = field(default_factory=list)
    counts: list[dict[str, int]] = field(default_factory=list)
    comparisons: int = 0
    search_steps: int = 0
    received: dict[str, int] = field(default_factory=dict)
    received_bytes: dict[str, int] = field(default_factory=dict)
    forwarded: dict[str, int] = field(default_factory=dict)
    folded: dict[str, int] = field(default_factory=dict)
    reading: dict[str, int] = field(default_factory=dict)
    holding: dict[str, int] = field(default_factory=dict)
    readers: set[int] = field(default_factory=set)
    predicted: dict[str, Any] | None = None
    late: list[int] = field(default_factory=list)
    imbalances: list[tuple[float, float, float]] = field(default_factory=list)
    expired_rows: int = 0
    stored_rows: tuple[int, ...] = ()
    flow_rows: int = 0
    open_rows: int = 0
    unmatched_rows: int = 0
    late_after_final: int = 0
    state_bytes: int = 0
    state_bytes_max: int = 0
    stored_rows_max: int = 0
    waiting_results_max: int = 0
    segments: int = 0
    units: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)
    queries: list[dict[str, int]] = field(default_factory=list)
    reconnects: int = 0
    adapting: Adapting = field(default_factory=Adapting)
    relations: dict[str, dict[str, Any]] = field(default_factory=dict)
    traffic: dict[str, int] = field(default_factory=dict)
    batch_ms: list[int] = field(default_factory=list)
    times: deque[BatchTimes] = field(default_factory=lambda: deque(maxlen=TIMES_KEPT))
    first_begun_s: float | None = None
    last_done_s: float | None = None
    rates: Rates = field(default_factory=Rates)
    step_times: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tuples_in, self.late = [0] * self.streams, [0] * self.streams
        self.counts, self.stored_rows = [{} for _ in range(self.streams)], (0,) * self.streams
        self.imbalances = [(0.0, 0.0, 0.0)] * self.streams

    def add(self, report: BatchReport) -> None:
        """Count a batch."""
        self.batches += 1
        self.rates.add(report)
        self.results += report.results
        for side, counts in report.intake.items():
            self.tuples_in[side] += counts.get("rows", 0)
            add_counts(self.counts[side], counts)
        stored, waiting, self.holding = [0] * self.streams, 0, {}
        self.state_bytes = self.segments = self.flow_rows = self.open_rows = 0
        for unit in report.units:
            self.comparisons += unit["comparisons"]
            self.search_steps += unit["search_steps"]
            self.expired_rows += unit["expired_rows"]
            self.state_bytes += unit["stored_bytes"]
            self.segments += unit["segments"]
            self.flow_rows += unit.get("flow_rows", 0)
            self.open_rows += unit["open_rows"]
            self.unmatched_rows += unit["unmatched_rows"]
            self.late_after_final += unit["late_after_final"]
            waiting += unit["waiting_results"]
            for stream in range(self.streams):
                self.late[stream] += unit["late"][stream]
                stored[stream] += unit["stored_rows"][stream]
            add_counts(self.received, unit["received"])
            add_counts(self.received_bytes, unit["received_bytes"])
            for name in _COUNTED:
                add_counts(getattr(self, name), unit.get(name, {}))
            if joined := counted(unit):
                add_counts(self.reading, joined)
                self.readers.add(unit["unit"])
            self._add_queries(unit["queries"])
        self._add_units(report.units)
        self._add_imbalances(report.units)
        self.adapting.add(report.batch, report.units)
        add_counts(self.traffic, report.traffic)
        self.stored_rows = tuple(stored)
        self.state_bytes_max = max(self.state_bytes_max, self.state_bytes)
        self.stored_rows_max = max(self.stored_rows_max, sum(stored) + self.flow_rows)
        self.waiting_results_max = max(self.waiting_results_max, waiting)
        tuples = sum(counts.get("rows", 0) for counts in report.intake.values())
        self.times.append(BatchTimes(report.results, tuples, report.seconds))

    def rename(self, before: Sequence[str], after: Sequence[str]) -> None:
        """There are other queries from now on; whoever stays keeps its counts."""
        known = dict(zip(before, self.queries, strict=True)) if self.queries else {}
        self.queries = [known.get(name, asdict(QueryCounts())) for name in after]

    def _add_imbalances(self, units: Sequence[Mapping[str, Any]]) -> None:
        for stream, now in enumerate(imbalances(units, self.streams)):
            total, most, _ = self.imbalances[stream]
            self.imbalances[stream] = (total + now, max(most, now), now)

    def _add_queries(self, queries: Sequence[Mapping[str, int]]) -> None:
        self.queries = self.queries or [{} for _ in queries]
        for known, counts in zip(self.queries, queries, strict=True):
            add_counts(known, counts)

    def _add_units(self, units: Sequence[dict[str, Any]]) -> None:
        for known in self.units.values():  # those that are no more store nothing
            known |= dict.fromkeys(("stored_rows", "stored_bytes", "segments"), 0)
        for unit in units:
            self._add_unit(unit)

    def _add_unit(self, unit: dict[str, Any]) -> None:
        known = self.units.setdefault(
            (unit.get("stage", 0), unit["label"]),
            {"unit": unit["unit"], "label": unit["label"], "comparisons": 0, "search_steps": 0,
             "results": 0, "received": 0, "received_bytes": 0, "stored_bytes_max": 0,
             "seconds": {"probe": 0.0, "store": 0.0, "expire": 0.0}},
        )  # fmt: skip
        known["unit"] = unit["unit"]
        known["comparisons"] += unit["comparisons"]
        known["search_steps"] += unit["search_steps"]
        known["results"] += unit["results"]
        known["received"] += sum(unit["received"].values())
        known["received_bytes"] += sum(unit["received_bytes"].values())
        known["stored_rows"] = sum(unit["stored_rows"]) + unit.get("flow_rows", 0)
        known["stored_bytes"] = unit["stored_bytes"]
        known["stored_bytes_max"] = max(known["stored_bytes_max"], unit["stored_bytes"])
        known["segments"] = unit["segments"]
        for name, seconds in unit["seconds"].items():
            known["seconds"][name] += seconds
