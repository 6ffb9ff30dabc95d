"""One sentence out of what Spark says of a failure."""

from __future__ import annotations

from importlib.metadata import version

import pytest

pytest.importorskip("pyspark")

from streamjoin.errors import InputError, RunError
from streamjoin.spark.failures import first_cause, too_large

OURS = version("pyspark")
NEEDED = (
    "executors need a Python of the driver's minor version with StreamJoin's packages: in one image, or packed and "
    "named by spark.pyspark.python in run.spark"
)
QUERY = "[STREAM_FAILED] Query [id = 1b4e28ba-2fa1, runId = 6fa459ea-ee8a] terminated with exception: "

TRACE = 'x: Traceback (most recent call last):\n  File "worker.py", line 1, in main\n    process()\n    ~~~~~~~^^\n'


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            f"{QUERY}x\n  File a\nstreamjoin.errors.StateError: unit 3 has no version 7\n\tat org.x",
            "unit 3 has no version 7",
        ),
        (f"{QUERY}{TRACE}ValueError: no such column\n\tat org.apache.x", "ValueError: no such column"),
        (
            f"{QUERY}{TRACE}pyarrow.lib.ArrowInvalid: Integer 9 is out\n\n\tat org.x",
            "pyarrow.lib.ArrowInvalid: Integer 9 is out",
        ),
        (f"{QUERY}{TRACE}MemoryError\n\tat org.x\nCaused by: java.io.EOFException", "MemoryError"),
        (f"{QUERY}{TRACE}KeyError: 1\n\nDuring handling\n\n{TRACE}OverflowError: too big\n", "OverflowError: too big"),
        (
            f"{QUERY}x\norg.apache.spark.SparkException: Python worker exited unexpectedly (crashed): EOF\n\tat org.x",
            "a Python worker exited without a message, as it does when the system ends it for lack of memory; smaller "
            "batches or a shorter window need less",
        ),
        (
            f"{QUERY}x\nError from python worker:\n  Traceback (most recent call last):\n    File a\n  "
            "ModuleNotFoundError: No module named 'numpy'\nPYTHONPATH was:\n  a.zip\norg.x: EOFException",
            f"Python cannot start a worker (ModuleNotFoundError: No module named 'numpy'); {NEEDED}",
        ),
        (
            f'{QUERY}x\n\tat org.x\nCaused by: java.io.IOException: Cannot run program "env/bin/python": error=2\n',
            f"Python cannot start a worker (there is no program env/bin/python); {NEEDED}",
        ),
        (
            f"{QUERY}{TRACE}pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in "
            "worker has different version: 3.12 than that in driver: 3.11, PySpark cannot run with different minor "
            "versions.\n",
            f"executors run Python 3.12 and the driver 3.11; {NEEDED}",
        ),
        (
            f"{QUERY}Job aborted: Task 0 in stage 1.0 failed 4 times: java.io.InvalidClassException: "
            "org.apache.spark.scheduler.Task; local class incompatible: stream classdesc serialVersionUID = 1, local "
            "class serialVersionUID = 2\n\tat java.base/java.io.ObjectStreamClass.initNonProxy\n",
            f"executors run another version of Spark and the driver {OURS}; start the cluster's masters and workers "
            f"from Spark {OURS}, or install the PySpark of the cluster's version where the driver runs",
        ),
        (f"{QUERY}x\n\tat org.x\nCaused by: java.io.IOException: disk full", "java.io.IOException: disk full"),
        (f"{QUERY}Partition r-0 was removed. SQLSTATE: XXKST", "Partition r-0 was removed. SQLSTATE: XXKST"),
        ("", "ValueError"),
    ],
)
def test_a_failure_is_told_in_one_sentence(said: str, shown: str) -> None:
    cause = first_cause(ValueError(said))
    assert isinstance(cause, RunError) and str(cause) == shown


def test_what_is_a_sentence_already_stays() -> None:
    wrong = InputError("no stream r")
    assert first_cause(wrong) is wrong


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            "Cannot broadcast the table that is larger than 8.0 GiB: 9.3 GiB. SQLSTATE: XXKST\n\tat org.x",
            "it takes 9.3 GiB, and Spark broadcasts 8.0 GiB at most",
        ),
        (
            "x\nCaused by: org.x: Cannot broadcast the table that is larger than 1024.0 B: 2.5 KiB.\n\tat org.x",
            "it takes 2.5 KiB, and Spark broadcasts 1024.0 B at most",
        ),
        (
            "Cannot broadcast the table over 357913941 rows: 400000000 rows.",
            "it has 400000000 rows, and Spark broadcasts 357913941 at most",
        ),
        (
            "Job aborted due to stage failure: Total size of serialized results of 8 tasks (1204.3 MiB) is bigger than "
            "spark.driver.maxResultSize (1024.0 MiB).\n\tat org.x",
            "it takes 1204.3 MiB, and Spark's driver accepts 1024.0 MiB; spark.driver.maxResultSize in run.spark says "
            "how much",
        ),
        (
            "Not enough memory to build and broadcast the table to all worker nodes. As a workaround, you can",
            "Java's heap has no room for it; run.driver_memory says how much there is",
        ),
    ],
)
def test_a_relation_that_is_too_large_to_be_broadcast_is_told_of_with_its_size(said: str, why: str) -> None:
    assert str(too_large(ValueError(f"{QUERY}{said}"))) == f"the relation is too large to be broadcast: {why}"


@pytest.mark.parametrize("cause", ["java.io.IOException: disk full", "java.lang.OutOfMemoryError: Java heap space"])
def test_another_failure_is_not_taken_for_a_relation_that_is_too_large(cause: str) -> None:
    assert too_large(ValueError(f"{QUERY}x\n\tat org.x\nCaused by: {cause}")) is None
