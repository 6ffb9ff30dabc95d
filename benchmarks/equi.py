"""The equi join with an interval, by every system, over the same files, one after the other.

    r.key = s.key and r.ts within W of s.ts; keys uniform; typed Parquet; about as many live tuples a side as keys

`equi_large` and `equi_small` are this with large and with small batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import systems
from benchmarks.baselines.duckdb_join import count_and_hash
from benchmarks.data import make_equi
from benchmarks.rates import median_ms_after, rate_after, ratio
from benchmarks.scale import OutOfTimeError, Scale
from benchmarks.systems import SESSION_SETTINGS, Rates, Report

QUERY = (
    "SELECT ONLINE r.ts AS r_ts, r.key AS r_key, r.val AS r_val, s.ts AS s_ts, s.key AS s_key, s.val AS s_val "
    "FROM r, s WHERE r.key = s.key WITHIN {window_s} SECONDS"
)
OPERATOR = {"name": "biclique", "routing": "hash"}
OURS = {"streamjoin-driver": "driver", "streamjoin-dataframe": "dataframe"}
"""Row -> see `own_join`."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One size of the benchmark.

    Args:
        first_file: see `make_equi`.
        warmup_rows: rows of both streams that every system reads before its rate is taken.
        full_rows: rows of both streams after which the window holds as much as it ever will.
        memory_mb: heap for the peers, in MiB. StreamJoin's state is not on the heap; it gets its default.
        limit_s: for the timed part of each run.
        slow_ones: also the peers that are slower than another of the same kind, such as Spark with RocksDB.
    """

    files: int
    rows_per_file: int
    keys: int
    span_ms_per_file: int
    window_s: int
    first_file: int
    warmup_rows: int
    full_rows: int
    memory_mb: int
    limit_s: float
    slow_ones: bool = True
    seed: int = 1

    @property
    def rows_in(self) -> int:
        """Of both streams."""
        return 2 * self.rows_per_file * (self.files - 1 + self.first_file)

    def make(self, data: Path) -> Path:
        """Write the files, unless they are there."""
        folder = data / f"equi-{self.rows_per_file}x{self.files}-first{self.first_file}"
        make_equi(
            folder, files=self.files, rows_per_file=self.rows_per_file, keys=self.keys,
            span_ms_per_file=self.span_ms_per_file, seed=self.seed, first_file=self.first_file,
        )  # fmt: skip
        return folder


def run_workload(scale: Scale, part: str, workload: Workload) -> dict[str, Any]:
    """All systems on `workload`.

    Returns:
        `runs` by system, each with `rate_measured` (after the warm-up), `rate_full_window` and `rate_all` in tuples of
        both streams a second, and `right`: whether the count is DuckDB's, None for a run that was cut off or counts
        nothing. `ratios`: ours / theirs of `rate_measured` and of `rate_all`.
    """
    work = systems.folder(scale, part)
    scale.show("  making the files")
    data = workload.make(scale.data)
    runs: dict[str, Report] = {}
    skipped = []
    for name, call in _systems(scale, work, data, workload).items():
        try:
            runs[name] = call()
        except OutOfTimeError as spent:
            skipped.append(f"{name}: {spent}")
    scale.show("  counting by DuckDB")
    count, _ = count_and_hash(data, workload.window_s * 1_000_000)
    rows_in = workload.rows_in
    for report in runs.values():
        _rate(report, workload)
        whole = report["rows_in"] == rows_in and report.get("results") is not None
        report["right"] = report["results"] == count if whole else None
    answer: dict[str, Any] = {
        "workload": asdict(workload), "results": count, "rows_in": rows_in, "runs": runs, "skipped": skipped,
        "ratios": _ratios(runs),
    }  # fmt: skip
    if skipped or any(report.get("error") for report in runs.values()):
        answer["error"] = "; ".join([*skipped, *(f"{name} failed" for name in runs if runs[name].get("error"))])
    if wrong := [name for name, report in runs.items() if report["right"] is False]:
        answer["error"] = f"wrong counts: {', '.join(wrong)}"
    return answer


@contextmanager
def own_rows(scale: Scale, part: str, workload: Workload) -> Iterator[Callable[[Scale], Rates]]:
    """StreamJoin alone, as often as wanted: tuples of both streams a second after the warm-up; counts are checked."""
    data = workload.make(scale.data)
    count, _ = count_and_hash(data, workload.window_s * 1_000_000)

    def turn(scale: Scale) -> Rates:
        work = systems.folder(scale, part)
        reports = {name: _own(scale, work, data, workload, name) for name in OURS}
        for report in reports.values():
            _rate(report, workload)
        systems.check_results(reports, workload.rows_in, count)
        return systems.rates(reports, "rate_measured")

    yield turn


def _own(scale: Scale, work: Path, data: Path, workload: Workload, name: str) -> Report:
    query = QUERY.format(window_s=workload.window_s)
    join = systems.join_file(work, name, systems.parquet_streams(data), query, OPERATOR)
    return systems.own(scale, work, name, [join], limit_s=workload.limit_s, via=OURS[name])[0]


def _systems(scale: Scale, work: Path, data: Path, workload: Workload) -> dict[str, Callable[[], Report]]:
    """Every system, as a call that runs it."""
    limit_s, window_s, memory_mb = workload.limit_s, workload.window_s, workload.memory_mb

    def own(name: str) -> Callable[[], Report]:
        return lambda: _own(scale, work, data, workload, name)

    def spark(state: str, settings: dict[str, str] | None = None) -> Callable[[], Report]:
        name = f"spark-{state}" + ("-same-settings" if settings else "")
        return lambda: systems.spark(
            scale, work, name, data, state=state, window_s=window_s, limit_s=limit_s, memory_mb=memory_mb,
            settings=settings,
        )  # fmt: skip

    def flink(checkpoint_s: int) -> Callable[[], Report]:
        return lambda: systems.flink(
            scale, work, f"flink-heap-{checkpoint_s}s", data, checkpoint_s=checkpoint_s, window_s=window_s,
            limit_s=limit_s, memory_mb=memory_mb,
        )  # fmt: skip

    calls = {
        "streamjoin-driver": own("streamjoin-driver"),
        "streamjoin-dataframe": own("streamjoin-dataframe"),
        "spark-default": spark("default"),
        "spark-default-same-settings": spark("default", SESSION_SETTINGS),
        "flink-heap-1s": flink(1),
        "spark-rocksdb": spark("rocksdb"),
        "spark-rocksdb-v4": spark("rocksdb-v4"),
        "flink-heap-60s": flink(60),
    }
    if not workload.slow_ones:
        calls = {name: call for name, call in calls.items() if "rocksdb" not in name and name != "flink-heap-60s"}
    if scale.quick:  # One of each kind.
        calls = {name: calls[name] for name in ("streamjoin-driver", "streamjoin-dataframe", "spark-default")}
    return calls


def _rate(report: Report, workload: Workload) -> None:
    report["rate_all"] = report.get("rows_per_second")
    report["rate_measured"] = rate_after(report, workload.warmup_rows)
    report["rate_full_window"] = rate_after(report, workload.full_rows)
    report["batch_ms_median"] = median_ms_after(report, workload.warmup_rows)
    # Flink's are polls, twice a second: they would fill pages and say nothing more.
    if len(report["batch_rows"]) > 200:
        report["batch_rows"] = report["batch_ms"] = []


def _ratios(runs: dict[str, Report]) -> dict[str, dict[str, dict[str, float | None]]]:
    """ours -> theirs -> ratio after the warm-up, and with it."""
    return {
        ours: {
            theirs: {
                "measured": ratio(runs[ours]["rate_measured"], report["rate_measured"]),
                "all": ratio(runs[ours]["rate_all"], report["rate_all"]),
            }
            for theirs, report in runs.items()
            if theirs not in OURS
        }
        for ours in OURS
        if ours in runs
    }
