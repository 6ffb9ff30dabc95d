"""Failures of Spark's as ours: which ones pass by themselves, and what was the first cause."""

from __future__ import annotations

import re

from streamjoin.errors import RunError, StreamJoinError

_OF_SPARK = re.compile(r"\[STREAM_FAILED\] Query \[.*?\] terminated with exception: ")
_TRACEBACK = "Traceback (most recent call last):"
_PYTHON_NAME = re.compile(r"(?!org\.|java\.|py4j\.)[A-Za-z_][\w.]*(:|$)")
_NO_WORKER = re.compile(r"Error from python worker:\s*\n(.*?)\n\s*PYTHONPATH was:", re.DOTALL)
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]*)"')
_OTHER_PYTHON = re.compile(
    r"\[PYTHON_VERSION_MISMATCH\] Python in worker has different version: (\S+) than that in driver: ([0-9.]+)"
)
_PYTHON_NEEDED = (
    "executors need a Python of the driver's minor version with StreamJoin's packages: in one image, or packed and "
    "named by spark.pyspark.python in run.spark"
)
_OTHER_SPARK = re.compile(r"InvalidClassException: (?:org\.apache\.spark|scala)\S*; local class incompatible")
_WORKER_DIED = "Python worker exited unexpectedly"
NOT_CONNECTED = "to connect back"
"""Spark gives the process that keeps a source's offsets ten seconds from its start until it connects, after Python has
loaded half of PySpark. No setting makes that longer, and a machine that has more to do than it can may need more."""

_NOT_BROADCAST = (
    (re.compile(r"Cannot broadcast the table that is larger than ([^:\n]+): ([^\n]+?)\.?(?=\s*$|\s*\n| SQLSTATE)"),
     "it takes {1}, and Spark broadcasts {0} at most"),
    (re.compile(r"Cannot broadcast the table over (\d+) rows: (\d+) rows"),
     "it has {1} rows, and Spark broadcasts {0} at most"),
    (re.compile(r"Total size of serialized results of \d+ tasks \((.+?)\) is bigger than \S+ \((.+?)\)"),
     "it takes {0}, and Spark's driver accepts {1}; spark.driver.maxResultSize in run.spark says how much"),
    (re.compile(r"Not enough memory to build and broadcast"),
     "Java's heap has no room for it; run.driver_memory says how much there is"),
)  # fmt: skip
"""What Spark says -> why it does not broadcast a relation. A full heap alone may as well be a stream's batch."""


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
    if _OTHER_SPARK.search(text):
        return RunError(other_spark("executors run another version of Spark", driver_spark()))
    if (found := _of_python(text)) is not None:
        return RunError(found)
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


def too_large(failure: BaseException) -> RunError | None:
    """That a relation is too large for Spark to broadcast, in one sentence; None where something else failed."""
    text = str(failure)
    for pattern, why in _NOT_BROADCAST:
        if found := pattern.search(text):
            return RunError(f"the relation is too large to be broadcast: {why.format(*found.groups())}")
    return None


def other_spark(said: str, drivers: str) -> str:
    """A sentence on executors of another version of Spark.

    Args:
        said: what they run.
        drivers: the driver's version.
    """
    return (
        f"{said} and the driver {drivers}; start the cluster's masters and workers from Spark {drivers}, or install "
        "the PySpark of the cluster's version where the driver runs"
    )


def driver_spark() -> str:
    """The version of Spark that this Python has."""
    from importlib.metadata import version

    return version("pyspark")


def _of_python(text: str) -> str | None:
    """What is wrong with the Python that was to run a worker; None where that is not what failed."""
    if match := _OTHER_PYTHON.search(text):
        return f"executors run Python {match[1]} and the driver {match[2]}; {_PYTHON_NEEDED}"
    if match := _NO_WORKER.search(text):
        lines = [line.strip() for line in match[1].splitlines() if line.strip()]
        return f"Python cannot start a worker ({lines[-1][:300]}); {_PYTHON_NEEDED}" if lines else None
    if match := _NO_PROGRAM.search(text):
        return f"Python cannot start a worker (there is no program {match[1][:200]}); {_PYTHON_NEEDED}"
    return None


def _raised_in_worker(text: str) -> str | None:
    """The line that names an exception of Python's in a worker, whatever it is called; None without a traceback."""
    _, traceback, rest = text.rpartition(_TRACEBACK)
    lines = [line for line in rest.splitlines()[1:] if line.strip()]
    # Its own lines are indented, down to the exception's.
    named = next((line for line in lines if not line[0].isspace()), None) if traceback else None
    return named if named is None or _PYTHON_NAME.match(named) else None
