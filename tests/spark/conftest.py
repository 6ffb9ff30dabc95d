"""One Spark session for all tests of a pytest process: Spark's Java starts once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamjoin.errors import InputError
from streamjoin.spark.java import find_java
from streamjoin.spark.session import create_session
from tests.servers import KafkaBroker, ServerUnavailable, spark_connector_jars

from .command import JAVA_OPTIONS

THREADS = 2


@pytest.fixture(scope="session", autouse=True)
def java() -> None:
    """No test here can do without."""
    try:
        find_java()
    except InputError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark with two threads, and with the Kafka connector where it can be had."""
    try:
        jars = [Path(jar) for jar in spark_connector_jars().split(",")]
    except ServerUnavailable:
        jars = []  # the tests with a broker skip themselves
    log = tmp_path_factory.mktemp("spark") / "spark.log"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("JAVA_TOOL_OPTIONS", JAVA_OPTIONS)
        spark = create_session(THREADS, name="tests", jars=jars, log=log)
    yield spark
    spark.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    """A Kafka broker, for all tests."""
    try:
        spark_connector_jars()
        with KafkaBroker() as started:
            yield started
    except ServerUnavailable as reason:
        pytest.skip(str(reason))
