"""The Spark session of a job."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from streamjoin.errors import InputError, RunError, StreamJoinError
from streamjoin.spark.cluster import Show, bounded, check_spark, cluster_settings, wait_for_executors
from streamjoin.spark.home import spark_home
from streamjoin.spark.java import LITTLE_OPTIONS, find_java
from streamjoin.spark.sockets import socket_settings
from streamjoin.spec.cluster import Cluster

if TYPE_CHECKING:
    from streamjoin.spec.joinfile import JoinFile

ROWS_A_RECORD_BATCH = 65_536
BYTES_A_RECORD_BATCH = 64 << 20
"""A row of the unit stage's input is a whole block, so batches between Java and Python are bounded by bytes too."""

SETTINGS = {
    # Same plan, same partitions, every time: adaptive execution would merge the slots.
    "spark.sql.adaptive.enabled": "false",
    # A stage whose output was lost sends the same tuples when it is repeated, and reports with other seconds: Spark
    # would take those for other results, and end the query once a task of the next stage is done.
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_A_RECORD_BATCH),
    "spark.sql.execution.arrow.maxBytesPerBatch": str(BYTES_A_RECORD_BATCH),
    "spark.sql.session.timeZone": "UTC",
    "spark.python.daemon.module": "streamjoin.spark.daemon",
    # One rename per log entry instead of two with checksum files.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # Every poll calls into Python: at Spark's 10 ms a job that waits would keep the processor busy.
    "spark.sql.streaming.pollingDelay": "50ms",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.runSQLOnFiles": "false",
}
LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Blocks are numbers mostly and stay on this machine: compressing them costs more than it saves.
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    # A driver has open ports on loopback, though nobody else is to come. A local Spark makes a secret, without which
    # other users of this machine get no further than the port; on a cluster all would have to share one.
    "spark.authenticate": "true",
    # Where output of a stage was lost and made again, Spark has struck this process off its own list, cannot put it
    # back without a cluster's scheduler, and would end it after 60 heartbeats that say so: ten minutes of exact work.
    "spark.executor.heartbeat.maxFailures": str(2**31 - 1),
}
"""Of a session whose tasks run in the driver's own Java."""
LITTLE_MEMORY_MIB = 768
"""Whoever gives Java a smaller heap than this wants little memory used, and pays with speed: about a fifth."""
LITTLE_MEMORY = {"spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20)}
TASK_ATTEMPTS = 4
_NO_GATEWAY = "JAVA_GATEWAY_EXITED"
_HEARD_BYTES = 64 << 10
_COMPLAINT = re.compile(r"[Ee]xception|[Ee]rror|[Ii]nvalid|[Uu]nrecognized")
_PREFIX = re.compile(r'^(Exception in thread "[^"]*" |Error: )')


def create_session(
    slots: int,
    *,
    name: str = "streamjoin",
    jars: Sequence[Path] = (),
    driver_memory_mib: int = 1024,
    cluster: Cluster | None = None,
    settings: Mapping[str, str] | None = None,
    log: Path | None = None,
    record: Path | None = None,
) -> SparkSession:
    """A session for jobs of `slots` slots.

    Args:
        jars: the Kafka connector's, where a stream needs it.
        driver_memory_mib: Java heap; state is not in it, so it need not grow with the window.
        cluster: where tasks run; None for this process, with as many threads as slots.
        log: where Spark's errors go, stacks and all; nowhere by default.
        record: where Java writes an archive of the classes it loaded, as it ends.
    Raises:
        InputError: there is no usable Java, or no such cluster.
        RunError: the cluster does not take the job.
    """
    java = find_java()
    given = dict(settings or {})
    # Workers must be this interpreter, wherever the shell's `python3` points to.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_HOME"] = str(spark_home())
    os.environ["STREAMJOIN_DRIVER_PID"] = str(os.getpid())
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    little = driver_memory_mib < LITTLE_MEMORY_MIB
    if little:
        # Many threads, each with an arena of its own, keep hundreds of MiB that nobody uses.
        os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    options = [*java.options(record), *(LITTLE_OPTIONS if little else ())]
    package_root = str(Path(__file__).resolve().parents[2])
    paths = [package_root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    builder = SparkSession.builder.master(cluster.master if cluster else f"local[{slots},{TASK_ATTEMPTS}]")
    own = {
        "spark.app.name": name, "spark.sql.shuffle.partitions": str(slots),
        "spark.driver.memory": f"{driver_memory_mib}m", **SETTINGS, **(LITTLE_MEMORY if little else {}),
        "spark.hadoop.fs.permissions.umask-mode": _umask(),
    }  # fmt: skip
    if cluster is None:
        own |= {**LOCAL_SETTINGS, **socket_settings()}
    else:
        folder = log.parent if log is not None else Path(tempfile.mkdtemp(prefix="streamjoin-"))
        given = cluster_settings(cluster, slots, folder, given)
    own |= given
    # Java that runs already is told by its socket.
    hidden = _taken(own, settings or {}) if SparkContext._gateway is None else {}
    for key, value in own.items():
        builder = builder.config(key, value)
    if jars:
        builder = builder.config("spark.jars", ",".join(str(jar) for jar in jars))
    with _properties(hidden) as properties:
        os.environ["PYSPARK_SUBMIT_ARGS"] = _submit_arguments(log, options, cluster, properties)
        with _starting(log, settings or {}), bounded(cluster) if cluster else nullcontext():
            return builder.getOrCreate()


@contextmanager
def _starting(log: Path | None, settings: Mapping[str, str]) -> Iterator[None]:
    """Java may be started in it, and what that says where it does not is told.

    Raises:
        InputError: it did not start, with these settings.
    """
    heard = _Heard()
    try:
        with _java_speaks_to(log, heard), _interrupts_stay_ours():
            yield
    except PySparkRuntimeError as failure:
        if failure.getCondition() != _NO_GATEWAY:
            raise
        raise _not_started(heard.text, settings) from None


def _taken(settings: dict[str, str], names: Iterable[str]) -> dict[str, str]:
    """Settings with these names, which are no longer among the others."""
    return {name: settings.pop(name) for name in names if name.startswith("spark.")}


@contextmanager
def _properties(settings: Mapping[str, str]) -> Iterator[Path | None]:
    """A file, for this user alone, of settings that may be secrets: all users see with what Java is started."""
    if not settings:
        yield None
        return
    with tempfile.NamedTemporaryFile("w", prefix="streamjoin-", suffix=".conf") as file:
        file.writelines(f"{_escaped(name)}={_escaped(value)}\n" for name, value in settings.items())
        file.flush()
        yield Path(file.name)


def _escaped(text: str) -> str:
    """As files of Java's properties have it."""

    def numbered(found: re.Match[str]) -> str:
        return re.sub("(....)", r"\\u\1", found[0].encode("utf-16-be").hex())

    return re.sub(r"[^A-Za-z0-9._/-]", numbered, text)


def _umask() -> str:
    # Hadoop sets the modes of what it makes by itself, whatever the umask of its process is.
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("Umask:"):
            return line.split()[1]
    return "022"  # a kernel before 4.7


@contextmanager
def _interrupts_stay_ours() -> Iterator[None]:
    """PySpark would answer Ctrl-C by cancelling all jobs; whoever made the session decides what it means."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def start_workers(session: SparkSession, slots: int) -> None:
    """Start the Python workers in the background: they import for seconds, while Spark plans the first batch."""

    def run() -> None:
        # A failure here shows again, with its cause, in the first batch.
        with suppress(Exception):
            session.range(slots).mapInArrow(_nothing, "id long").collect()

    threading.Thread(target=run, name="start-workers", daemon=True).start()


def open_session(file: JoinFile, show: Show | None = None) -> SparkSession:
    """A session as the join file's `run:` asks for, where it asks for.

    Args:
        show: told what is waited for.
    Raises:
        InputError: there is no usable Java, or no such cluster.
        RunError: the cluster does not take the job, has no executor for it, or runs another version of Spark.
    """
    cluster = file.cluster
    session = create_session(
        file.slots,
        name=file.name,
        cluster=cluster,
        driver_memory_mib=file.run.driver_memory,
        settings=file.run.spark,
        log=log_of(file),
    )
    if cluster is not None:
        try:
            wait_for_executors(session, cluster, show)
            check_spark(session, cluster, file.slots)
        except BaseException:
            session.stop()
            raise
    start_workers(session, file.slots)
    return session


def log_of(file: JoinFile) -> Path:
    """Where a job's log is."""
    return file.checkpoint / "spark.log"


def log_to(session: SparkSession, log: Path) -> None:
    """Spark's errors go into another file from now on."""
    log.parent.mkdir(parents=True, exist_ok=True)
    java: Any = session._jvm
    java.java.lang.System.setProperty("streamjoin.log", str(log))
    java.org.apache.logging.log4j.core.config.Configurator.reconfigure()


def _nothing(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


@dataclass(slots=True)
class _Heard:
    """What Java said on standard error until it had started, or had not."""

    text: str = ""


@contextmanager
def _java_speaks_to(log: Path | None, heard: _Heard) -> Iterator[None]:
    """Java takes over our standard error when it starts; what it says there belongs into its log."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() if log is None else open(log, "ab+") as target:
        kept, begin = os.dup(2), os.fstat(target.fileno()).st_size
        try:
            os.dup2(target.fileno(), 2)
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            target.seek(begin)
            heard.text = target.read(_HEARD_BYTES).decode(errors="replace")


def _not_started(said: str, settings: Mapping[str, str]) -> StreamJoinError:
    """Why there is no Java, by the first line in which it complains."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    found = next((line for line in lines if _COMPLAINT.search(line)), lines[-1] if lines else "nothing")
    words = f"it said: {_PREFIX.sub('', found)}"
    if settings:
        return InputError(
            f"Java did not start with these settings ({', '.join(sorted(settings))}); {words}", field="run.spark"
        )
    return RunError(f"Java did not start; {words}")


def _submit_arguments(
    log: Path | None, java_options: Sequence[str], cluster: Cluster | None, properties: Path | None
) -> str:
    # Logging is set up while Java starts, before any setting of the session is read.
    options = [f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.properties').as_uri()}", *java_options]
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        options.append(f"-Dstreamjoin.log={log}")
    # YARN and Kubernetes get some of what they need from this name, before there is a session.
    master = f"--master {shlex.quote(cluster.master)} " if cluster else ""
    # Without the second option a file would stand for spark-defaults.conf.
    file = f"--properties-file {shlex.quote(str(properties))} --load-spark-defaults " if properties else ""
    return f"{master}{file}--driver-java-options {shlex.quote(shlex.join(options))} pyspark-shell"
