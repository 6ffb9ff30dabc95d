"""Looks at files and databases of others, each in a process of its own whose memory and time are bounded.

A Parquet file may unpack to a thousand times its size, and a view of a database may never give its first row. Neither
can be stopped in a thread, so it is the kernel that stops them, and the API goes on. Processes are forked from one that
has loaded everything, which takes milliseconds; that one is started with the first look.
"""

from __future__ import annotations

import logging
import multiprocessing
import pickle
import resource
import signal
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from backend.problems import Problem
from streamjoin.errors import InputError, StreamJoinError
from streamjoin.sources.database import log_in_by_urls_alone
from streamjoin.sources.patterns import bounded_but, listing_bounded

_log = logging.getLogger("streamjoin.looks")

SECONDS = 20.0
"""What a look may take; brokers and database servers have ten of them to answer."""
MEMORY_BYTES = 1 << 30
REPLY_BYTES: Final = 32 << 20
AT_ONCE: Final = 4
OF_ONE: Final = 2
"""Looks for one user at once; others wait meanwhile for at most as long as two may take."""
WAIT: Final = 16
WAIT_OF_ONE: Final = 8
"""So many may wait for their turn, as each holds a thread of the API meanwhile; more than a page asks for at once."""
_SPARE_S: Final = 5.0
"""How much later than the kernel we give up ourselves."""
_START_S: Final = 120.0
"""How long the process that looks are forked from may take to be ready; where nothing is compiled yet, ten seconds."""

HERE_BYTES_MAX: Final = 2 << 10
"""Texts up to this size together are read and bound in the API itself; the worst take a tenth of a second."""

Given = ParamSpec("Given")
Found = TypeVar("Found")


def bounded(who: str | None, look: Callable[Given, Found], *given: Given.args, **named: Given.kwargs) -> Found:
    """Call a function of a module in a process of its own.

    Args:
        who: for whom.
        look: it, what it is given and what it returns are pickled; a database goes without its password.
    Raises:
        StreamJoinError, Problem: as the function does.
        InputError: it takes too long, or too much memory, crashes, or fails as nobody foresaw.
        Problem: others are being worked on.
    Cost: a fork, and two copies of what it returns.
    """
    if _is_apart:
        return look(*given, **named)
    make_ready()
    with _turn(who):
        ours, theirs = _forks().Pipe(duplex=False)
        bounds = (SECONDS, MEMORY_BYTES, bounded_but())
        process = _forks().Process(target=_work, args=(theirs, *bounds, look, given, named), daemon=True)
        process.start()
        theirs.close()
        answer = status = None
        try:
            answer = _answer_of(ours)
        finally:
            ours.close()
            if answer is None:
                process.join(1.0)  # what has ended says by which signal
                status = process.exitcode
            process.kill()
            process.join()
            process.close()
    if answer is None:
        raise _ended(status)
    went_well, found, stack = answer
    if went_well:
        return found
    if stack is not None:
        _log.error("a look failed: %s", stack)
    raise _again(*found)


def here_or_apart(
    who: str | None, size: int, work: Callable[Given, Found], *given: Given.args, **named: Given.kwargs
) -> Found:
    """Read and bind texts: here if they are short, otherwise in a process of its own.

    Args:
        who: for whom; also for looks at databases that come with binding.
        size: of all texts together.
        work: see `bounded`.
    Raises:
        StreamJoinError, Problem: as the work does, or as `bounded` does.
    Cost: a process for long texts.
    """
    if size <= HERE_BYTES_MAX:
        with looks_of(who):
            return work(*given, **named)
    return bounded(who, work, *given, **named)


_BEGUN: Final = b"begun"


def _answer_of(ours: Connection) -> tuple[bool, Any, str | None] | None:
    """What a process sent: whether it went well, what it found or how it failed, and the stack of what nobody foresaw.

    None where it was ended.
    """
    try:
        if not ours.poll(_START_S) or ours.recv_bytes() != _BEGUN or not ours.poll(SECONDS + _SPARE_S):
            return None
        return pickle.loads(ours.recv_bytes())
    except (EOFError, OSError):
        return None


