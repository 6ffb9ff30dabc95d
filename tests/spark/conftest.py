"""What the tests on Spark need: Java, and often a broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streamjoin.errors import InputError
from streamjoin.spark.java import find_java
from tests.servers import KafkaBroker, ServerUnavailable, spark_connector_jars


@pytest.fixture(scope="session", autouse=True)
def java() -> None:
    """No test here can do without."""
    try:
        find_java()
    except InputError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    """A Kafka broker, for all tests."""
    try:
        spark_connector_jars()
        with KafkaBroker() as started:
            yield started
    except ServerUnavailable as reason:
        pytest.skip(str(reason))
