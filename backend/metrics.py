"""What Prometheus scrapes: the newest report of every job, from the catalog; the same from every API process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from sqlalchemy import and_, func, select

from backend.catalog import lifecycle
from backend.catalog.database import Catalog
from backend.catalog.ids import now_us
from backend.catalog.models import Job, Report

FRESH_US: Final = 60 * 1_000_000
"""Gauges of a job that has not reported for so long are left out: they are no longer so."""

Value = Callable[[dict[str, Any]], Any]

COUNTERS: Final[tuple[tuple[str, str, Value], ...]] = (
    ("streamjoin_batches", "Batches committed by the running generation.", lambda body: body["totals"]["batches"]),
    ("streamjoin_tuples", "Tuples joined by the running generation.", lambda body: body["totals"]["tuples"]),
    ("streamjoin_join_results", "Results of the running generation.", lambda body: body["totals"]["results"]),
    (
        "streamjoin_join_comparisons",
        "Comparisons of the running generation; results by comparisons are rho.",
        lambda body: body["totals"]["comparisons"],
    ),
)
"""Name, help, and where it is in a report."""

GAUGES: Final[tuple[tuple[str, str, Value], ...]] = (
    ("streamjoin_tuples_per_second", "Tuples a second, over the last report.", lambda body: body["tuples_per_second"]),
    ("streamjoin_state_bytes", "Bytes of live state.", lambda body: body["state_bytes"]),
    ("streamjoin_state_tuples", "Live tuples of all streams.", lambda body: sum(body["live_tuples"].values())),
    ("streamjoin_state_segments", "Segments that hold them.", lambda body: body["segments"]),
    ("streamjoin_batch_duration_seconds_p95", "A batch, 95th percentile.",
     lambda body: body["batch_ms"]["p95"] and body["batch_ms"]["p95"] / 1e3),
    ("streamjoin_late_tuples", "Tuples that came too late, in the last report.",
     lambda body: sum(body["late"].values())),
    ("streamjoin_open_rows", "Rows that wait until it is known whether they are matched.",
     lambda body: body.get("open_rows")),
    ("streamjoin_unmatched_rows", "Rows that left as unmatched, in the last report.",
     lambda body: body.get("unmatched_rows")),
    ("streamjoin_late_after_final", "Pairs that were none, as a row had left as unmatched, in the last report.",
     lambda body: body.get("late_after_final")),
    ("streamjoin_dead_letters", "Records that could not be joined, in the last report.",
     lambda body: sum(body["dead_letters"].values())),
    ("streamjoin_dropped_reports", "Reports that could not be written before the last one.",
     lambda body: body["dropped_reports"]),
    ("streamjoin_lag_seconds", "From the newest event time to its commit; the largest of all streams.",
     lambda body: max(body["lag_ms"].values(), default=None) and max(body["lag_ms"].values()) / 1e3),
)  # fmt: skip


FOLLOWED: Final = (
    (GaugeMetricFamily, "streamjoin_subscribers", "Clients of this API process that follow the job.", "followers"),
    (CounterMetricFamily, "streamjoin_subscriber_dropped_snapshots", "Snapshots dropped for slow clients.",
     "dropped_snapshots"),
    (CounterMetricFamily, "streamjoin_subscriber_dropped_rows", "Rows of them.", "dropped_rows"),
)  # fmt: skip
"""Kind, name and help of what the hub counts, and what it calls it."""


class _Jobs:
    """A collector of prometheus-client.

    Args:
        hub: `Hub.figures` of this process.
    """

    def __init__(self, catalog: Catalog, version: str, hub: Mapping[str, Any]) -> None:
        self.catalog = catalog
        self.version = version
        self.hub = hub

    def collect(self) -> Iterable[Metric]:
        """All metrics, as of now."""
        with self.catalog.read() as session:
            jobs = {job.id: job for job in session.scalars(select(Job))}
            newest = select(Report.job_id, func.max(Report.at_us).label("at_us")).group_by(Report.job_id).subquery()
            reports = session.scalars(
                select(Report).join(newest, and_(Report.job_id == newest.c.job_id, Report.at_us == newest.c.at_us))
            ).all()
        yield InfoMetricFamily("streamjoin_build", "The version that runs.", {"version": self.version})
        phases = dict.fromkeys(("running", "starting", "stopping", "stopped", "failed", "recovering", "unknown"), 0)
        for job in jobs.values():
            phase = lifecycle.phase(job.wanted, job.observed)
            phases[phase] = phases.get(phase, 0) + 1
        family: Any = GaugeMetricFamily("streamjoin_jobs", "Jobs in each phase.", labels=["phase"])
        for phase, count in phases.items():
            family.add_metric([phase], count)
        yield family
        fresh = [report for report in reports if report.at_us >= now_us() - FRESH_US]
        kinds: tuple[tuple[Any, Any], ...] = ((CounterMetricFamily, COUNTERS), (GaugeMetricFamily, GAUGES))
        for kind, metrics in kinds:
            for name, text, value_of in metrics:
                family = kind(name, text, labels=["job"])
                for report in fresh:
                    if (value := value_of(report.body)) is not None:
                        family.add_metric([jobs[report.job_id].name], float(value))
                yield family
        for kind, name, text, what in FOLLOWED:
            family = kind(name, text, labels=["job"])
            for feed in self.hub["jobs"]:
                if feed["job"] in jobs:
                    family.add_metric([jobs[feed["job"]].name], feed[what])
            yield family
        yield GaugeMetricFamily("streamjoin_subscriber_sockets", "Open websockets and event streams.",
                                self.hub["sockets"])  # fmt: skip
        yield GaugeMetricFamily("streamjoin_subscriber_held_bytes", "Bytes of encoded snapshots that clients wait for.",
                                self.hub["held_bytes"])  # fmt: skip


def exposition(catalog: Catalog, version: str, hub: Mapping[str, Any]) -> bytes:
    """The text that Prometheus reads. Cost: two queries, and one row a job.

    Args:
        hub: `Hub.figures` of this process.
    """
    registry = CollectorRegistry()
    registry.register(_Jobs(catalog, version, hub))
    return generate_latest(registry)
