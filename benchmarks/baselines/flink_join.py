"""Flink SQL's joins over the benchmark's Parquet files.

    python -m benchmarks.baselines.flink_join --data DIR --window-s 60 --delay-s 1 --state heap --out F.json

Joins r.key = s.key with r.ts within `window-s` of s.ts, or with `--query three` also t in the same way, or with
`--query temporal` each row of r with the latest row of s as of its time, on a cluster of its own, parallelism 2. With
`--query lookup` the rows of r are looked up in the table c (r.key = c.id), which one process has in Flink's full cache.
Each stream is read in time order by one reader; the join runs twofold. The report is written in any case; the exit
status is 1 when it holds an error.

How results are counted: the timed job's sink throws rows away, and Flink keeps no final count of what a chained sink
took. So a second, untimed job runs the same join into one count over a window longer than the data; `--no-count` leaves
it out.
How time is counted: from the job's change to RUNNING to its end. Flink has no batches: a "batch" is the rows read
between two polls of the cluster, and the first tenth of the rows counts as warm-up.
"""

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.baselines import flink_env
from benchmarks.baselines.flink_cluster import FlinkCluster
from benchmarks.baselines.memory import PeakMemory
from benchmarks.baselines.report import Report
from benchmarks.baselines.termination import exit_on_terminate
from benchmarks.data import STREAMS, stream_files

JOB = Path(__file__).with_name("flink_job.py")
FLINK_VERSION = "2.3.0"
PARALLELISM = 2
POLL_INTERVAL_S = 0.5
WARMUP_SHARE = 0.1
STREAMS_OF = {"interval": STREAMS, "three": (*STREAMS, "t"), "temporal": STREAMS, "lookup": STREAMS[:1]}
STATE_BACKENDS: dict[str, dict[str, str]] = {
    "heap": {"state.backend.type": "hashmap"},
    "rocksdb": {"state.backend.type": "rocksdb", "execution.checkpointing.incremental": "true"},
}


def main() -> int:
    arguments = parse_arguments()
    exit_on_terminate()
    report = Report(system="flink", state=arguments.state, flink_version=FLINK_VERSION)
    with tempfile.TemporaryDirectory(prefix="flink-join-") as scratch, PeakMemory() as memory:
        try:
            flink_env.ensure()
            run(arguments, Path(scratch), report)
        except Exception as error:
            report.error = f"{type(error).__name__}: {error}"[:4000]
        report.peak_rss_bytes = report.peak_rss_bytes or memory.peak_bytes
    report.write(arguments.out)
    return 1 if report.error else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with r/ and s/, and t/ or c/")
    parser.add_argument("--query", choices=STREAMS_OF, default="interval")
    parser.add_argument("--window-s", type=int, required=True, help="largest distance of two timestamps of an interval")
    parser.add_argument("--delay-s", type=int, default=1, help="watermark delay")
    parser.add_argument("--state", choices=STATE_BACKENDS, default="heap")
    parser.add_argument("--checkpoint-s", type=int, default=1, help="interval of exactly-once checkpoints")
    parser.add_argument("--out", type=Path, required=True, help="where the report goes")
    parser.add_argument("--memory-mb", type=int, default=6144, help="memory the state may fill, in MiB")
    parser.add_argument("--max-seconds", type=float, help="stop after so long, uncounted; rows read by then count")
    parser.add_argument("--no-count", action="store_true", help="leave out the second job that counts results")
    return parser.parse_args()


