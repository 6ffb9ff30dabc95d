"""The parts of the platform on one machine, started in order, watched, and ended in order."""

from __future__ import annotations

import os
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
from pathlib import Path
from typing import Final

from backend.auth.first_password import FILE, welcome
from backend.auth.folders import Folders
from backend.listener import SOCKET, claim
from backend.private import tighten
from backend.settings import SECRETS, Settings, is_given, read_settings, without_secrets
from streamjoin.errors import InputError, RunError
from streamjoin.lockfile import locked
from streamjoin.loopback import is_loopback
from worker import data_folder, processes
from worker.child import Child, Show
from worker.head_start import API, HeadStart
from worker.launch import DRIVER_NEEDS
from worker.own_redis import OwnRedis
from worker.pool import Pool

READY_S: Final = 60.0
CHILD_GRACE_S: Final = 6.0
DRIVER_GRACE_S: Final = 30.0
"""So long drivers may finish their batch when the platform ends; on a busy machine one takes many seconds."""
MIGRATION: Final = "migrate"
LOG_TAIL_LINES: Final = 15
POOL_LOOK_S: Final = 1.0
_PAUSE_S = 0.1


def needs(name: str) -> tuple[str, ...]:
    """The secrets that a part of the platform gets."""
    if name.startswith("api"):
        return SECRETS
    if name == MIGRATION:
        return ("catalog_url",)
    return () if name == "redis" else DRIVER_NEEDS  # what launches drivers hands theirs on


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
        self.pool: Pool | None = None
        self._pool_s = 0.0

    def wait_for_jobs(self) -> None:
        """Keep drivers waiting from now on."""
        # Another program is not known to wait; on a cluster one that waits would hold executors that others could use.
        if (
            self.settings.warm_drivers
            and not self.settings.is_on_cluster
            and processes.DRIVER_COMMAND not in os.environ
        ):
            self.pool = Pool(self.settings, without_secrets(self._environment()))
            self.pool.look()

    def look_at_pool(self) -> None:
        """Do what is due for the drivers that wait."""
        now_s = time.monotonic()
        if self.pool is not None and now_s - self._pool_s >= POOL_LOOK_S:
            self._pool_s = now_s
            self.pool.look()

    def child(
        self,
        name: str,
        command: Sequence[str],
        is_ready: Callable[[Child], bool],
        claimed: socket.socket | None = None,
        head_start: HeadStart | None = None,
    ) -> Child:
        """Start one more; it listens at the address that was claimed, if one is given."""
        environment = without_secrets(self._environment(), needs(name))
        inherits = () if claimed is None else (claimed.fileno(),)
        if inherits:
            environment[SOCKET] = str(*inherits)
        log = self.settings.data.absolute() / "logs" / f"{name}.log"
        child = Child(name, command, environment, log, is_ready, inherits, head_start)
        child.start()
        self.children.append(child)
        return child

    def aside(self, name: str, command: Sequence[str]) -> None:
        """Start something that ends by itself, soon, and that nothing depends on."""
        quiet, environment = subprocess.DEVNULL, without_secrets(self._environment(), needs(name))
        self.asides.append(subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, env=environment))

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
        if self.pool is not None:
            self.pool.end()
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
        if self.pool is not None:
            self.pool.close()
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


def run(settings: Settings, stop: threading.Event, show: Show, head_start: HeadStart) -> None:
    """Run the platform until `stop`.

    Args:
        settings: `redis_url` counts only if STREAMJOIN_REDIS_URL is set; else a Redis is started.
        head_start: the first process of the API.
    Raises:
        InputError: the data folder is in use, or something that is needed is missing.
        RunError: a part of the platform does not start.
    """
    begun_s = time.monotonic()
    if (last := data_folder.other(settings)) is not None:
        show(f"data and logs go to {settings.data.absolute()}; {data_folder.other_text(last)}")
    data_folder.make(settings.data)
    if closed := tighten(settings.data):
        show(closed)
    with _alone(settings.data.absolute()) as pipe:
        data_folder.remember(settings)
        own_redis = None
        if not is_given("redis_url"):
            own_redis = OwnRedis(settings.data)
            settings = settings.model_copy(update={"redis_url": own_redis.url})
        claimed = _claimed(settings)
        had_password = (settings.data / FILE).exists()
        platform = Platform(settings, pipe, show)
        try:
            _start(platform, own_redis, claimed, head_start, stop)
            if not stop.is_set():
                show(f"\nstreamjoin is up after {time.monotonic() - begun_s:.1f} s: {_url(settings)}")
                _tell_more(settings, show, is_first=not had_password)
            # Not stop.wait(): a signal that comes while it holds its lock would wait for that lock for good.
            while not stop.is_set():
                time.sleep(_PAUSE_S)
                for child in platform.children:
                    child.look(show)
                platform.look_at_pool()
            show("ending")
        finally:
            platform.end()
            show("everything has ended")


