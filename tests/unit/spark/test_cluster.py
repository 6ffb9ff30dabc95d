"""What is asked of a cluster's master before Spark is, and what a session on it gets."""

from __future__ import annotations

import socket
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("pyspark")

from streamjoin.errors import InputError, RunError
from streamjoin.spark import cluster
from streamjoin.spark.cluster import (
    addresses_of,
    bindable,
    bounded,
    check_spark,
    cluster_settings,
    packed,
    reached,
    wait_for_executors,
    watched,
)
from streamjoin.spec.cluster import Cluster, ExecutorsFile
from streamjoin.spec.joinfile import of_content
from tests.servers.process import comes_true, free_ports

SAYS_NO = b"\x00\x00\x00\x00\x00\x00\x00\x0d\x08not found"


@contextmanager
def listener(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A port that takes one connection; gives its name as a master."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                answer(connection)

        threading.Thread(target=serve, daemon=True).start()
        yield f"spark://127.0.0.1:{server.getsockname()[1]}"


def says(text: bytes) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        connection.recv(100)
        connection.sendall(text)

    return answer


def is_silent(connection: socket.socket) -> None:
    while connection.recv(100):
        pass


@pytest.mark.parametrize("answer", [says(SAYS_NO), says(b"")])
def test_what_answers_as_spark_or_hangs_up_is_asked_further_by_spark(answer: Callable[[socket.socket], None]) -> None:
    with listener(answer) as master:
        assert reached(master) == "127.0.0.1"


def refused(master: str, field: str = "run.master") -> str:
    begun_s = time.monotonic()
    with pytest.raises(InputError) as wrong:
        reached(master)
    assert wrong.value.field == field and time.monotonic() - begun_s < 10
    assert "\n" not in str(wrong.value)
    return wrong.value.message


def test_a_port_where_nobody_listens() -> None:
    (port,) = free_ports(1)
    message = refused(f"spark://127.0.0.1:{port}")
    assert message == (
        f"nobody answers at 127.0.0.1:{port} (Connection refused); start the cluster's master, or write the address "
        "that it tells"
    )
    assert f"127.0.0.1:{port} (Connection refused)" in refused(f"k8s://http://127.0.0.1:{port}")
    assert "nowhere.invalid:7077 (" in refused("spark://nowhere.invalid:7077")


def test_a_port_that_takes_connections_and_says_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cluster, "ANSWER_S", 0.3)
    with listener(is_silent) as master:
        assert "takes connections and says nothing for 0.3 s" in refused(master)
    with listener(is_silent) as master:  # before anything of Spark's is started
        from streamjoin.spark.session import open_session

        run = {"master": master, "shared": True, "checkpoint": str(tmp_path)}
        file = of_content({"streams": {"a": {"source": "csv", "path": "a", "time": "t"}}, "query": "x", "run": run})
        with pytest.raises(InputError, match="says nothing"):
            open_session(file)


def test_the_port_of_the_masters_page() -> None:
    with listener(says(b"HTTP/1.1 400 Illegal character\r\n\r\n")) as master:
        assert "is a web page and no Spark master" in refused(master)


def test_of_several_masters_one_is_enough() -> None:
    (port,) = free_ports(1)
    with listener(says(SAYS_NO)) as master:
        assert reached(f"spark://127.0.0.1:{port},{master.removeprefix('spark://')}") == "127.0.0.1"


def test_yarn_says_where_it_is_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    assert "HADOOP_CONF_DIR" in refused("yarn")
    monkeypatch.setenv("YARN_CONF_DIR", "/etc/hadoop")
    monkeypatch.setattr(socket, "gethostname", lambda: "localhost")
    assert "executors could not call back localhost" in refused("yarn", "run.driver_host")


def test_where_masters_are() -> None:
    assert addresses_of("spark://a:1,[::1]:2") == [("a", 1), ("::1", 2)]
    assert addresses_of("k8s://https://api:6443/x") == [("api", 6443)]
    assert addresses_of("k8s://api") == [("api", 443)]
    assert addresses_of("k8s://http://api") == [("api", 80)]
    assert addresses_of("yarn") == []


def test_a_session_gets_what_its_executors_need(tmp_path: Path) -> None:
    executors = ExecutorsFile(min=2, cores=4, memory="2g")
    with listener(says(SAYS_NO)) as master:
        given = {"spark.archives": "env.tar.gz#environment", "spark.pyspark.python": "./environment/bin/python"}
        found = cluster_settings(Cluster(master, executors), 12, tmp_path, given)
    assert (found["spark.driver.host"], found["spark.driver.bindAddress"]) == ("127.0.0.1", "127.0.0.1")
    assert found["spark.archives"] == (
        f"env.tar.gz#environment,{(tmp_path / 'streamjoin-package.zip').as_uri()}#streamjoin-package"
    )
    assert found["spark.executorEnv.PYTHONPATH"] == "./streamjoin-package"
    assert found["spark.sql.execution.pyspark.python"] == "./environment/bin/python"
    assert {name.removeprefix("spark.dynamicAllocation."): value for name, value in found.items()
            if name.startswith("spark.dynamicAllocation.")} == {
        "enabled": "true", "shuffleTracking.enabled": "true", "minExecutors": "2", "initialExecutors": "2",
        "maxExecutors": "3", "cachedExecutorIdleTimeout": "60s",
    }  # fmt: skip
    assert (found["spark.executor.cores"], found["spark.executor.memory"]) == ("4", "2g")
    with zipfile.ZipFile(tmp_path / "streamjoin-package.zip") as archive:
        names = archive.namelist()
    assert "streamjoin/spark/daemon.py" in names and not any(name.endswith(".pyc") for name in names)


