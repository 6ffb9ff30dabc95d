"""What a driver tells of its batches: one document a second at most, and how several become one.

A report tells of a span, which ends with its last batch. Counts are of the span alone, and add up; what is so at its
end, such as live tuples or marks, is the last one's. Time without any batch before the span is told apart: a rate is of
the time in which tuples came, and not of the pause before.
"""

from __future__ import annotations

import logging
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy.exc import SQLAlchemyError

from backend.catalog.database import Catalog
from backend.catalog.ids import now_us
from backend.catalog.models import Report
from streamjoin.counts import added
from streamjoin.operators.reading import counted, measured
from worker import adapting, forwarding

EVERY_S: Final = 1.0
COUNTS: Final = ("batches", "results", "comparisons", "expired_rows", "dropped_reports")
"""Whole numbers that add up."""
DECIDED: Final = ("unmatched_rows", "late_after_final")
"""Likewise, of rows that a join decides on. Reports of older versions have none."""
SEARCH_STEPS: Final = "search_steps"
"""Likewise, of places of an index that were looked at; older reports have none."""
RECONNECTS: Final = "reconnects"  # after a Python worker did not connect in time; older reports have none either
COUNTS_BY_NAME: Final = (
    "tuples", "late", "null_keys", "dropped_by_selection", "dead_letters", "shed", "received", "received_bytes",
)  # fmt: skip
"""Mappings of whole numbers that add up: by stream, and the last two by role."""
TRAFFIC: Final = "state_traffic"
"""What went to the store of the job's state and came from it; absent where that is in a folder."""
OPEN: Final = "open_rows"
"""Rows that wait, at the end of the span, until it is known whether they are matched."""
REFRESHES: Final = ("version", "reading_rows", "refreshes", "refresh_failures", "problem")
"""What a report tells of a relation: its newest version, how many rows were read of the next one, if it is being read,
and how often it was read anew or could not be."""
UNIT_COUNTS: Final = ("comparisons", "results", "received", "received_bytes", "late", "expired_rows")
HELD: Final = (OPEN, "stored_rows", "stored_bytes", "segments")
"""Of a unit, at the end of the span."""
_log = logging.getLogger("streamjoin.driver")


def of_batch(batch: Any, names: Sequence[str], wall_us: int) -> dict[str, Any]:
    """What one batch adds to a report.

    Args:
        batch: a `streamjoin.spark.batchreport.BatchReport`.
        names: the streams, by side.
        wall_us: the time at which it was committed.
    """
    # As slots told of them; people look for a stage.
    units = sorted(map(_unit, batch.units), key=lambda unit: (unit["stage"], unit["unit"]))

    def intake(what: str) -> dict[str, int]:
        return {name: batch.intake.get(side, {}).get(what, 0) for side, name in enumerate(names)}

    def by_side(field: str) -> dict[str, int]:
        return {name: sum(unit[field][side] for unit in batch.units) for side, name in enumerate(names)}

    by_stream = [[unit["marks_us"][side] for unit in batch.units] for side in range(len(names))]
    marks = [next((mark for mark in found if mark is not None), None) for found in by_stream]
    return {
        "batch": batch.batch,
        "batches": 1,
        "tuples": intake("rows"),
        "late": by_side("late"),
        "null_keys": intake("null_keys"),
        "dropped_by_selection": intake("dropped_by_selection"),
        "dead_letters": intake("dead_letters"),
        "shed": intake("shed"),
        "results": batch.results,
        "comparisons": sum(unit["comparisons"] for unit in units),
        SEARCH_STEPS: sum(unit[SEARCH_STEPS] for unit in units),
        "expired_rows": sum(unit["expired_rows"] for unit in units),
        **{name: sum(unit[name] for unit in units) for name in (OPEN, *DECIDED)},
        "received": added([unit["received"] for unit in batch.units]),
        "received_bytes": added([unit["received_bytes"] for unit in batch.units]),
        "dropped_reports": 0,
        "live_tuples": by_side("stored_rows"),
        "state_bytes": sum(unit["stored_bytes"] for unit in units),
        "segments": sum(unit["segments"] for unit in units),
        "lag_ms": {
            name: (wall_us - batch.latest_us[side]) / 1e3 for side, name in enumerate(names) if side in batch.latest_us
        },
        "marks_us": dict(zip(names, marks, strict=True)),
        "stages": _found(units),
        "units": units,
        **adapting.told_now(batch.units),
        **forwarding.told_now(batch.units, names),
        **_reading(batch.units),
        **({TRAFFIC: dict(batch.traffic)} if batch.traffic else {}),
    }


