"""A session on a cluster: what executors need, and what is asked of its master before Spark asks in its own way.

Spark alone waits a minute for a master that is not there, and for ever for executors that nobody has, and says so in a
log that nobody reads.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import streamjoin
from streamjoin.errors import InputError, RunError
from streamjoin.loopback import is_loopback
from streamjoin.spark.failures import driver_spark, first_cause, other_spark
from streamjoin.spec.cluster import Cluster

CONNECT_S = 5.0
ANSWER_S = 15.0
SESSION_S = 120.0
EXECUTORS_S = 120.0
POLL_S = 0.25
TELL_S = 1.0
WATCH_S = 3.0
PACKAGE = "streamjoin-package"
"""The folder below an executor's own that our package is unpacked to."""
STAYING_SETTINGS = {
    # Blocks for a slot come from all machines alike; what has most of them says nothing of where its segments are.
    "spark.shuffle.reduceLocality.enabled": "false",
    # It is the machine that has segments, not the executor.
    "spark.locality.wait.process": "0s",
    # Anchors alone keep no executor that has had nothing to do for as long as any other may.
    "spark.dynamicAllocation.cachedExecutorIdleTimeout": "60s",
}
"""What `staying.py` asks of Spark; here, because a session is made before that is loaded."""
_STREAM_REQUEST = 6
_ASKED = b"/files/streamjoin-asks-whether-you-are-there"
Show = Callable[[str], None]


def cluster_settings(cluster: Cluster, slots: int, folder: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Settings of a session on a cluster, once its master answers, with those of the join file.

    Args:
        folder: where the archive of our package is put, which executors fetch from the driver.
        given: the join file's.
    Raises:
        InputError: nobody is there, or executors would have nobody to call back.
    """
    local = reached(cluster.master)
    host = cluster.driver_host or local
    check_host(host)
    archives = ",".join(filter(None, [given.get("spark.archives"), f"{packed(folder).as_uri()}#{PACKAGE}"]))
    path = os.pathsep.join(filter(None, [f"./{PACKAGE}", given.get("spark.executorEnv.PYTHONPATH")]))
    found = {"spark.driver.host": host, "spark.driver.bindAddress": bindable(host), **STAYING_SETTINGS}
    if (python := given.get("spark.pyspark.python")) is not None:
        # For executors alone: the driver plans with its own, wherever theirs lies.
        found["spark.sql.execution.pyspark.python"] = python
    if (executors := cluster.executors) is not None:
        found |= {
            "spark.executor.cores": str(executors.cores),
            "spark.executor.memory": executors.memory,
            "spark.dynamicAllocation.enabled": "true",
            # What a stage left for the next one lies with the executor that made it, which stays for so long.
            "spark.dynamicAllocation.shuffleTracking.enabled": "true",
            "spark.dynamicAllocation.minExecutors": str(executors.min),
            "spark.dynamicAllocation.initialExecutors": str(executors.min),
            "spark.dynamicAllocation.maxExecutors": str(executors.most(slots)),
        }
    return {**found, **given, "spark.archives": archives, "spark.executorEnv.PYTHONPATH": path}


def packed(folder: Path) -> Path:
    """An archive of our package, so that executors run the code that the driver runs."""
    folder.mkdir(parents=True, exist_ok=True)
    root = Path(streamjoin.__file__).parent
    archive, unfinished = folder / f"{PACKAGE}.zip", folder / f".{PACKAGE}.zip"
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for path in sorted(root.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                file.write(path, path.relative_to(root.parent))
    unfinished.replace(archive)
    return archive


def addresses_of(master: str) -> list[tuple[str, int]]:
    """Hosts and ports of a master's name; none where it names no host, as YARN does."""
    if master.startswith("spark://"):
        parts = master.removeprefix("spark://").split(",")
        return [(url.hostname or "", url.port or 7077) for url in (urlsplit(f"spark://{part}") for part in parts)]
    if master.startswith("k8s://"):
        name = master.removeprefix("k8s://")
        url = urlsplit(name if "://" in name else f"https://{name}")
        return [(url.hostname or "", url.port or (80 if url.scheme == "http" else 443))]
    return []


def reached(master: str) -> str:
    """The address of this machine by which it reaches the master, which executors can call back.

    Raises:
        InputError: the master is not there, or is something else.
    """
    addresses = addresses_of(master)
    if not addresses:
        if not (os.environ.get("HADOOP_CONF_DIR") or os.environ.get("YARN_CONF_DIR")):
            raise InputError(
                "is yarn, and neither HADOOP_CONF_DIR nor YARN_CONF_DIR says where that is; set one to the folder of "
                "yarn-site.xml",
                field="run.master",
            )
        return _own_name()
    said: list[str] = []
    for host, port in addresses:
        try:
            with socket.create_connection((host, port), CONNECT_S) as connection:
                if master.startswith("spark://"):
                    _check_answer(connection, f"{host}:{port}")
                return _as_spark_writes(connection.getsockname()[0])
        except OSError as cause:
            why = "no answer" if isinstance(cause, TimeoutError) else cause.strerror or str(cause)
            said.append(f"{host}:{port} ({why})")
    raise InputError(
        f"nobody answers at {' and '.join(said)}; start the cluster's master, or write the address that it tells",
        field="run.master",
    )


def _check_answer(connection: socket.socket, address: str) -> None:
    """Ask for a file that no master has: Spark answers that, or ends a connection that comes without its secret."""
    body = bytes([_STREAM_REQUEST]) + struct.pack(">i", len(_ASKED)) + _ASKED
    connection.settimeout(ANSWER_S)
    connection.sendall(struct.pack(">q", 8 + len(body)) + body)
    try:
        answer = connection.recv(64)
    except TimeoutError:
        raise InputError(
            f"{address} takes connections and says nothing for {ANSWER_S:g} s; is it a Spark master, and does it hang?",
            field="run.master",
        ) from None
    except ConnectionError:
        return  # it refuses what has no secret
    if answer.startswith(b"HTTP/"):
        raise InputError(
            f"{address} is a web page and no Spark master; the page shows the master's address, such as "
            "spark://host:7077",
            field="run.master",
        )


def _own_name() -> str:
    name = socket.gethostname()
    with suppress(OSError):
        if not is_loopback(socket.gethostbyname(name)):
            return name
    raise InputError(
        f"executors could not call back {name}, which is known on this machine alone; write the name or address by "
        "which they reach it",
        field="run.driver_host",
    )


def check_host(host: str) -> None:
    """Refuse a driver's host that is none.

    Raises:
        InputError: its name leads nowhere.
    """
    try:
        socket.getaddrinfo(host.strip("[]"), None)
    except OSError:
        raise InputError(
            f"{host} leads to no address here; write the name or address by which executors reach this machine",
            field="run.driver_host",
        ) from None


def bindable(host: str) -> str:
    """The address to listen on: the host's own, or every one where it is that of a router in front of this machine."""
    for family, _, _, _, address in socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM):
        with suppress(OSError), socket.socket(family) as listener:
            listener.bind(address)
            return _as_spark_writes(address[0])
    return "0.0.0.0"


