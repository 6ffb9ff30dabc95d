"""One sentence out of what Spark says of a failure."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from streamjoin.errors import InputError, RunError
from streamjoin.spark.failures import first_cause

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