def _work(theirs: Connection, seconds: float, memory: int, but: Path | None, look: Any, given: Any, named: Any) -> None:
    """In the process."""
    global _is_apart
    _is_apart = True
    log_in_by_urls_alone()
    theirs.send_bytes(_BEGUN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    memory += _data_bytes()
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        with listing_bounded(but):
            sent = pickle.dumps((True, look(*given, **named), None))
    except (StreamJoinError, Problem) as wrong:
        sent = _told(wrong)
    except MemoryError:  # Arrow's is one of them
        sent = _told(_too_much("needs too much memory"))
    except Exception as failure:  # whatever a library makes of what somebody named
        name = type(failure).__name__
        unforeseen = InputError(f"a look at it failed with {name}, which nobody foresaw; the API's log has its stack")
        sent = _told(unforeseen, traceback.format_exc())
    if len(sent) > REPLY_BYTES:
        sent = _told(_too_much("has rows that are too large to be shown"))
    theirs.send_bytes(sent)
    theirs.close()


def _data_bytes() -> int:
    """What the kernel counts for `RLIMIT_DATA`: also what was there before the fork."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[5]) * resource.getpagesize()


def _told(wrong: StreamJoinError | Problem, stack: str | None = None) -> bytes:
    return pickle.dumps((False, (type(wrong), wrong.args, wrong.__dict__), stack))


def _too_much(what: str) -> InputError:
    return InputError(f"a look at it {what}, so it was ended; it may take {SECONDS:g} s and {MEMORY_BYTES >> 20} MiB")


def _ended(status: int | None) -> Exception:
    """Why a process sent nothing.

    Args:
        status: its exit code, which is negative for a signal; None where it had not ended.
    """
    if status is None or status == -signal.SIGALRM:
        return _too_much("took too long")
    if status in (-signal.SIGKILL, -signal.SIGABRT):  # the kernel's, and of libraries in C++ that get no memory
        return _too_much("needs too much memory")
    if status < 0:
        name = signal.Signals(-status).name
        return InputError(f"a look at it crashed with {name}: a library does not stand what is in it; give it a schema "
                          "if it has none, or write it anew with another program")  # fmt: skip
    return RuntimeError(f"a look ended with status {status}; what it wrote to standard error says why")


def _again(kind: type[Exception], args: tuple[Any, ...], fields: dict[str, Any]) -> Exception:
    """An error as it was raised in the process: its fields are no arguments of its class."""
    wrong = kind.__new__(kind, *args)
    wrong.args = args
    wrong.__dict__.update(fields)
    return wrong


@lru_cache
def _forks() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        [
            "backend.looks_ready",
            "backend.api.relations",
            "backend.api.streams",
            "backend.api.drafts",
            "streamjoin.query",
        ]
    )
    return context


_ready = threading.Event()
_first = threading.Lock()


def make_ready() -> None:
    """Wait until the process that looks are forked from has loaded everything, and start it where nobody did.

    On a busy machine this takes longer than whoever waits for a turn has: nobody holds one meanwhile.
    """
    if _ready.is_set():
        return
    with _first:
        if not _ready.is_set():
            first = _forks().Process(target=_is_there, daemon=True)
            first.start()  # which waits until it is forked
            first.join()
            first.close()
            _ready.set()


def _is_there() -> None:
    """In the first process: nothing."""


_is_apart = False


def is_apart() -> bool:
    """Whether this is such a process."""
    return _is_apart


_whose: ContextVar[str | None] = ContextVar("_whose", default=None)


@contextmanager
def looks_of(who: str | None) -> Iterator[None]:
    """In the block, looks that come with binding a job are for this user."""
    before = _whose.set(who)
    try:
        yield
    finally:
        _whose.reset(before)


def looks_for() -> str | None:
    """For whom such looks are; None where nobody said so."""
    return _whose.get()


_free = threading.Condition()
_looking: Counter[str | None] = Counter()
_waiting: Counter[str | None] = Counter()


@contextmanager
def _turn(who: str | None) -> Iterator[None]:
    until = time.monotonic() + 2 * SECONDS
    with _free:
        _waiting[who] += 1
        try:
            while _looking.total() >= AT_ONCE or _looking[who] >= OF_ONE:
                too_many = _waiting.total() > WAIT or _waiting[who] > WAIT_OF_ONE
                if too_many or not _free.wait(until - time.monotonic()):
                    raise Problem(
                        "rate_limited.too_many_looks", f"{OF_ONE} looks of yours, or {AT_ONCE} of all users, at files "
                        "and databases are being worked on, which is the limit; ask again in a moment",
                        params={"limit": OF_ONE}, headers={"Retry-After": "5"},
                    )  # fmt: skip
        finally:
            _waiting[who] -= 1
        _looking[who] += 1
    try:
        yield
    finally:
        with _free:
            _looking[who] -= 1
            _free.notify_all()
