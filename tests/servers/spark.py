"""A standalone Spark cluster on the loopback interface: a master, and workers of one core each, behind a secret.

Everything lives in a temporary folder that goes when the cluster is left. A worker's executors are of its process
group, so they end with it.
"""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from . import apart
from .process import ServerProcess, free_ports

START_S_MAX = 120.0
SCRIPT = Path(__file__).resolve().parents[2] / "docker" / "spark.sh"
"""What starts a cluster in containers."""
# Java that lives for seconds is not worth being optimised, and three of them share a small machine.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class SparkCluster:
    """A cluster that runs inside the `with` block, where `master` is its name, and `settings` are those it asks for.

    Args:
        workers: of one core and 1 GiB each.
        own: a folder that is another one for each worker, which has no other to write to; see `apart`.
        environment: variables of workers, and so of executors.
        java_options: of all its processes.
    Raises:
        ServerFailed: on entering, when it does not start.
    """

    def __init__(
        self,
        workers: int = 2,
        own: Path | None = None,
        environment: Mapping[str, str] | None = None,
        *,
        java_options: str = JAVA_OPTIONS,
    ) -> None:
        self.count = workers
        self.own = own
        self.environment = dict(environment or {})
        self.java_options = java_options
        self.settings = {"spark.authenticate": "true", "spark.authenticate.secret": secrets.token_hex(16)}
        if own is not None:
            # Executors with one address take it that they share a disk.
            self.settings["spark.shuffle.readHostLocalDisk"] = "false"
        self.workers: list[ServerProcess] = []

    def __enter__(self) -> Self:
        self.folder = tempfile.TemporaryDirectory(prefix="streamjoin-spark-")
        self.home = Path(self.folder.name)
        self.works_in = self.own or self.home
        (self.port,) = free_ports(1)
        self.master = f"spark://127.0.0.1:{self.port}"
        self.conf = self.home / "spark.conf"
        try:
            self.conf.write_text("".join(f"{name} {value}\n" for name, value in self.settings.items()))
            self.process = self._start("master")
            self.process.wait_for_output("New state: ALIVE", START_S_MAX)
            for _ in range(self.count):
                self.start_worker()
            for worker in self.workers:
                worker.wait_for_output("Successfully registered with master", START_S_MAX)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in [*self.workers, *([self.process] if hasattr(self, "process") else [])]:
            server.kill()
        self.folder.cleanup()

    def start_worker(self) -> ServerProcess:
        """One more worker; it has registered some seconds later."""
        worker = self._start(f"worker-{len(self.workers)}")
        self.workers.append(worker)
        return worker

    def lose(self, worker: ServerProcess) -> None:
        """Kill a worker with its executor, and its disk if it has one of its own; another one takes its place."""
        worker.kill()
        self.start_worker()

    def _start(self, name: str) -> ServerProcess:
        variables = {
            # What the tests were started with is not for executors, such as where our package is.
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "JAVA_HOME": os.environ.get("JAVA_HOME", ""), "SPARK_LISTEN": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m", "JAVA_TOOL_OPTIONS": self.java_options, "SPARK_LOCAL_DIRS": str(self.home),
            "SPARK_CONF": str(self.conf), "SPARK_PORT": str(self.port), "SPARK_PAGE": "0", "SPARK_CORES": "1",
            "SPARK_MEMORY": "1g", "SPARK_WORK": str(self.works_in / name), **self.environment,
        }  # fmt: skip
        command = ["bash", str(SCRIPT), name.partition("-")[0], "127.0.0.1"]
        if name != "master":
            # Each is a machine to Spark.
            command.append(address := f"127.0.0.{len(self.workers) + 1}")
            variables["SPARK_LISTEN"] = address
        prefix: list[str] = []
        if self.own is not None:
            prefix = apart.apart(self.own)
            variables |= apart.variables(self.own)
            variables["JAVA_TOOL_OPTIONS"] += f" {apart.java_options(self.own)}"
        environment = [f"{variable}={value}" for variable, value in variables.items() if value]
        program = [*prefix, "env", "-i", "-C", str(self.works_in), *environment, *command]
        return ServerProcess(f"Spark's {name}", program, self.home / f"{name}.log")

    def executors(self) -> list[psutil.Process]:
        """Executors that run, the oldest first."""
        found = []
        for process in psutil.process_iter(["cmdline", "create_time", "cwd"]):
            of_ours = Path(process.info["cwd"] or "/").is_relative_to(self.works_in)
            if of_ours and "org.apache.spark.executor.CoarseGrainedExecutorBackend" in (process.info["cmdline"] or ()):
                found.append(process)
        return sorted(found, key=lambda process: process.info["create_time"])
