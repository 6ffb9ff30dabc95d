"""Each system under test as one call: a process of its own in, its report out.

A report is `baselines.report.Report` as a mapping, with `memory` (peaks of the process tree, see `footprint`) and
`seconds_wall` (from start to end of the process). A call never raises for what the system did: a failure is in `error`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.baselines import flink_env
from benchmarks.data import STREAMS
from benchmarks.limited import Cgroup
from benchmarks.processes import run
from benchmarks.scale import ROOT, SLOTS, Scale

START_AND_END_S = 150.0
"""What a process may take besides the time it measures: Java, Flink's clusters, counting."""
SESSION_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.minBatchesToRetain": "10",
}
"""Those settings of StreamJoin's session that make any streaming query cheaper, to give them to Spark's own join."""

Report = dict[str, Any]
Rates = Mapping[str, float]
"""By row of a part; more is better."""


class FailedRowError(Exception):
    """A run gave no rate."""


def folder(scale: Scale, part: str) -> Path:
    """An empty folder for a part's checkpoints and logs."""
    chosen = scale.work / part
    shutil.rmtree(chosen, ignore_errors=True)
    chosen.mkdir(parents=True)
    return chosen


def spark(
    scale: Scale, work: Path, name: str, data: Path, *, state: str, window_s: int, limit_s: float, memory_mb: int,
    settings: Mapping[str, str] | None = None, query: str = "inner",
) -> Report:  # fmt: skip
    """Spark's own join over the Parquet files below `data`; for `query` see `spark_queries`."""
    further = [part for key, value in (settings or {}).items() for part in ("--set", f"{key}={value}")]
    options = ["--query", query, "--state", state, "--memory-mb", str(memory_mb), *further]
    return _peer(scale, work, name, "spark_join", data, window_s, limit_s, options)


def flink(
    scale: Scale, work: Path, name: str, data: Path, *, checkpoint_s: int, window_s: int, limit_s: float,
    memory_mb: int, query: str = "interval", is_counted: bool = False,
) -> Report:  # fmt: skip
    """Flink SQL's join over the same files, state on the heap; for `query` see `flink_job`.

    Args:
        is_counted: a second job, which is not timed, counts the results.
    """
    options = [
        "--query", query, "--state", "heap", "--checkpoint-s", str(checkpoint_s), "--memory-mb", str(memory_mb),
        *([] if is_counted else ["--no-count"]),
    ]  # fmt: skip
    return _peer(scale, work, name, "flink_join", data, window_s, limit_s, options)


def no_flink() -> str | None:
    """Why Flink cannot be measured here, or None; makes its environment where that can be made."""
    try:
        flink_env.ensure()
    except (OSError, RuntimeError, subprocess.CalledProcessError) as failure:
        return f"its environment cannot be made here: {without_paths(str(failure))}"
    return None


def _peer(
    scale: Scale, work: Path, name: str, module: str, data: Path, window_s: int, limit_s: float, options: Sequence[str]
) -> Report:
    limit_s = scale.seconds(limit_s)
    out = work / f"{name}.json"
    command = [
        sys.executable, "-m", f"benchmarks.baselines.{module}", "--data", str(data), "--window-s", str(window_s),
        "--out", str(out), "--max-seconds", str(limit_s), *options,
    ]  # fmt: skip
    scale.show(f"  {name}: at most {limit_s:,.0f} s")
    ended = run(command, limit_s=limit_s + START_AND_END_S, log=work / f"{name}.log")
    report = _read(out, ended.tail, ended.cut_off)
    return _told(scale, name, {**report, "memory": ended.memory, "seconds_wall": ended.seconds})


