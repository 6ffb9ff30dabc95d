"""The Spark session of a job."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from streamjoin.spark.home import spark_home
from streamjoin.spark.java import LITTLE_OPTIONS, find_java
from streamjoin.spec.joinfile import JoinFile

ROWS_A_RECORD_BATCH = 65_536
BYTES_A_RECORD_BATCH = 64 << 20
"""A row of the unit stage's input is a whole block, so batches between Java and Python are bounded by bytes too."""

SETTINGS = {
    # Same plan, same partitions, every time: adaptive execution would merge the slots.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_A_RECORD_BATCH),
    "spark.sql.execution.arrow.maxBytesPerBatch": str(BYTES_A_RECORD_BATCH),
    "spark.sql.session.timeZone": "UTC",
    "spark.python.daemon.module": "streamjoin.spark.daemon",
    # Blocks are numbers mostly and stay on this machine: compressing them costs more than it saves.
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    # One rename a log entry in place of two with checksum files; about 50 ms a batch less.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # Every look is a call into Python; at 10 ms, as usual, they take a job that waits a twentieth of a core.
    "spark.sql.streaming.pollingDelay": "50ms",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.runSQLOnFiles": "false",
}
LITTLE_MEMORY_MIB = 768
"""Whoever gives Java a smaller heap than this wants little memory used, and pays with speed: about a fifth."""
LITTLE_MEMORY = {"spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20)}
TASK_ATTEMPTS = 4


def create_session(
    slots: int,
    *,
    name: str = "streamjoin",
    jars: Sequence[Path] = (),
    driver_memory_mib: int = 1024,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    log: Path | None = None,
    record: Path | None = None,
) -> SparkSession:
    """A session for jobs of `slots` slots.

    Args:
        jars: the Kafka connector's, where a stream needs it.
        driver_memory_mib: Java heap; state is not in it, so it need not grow with the window.
        master: local by default, with as many threads as slots.
        log: where Spark's errors go, stacks and all; nowhere by default.
        record: where Java writes an archive of the classes it loaded, as it ends.
    Raises:
        InputError: there is no usable Java.
    """
    java = find_java()
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
    os.environ["PYSPARK_SUBMIT_ARGS"] = _submit_arguments(log, options)
    package_root = str(Path(__file__).resolve().parents[2])
    paths = [package_root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    builder = (
        SparkSession.builder.appName(name)
        .master(master or f"local[{slots},{TASK_ATTEMPTS}]")
        .config("spark.sql.shuffle.partitions", str(slots))
        .config("spark.driver.memory", f"{driver_memory_mib}m")
    )
    own = {**SETTINGS, **(LITTLE_MEMORY if little else {}), "spark.hadoop.fs.permissions.umask-mode": _umask()}
    if master is None:
        # A driver has open ports on loopback, though nobody else is to come. A local Spark makes a secret, without
        # which other users of this machine get no further than the port; on a cluster all would have to share one.
        own["spark.authenticate"] = "true"
    for key, value in {**own, **(settings or {})}.items():
        builder = builder.config(key, value)
    if jars:
        builder = builder.config("spark.jars", ",".join(str(jar) for jar in jars))
    with _java_speaks_to(log), _interrupts_stay_ours():
        return builder.getOrCreate()


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


def open_session(file: JoinFile, master: str | None = None) -> SparkSession:
    """A session as the join file's `run:` asks for.

    Args:
        master: of a cluster, which must see the checkpoint's folder; None for this machine.
    """
    session = create_session(
        file.slots,
        name=file.name,
        master=master,
        driver_memory_mib=file.run.driver_memory,
        settings=file.run.spark,
        log=log_of(file),
    )
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


@contextmanager
def _java_speaks_to(log: Path | None) -> Iterator[None]:
    """Java takes over our standard error when it starts; what it says there belongs into its log."""
    sys.stderr.flush()
    kept = os.dup(2)
    target = os.open(log or os.devnull, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.dup2(target, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(target)


def _submit_arguments(log: Path | None, java_options: Sequence[str]) -> str:
    # Logging is set up while Java starts, before any setting of the session is read.
    options = [f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.properties').as_uri()}", *java_options]
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        options.append(f"-Dstreamjoin.log={log}")
    return f"--driver-java-options {shlex.quote(shlex.join(options))} pyspark-shell"
