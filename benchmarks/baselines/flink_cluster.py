"""A Flink cluster of one job manager and one task manager on this machine, as separate processes.

A real cluster, not PyFlink's in-process one: its memory is Flink's own to divide, and it outlives a job, so the final
counters of a finished job can still be read.
"""

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.baselines import flink_env

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 20


class FlinkCluster:
    """Context manager: the cluster takes jobs inside the block and is gone after it.

    Args:
        settings: Flink configuration of both processes.
        logs: folder for their output, made if missing.
        classes: a folder of further classes, see `flink_env.compile_lookup`.
    """

    def __init__(self, settings: dict[str, str], logs: Path, classes: Path | None = None) -> None:
        self.rest_port = free_port()
        self.logs = logs
        self.classes = classes
        self._settings = {
            **settings,
            "rest.port": str(self.rest_port),
            "jobmanager.rpc.port": str(free_port()),
            # Progress is polled; by default these answers are 3 s and 10 s old.
            "web.refresh-interval": "250",
            "metrics.fetcher.update-interval": "250",
        }
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self.logs.mkdir(parents=True, exist_ok=True)
        try:
            for role in ("jobmanager", "taskmanager"):
                self._processes.append(self._start(role))
            self._await_slots()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def get(self, path: str) -> Any:
        """The JSON that the job manager's REST service gives for `path`."""
        with urllib.request.urlopen(f"http://localhost:{self.rest_port}{path}", timeout=30) as answer:
            return json.load(answer)

    def _start(self, role: str) -> subprocess.Popen[bytes]:
        script = flink_env.flink_home() / "bin" / f"{role}.sh"
        options = [part for key, value in self._settings.items() for part in ("-D", f"{key}={value}")]
        environment = flink_env.process_environment(self.classes)
        environment |= {"FLINK_LOG_DIR": str(self.logs), "FLINK_PID_DIR": str(self.logs)}
        # Foreground: the script becomes the JVM, so the process started is the one to stop.
        with (self.logs / f"{role}.out").open("wb") as out:
            command = [str(script), "start-foreground", *options]
            return subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment)

    def _await_slots(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if any(process.poll() is not None for process in self._processes):
                break
            try:
                if self.get("/overview")["slots-total"] > 0:
                    return
            except (urllib.error.URLError, ConnectionError):
                pass  # Not listening yet.
            time.sleep(0.2)
        tail = "\n".join((self.logs / f"{role}.out").read_text()[-1500:] for role in ("jobmanager", "taskmanager"))
        raise RuntimeError(f"Flink ended at once or did not start within {START_TIMEOUT_S} s:\n{tail}")

    def _stop(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port: int = probe.getsockname()[1]
        return port
