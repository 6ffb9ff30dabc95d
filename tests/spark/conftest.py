"""What the tests on Spark need: Java."""

from __future__ import annotations

import pytest

from streamjoin.errors import InputError
from streamjoin.spark.java import find_java


@pytest.fixture(scope="session", autouse=True)
def java() -> None:
    """No test here can do without."""
    try:
        find_java()
    except InputError as reason:
        pytest.skip(str(reason))
