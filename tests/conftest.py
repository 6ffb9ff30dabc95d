"""One Spark session for all tests of a pytest process: Spark's Java starts once, and a process can have one only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

THREADS = 2


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark with two threads, and with the Kafka connector where it can be had."""
    # Imported here: most tests need no Spark, and the import takes a second.
    from streamjoin.spark.session import create_session
    from tests.servers import ServerUnavailable, spark_connector_jars
    from tests.spark.command import JAVA_OPTIONS

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