def _start(
    platform: Platform,
    own_redis: OwnRedis | None,
    claimed: socket.socket,
    head_start: HeadStart,
    stop: threading.Event,
) -> None:
    """Start all parts, each after what it needs, and wait until they are ready or are not to be any more."""
    settings = platform.settings
    if own_redis is not None:
        platform.child("redis", own_redis.command, lambda _: own_redis.listens())
    # Makes the catalog's tables on the other core while the API loads; where it fails, the API says why.
    platform.aside(MIGRATION, [sys.executable, "-m", "backend.catalog.migrate"])
    # The others need the catalog; and it has the machine for itself while somebody waits for it.
    platform.child("api", API, lambda _: _answers(settings), claimed, head_start)
    platform.wait(platform.children, stop)
    platform.wait_for_jobs()
    worker = [sys.executable, "-m", "worker.app"]
    reconciler = [sys.executable, "-m", "worker.reconcile"]
    jobs = [
        platform.child("worker", worker, lambda child: " ready." in child.output()),
        platform.child("reconciler", reconciler, lambda child: "reconciling" in child.output()),
    ]
    more = [
        platform.child(f"api-{number}", API, lambda child: "startup complete" in child.output(), claimed)
        for number in range(2, settings.api_processes + 1)
    ]
    platform.wait([*jobs, *more], stop)


def _tell_more(settings: Settings, show: Show, *, is_first: bool) -> None:
    """What is worth knowing of a platform that is up.

    Args:
        is_first: it had no password before this start.
    """
    show(f"data and logs are in {settings.data.absolute()}")
    if is_first and (settings.data / FILE).exists():
        show(welcome(settings.data, to_terminal=sys.stdout.isatty()))
    if settings.auth == "off":
        show("nobody needs to log in, as only this machine can reach it; STREAMJOIN_AUTH=on changes that")
    show(_readable(settings))
    show("Ctrl-C ends it, with all running jobs; they go on at the next start\n")


@contextmanager
def _alone(data: Path) -> Iterator[Path]:
    """Hold a data folder, and a pipe whose end tells drivers that this process is gone."""
    way_out = "end it first, or set STREAMJOIN_DATA to another folder"
    with locked(data / "up.lock", lambda pid: f"process {pid} runs a platform on {data} already; {way_out}"):
        pipe = data / "up.pipe"
        pipe.unlink(missing_ok=True)  # one of an earlier process, whose drivers have seen it end
        os.mkfifo(pipe, 0o600)
        held = os.open(pipe, os.O_RDWR)  # for reading too, or it would wait for a reader
        try:
            yield pipe
        finally:
            os.close(held)
            pipe.unlink(missing_ok=True)


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


def _readable(settings: Settings) -> str:
    """Which files streams may read, for people."""
    allowed = Folders(settings).allowed
    if not allowed:
        return "streams may read no files of this machine; STREAMJOIN_ALLOWED_PATHS names folders that they may read"
    but = ", but nothing hidden; STREAMJOIN_ALLOWED_PATHS changes that" if settings.own_paths else ""
    return f"streams may read files in {' and '.join(map(str, allowed))}{but}"


def _with_tail(child: Child, sentence: str) -> str:
    tail = "\n".join(child.output().splitlines()[-LOG_TAIL_LINES:])
    return f"{sentence}; {child.log} ends with:\n{tail}"


def read_up_settings() -> Settings:
    """Settings from the environment, and more freedom where only this machine can reach the API and they do not say.

    Nobody needs to log in there, and streams may read files of the folder that this was started in and of the home
    folder.

    Raises:
        InputError: one is wrong; the message names it.
    """
    settings = read_settings()
    if is_loopback(settings.host) and "STREAMJOIN_AUTH" not in os.environ:
        settings = settings.model_copy(update={"auth": "off"})
    if settings.auth == "on" or is_given("allowed_paths") or is_given("own_paths"):
        return settings
    return settings.model_copy(update={"own_paths": own_paths()})


def own_paths() -> tuple[Path, ...]:
    """The folder this was started in and the home folder, as far as they can be named in a setting.

    The root of all files is neither: a service that has it as its home does not mean it.
    """
    found = []
    for folder in (Path.cwd, Path.home):
        with suppress(OSError, RuntimeError):  # the folder is gone, or nobody knows the user
            found.append(folder().resolve())
    return tuple(dict.fromkeys(path for path in found if path != Path(path.anchor) and "," not in str(path)))