def _reading(units: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What units that join relations counted, how many they are, and what they hold now."""
    told = [(counts, unit.get("holding", {})) for unit in units if (counts := counted(unit))]
    if not told:
        return {}
    return {
        "reading": {
            "counts": added([counts for counts, _ in told]), "holding": added([holding for _, holding in told]),
            "units": len(told),
        }
    }  # fmt: skip


def _found(units: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What the units of each stage found: rows that go on to the next stage, or are results."""
    found: dict[int, dict[str, int]] = {}
    for unit in units:
        known = found.setdefault(unit["stage"], dict.fromkeys(("results", OPEN, *DECIDED), 0))
        for name in known:
            known[name] += unit[name]
    return [{"stage": stage, **found[stage]} for stage in sorted(found)]


def _unit(unit: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "unit": unit["unit"],
        "label": unit["label"],
        "stage": unit.get("stage", 0) + 1,
        "comparisons": unit["comparisons"],
        SEARCH_STEPS: unit[SEARCH_STEPS],
        "results": unit["results"],
        "received": sum(unit["received"].values()),
        "received_bytes": sum(unit["received_bytes"].values()),
        "late": sum(unit["late"]),
        "expired_rows": unit["expired_rows"],
        **{name: unit[name] for name in (OPEN, *DECIDED)},
        "stored_rows": sum(unit["stored_rows"]) + unit.get("flow_rows", 0),
        "stored_bytes": unit["stored_bytes"],
        "segments": unit["segments"],
        "seconds": dict(unit["seconds"]),
    }


def merged(bodies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Several reports, oldest first, as one over all their spans.

    The quantiles of batches are those of the parts, weighted by their batches: near to the true ones, and no more.
    """
    last = bodies[-1]
    if len(bodies) == 1:
        return dict(last)
    out: dict[str, Any] = {
        **last,
        **{name: sum(body[name] for body in bodies) for name in COUNTS},
        **{name: sum(body.get(name, 0) for body in bodies) for name in (*DECIDED, SEARCH_STEPS, RECONNECTS)},
        **{name: added([body[name] for body in bodies]) for name in COUNTS_BY_NAME},
        "lag_ms": {name: lag for body in bodies for name, lag in body["lag_ms"].items()},
        "stages": _merged_stages(bodies),
        "units": _merged_units(bodies),
        **adapting.merged(bodies),
        **forwarding.merged(bodies),
        **_merged_reading(bodies),
        **({TRAFFIC: added(told)} if (told := [body[TRAFFIC] for body in bodies if TRAFFIC in body]) else {}),
    }
    if "seconds" in last:
        out["batch_ms"] = _merged_quantiles(bodies)
        # Between the first and the last of them, time without a batch is part of the span.
        quiet = [body.get("quiet_seconds", 0.0) for body in bodies]
        seconds = sum(body["seconds"] for body in bodies) + sum(quiet[1:])
        return {**out, **rates(out, seconds), "quiet_seconds": quiet[0]}
    return out


def rates(body: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """What follows from counts and the length of their span. `rho` is results by what was looked at, if anything."""
    looked_at = body["comparisons"] + body.get(SEARCH_STEPS, 0)
    return {
        "seconds": round(seconds, 3),
        "tuples_per_second": round(sum(body["tuples"].values()) / seconds, 1) if seconds else 0.0,
        "results_per_second": round(body["results"] / seconds, 1) if seconds else 0.0,
        "rho": body["results"] / looked_at if looked_at else None,
    }


def quantiles(values: Sequence[float]) -> dict[str, float | None]:
    """p50, p95 and the largest of some milliseconds."""
    if not values:
        return {"p50": None, "p95": None, "max": None}
    cuts = statistics.quantiles(values, n=20, method="inclusive") if len(values) > 1 else [values[0]] * 19
    return {"p50": round(cuts[9], 1), "p95": round(cuts[18], 1), "max": round(max(values), 1)}


def _merged_units(bodies: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What units counted, those too that are no more, which hold nothing in the end.

    Where a stage gets more or fewer of them, those of later stages have other numbers from then on.
    """
    units: dict[tuple[int, str], dict[str, Any]] = {}
    for body in bodies:
        there = {_place(unit) for unit in body["units"]}
        for place in units.keys() - there:
            units[place] |= dict.fromkeys(HELD, 0)
        for unit in body["units"]:
            known = units.get(_place(unit))
            units[_place(unit)] = {
                **unit,
                **{name: unit[name] + (known[name] if known else 0) for name in UNIT_COUNTS},
                **{name: unit.get(name, 0) + (known[name] if known else 0) for name in (*DECIDED, SEARCH_STEPS)},
                "seconds": {name: s + (known["seconds"][name] if known else 0) for name, s in unit["seconds"].items()},
            }
    return sorted(units.values(), key=lambda unit: (unit.get("stage", 1), unit["unit"]))


def _place(unit: Mapping[str, Any]) -> tuple[int, str]:
    """The stage, of which reports of older versions do not tell, and what the unit is called there."""
    return unit.get("stage", 1), unit["label"]


def _merged_stages(bodies: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What stages are in the last report, with all that they found. Reports of older versions tell of none."""
    found: dict[int, dict[str, int]] = {}
    for stage in (stage for body in bodies for stage in body.get("stages", ())):
        known = found.setdefault(stage["stage"], dict.fromkeys(("results", *DECIDED), 0))
        for name in known:
            known[name] += stage.get(name, 0)
    return [{**stage, **found[stage["stage"]]} for stage in bodies[-1].get("stages", ())]


def _merged_reading(bodies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All that was counted, and what units hold in the last report."""
    told = [body["reading"] for body in bodies if "reading" in body]
    if not told:
        return {}
    return {"reading": with_figures({**told[-1], "counts": added([one["counts"] for one in told])})}


def with_figures(reading: Mapping[str, Any]) -> dict[str, Any]:
    """The same with what follows from its counts, if it is known how many units work at a time."""
    at_once = reading.get("at_once")
    return {**reading, **(measured(reading["counts"], at_once) if at_once else {})}


def _merged_quantiles(bodies: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    known = [(body["batch_ms"], body["batches"]) for body in bodies if body["batch_ms"]["max"] is not None]
    weight = sum(batches for _, batches in known)
    if not weight:
        return quantiles([])
    mean = {name: sum(ms[name] * batches for ms, batches in known) / weight for name in ("p50", "p95")}
    return {name: round(value, 1) for name, value in mean.items()} | {"max": max(ms["max"] for ms, _ in known)}


class Reporter:
    """Collects what batches did, and writes it down once a second, from a thread of its own.

    A report that cannot be written is dropped and counted in the next one: a job does not wait for its reports.

    Args:
        names: the streams, by side.
        bounded: those of them to which nothing can be added: once they are read, input is over.
        stages: of the plan, by number from 1, what each reads, streams by name and stages by number, and its kind.
    """

    def __init__(
        self,
        catalog: Catalog,
        job_id: str,
        generation: int,
        names: Sequence[str],
        every_s: float = EVERY_S,
        steady_s: Callable[[], float] = time.monotonic,
        bounded: Sequence[str] = (),
        stages: Mapping[int, Mapping[str, Any]] | None = None,
    ) -> None:
        self.catalog = catalog
        self.job_id = job_id
        self.generation = generation
        self.names = tuple(names)
        self.bounded = tuple(bounded)
        self.stages = dict(stages or {})
        self.every_s = every_s
        self.dropped = 0
        self.order: dict[str, Any] | None = None
        """What rates mean for the order that `auto` chose; see `streamjoin.explain.drift`."""
        self.late_files: dict[str, str] = {}
        """Of streams with late rows, that their files were read in another order than that of their numbers."""
        self.predicted: dict[str, Any] | None = None
        """What was predicted of the join with a relation; see `streamjoin.explain.reading`."""
        self.slots = 1
        """How many units work at a time."""
        self.relations: Mapping[str, Mapping[str, Any]] = {}
        """What is known of each relation, by name; others keep it up to date."""
        self._steady_s = steady_s
        self._ended_s = self._first_s = self._last_s = steady_s()
        self._lock = threading.Lock()
        self._parts: list[dict[str, Any]] = []
        self._batch_ms: list[float] = []
        self._totals = dict.fromkeys(("batches", "tuples", "results", "comparisons", SEARCH_STEPS, RECONNECTS), 0)
        self._traffic: dict[str, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reporter", daemon=True)

    def __enter__(self) -> Reporter:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()
        self.write()

    def begin(self) -> None:
        """Batches can come from now on: the first span begins. Who tells so may be later than the first batch."""
        with self._lock:
            if not self._parts:
                self._ended_s = self._steady_s()

    def add(self, batch: Any, reconnects: int = 0) -> None:
        """Count a batch: a `streamjoin.spark.batchreport.BatchReport`; `reconnects` are those of the run so far."""
        part = of_batch(batch, self.names, now_us())
        with self._lock:
            self._last_s = self._steady_s()
            if not self._parts:
                self._first_s = self._last_s - batch.seconds.get("committed", 0.0)
            self._parts.append(part | {RECONNECTS: reconnects - self._totals[RECONNECTS]})
            for name in ("batches", "results", "comparisons", SEARCH_STEPS):
                self._totals[name] += part[name]
            self._totals["tuples"] += sum(part["tuples"].values())
            self._totals[RECONNECTS] = reconnects
            self._traffic = added([self._traffic, part.get(TRAFFIC, {})])

    def took(self, batch_ms: float) -> None:
        """Note how long a batch took, from its planning to its commit."""
        with self._lock:
            self._batch_ms.append(batch_ms)

    def take(self) -> dict[str, Any] | None:
        """The report of the batches since the last one; None if none was committed.

        Its span is a second at least, or goes back to the report before.
        """
        with self._lock:
            if not self._parts:
                return None
            parts, self._parts = self._parts, []
            batch_ms, self._batch_ms = self._batch_ms, []
            begun_s = max(self._ended_s, min(self._first_s, self._last_s - self.every_s))
            seconds, quiet_s = self._last_s - begun_s, begun_s - self._ended_s
            self._ended_s = self._last_s
            totals = {**self._totals, **({TRAFFIC: self._traffic} if self._traffic else {})}
        body = merged(parts)
        return {
            **body, **rates(body, seconds), "quiet_seconds": round(quiet_s, 3), "batch_ms": quantiles(batch_ms),
            "totals": totals, "dropped_reports": self.dropped, "bounded": list(self.bounded), "order": self.order,
            "late_files": self.late_files,
            "stages": [{**stage, **self.stages.get(stage["stage"], {})} for stage in body["stages"]],
            **self._of_relations(body),
        }  # fmt: skip

    def _of_relations(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """How relations were joined, beside what was predicted, and how often they were read anew."""
        told: dict[str, Any] = {}
        if (reading := body.get("reading")) is not None:
            at_once = min(reading["units"], self.slots)
            told["reading"] = with_figures({**reading, "at_once": at_once, "predicted": self.predicted})
        if self.relations:
            told["relations"] = {
                name: {what: known.get(what) for what in REFRESHES} for name, known in dict(self.relations).items()
            }
        return told

    def write(self) -> None:
        """Write the report of the batches since the last one, if there is anything to tell."""
        body = self.take()
        if body is None:
            return
        try:
            with self.catalog.begin() as session:
                session.add(Report(job_id=self.job_id, at_us=now_us(), span_s=1, generation=self.generation, body=body))
            self.dropped = 0
        except SQLAlchemyError as failure:
            self.dropped += 1
            _log.warning("a report was dropped: %s", failure)

    def _run(self) -> None:
        while not self._stop.wait(self.every_s):
            self.write()
