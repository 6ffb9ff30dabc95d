"""What Prometheus scrapes: the newest report of every job, from the catalog; the same from every API process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from sqlalchemy import and_, func, select

from backend.catalog.database import Catalog
from backend.catalog.entries import WITHOUT_ENTRIES
from backend.catalog.ids import now_us
from backend.catalog.models import Job, Report

FRESH_US: Final = 60 * 1_000_000
"""Gauges of a job that has not reported for so long are left out: they are no longer so."""

Value = Callable[[dict[str, Any]], Any]


def _traffic(what: str) -> Value:
    """A count of a state that is in a store; other jobs have none."""
    return lambda body: body["totals"].get("state_traffic", {}).get(what)


COUNTERS: Final[tuple[tuple[str, str, Value], ...]] = (
    ("streamjoin_batches", "Batches committed by the running generation.", lambda body: body["totals"]["batches"]),
    ("streamjoin_tuples", "Tuples joined by the running generation.", lambda body: body["totals"]["tuples"]),
    ("streamjoin_join_results", "Results of the running generation.", lambda body: body["totals"]["results"]),
    (
        "streamjoin_join_comparisons",
        "Comparisons of the running generation; results by these and search steps are rho.",
        lambda body: body["totals"]["comparisons"],
    ),
    ("streamjoin_join_search_steps", "Places of indexes that it looked at to find what it compared.",
     lambda body: body["totals"].get("search_steps")),
    ("streamjoin_reconnects", "How often it started its query again: a Python worker did not connect to Spark in time.",
     lambda body: body["totals"].get("reconnects")),
    ("streamjoin_state_put_bytes", "Bytes of state that the running generation wrote to its store.",
     _traffic("put_bytes")),
    ("streamjoin_state_fetched_bytes", "Bytes of state that it fetched from there.", _traffic("fetched_bytes")),
    ("streamjoin_state_cache_served", "Openings of segments that caches of machines had.", _traffic("served")),
    ("streamjoin_state_cache_missed", "Openings of segments that had to be fetched.", _traffic("fetched")),
    ("streamjoin_state_retries", "How often the store was asked again: it failed, or gave something damaged.",
     _traffic("retries")),
)  # fmt: skip
"""Name, help, and where it is in a report."""


def _units(body: dict[str, Any], which: str) -> int | None:
    stages = body.get("adaptive")
    return sum(sum(stage[which].values()) for stage in stages) if stages else None


def _reading(what: str, where: str = "") -> Value:
    """A figure of joins with relations, which other jobs have not."""

    def value(body: dict[str, Any]) -> float | None:
        found = body.get("reading") or {}
        return ((found.get(where) or {}) if where else found).get(what)

    return value


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
    ("streamjoin_units", "Units that store, of joins whose units come and go.",
     lambda body: _units(body, "units")),
    ("streamjoin_units_draining", "Units of them that store nothing new and leave once they are empty.",
     lambda body: _units(body, "draining")),
    ("streamjoin_units_load", "Of these joins, the largest load when asked: of its capacity, or the time of nodes.",
     lambda body: max((load for stage in body.get("adaptive", ()) for load in stage["loads"].values()), default=None)),
    ("streamjoin_ring_best_nodes", "N* of a ring whose nodes come and go, when it was last looked at.",
     lambda body: next((stage["best"] for stage in body.get("adaptive", ()) if stage.get("best") is not None), None)),
    ("streamjoin_dead_letters", "Records that could not be joined, in the last report.",
     lambda body: sum(body["dead_letters"].values())),
    ("streamjoin_reading_tuples_per_second", "Tuples that units of a join with a relation joined in a second of work.",
     _reading("rate_per_s")),
    ("streamjoin_reading_predicted_tuples_per_second", "The same as predicted before the start, with a full memory.",
     _reading("rate_per_s", "predicted")),
    ("streamjoin_reading_rows_per_tuple", "Rows of a relation read for each tuple, where it is read part by part.",
     _reading("rows_read_per_tuple")),
    ("streamjoin_reading_cached_share", "The share of tuples that were joined from the cache.",
     _reading("cached_share")),
    ("streamjoin_reading_memory_bytes", "What units have in memory of a relation and of tuples that wait.",
     _reading("memory_bytes", "holding")),
    ("streamjoin_reading_memory_allowed_bytes", "What operator.memory lets them have.",
     _reading("memory_bytes_allowed", "holding")),
    ("streamjoin_dropped_reports", "Reports that could not be written before the last one.",
     lambda body: body["dropped_reports"]),
    ("streamjoin_lag_seconds", "From the newest event time to its commit; the largest of all streams.",
     lambda body: max(body["lag_ms"].values(), default=None) and max(body["lag_ms"].values()) / 1e3),
)  # fmt: skip


REFRESHED: Final = (
    ("streamjoin_relation_refreshes", "New versions of a relation since its job's checkpoint began.", "refreshes"),
    ("streamjoin_relation_refresh_failures", "Looks at a relation that failed; the job keeps the version it has.",
     "refresh_failures"),
)  # fmt: skip
"""Name, help, and where it is in what a report tells of a relation."""
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
            jobs = {job.id: job for job in session.scalars(select(Job).options(*WITHOUT_ENTRIES))}
            newest = select(Report.job_id, func.max(Report.at_us).label("at_us")).group_by(Report.job_id).subquery()
            reports = session.scalars(
                select(Report).join(newest, and_(Report.job_id == newest.c.job_id, Report.at_us == newest.c.at_us))
            ).all()
        yield InfoMetricFamily("streamjoin_build", "The version that runs.", {"version": self.version})
        phases = dict.fromkeys(("running", "starting", "stopping", "stopped", "failed", "recovering", "unknown"), 0)
        for job in jobs.values():
            phases[job.phase] = phases.get(job.phase, 0) + 1
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
        yield from _refreshes(jobs, fresh)
        yield _step_times(jobs, fresh)
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


def _refreshes(jobs: Mapping[str, Job], fresh: Iterable[Report]) -> Iterable[Metric]:
    """How often each relation of a job was read anew, or could not be."""
    reports = list(fresh)
    for name, text, what in REFRESHED:
        family: Any = CounterMetricFamily(name, text, labels=["job", "relation"])
        for report in reports:
            for relation, known in (report.body.get("relations") or {}).items():
                if known.get(what) is not None:
                    family.add_metric([jobs[report.job_id].name, relation], known[what])
        yield family


def _step_times(jobs: Mapping[str, Job], reports: Iterable[Report]) -> Metric:
    """What single steps of rings take, and whether that is set, measured or assumed."""
    text = "What a single step of a ring's nodes takes: join, send, hop, insert, purge."
    family = GaugeMetricFamily("streamjoin_ring_step_seconds", text, labels=["job", "step", "origin"])
    for report in reports:
        for stage in report.body.get("adaptive", ()):
            for one in (stage.get("model") or {}).get("times", ()):
                family.add_metric([jobs[report.job_id].name, one["name"], one["origin"]], one["us"] / 1e6)
    return family


def exposition(catalog: Catalog, version: str, hub: Mapping[str, Any]) -> bytes:
    """The text that Prometheus reads. Cost: two queries, and one row a job.

    Args:
        hub: `Hub.figures` of this process.
    """
    registry = CollectorRegistry()
    registry.register(_Jobs(catalog, version, hub))
    return generate_latest(registry)