def _as_spark_writes(address: Any) -> str:
    return f"[{address}]" if ":" in str(address) else str(address)


@contextmanager
def bounded(cluster: Cluster) -> Iterator[None]:
    """Gives up on a session that is not there in time.

    Raises:
        RunError: the cluster did not take the job.
    """
    from pyspark import SparkContext

    is_late = threading.Event()

    def give_up() -> None:
        is_late.set()
        gateway: Any = SparkContext._gateway
        if gateway is not None:
            gateway.proc.kill()

    timer = threading.Timer(SESSION_S, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception as failure:
        # Whatever it is: Java ended, or Spark did before it had begun.
        if is_late.is_set():
            raise RunError(
                f"{cluster.master} did not take the job within {SESSION_S:g} s; if it runs, its Spark may be of "
                f"another version than the driver's {driver_spark()}"
            ) from None
        lines = [line for line in str(failure).splitlines() if line.strip()]
        told = next((line for line in lines if "Exception: " in line), lines[0] if lines else type(failure).__name__)
        raise RunError(f"{cluster.master} did not take the job: {told.strip().removeprefix(': ')[:500]}") from None
    finally:
        timer.cancel()


def wait_for_executors(session: Any, cluster: Cluster, show: Show | None = None) -> None:
    """Wait until the first executor is there.

    Raises:
        RunError: none is within `EXECUTORS_S`.
    """
    begun_s, is_told = time.monotonic(), False
    while executors_of(session) == 0:
        if session.sparkContext._jsc.sc().isStopped():
            raise RunError(f"{cluster.master} took the job and ended it before an executor was there")
        passed_s = time.monotonic() - begun_s
        if passed_s > EXECUTORS_S:
            size = cluster.executors
            asked = "as large as it gives" if size is None else f"with {size.cores} cores and {size.memory} of memory"
            raise RunError(
                f"{cluster.master} gave no executor within {EXECUTORS_S:g} s; it may have no free core, or no worker "
                f"for one {asked}: end other applications, start workers, or ask for less in run.executors"
            )
        if show and not is_told and passed_s >= TELL_S:
            show(f"waiting for executors of {cluster.master}")
            is_told = True
        time.sleep(POLL_S)


def check_spark(session: Any, cluster: Cluster, slots: int) -> None:
    """Make sure that executors run the driver's version of Spark: another one says things differently.

    Cost: a Spark job without input, a second or so while executors start their tasks.

    Raises:
        RunError: they run another one.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        # Unlike version(), which the driver computes, a method that is called by its name is called by tasks.
        asked = session.range(0, slots, 1, slots).selectExpr("java_method('org.apache.spark.package', 'SPARK_VERSION')")
        found = {version for (version,) in asked.collect()}
    except (PySparkException, Py4JError) as failure:
        raise first_cause(failure) from None
    if others := sorted(found - {session.version}):
        raise RunError(other_spark(f"executors of {cluster.master} run Spark {' and '.join(others)}", session.version))


@contextmanager
def watched(session: Any, cluster: Cluster | None, show: Show | None) -> Iterator[None]:
    """Says when no executor is left, so that batches wait, and when there is one again."""
    if cluster is None or show is None:
        yield
        return
    ended = threading.Event()

    def look() -> None:
        had = 1
        while not ended.wait(WATCH_S):
            try:
                has = executors_of(session)
            except Exception:  # Java has ended, or is about to; whoever waits for it says why
                return
            if bool(has) != bool(had) and not ended.is_set():
                there = f"there are executors of {cluster.master} again"
                gone = f"no executor of {cluster.master} is left, and batches wait for one"
                show(there if has else gone)
            had = has

    watching = threading.Thread(target=look, name="executors", daemon=True)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join(WATCH_S)


def executors_of(session: Any) -> int:
    """How many executors there are; Spark counts the driver, too."""
    return len(session.sparkContext._jsc.sc().statusTracker().getExecutorInfos()) - 1