def run(arguments: argparse.Namespace, scratch: Path, report: Report) -> None:
    """Run the timed job, then the counting job on a fresh cluster, filling `report` as far as they came."""
    report.settings = {
        **STATE_BACKENDS[arguments.state],
        **memory_settings(arguments.state, arguments.memory_mb),
        "taskmanager.numberOfTaskSlots": str(PARALLELISM),
        "parallelism.default": str(PARALLELISM),
        "execution.checkpointing.mode": "EXACTLY_ONCE",
        "execution.checkpointing.interval": f"{arguments.checkpoint_s} s",
        # A full heap would otherwise be restarted for ever instead of reported.
        "restart-strategy.type": "none",
    }
    rows_in = sum(
        pq.read_metadata(file).num_rows
        for stream in STREAMS_OF[arguments.query]
        for file in stream_files(arguments.data, stream)
    )
    arguments.classes = None
    if arguments.query == "lookup":
        arguments.classes = scratch / "classes"
        flink_env.compile_lookup(arguments.classes)
    time_join(arguments, scratch / "timed", report, rows_in)
    # A join cut off part-way has no count to compare with.
    if not arguments.no_count and report.rows_in == rows_in:
        report.results = count_results(arguments, scratch / "counted", report)
    report.notes.append(f"warm-up is the first {WARMUP_SHARE:.0%} of the rows; state_bytes is the largest checkpoint")


def memory_settings(state: str, memory_mb: int) -> dict[str, str]:
    """Give the state `memory_mb` MiB, and the rest of the process what it needs besides.

    RocksDB lives in managed memory, the heap back end in the tasks' heap; a little managed memory is left there for the
    counting job's window.
    """
    heap_mb, managed_mb = (memory_mb, 64) if state == "heap" else (1024, memory_mb)
    return {
        "taskmanager.memory.task.heap.size": f"{heap_mb}m",
        "taskmanager.memory.managed.size": f"{managed_mb}m",
        # Lower and upper bounds alike, or Flink refuses sizes that do not follow its own proportions.
        "taskmanager.memory.network.min": "512m",
        "taskmanager.memory.network.max": "512m",
        "taskmanager.memory.jvm-overhead.min": "1g",
        "taskmanager.memory.jvm-overhead.max": "1g",
        # Besides these, Flink takes 512 MiB: metaspace 256, its own heap and direct memory 128 each.
        "taskmanager.memory.process.size": f"{heap_mb + managed_mb + 2048}m",
    }


def time_join(arguments: argparse.Namespace, scratch: Path, report: Report, rows_in: int) -> None:
    """Run the join into a sink that throws rows away; times, rates and state into `report`."""
    progress: list[tuple[float, int]] = []
    with PeakMemory() as memory, FlinkCluster(report.settings, scratch / "logs", arguments.classes) as cluster:
        try:
            job = submit(arguments, cluster, scratch, report.settings, sink="blackhole")
            for point in follow(cluster, job, arguments.max_seconds):
                progress.append(point)
            checkpoints = cluster.get(f"/jobs/{job}/checkpoints")
        finally:
            # A job that fails at the edge of its memory has still shown how fast it was until then.
            fill(report, progress)
            report.peak_rss_bytes = memory.peak_bytes
    report.state_bytes = int(checkpoints["summary"]["state_size"]["max"])
    counts = checkpoints["counts"]
    report.notes.append(f"checkpoints completed {counts['completed']}, failed {counts['failed']}")
    if report.rows_in != rows_in:
        message = f"Flink read {report.rows_in} of {rows_in} rows"
        if arguments.max_seconds is None:
            raise RuntimeError(message)
        report.notes.append(f"{message} in {arguments.max_seconds} s, then it was stopped")


def fill(report: Report, progress: list[tuple[float, int]]) -> None:
    """Times, rows and rates of `progress`, as `follow` gives it, into `report`."""
    if len(progress) < 2:
        return
    # The cluster dates the end of a job on its own, a moment before the poll that saw it.
    progress = [*(point for point in progress[:-1] if point[0] < progress[-1][0]), progress[-1]]
    rows = [after[1] - before[1] for before, after in pairwise(progress)]
    report.set_batches(rows, [at_s for at_s, _ in progress[1:]], progress[0][0])
    warm = next(point for point in progress if point[1] >= WARMUP_SHARE * report.rows_in)
    report.seconds_after_warmup = report.rows_per_second_after_warmup = None
    if progress[-1][0] > warm[0]:
        report.seconds_after_warmup = progress[-1][0] - warm[0]
        report.rows_per_second_after_warmup = (report.rows_in - warm[1]) / report.seconds_after_warmup