def test_what_the_join_file_says_of_spark_comes_on_top(tmp_path: Path) -> None:
    with listener(says(SAYS_NO)) as master:
        given = {"spark.driver.bindAddress": "0.0.0.0", "spark.executorEnv.PYTHONPATH": "/opt/mine"}
        found = cluster_settings(Cluster(master), 2, tmp_path, given)
    assert found["spark.driver.bindAddress"] == "0.0.0.0"
    assert found["spark.executorEnv.PYTHONPATH"] == "./streamjoin-package:/opt/mine"
    assert "spark.dynamicAllocation.enabled" not in found


def test_a_drivers_host_that_leads_nowhere(tmp_path: Path) -> None:
    with listener(says(SAYS_NO)) as master, pytest.raises(InputError, match="leads to no address here") as wrong:
        cluster_settings(Cluster(master, driver_host="nowhere.invalid"), 2, tmp_path, {})
    assert wrong.value.field == "run.driver_host"
    assert bindable("127.0.0.1") == "127.0.0.1"
    assert bindable("192.0.2.7") == "0.0.0.0"  # of a router in front of this machine


def test_the_archive_is_made_anew_at_each_start(tmp_path: Path) -> None:
    archive = packed(tmp_path / "new")
    archive.write_bytes(b"an earlier version")
    assert zipfile.is_zipfile(packed(tmp_path / "new"))


def test_a_session_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark import SparkContext

    gateway = MagicMock()
    monkeypatch.setattr(SparkContext, "_gateway", gateway)

    def start(failure: Callable[[], Exception]) -> None:
        with bounded(Cluster("yarn")):
            raise failure()

    said = "An error occurred.\n: java.io.IOException: no route\n\tat org.x"
    with pytest.raises(RunError, match=r"^yarn did not take the job: java\.io\.IOException: no route$"):
        start(lambda: ValueError(said))
    gateway.proc.kill.assert_not_called()
    monkeypatch.setattr(cluster, "SESSION_S", 0.05)
    ended = threading.Event()
    gateway.proc.kill.side_effect = ended.set
    with pytest.raises(RunError, match=r"^yarn did not take the job within 0\.05 s; if it runs, its Spark may be"):
        start(lambda: ConnectionError("Java is gone") if ended.wait(10) else AssertionError("it was not ended"))


class Counted:
    """A session with so many executors at each look."""

    def __init__(self, *executors: int, stopped: bool = False) -> None:
        self.executors = list(executors)
        context = MagicMock()
        context._jsc.sc().isStopped.return_value = stopped
        context._jsc.sc().statusTracker().getExecutorInfos.side_effect = self.infos
        self.sparkContext = context

    def infos(self) -> list[Any]:
        count = self.executors.pop(0) if len(self.executors) > 1 else self.executors[0]
        return ["the driver", *["another"] * count]


def test_it_is_said_when_no_executor_is_left_and_when_there_is_one_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "WATCH_S", 0.01)
    told: list[str] = []
    session = Counted(2, 1, 0, 0, 1, 2)
    with watched(session, Cluster("yarn"), told.append):
        assert comes_true(lambda: len(told) == 2, 10)
    assert told == ["no executor of yarn is left, and batches wait for one", "there are executors of yarn again"]
    with watched(session, None, told.append):
        pass
    session.executors = []  # Java is gone
    with watched(session, Cluster("yarn"), told.append):
        time.sleep(0.1)
    assert len(told) == 2 and not [one for one in threading.enumerate() if one.name == "executors"]


def test_executors_are_waited_for_and_no_longer_than_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "POLL_S", 0.01)
    monkeypatch.setattr(cluster, "TELL_S", 0.0)
    told: list[str] = []
    wait_for_executors(Counted(0, 0, 0, 1), Cluster("yarn"), told.append)
    assert told == ["waiting for executors of yarn"]
    wait_for_executors(Counted(1), Cluster("yarn"), told.append)
    assert len(told) == 1
    monkeypatch.setattr(cluster, "EXECUTORS_S", 0.05)
    with pytest.raises(RunError, match=r"yarn gave no executor within 0\.05 s.*one with 4 cores and 2g of memory"):
        wait_for_executors(Counted(0), Cluster("yarn", ExecutorsFile(cores=4, memory="2g")))
    with pytest.raises(RunError, match="yarn took the job and ended it"):
        wait_for_executors(Counted(0, stopped=True), Cluster("yarn"))


@pytest.mark.parametrize("found", [["4.3.0"], ["4.3.0", "4.1.7", "4.1.7"], ["4.1.7", "3.5.0"]])
def test_executors_of_another_version_of_spark_are_refused(found: list[str]) -> None:
    session = MagicMock(version="4.3.0")
    session.range().selectExpr().collect.return_value = [(version,) for version in found]
    if set(found) == {"4.3.0"}:
        check_spark(session, Cluster("yarn"), 3)
        return
    with pytest.raises(RunError, match="executors of yarn run Spark ") as refused:
        check_spark(session, Cluster("yarn"), 3)
    others = " and ".join(sorted({*found} - {"4.3.0"}))
    assert str(refused.value).startswith(f"executors of yarn run Spark {others} and the driver 4.3.0; start")
