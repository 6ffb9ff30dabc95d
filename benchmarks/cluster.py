"""The equi join on a cluster, and with its state in an object store, against two slots of this process.

    places    local[2] or a master with two workers of one core; state in a folder or in a store (S3Proxy)
    far       two slots of this process, state in a folder or in a store 30 ms away; see `far_state`
    idle      what a job costs that waits, and how long it takes from a file to its commit
    lost      what is fetched after a worker is lost with its disk; see `lost_worker`

Everything is on this machine, so a cluster can be no faster than two slots; what it adds is seen. With state in a store
its workers run apart (`tests/servers/apart.py`): each writes to a disk of its own, as on two machines. S3Proxy writes
14 to 50 MB/s here: with it, it is openings and bytes that count, and with `far` the rate.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq

from benchmarks import far_state, lost_worker, systems
from benchmarks.baselines.duckdb_join import count_and_hash
from benchmarks.data import STREAMS, make_equi, stream_files
from benchmarks.equi import OPERATOR, QUERY
from benchmarks.footprint import sums_of
from benchmarks.processes import run as run_program
from benchmarks.rates import median_ms_after, rate_after, ratio
from benchmarks.scale import SLOTS, Scale
from benchmarks.starts import cpu_s
from benchmarks.startup import POLL_S, Job, NoCommitError, running_job
from benchmarks.systems import Report
from tests.servers.apart import refusal
from tests.servers.maven import ServerUnavailable
from tests.servers.process import ServerFailed
from tests.servers.s3 import ENVIRONMENT, S3
from tests.servers.spark import SparkCluster

EXPECTED_S = 900
FAR_TARGET = 0.6
SERVED_TARGET = 0.95
IDLE_WINDOW_S = 86_400
LOCAL = "local[2], folder"
LOCAL_STORE = "local[2], object store"
ON_CLUSTER = "two workers, folder"
CLUSTER_STORE = "two workers, object store"
PLACES = (LOCAL, LOCAL_STORE, ON_CLUSTER, CLUSTER_STORE)


@dataclass(frozen=True, slots=True)
class Size:
    """A file of each stream is a batch and a second long.

    Args:
        turns: of each place and of `far`, beside one of a place that warms its session up.
        idle_s: how long a job that waits is watched.
        appended: files that come to a job that waits, one after the other.
    """

    files: int
    rows_per_file: int
    turns: int
    idle_s: float
    appended: int
    appended_rows: int
    limit_s: float


FULL = Size(
    files=14, rows_per_file=524_288, turns=2, idle_s=60, appended=10, appended_rows=1000, limit_s=420,
)  # fmt: skip
QUICK = Size(files=7, rows_per_file=2048, turns=1, idle_s=2, appended=2, appended_rows=50, limit_s=600)


def run(scale: Scale) -> dict[str, Any]:
    """`places`, each with its rate, traffic and `right`; `far`, turn by turn; `idle`, for a folder in either place;
    `lost`, see `lost_worker.lose`."""
    size = scale.pick(FULL, QUICK)
    work = systems.folder(scale, "cluster")
    scale.show("  making the files")
    data = far_state.make(scale.data, size.files, size.rows_per_file)
    count, _ = count_and_hash(data, far_state.WINDOW_S * 1_000_000)
    places: dict[str, Report] = {LOCAL: _place(scale, work, data, size, LOCAL, {}, count)}
    far = _far(scale, work, size)
    idle = {LOCAL: _idle(scale, work, size, "idle-local", {}, None)}
    with _store() as store:
        places[LOCAL_STORE] = _place(scale, work, data, size, LOCAL_STORE, _kept(store, work), count)
        with _cluster() as (cluster, on):
            places[ON_CLUSTER] = _place(scale, work, data, size, ON_CLUSTER, on, count)
            if cluster is not None:
                idle[ON_CLUSTER] = _idle(scale, work, size, "idle-cluster", on, cluster)
        (own := work / "own").mkdir()
        with _cluster(own) as (_, on):
            places[CLUSTER_STORE] = _place(scale, work, data, size, CLUSTER_STORE, {**on, **_kept(store, own)}, count)
        (own := work / "own-lost").mkdir()
        with _cluster(own) as (cluster, on):
            lost = _lost(scale, work, data, size, cluster, {**on, **_kept(store, own)}, count)
    for report in places.values():
        report["of_local"] = ratio(report.get("rate_measured"), places[LOCAL].get("rate_measured"))
    right = [one["results"] == one["folder_results"] == count for one in far]
    return {
        "workload": asdict(size), "window_s": far_state.WINDOW_S, "results": count,
        "rows_in": 2 * size.files * size.rows_per_file, "places": places,
        "far": {"turns": far, "ratios": [one["rate"] / one["folder_rate"] for one in far], "right": all(right)},
        "idle": idle, "lost": lost, **_complaints({**places, "a worker is lost": lost}, far, right, idle),
    }  # fmt: skip


def _complaints(
    places: Mapping[str, Report], far: list[dict[str, Any]], right: list[bool], idle: Mapping[str, Any]
) -> dict[str, str]:
    wrong = [name for name, report in places.items() if report.get("right") is False]
    wrong += [] if all(right) else ["far"]
    wrong += [f"{name}, idle" for name, one in idle.items() if not one["right"]]
    if wrong:
        return {"error": f"wrong counts: {', '.join(wrong)}"}
    failed = [f"{name}: {report.get('error') or report['skipped']}" for name, report in places.items()
              if report.get("error") or "skipped" in report]  # fmt: skip
    failed += [] if far else ["far failed"]
    return {"error": "; ".join(failed)} if failed else {}


@contextlib.contextmanager
def _store() -> Iterator[S3 | None]:
    """A store, where one can be started; what this process starts meanwhile speaks to it as it understands."""
    with contextlib.ExitStack() as stack:
        try:
            store = stack.enter_context(S3())
        except (ServerUnavailable, ServerFailed):
            yield None
            return
        before = {name: os.environ.get(name) for name in ENVIRONMENT}
        os.environ.update(ENVIRONMENT)
        try:
            yield store
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextlib.contextmanager
def _cluster(own: Path | None = None) -> Iterator[tuple[SparkCluster | None, dict[str, Any]]]:
    """A cluster of as many workers as slots, and what `run:` says of it; or why there is none.

    Args:
        own: what each worker calls its own disk; None if all share the machine's.
    """
    with contextlib.ExitStack() as stack:
        if own is not None and (refused := refusal()) is not None:
            yield None, {"skipped": refused}
            return
        try:
            cluster = stack.enter_context(SparkCluster(SLOTS, own, ENVIRONMENT, java_options=""))
        except ServerFailed:
            yield None, {"skipped": "no cluster could be started"}
            return
        yield cluster, {
            "master": cluster.master, "shared": True, "spark": cluster.settings,
            "executors": {"min": SLOTS, "max": SLOTS, "cores": 1, "memory": "1g"},
        }  # fmt: skip


def _kept(store: S3 | None, disk: Path) -> dict[str, Any]:
    """What `run:` says of state in the store, with caches on a disk; or why it is left out."""
    if store is None:
        return {"skipped": "no store could be started"}
    return {"state": store.uri("states/{}"), "cache": {"path": str(disk / "cache")}}


def _place(scale: Scale, work: Path, data: Path, size: Size, name: str, given: Mapping[str, Any], count: int) -> Report:
    """The last of some runs in one session, with their median rate; the first one does not count."""
    if "skipped" in given:
        return {"skipped": given["skipped"]}
    called = name.replace(",", "").replace(" ", "-").replace("[2]", "")
    joins = [_join(work, data, f"{called}-{turn}", given) for turn in range(size.turns + 1)]
    reports = systems.own(scale, work, called, joins, limit_s=size.limit_s)
    warmup_rows = 2 * far_state.WARM * size.rows_per_file
    timed = reports[1:]
    rates = [rate for report in timed if (rate := rate_after(report, warmup_rows))]
    last = timed[-1]
    whole = [report["rows_in"] == 2 * size.rows_per_file * size.files for report in reports]
    traffic = (last.get("figures") or {}).get("state_traffic")
    openings = traffic["served"] + traffic["fetched"] if traffic else 0
    errors = [report["error"] for report in reports if report.get("error")]
    return {
        **{key: last[key] for key in ("batch_rows", "batch_ms", "results", "rows_in", "seconds_wall") if key in last},
        "rates": rates, "rate_measured": statistics.median(rates) if rates else None,
        "batch_ms_median": median_ms_after(last, warmup_rows), "traffic": traffic,
        "served": traffic["served"] / openings if traffic and openings else None,
        "right": all(report["results"] == count for report in reports) if all(whole) else None,
        "error": errors[0] if errors else None,
    }  # fmt: skip


def _lost(
    scale: Scale, work: Path, data: Path, size: Size, cluster: SparkCluster | None, given: Mapping[str, Any], count: int
) -> Report:
    if cluster is None or "skipped" in given:
        return {"skipped": given["skipped"]}
    return lost_worker.lose(scale, work, _join(work, data, "lost", given), cluster, size.limit_s, count)


def _join(work: Path, data: Path, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    own = {"state": given["state"].format(name)} if "state" in given else {}
    query = QUERY.format(window_s=far_state.WINDOW_S)
    return systems.join_file(work, name, systems.parquet_streams(data), query, OPERATOR, **{**given, **own})


def _far(scale: Scale, work: Path, size: Size) -> list[dict[str, Any]]:
    """The turns of `far_state`, in a process of its own; none where it failed."""
    out = work / "far.json"
    command = [sys.executable, "-m", "benchmarks.far_state", "--batches", str(size.files), "--turns", str(size.turns),
               "--rows", str(size.rows_per_file), "--data", str(scale.data), "--out", str(out)]  # fmt: skip
    scale.show("  a store 30 ms away")
    run_program(command, limit_s=scale.seconds(size.limit_s), log=work / "far.log")
    try:
        turns: list[dict[str, Any]] = json.loads(out.read_text())
    except (OSError, ValueError):
        return []
    return turns


def _idle(
    scale: Scale, work: Path, size: Size, name: str, given: Mapping[str, Any], cluster: SparkCluster | None
) -> dict[str, Any]:
    """Processor time and memory of a job that waits, and ms from a file of r until its results are there."""
    scale.show(f"  {name}: a job that waits")
    made, data, out = (work / f"{name}-{what}" for what in ("made", "data", "results"))
    make_equi(made, files=size.appended + 2, rows_per_file=size.appended_rows, keys=100, span_ms_per_file=1000, seed=4)
    for stream in STREAMS:
        (data / stream).mkdir(parents=True)
        _append(made, data, stream, 0)
    query = QUERY.format(window_s=IDLE_WINDOW_S)
    join = systems.join_file(work, name, systems.parquet_streams(data), query, OPERATOR, **given)
    file = work / f"{name}.yaml"
    file.write_text(json.dumps({**join, "results": {"parquet": str(out)}}, indent=1))
    taken_ms = []
    limit_s = scale.seconds(size.limit_s)
    with running_job(file, work / f"{name}.log", until_end=False) as job:
        _await_results(job, out, 0, limit_s)
        for number in range(1, size.appended + 2):
            if number == 2:  # what came before compiles
                time.sleep(min(size.idle_s, 10))
                used_s, pss_bytes = _watched(_pids(job.process.pid, cluster), size.idle_s)
            known, begun_s = _parts(out), time.monotonic()
            _append(made, data, "r", number)
            _await_results(job, out, known, limit_s)
            taken_ms.append((time.monotonic() - begun_s) * 1000)
            time.sleep(0.5)  # it waits again, and all parts of the batch are there
    found = _count(out)
    expected, _ = count_and_hash(data, IDLE_WINDOW_S * 1_000_000)
    return {
        "cpu_share": used_s / size.idle_s, "pss_bytes": pss_bytes, "file_ms": taken_ms[1:],
        "file_ms_median": statistics.median(taken_ms[1:]), "results": found, "right": found == expected,
    }  # fmt: skip


def _parts(out: Path) -> int:
    return len(list(out.glob("*.parquet")))


def _count(out: Path) -> int:
    return sum(pq.read_metadata(part).num_rows for part in out.glob("*.parquet"))


def _await_results(job: Job, out: Path, known: int, limit_s: float) -> None:
    """Wait until there is another file of results.

    Raises:
        NoCommitError: there was none.
    """
    deadline_s = time.monotonic() + limit_s
    while _parts(out) <= known:
        if job.process.poll() is not None or time.monotonic() > deadline_s:
            raise NoCommitError(f"no more results came: {job.log.read_text()[-1000:]}")
        time.sleep(POLL_S)


def _append(made: Path, data: Path, stream: str, number: int) -> None:
    """A stream's next file, whole at once."""
    file = stream_files(made, stream)[number]
    shutil.copy2(file, data / file.name)
    (data / file.name).rename(data / stream / file.name)


def _pids(driver: int, cluster: SparkCluster | None) -> list[int]:
    roots = [driver, *([cluster.process.pid, *(one.pid for one in cluster.workers)] if cluster else [])]
    found: set[int] = set()
    for root in roots:
        with contextlib.suppress(psutil.Error):
            found |= {root, *(child.pid for child in psutil.Process(root).children(recursive=True))}
    return sorted(found)


def _watched(pids: list[int], seconds: float) -> tuple[float, int]:
    """Processor seconds that processes used meanwhile, and their memory."""
    before_s = cpu_s(pids)
    time.sleep(seconds)
    after_s = cpu_s(pids)
    return sum(after_s[pid] - before_s[pid] for pid in after_s), sums_of(pids)["pss_bytes"]