def own(
    scale: Scale, work: Path, name: str, joins: Sequence[Mapping[str, Any]], *, limit_s: float, via: str = "driver",
    cgroup: Cgroup | None = None, watch: bool = False,
) -> list[Report]:  # fmt: skip
    """StreamJoin, or Spark's own join `via` "spark", on join files in one session; see `own_join`.

    Args:
        joins: the content of each join file.
        limit_s: for each of them.
        watch: measure how much of the first join's checkpoint is in memory, too.
    """
    limit_s = scale.seconds(limit_s)
    out = work / f"{name}.json"
    files = []
    for number, content in enumerate(joins):
        files.append(work / f"{name}-{number}.yaml")
        files[-1].write_text(json.dumps(content, indent=1))  # JSON is YAML, and without its aliases.
    command = [
        sys.executable, "-m", "benchmarks.own_join", *map(str, files), "--via", via, "--out", str(out),
        "--max-seconds", str(limit_s),
    ]  # fmt: skip
    scale.show(f"  {name}: at most {limit_s:,.0f} s" + (f" for each of {len(files)} joins" if len(files) > 1 else ""))
    total_s = scale.seconds(limit_s * len(files) + START_AND_END_S)
    watched = Path(joins[0]["run"]["checkpoint"]) if watch else None
    ended = run(command, limit_s=total_s, log=work / f"{name}.log", cgroup=cgroup, watched=watched, code=scale.code)
    reports = _read_list(out)
    if len(reports) < len(files):
        why = "stopped, its time was over" if ended.cut_off else f"ended with status {ended.status}: {ended.tail}"
        reports += [_failed(why)] * (len(files) - len(reports))
    for content in joins:  # Checkpoints are as large as the state, and nobody looks at them again.
        shutil.rmtree(Path(content["run"]["checkpoint"]), ignore_errors=True)
    further = {"memory": ended.memory, "seconds_wall": ended.seconds}
    names = [name] if len(files) == 1 else [f"{name}, {Path(one['run']['checkpoint']).stem}" for one in joins]
    return [_told(scale, told, {**report, **further}) for told, report in zip(names, reports, strict=True)]


def rates(reports: Mapping[str, Report], key: str) -> Rates:
    """One figure of each report.

    Raises:
        FailedRowError: a run failed, or was too short for a rate.
    """
    for name, report in reports.items():
        if report.get("error") or not report.get(key):
            raise FailedRowError(f"{name}: {report.get('error') or f'no {key}, the run was cut off'}")
    return {name: report[key] for name, report in reports.items()}


def check_results(reports: Mapping[str, Report], rows_in: int, results: int) -> None:
    """Make sure that runs read all there is and found as many results as there are.

    Runs that failed are for `rates`; those that count nothing, such as a DataFrame's, cannot be checked.

    Raises:
        FailedRowError: one did not.
    """
    for name, report in reports.items():
        if report.get("error") or report.get("results") is None:
            continue
        if report["rows_in"] != rows_in:
            raise FailedRowError(
                f"{name}: it read {report['rows_in']:,} of {rows_in:,} tuples, so its results cannot be checked"
            )
        if report["results"] != results:
            raise FailedRowError(f"{name}: {report['results']:,} results, and {results:,} are right")


def join_file(
    work: Path, name: str, streams: Mapping[str, Any], query: str, operator: Mapping[str, Any], **run_options: Any
) -> dict[str, Any]:
    """The content of a join file whose results are discarded, with a checkpoint of its own below `work`."""
    return {
        "streams": dict(streams),
        "query": query,
        "operator": dict(operator),
        "results": {"discard": True},
        "run": {"slots": SLOTS, "files_per_batch": 1, "checkpoint": str(work / f"{name}.checkpoint"), **run_options},
    }


def parquet_streams(data: Path, *, delay: str = "1s", streams: Sequence[str] = STREAMS) -> dict[str, Any]:
    """The streams below `data`."""
    return {
        stream: {"source": "parquet", "path": str(data / stream), "time": "ts", "delay": delay} for stream in streams
    }


def _read(path: Path, tail: str, cut_off: bool) -> Report:
    try:
        report: Report = json.loads(path.read_text())
        return report
    except (OSError, ValueError):
        return _failed("stopped, its time was over" if cut_off else f"it left no report: {tail}")


def _read_list(path: Path) -> list[Report]:
    try:
        reports: list[Report] = json.loads(path.read_text())
        return reports
    except (OSError, ValueError):
        return []


def _failed(why: str) -> Report:
    return {"error": without_paths(why), "batch_rows": [], "batch_ms": [], "rows_in": 0, "rows_per_second": None}


def _told(scale: Scale, name: str, report: Report) -> Report:
    if report.get("error"):
        report["error"] = without_paths(report["error"])
        scale.show(f"  {name}: failed: {report['error'].strip().splitlines()[0][:150]}")
    else:
        rate = report.get("rows_per_second_after_warmup") or report.get("rows_per_second") or 0.0
        scale.show(f"  {name}: {rate:,.0f} tuples/s, {report['rows_in']:,} tuples")
    return report


def without_paths(text: str) -> str:
    """A message without the folders of this machine."""
    return text.replace(str(ROOT), ".").replace(str(Path.home()), "~")
