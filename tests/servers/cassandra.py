"""A one-node Apache Cassandra on the loopback interface.

Data and log live in a temporary folder that goes when the node is left; `kill` and `restart` keep them, as a crash
does.
"""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from .maven import jars
from .process import ServerProcess, free_ports

HERE = Path(__file__).parent

START_S_MAX = 300.0
ANSWER_S_MAX = 2.0

OPTIONS = (
    "-Xmx512m",
    "-XX:MaxDirectMemorySize=256m",
    # The tests share a small machine; a run of a minute earns nothing from the second compiler or more collectors.
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Djdk.attach.allowAttachSelf=true",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dcassandra-foreground=yes",
    # Nobody else is there to be waited for.
    "-Dcassandra.ring_delay_ms=100",
    "-Dcassandra.skip_wait_for_gossip_to_settle=0",
    "-Dcassandra.superuser_setup_delay_ms=0",
)

# What Cassandra's own jvm17-server.options opens up.
EXPORTS = (
    "java.base/jdk.internal.misc",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "java.base/java.lang.ref",
    "jdk.unsupported/sun.misc",
    "jdk.compiler/com.sun.tools.javac.file",
    "jdk.attach/sun.tools.attach",
)
OPENS = (
    "java.base/java.lang.module",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.util.jar",
    "jdk.management/com.sun.management.internal",
    "java.base/sun.nio.ch",
    "java.base/java.io",
    "java.base/java.lang.reflect",
    "jdk.compiler/com.sun.tools.javac",
    "java.base/java.lang",
    "java.base/java.util",
)

# With periodic syncs, the default, a crash would lose what was answered in the last tenth of a second. The node gives
# up later than its clients: a busy machine can hold it up for longer than its own time-outs, a second or a few.
SETTINGS = """\
cluster_name: streamjoin-tests
num_tokens: 1
allocate_tokens_for_local_replication_factor: 1
auto_bootstrap: false
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
data_file_directories: [{folder}/data]
commitlog_directory: {folder}/commitlog
saved_caches_directory: {folder}/saved_caches
hints_directory: {folder}/hints
cdc_raw_directory: {folder}/cdc_raw
commitlog_sync: group
commitlog_sync_group_window: 5ms
auto_snapshot: false
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{{seeds: "127.0.0.1:{storage_port}"}}]
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
storage_port: {storage_port}
native_transport_port: {port}
start_native_transport: true
read_request_timeout: 20s
range_request_timeout: 20s
write_request_timeout: 20s
cas_contention_timeout: 20s
{more}
"""

LOGGING = """\
<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} %-5level %logger{0}: %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="OUT"/></root>
</configuration>
"""

# A frame of version 4 of the protocol that asks what the node supports, and the kind of the answer to it.
ASK_OPTIONS = bytes([4, 0, 0, 0, 5, 0, 0, 0, 0])
SUPPORTED = 6


class CassandraNode:
    """A node that runs inside the `with` block and answers CQL at `port` of 127.0.0.1.

    Args:
        more: further lines of cassandra.yaml.
    Raises:
        ServerUnavailable: on entering, when java or the jars are missing and cannot be downloaded.
        ServerFailed: on entering, when the node does not start.
    """

    def __init__(self, more: str = "") -> None:
        self.more = more

    def __enter__(self) -> Self:
        self.jars = jars(HERE / "cassandra")
        self.folder = tempfile.TemporaryDirectory(prefix="streamjoin-cassandra-", ignore_cleanup_errors=True)
        try:
            folder = Path(self.folder.name)
            self.port, storage_port = free_ports(2)
            settings = SETTINGS.format(folder=folder, port=self.port, storage_port=storage_port, more=self.more)
            (folder / "cassandra.yaml").write_text(settings)
            (folder / "logback.xml").write_text(LOGGING)
            self.start()
        except BaseException:
            self.folder.cleanup()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Killed, not asked: an orderly end takes seconds to save data that is deleted in the next line.
        self.process.kill()
        self.folder.cleanup()

    def start(self) -> None:
        folder = Path(self.folder.name)
        command = [
            "java",
            *OPTIONS,
            *(f"--add-exports={name}=ALL-UNNAMED" for name in EXPORTS),
            *(f"--add-opens={name}=ALL-UNNAMED" for name in OPENS),
            f"-Dcassandra.config=file://{folder}/cassandra.yaml",
            f"-Dcassandra.storagedir={folder}",
            f"-Dlogback.configurationFile={folder}/logback.xml",
            *("-cp", f"{self.jars}/*", "org.apache.cassandra.service.CassandraDaemon"),
        ]
        self.process = ServerProcess("Cassandra", command, folder / "node.log")
        try:
            self.process.wait_until(self.answers, "does not answer", START_S_MAX)
        except BaseException:
            self.process.kill()
            raise

    def answers(self) -> bool:
        """Whether the node speaks CQL, which it does once it is ready for all of it."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), ANSWER_S_MAX) as connection:
                connection.sendall(ASK_OPTIONS)
                answer = connection.recv(5)
        except OSError:
            return False
        return len(answer) == 5 and answer[4] == SUPPORTED

    def kill(self) -> None:
        """Crash the node (SIGKILL). Its data stays for `restart`."""
        self.process.kill()

    def restart(self) -> None:
        """Start the node again on its data and port, after killing it if it still runs.

        Returns once the node answers.
        """
        self.process.kill()
        self.start()
