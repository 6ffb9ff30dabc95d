"""What all tests of a process share: Spark, a Kafka broker, and what is left to `make soak`."""

from __future__ import annotations

import gc
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.servers import KafkaBroker
    from tests.servers.s3 import S3

THREADS = 2


def pytest_addoption(parser: pytest.Parser) -> None:
    """For a run in parts, such as the soak's."""
    parser.addoption("--share", metavar="I/N", help="only the I-th of N shares of the tests, by a hash of their names")


def in_share(name: str, share: str) -> bool:
    """Whether a test belongs to a share, such as 2/8; each belongs to one of them."""
    number, _, shares = share.partition("/")
    return zlib.crc32(name.encode()) % int(shares) == int(number) - 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The soak is run by who asks for it by its name. A file's tests are a group, but for those that share nothing."""
    for item in items:
        if not item.get_closest_marker("kills"):
            item.add_marker(pytest.mark.xdist_group(item.path.relative_to(config.rootpath).as_posix()))
    if (share := config.getoption("--share")) is not None:
        items[:] = [item for item in items if in_share(item.nodeid, share)]
    if "soak" in config.getoption("markexpr"):
        return
    left_out = [item for item in items if item.get_closest_marker("soak")]
    items[:] = [item for item in items if not item.get_closest_marker("soak")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Reading thousands of tests leaves nothing to collect, and looking for it took a third of the time.

    What was read stays to the end, so the collector need not look at it later either.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_sessionfinish() -> None:
    """Libraries that count what nobody let go of complain otherwise."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark with two threads, and with the Kafka connector if its jars are there; a process can have one only."""
    # Imported here: most tests need no Spark, and the import takes a second.
    from streamjoin.spark.session import create_session
    from tests.servers import ServerUnavailable, spark_connector_jars
    from tests.servers.s3 import ENVIRONMENT as S3_ENVIRONMENT
    from tests.spark.command import JAVA_OPTIONS

    try:
        jars = [Path(jar) for jar in spark_connector_jars().split(",")]
    except ServerUnavailable:
        jars = []  # the tests with a broker skip themselves
    log = tmp_path_factory.mktemp("spark") / "spark.log"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("JAVA_TOOL_OPTIONS", JAVA_OPTIONS)
        for name, value in S3_ENVIRONMENT.items():  # of its Python workers, too
            environment.setenv(name, value)
        spark = create_session(THREADS, name="tests", jars=jars, log=log)
    yield spark
    spark.stop()


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    """An S3 server with a bucket; prefixes in it are not to be used twice."""
    from tests.servers import ServerUnavailable
    from tests.servers.s3 import ENVIRONMENT, S3

    with pytest.MonkeyPatch.context() as environment:
        for name, value in ENVIRONMENT.items():
            environment.setenv(name, value)
        try:
            with S3() as started:
                yield started
        except ServerUnavailable as reason:
            pytest.skip(str(reason))


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
