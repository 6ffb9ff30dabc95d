"""A platform in which something dies each minute: `python -m tests.soak.dying --minutes 15 --folder build/soak/dying`.

A job on a Spark cluster of two workers, with its state in an object store and its results in HBase, joins streams whose
rate changes every minute (`load.py`). Once a minute one of `KINDS` is killed. Run again with the same folder, the same
platform goes on with the same job, so several parts make a job of hours. At the end of each part the results
are compared with DuckDB's join of all files so far, and memory and state must not have grown.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa

from backend.catalog.database import Catalog
from backend.jobs.joinfile import result_spec
from backend.settings import Settings
from streamjoin.client import Client, NotFound, StreamJoinApiError
from streamjoin.results.answer import ask
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from tests.servers.hbase import HbaseServer
from tests.servers.process import comes_true, kept_ports
from tests.servers.proxy import Proxy
from tests.servers.s3 import BUCKET, ENVIRONMENT, S3
from tests.servers.spark import SparkCluster
from tests.spark.command import JAVA_OPTIONS
from tests.worker.jobs import job_of
from tests.worker.platform import Workers
from tests.worker.test_up import Up, running
from worker import processes

from .load import FILE_S, MINUTE_S, QUERY, SCHEMA, STREAMS, Load, check, rate
from .looks import Kill, Look, Timeline, bytes_of, memory_of

JOB = "joined"
SPARK_WORKERS = 2
PARTS = {"worker": "worker.app", "reconciler": "worker.reconcile", "API": "backend", "Redis": "redis-server"}
"""Parts of the platform, by the module or program that runs them."""
CONNECTIONS = ("connection to the state", "connection to the results")
KINDS = ("driver", "executor", "Spark's worker", *CONNECTIONS, *PARTS)
LOOK_S = 10.0
ANSWER_S = 2.0
"""An answer that takes longer counts as none."""
CUT_S = 5.0
"""How long a connection to a store is cut."""
START_S_MAX = 300.0
DONE_S_MAX = 600.0
"""From the last row until all results are there: what died last has to come back, on a machine that may be busy."""


class Dying:
    """A platform and its job, from the first row of a part to the last.

    Args:
        folder: of what is kept from one part to the next.
        rng: says what dies in which order.
    """

    def __init__(self, folder: Path, rng: np.random.Generator, seed: int) -> None:
        self.folder, self.rng = folder, rng
        self.load = Load(folder / "streams", seed)
        self.timeline = Timeline.read(folder / "timeline.json")
        self.next_kinds: list[str] = []
        self.restore_s: float | None = None

    def play(self, minutes: float, kill_every_s: float) -> None:
        """One part.

        Raises:
            AssertionError: rows are missing or too many, the job did not go on, or memory or state has grown.
        """
        with ExitStack() as stack:
            self._start(stack)
            self._go_on(minutes * MINUTE_S, kill_every_s)
            self._restore()
            total = self._finished()
            self.timeline.ends_s.append(self.timeline.begun_s + minutes * MINUTE_S)
            self.timeline.totals.append(total)
            self.client.jobs.stop(JOB, wait_s=START_S_MAX)
            self.up.end()
        assert (complaint := self.timeline.complaint()) is None, complaint
        self.timeline.write(self.folder / "timeline.json")

    def _start(self, stack: ExitStack) -> None:
        self.objects = self.folder / "objects"
        self.s3 = stack.enter_context(S3(kept=self.objects))
        hbase = stack.enter_context(HbaseServer(self.folder / "hbase"))
        ports = self._ports()
        self.proxies = {
            kind: stack.enter_context(Proxy(behind, port))
            for kind, behind, port in zip(CONNECTIONS, (self.s3.port, hbase.port), ports, strict=True)
        }
        state, results = (proxy.port for proxy in self.proxies.values())
        self.cluster = stack.enter_context(SparkCluster(SPARK_WORKERS, environment=ENVIRONMENT))
        self.settings = Settings(
            data=self.folder / "data", auth="off", result_store="hbase", hbase_host="127.0.0.1", hbase_port=results
        )
        self.settings.data.mkdir(exist_ok=True)
        variables = {
            "STREAMJOIN_SPARK_MASTER": self.cluster.master,
            "STREAMJOIN_SPARK_SETTINGS": json.dumps(self.cluster.settings),
            "STREAMJOIN_SPARK_EXECUTORS": f"{{min: {SPARK_WORKERS}, max: {SPARK_WORKERS}, memory: 512m}}",
            "STREAMJOIN_SPARK_SHARED": "true",
            "STREAMJOIN_STATE": self.s3.uri(f"{BUCKET}/jobs", state),
            "STREAMJOIN_RESULT_STORE": "hbase",
            "STREAMJOIN_HBASE_HOST": "127.0.0.1",
            "STREAMJOIN_HBASE_PORT": str(results),
            "STREAMJOIN_ALLOWED_PATHS": str(self.load.folder),
            "STREAMJOIN_DRIVER_MEMORY_MIB": "512",
            "JAVA_TOOL_OPTIONS": JAVA_OPTIONS,
            **ENVIRONMENT,
        }
        self.up: Up = stack.enter_context(running(self.settings, **variables))
        self.client = stack.enter_context(Client(f"http://127.0.0.1:{self.up.port}"))
        self.catalog = Catalog(self.settings.catalog)
        stack.callback(self.catalog.close)
        try:
            self.client.jobs.get(JOB)
        except NotFound:
            for stream in STREAMS:
                spec = {"source": "parquet", "path": str(self.load.folder / stream), "time": "ts", "schema": SCHEMA}
                self.client.streams.create(stream, spec)
            operator = {"name": "biclique", "r_units": 2, "s_units": 2}
            self.client.jobs.create(JOB, QUERY, operator=operator, run={"slots": SPARK_WORKERS})
        self.job = str(self.client.jobs.get(JOB)["id"])
        self.client.jobs.start(JOB, wait_s=START_S_MAX)
        job = job_of(self.catalog, self.job)
        store = result_spec(self.settings.model_copy(update={"hbase_port": hbase.port}), job).open()
        stack.callback(store.close)
        self.reader = Reader(store, job.results_of(""))

    def _ports(self) -> list[int]:
        """Stores stay where they are: their addresses are part of what a job knows of its state and results."""
        return kept_ports(self.folder / "ports.json", len(CONNECTIONS))

    def _go_on(self, seconds: float, kill_every_s: float) -> None:
        begun_s, look_s, kill_s = time.monotonic(), 0.0, kill_every_s
        while (passed_s := time.monotonic() - begun_s) < seconds:
            self.load.write(int(rate(passed_s) * FILE_S))
            if passed_s >= look_s:
                self._look(passed_s)
                look_s = passed_s + LOOK_S
            if passed_s >= kill_s:
                self._kill(passed_s)
                kill_s += kill_every_s
            if self.restore_s is not None and passed_s >= self.restore_s:
                self._restore()
            due_s = begun_s + (int((time.monotonic() - begun_s) / FILE_S) + 1) * FILE_S
            time.sleep(max(0.0, due_s - time.monotonic()))

    def _restore(self) -> None:
        for proxy in self.proxies.values():
            proxy.restore()
        self.restore_s = None

    def _look(self, passed_s: float) -> None:
        executors = self.cluster.executors()
        ours = [*self.up.left(), *executors]
        for executor in executors:  # Python, where units are, is below
            with suppress(psutil.Error):
                ours += executor.children(recursive=True)
        memory = memory_of({process.pid: process for process in ours}.values())
        state = bytes_of(self.objects, self.settings.job_folder(self.job))
        at_s = self.timeline.begun_s + passed_s
        self.timeline.looks.append(Look(at_s, 2 * self.load.rows, self._results(), self._answers(), memory, state))

    def _answers(self) -> bool:
        """Whether the platform says how the job is, in time."""
        try:
            with Client(self.client.host, timeout_s=ANSWER_S, deadline_s=ANSWER_S, reach_s=ANSWER_S) as client:
                return bool(client.jobs.get(JOB))
        except StreamJoinApiError:
            return False

    def _results(self) -> int:
        """How many results the job has committed, by the store itself: nobody dies on the way there."""
        return self.reader.refresh().rows

    def _kill(self, passed_s: float) -> None:
        if not self.next_kinds:
            self.next_kinds = [str(kind) for kind in self.rng.permutation(KINDS)]
        kind = self.next_kinds.pop()
        if self._killed(kind):
            self.timeline.kills.append(Kill(self.timeline.begun_s + passed_s, kind))
        if kind in CONNECTIONS:
            self.restore_s = passed_s + CUT_S

    def _killed(self, kind: str) -> bool:
        """Kill one; False where there is none just now, for what died last has not come back."""
        if kind in CONNECTIONS:
            self.proxies[kind].cut()
            return True
        if kind == "Spark's worker":
            there = [worker for worker in self.cluster.workers if worker.is_running()]
            self.cluster.lose(there[self.rng.integers(len(there))])
            return True
        if kind == "driver":
            found = processes.leaders(self.settings.data)
        elif kind == "executor":
            found = [executor.pid for executor in self.cluster.executors()]
        else:
            # Celery's first process has started the others.
            found = [part.pid for part in sorted(self.up.parts(PARTS[kind]), key=psutil.Process.create_time)][:1]
        if not found:
            return False
        with suppress(ProcessLookupError):
            os.kill(int(self.rng.choice(found)), signal.SIGKILL)
            return True
        return False

    def _finished(self) -> int:
        """Wait until the job has joined all rows; how many results there are, which are right."""
        seen, right = [-1], list[int]()

        def is_done() -> bool:
            time.sleep(LOOK_S / 2)
            seen.append(self._results())
            if seen[-1] != seen[-2]:
                return False
            with suppress(AssertionError):
                right.append(self._checked())
            return bool(right)

        if comes_true(is_done, DONE_S_MAX):
            return right[0]
        print(Workers(self.settings, self.catalog, None).tails(self.job), file=sys.stderr)
        return self._checked()  # which says what is missing

    def _checked(self) -> int:
        self.reader.refresh()
        schema = pa.schema([("r_id", pa.int64()), ("s_id", pa.int64())])
        batches = (batch.select(schema.names) for batch in ask(self.reader, Question()))
        return check(self.load.folder, pa.RecordBatchReader.from_batches(schema, batches))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.dying")
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--folder", type=Path, default=Path("build/soak/dying"))
    parser.add_argument("--kill-every", type=float, default=60, metavar="SECONDS")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    folder: Path = asked.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(ENVIRONMENT)
    dying = Dying(folder, np.random.default_rng((asked.seed, 1)), asked.seed)
    # Whoever ends a part ends all that it has started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    dying.play(asked.minutes, asked.kill_every)
    timeline = dying.timeline
    print(f"{timeline.totals[-1]:,} results are right after {timeline.begun_s / 60:.0f} minutes")
    for kind in KINDS:
        print(f"{kind:<24}{sum(kill.kind == kind for kill in timeline.kills):>8,}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
