"""Failures of Spark's as ours: which ones pass by themselves, and what was the first cause."""

from __future__ import annotations

import re

from streamjoin.errors import RunError, StreamJoinError

_OF_SPARK = re.compile(r"\[STREAM_FAILED\] Query \[.*?\] terminated with exception: ")
_TRACEBACK = "Traceback (most recent call last):"
_PYTHON_NAME = re.compile(r"(?!org\.|java\.|py4j\.)[A-Za-z_][\w.]*(:|$)")
_WORKER_DIED = "Python worker exited unexpectedly"
NOT_CONNECTED = "to connect back"
"""Spark gives the process that keeps a source's offsets ten seconds from its start until it connects, after Python has
loaded half of PySpark. No setting makes that longer, and a machine that has more to do than it can may need more."""


def first_cause(failure: BaseException) -> StreamJoinError:
    """A failure of Spark's as one of ours: the first cause in one sentence, without stacks."""
    if isinstance(failure, StreamJoinError):
        return failure
    text = str(failure)
    for line in reversed(text.splitlines()):
        for kind in ("StateError", "RunError", "InputError", "UnsupportedError"):
            marker = f"streamjoin.errors.{kind}: "
            if marker in line:
                return RunError(line.split(marker, 1)[1].strip())
    if (raised := _raised_in_worker(text)) is not None:
        return RunError(raised[:500])
    if _WORKER_DIED in text:
        return RunError(
            "a Python worker exited without a message, as it does when the system ends it for lack of memory; smaller "
            "batches or a shorter window need less"
        )
    for line in text.splitlines():
        if line.strip().startswith(("Caused by:", "org.apache", "pyspark.errors")) and "STREAM_FAILED" not in line:
            return RunError(line.strip().removeprefix("Caused by:").strip()[:500])
    first = next((line.strip() for line in text.splitlines() if line.strip()), type(failure).__name__)
    return RunError(_OF_SPARK.sub("", first)[:500])


def _raised_in_worker(text: str) -> str | None:
    """The line that names an exception of Python's in a worker, whatever it is called; None without a traceback."""
    _, traceback, rest = text.rpartition(_TRACEBACK)
    lines = [line for line in rest.splitlines()[1:] if line.strip()]
    # Its own lines are indented, down to the exception's.
    named = next((line for line in lines if not line[0].isspace()), None) if traceback else None
    return named if named is None or _PYTHON_NAME.match(named) else None
