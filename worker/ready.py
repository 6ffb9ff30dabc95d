"""What a driver that waits for a job has ready: Java, Spark's session, Python's workers, a first small join done."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from backend.handover import told, write_to
from backend.jobs.runs import run_of
from backend.settings import Settings
from worker import processes
from worker.waiting import JOB, TAKEN, key_of, name_of, ready_file, short_path

FIRST_TO_GO: Final = "1000"
"""Where memory is short, the kernel ends whoever has most of these points."""
_log = logging.getLogger("streamjoin.driver")
_POINTS = Path("/proc/self/oom_score_adj")


class Warm:
    """What a driver has ready when it gets its job.

    Args:
        token: by which its processes are found.
        load: imports all that a driver does besides, in a thread of its own.
    """

    def __init__(self, settings: Settings, token: str, load: Callable[[], None]) -> None:
        self.settings = settings
        self.token = token
        self._load = load
        self.run = run_of(settings, {})
        self.key = key_of(self.run)
        self.is_given = threading.Event()
        self.secrets: dict[str, str] = {}  # of the job, for another program that goes on in its place
        self._points = _POINTS.read_text()
        self._lock = threading.Lock()
        self._log: int | None = None
        self._session: Any = None
        self._thread = threading.Thread(target=self._warm_up, name="warm-up", daemon=True)

    def begin(self) -> None:
        """Get ready, in a thread of its own; what this process says goes on where it went."""
        # Java takes over standard error while it starts, and our log must not end up with it.
        sys.stderr = open(os.dup(2), "w", buffering=1)  # noqa: SIM115
        _POINTS.write_text(FIRST_TO_GO)
        self._thread.start()

    def job(self) -> tuple[str, int]:
        """Get ready, and wait for a job, whichever takes longer; gives its id and generation.

        Ends this process where it is asked to, or where whoever took it is gone.
        """
        signal.signal(signal.SIGTERM, lambda *_: self.end("it is asked to"))
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started this process
        self.begin()
        # What follows is loaded while Java starts.
        from backend.logs import set_up_logs
        from worker.keeper import end_with_platform

        set_up_logs("driver")
        end_with_platform(self.end)
        place = _folder(self.settings) / name_of(self.token, self.key)
        new = place.with_suffix(".new")
        with socket.socket(socket.AF_UNIX) as listener:
            with short_path(new) as path:
                listener.bind(path)
            listener.listen(1)
            new.rename(place)
            channel, _ = listener.accept()
        place.with_suffix(TAKEN).unlink(missing_ok=True)
        with channel:
            said = told(channel, 1)
            if said is None:
                self.end("whoever took it is gone")
            self.is_given.set()
            environment, (self._log,) = said
            job_id, _, generation = environment.pop(JOB).rpartition("/")
            environment.pop(processes.MARK)  # it has another one, by which its children are found, too
            os.environ.update(environment)
            write_to(self._log, (1, sys.stderr.fileno()))
            channel.sendall(b"!")
        self._be_as_others()
        return job_id, int(generation)

    def session(self, log: Path) -> Any:
        """The session, as soon as it is ready; None where it could not be made.

        Args:
            log: where Spark's errors go from now on.
        """
        from streamjoin.spark.session import log_to

        self._thread.join()
        if self._log is not None:
            write_to(self._log, (2,))
        if self._session is not None:
            self._be_as_others()  # what was started since
            log_to(self._session, log)
        return self._session

    def fits(self, settings: Settings, run: Mapping[str, Any]) -> bool:
        """Whether a job may run in this session.

        Args:
            run: what it says there.
        """
        return key_of(run_of(settings, run)) == self.key

    def end(self, why: str) -> NoReturn:
        """End with all that was started."""
        print(f"streamjoin: a driver without a job ends: {why}", file=sys.stderr, flush=True)
        self._end_children()
        os._exit(0)

    def start_cold(self, job_id: str, generation: int) -> NoReturn:
        """Become a driver that has nothing ready, with the same process id and thus the same lease."""
        self._end_children()
        if self._log is not None:
            write_to(self._log, (2,))
        from worker.launch import command_of

        command = command_of(job_id, generation)
        mark = processes.mark_of(job_id, generation)
        os.execve(command[0], command, {**os.environ, **self.secrets, processes.MARK: mark})

    def _end_children(self) -> None:
        me = os.getpid()
        processes.kill_all(lambda: [pid for pid in self._members() if pid != me], within_s=1.0)

    def _members(self) -> list[int]:
        return processes.of_warm(self.settings.data, self.token)

    def _be_as_others(self) -> None:
        """It has a job, and is worth as much as every other driver."""
        for pid in self._members():
            try:
                Path(f"/proc/{pid}/oom_score_adj").write_text(self._points)
            except OSError:
                continue  # it has ended

    def _warm_up(self) -> None:
        begun_s = time.monotonic()
        try:
            self._session = self._made()
            if not self.is_given.is_set():
                _log.info("a driver is ready for a job after %.1f s", time.monotonic() - begun_s)
                ready_file(self.settings.data, self.token).touch()
        except BaseException as failure:
            print(f"streamjoin: {failure}", file=sys.stderr, flush=True)
            if not self.is_given.is_set():  # else the job is run without what is ready
                self._end_children()
                os._exit(1)

    def _made(self) -> Any:
        from streamjoin.spark.session import create_session, start_workers

        # Java takes a second to start, and needs none of what a job does besides.
        threading.Thread(target=self._load, name="load", daemon=True).start()
        slots = self.run["slots"]
        session = create_session(
            slots, driver_memory_mib=self.run["driver_memory"], settings=self.run.get("spark"),
            log=self.settings.data.absolute() / "logs" / "warm.log",
        )  # fmt: skip
        if self.is_given.is_set():
            start_workers(session, slots)  # the job's own first batch does the rest
        else:
            from streamjoin.spark import warmup

            with tempfile.TemporaryDirectory(prefix=f"{self.token}.", dir=_folder(self.settings)) as folder:
                warmup.join(session, slots, Path(folder))
        return session


def _folder(settings: Settings) -> Path:
    folder = processes.warm_folder(settings.data)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def own_token() -> str:
    """By which the processes of this driver are found."""
    return os.environ[processes.MARK].removeprefix(processes.WARM).partition("/")[0]
