"""Settings of Spark with which Java does not start, by Java itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.spark
def test_a_wrong_setting_of_spark_is_said_to_be_one() -> None:
    """Java itself: in a process of its own, as this one may have a session."""
    code = (
        "from streamjoin.spark.session import create_session\n"
        "create_session(1, settings={'spark.driver.memory': 'lots'})\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert (
        "InputError: run.spark: Java did not start with these settings (spark.driver.memory); it said: " in found.stderr
    )
    assert "lots" in found.stderr.rpartition("it said: ")[2]