def count_results(arguments: argparse.Namespace, scratch: Path, report: Report) -> int:
    """The same join, counted inside Flink; its time goes to the notes, to show how little counting costs."""
    with FlinkCluster(report.settings, scratch / "logs", arguments.classes) as cluster:
        job = submit(arguments, cluster, scratch, report.settings, sink="count")
        progress = list(follow(cluster, job))
    report.notes.append(f"the counting job took {progress[-1][0] - progress[0][0]:.1f} s")
    # No file at all when nothing matched: an empty window does not fire.
    lines = [line for file in (scratch / "count").glob("part-*") for line in file.read_text().splitlines()]
    return sum(json.loads(line)["results"] for line in lines)


def submit(
    arguments: argparse.Namespace, cluster: FlinkCluster, scratch: Path, settings: dict[str, str], sink: str
) -> str:
    """Hand the job to `cluster`, wait until it is accepted, and return its id."""
    command = [
        str(flink_env.PYTHON), str(JOB),
        "--data", str(arguments.data.resolve()),
        "--query", arguments.query,
        "--window-s", str(arguments.window_s),
        "--delay-s", str(arguments.delay_s),
        "--rest-port", str(cluster.rest_port),
        "--sink", sink,
        "--count-dir", str(scratch / "count"),
    ]  # fmt: skip
    # Checkpoints and parallelism belong to a job, not to the cluster that runs it.
    for key, value in {**settings, "execution.checkpointing.dir": (scratch / "checkpoints").as_uri()}.items():
        command += ["--set", f"{key}={value}"]
    environment = flink_env.process_environment(arguments.classes)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    words = done.stdout.strip().splitlines()[-1:]
    if done.returncode or not words or not words[0].startswith("JOB "):
        raise RuntimeError(f"Flink refused the job:\n{done.stdout[-1500:]}\n{done.stderr[-3000:]}")
    return words[0].removeprefix("JOB ")


def follow(cluster: FlinkCluster, job: str, seconds_max: float | None = None) -> Iterator[tuple[float, int]]:
    """Watch `job` until it ends, or has run for `seconds_max`.

    Yields:
        (seconds on the cluster's clock, rows of all streams read so far): first the moment the job ran with no row
        read, then each advance, last the end.
    Raises:
        RuntimeError: the job failed; the message is the root cause.
    """
    begin_s, rows_seen = 0.0, 0
    while True:
        # One answer holds counters and state, so a finished job's counters are final.
        details = cluster.get(f"/jobs/{job}")
        if details["state"] in ("FAILED", "CANCELED"):
            cause = cluster.get(f"/jobs/{job}/exceptions")
            raise RuntimeError(f"Flink's job ended {details['state']}: {root_cause(cause)}")
        if not begin_s and details["timestamps"]["RUNNING"] > 0:
            begin_s = details["timestamps"]["RUNNING"] / 1000
            yield begin_s, 0
        sources = [vertex for vertex in details["vertices"] if vertex["name"].startswith("Source:")]
        rows_read = sum(source["metrics"]["write-records"] for source in sources)
        if details["state"] == "FINISHED":
            yield details["end-time"] / 1000, rows_read
            return
        now_s = details["now"] / 1000
        # A counter of a task that just ended can be missing for one poll.
        if rows_read > rows_seen:
            rows_seen = rows_read
            yield now_s, rows_read
        if seconds_max is not None and begin_s and now_s - begin_s > seconds_max:
            return
        time.sleep(POLL_INTERVAL_S)


def root_cause(exceptions: dict[str, Any]) -> str:
    """The messages of a failed job's exceptions, outermost first, without the frames between them."""
    entries = exceptions["exceptionHistory"]["entries"]
    lines = str(entries[0]["stacktrace"]).splitlines() if entries else ["no cause given"]
    return " | ".join(line for line in lines if not line.lstrip().startswith(("at ", "...")))


if __name__ == "__main__":
    raise SystemExit(main())
