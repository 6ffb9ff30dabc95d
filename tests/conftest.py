"""What all tests of a process share: Spark, a Kafka broker, and what is left to `make soak`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.servers import KafkaBroker

THREADS = 2


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The soak is run by who asks for it by its name."""
    if "soak" in config.getoption("markexpr"):
        return
    left_out = [item for item in items if item.get_closest_marker("soak")]
    items[:] = [item for item in items if not item.get_closest_marker("soak")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark with two threads, and with the Kafka connector where it can be had; a process can have one only."""
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


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    """A Kafka broker; names of topics are not to be used twice, see `unique` of the Spark tests."""
    from tests.servers import KafkaBroker, ServerUnavailable, spark_connector_jars

    try:
        spark_connector_jars()
        with KafkaBroker() as started:
            yield started
    except ServerUnavailable as reason:
        pytest.skip(str(reason))
