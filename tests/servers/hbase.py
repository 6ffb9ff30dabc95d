"""HBase with everything in one process on the loopback interface, and its Thrift gateway in a second one.

Data and logs live in a temporary folder that goes when HBase is left, unless `kept` names one; `kill` and
`restart` keep them, as a crash does.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

import happybase
from thriftpy2.thrift import TException

from .maven import jars
from .process import ServerProcess, kept_ports

HERE = Path(__file__).parent

START_S_MAX = 300.0
ANSWER_S_MAX = 30.0
STOP_S_MAX = 60.0

# HBase reaches into Java's own packages.
OPENED = (
    "java.nio", "sun.nio.ch", "java.lang", "jdk.internal.ref", "java.lang.reflect", "java.util", "java.util.concurrent",
)  # fmt: skip
JAVA = (
    "java",
    # One thread to collect garbage: the tests share a small machine with Spark.
    "-XX:+UseSerialGC",
    "-Djava.net.preferIPv4Stack=true",
    "-Dorg.apache.hbase.thirdparty.io.netty.tryReflectionSetAccessible=true",
    "--add-modules=jdk.unsupported",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
    "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
    "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
)

# The last five make a start take 6 s instead of 14 s. With few retries the gateway says of a region that nobody serves
# so within a second or two, where it would try for minutes. The others are what one process on local files needs.
SITE = {
    "hbase.rootdir": "file://{folder}/hbase",
    "hbase.tmp.dir": "{folder}/tmp",
    "hbase.cluster.distributed": "false",
    "hbase.unsafe.stream.capability.enforce": "false",
    "hbase.wal.provider": "filesystem",
    "hbase.zookeeper.quorum": "127.0.0.1",
    "hbase.zookeeper.property.clientPort": "{zookeeper_port}",
    "hbase.zookeeper.property.clientPortAddress": "127.0.0.1",
    "hbase.zookeeper.property.dataDir": "{folder}/zookeeper",
    "hbase.localcluster.assign.random.ports": "false",
    "hbase.master.port": "{master_port}",
    "hbase.master.info.port": "-1",
    "hbase.master.ipc.address": "127.0.0.1",
    "hbase.unsafe.master.hostname": "localhost",
    "hbase.regionserver.port": "{region_port}",
    "hbase.regionserver.info.port": "-1",
    "hbase.regionserver.ipc.address": "127.0.0.1",
    "hbase.unsafe.regionserver.hostname": "localhost",
    "hbase.client.retries.number": "3",
    "hbase.regionserver.handler.count": "8",
    "hbase.regionserver.msginterval": "300",
    "hbase.master.wait.on.regionservers.timeout": "500",
    "hbase.master.wait.on.regionservers.interval": "200",
    "hbase.master.wait.on.regionservers.mintostart": "1",
}

# The syntax of log4j 1. Little more than the lines that say what is ready.
LOG4J = """\
log4j.rootLogger=WARN,console
log4j.logger.org.apache.hadoop.hbase.master.HMaster=INFO
log4j.logger.org.apache.hadoop.hbase.thrift.ThriftServer=INFO
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d %p %c{1}: %m%n
"""


class HbaseServer:
    """HBase and its gateway, which run inside the `with` block; clients connect to `port` of 127.0.0.1.

    Args:
        kept: a folder to keep data and ports in.
    Raises:
        ServerUnavailable: on entering, when java or the jars are missing and cannot be downloaded.
        ServerFailed: on entering, when one of the two does not start.
    """

    def __init__(self, kept: Path | None = None) -> None:
        self.kept = kept

    def __enter__(self) -> Self:
        self.jars = jars(HERE / "hbase")
        self.folder = tempfile.TemporaryDirectory(prefix="streamjoin-hbase-")
        self.home = self.kept or Path(self.folder.name)
        try:
            zookeeper_port, master_port, region_port, self.port = self.ports()
            self.write_settings(zookeeper_port=zookeeper_port, master_port=master_port, region_port=region_port)
            self.start()
            self.start_gateway()
        except BaseException:
            self.folder.cleanup()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.gateway.kill()
        # An orderly end takes seconds to save data, which is deleted in the next line unless it is kept.
        self.process.kill() if self.kept is None else self.process.stop(STOP_S_MAX)
        self.folder.cleanup()

    def ports(self) -> list[int]:
        """Of ZooKeeper, the master, the region server and the gateway."""
        self.home.mkdir(exist_ok=True)
        return kept_ports(self.home / "ports.json", 4)

    def write_settings(self, **ports: int) -> None:
        settings = self.home / "conf"
        settings.mkdir(exist_ok=True)
        properties = "".join(
            f"<property><name>{name}</name><value>{value.format(folder=self.home, **ports)}</value></property>\n"
            for name, value in SITE.items()
        )
        (settings / "hbase-site.xml").write_text(f"<configuration>\n{properties}</configuration>\n")
        (settings / "log4j.properties").write_text(LOG4J)

    def java(self, memory: str, main_class: str, *arguments: str) -> list[str]:
        classes = f"{self.home}/conf:{self.jars}/*"
        return [*JAVA, f"-Xmx{memory}", "-cp", classes, f"org.apache.hadoop.hbase.{main_class}", *arguments]

    def start(self) -> None:
        log = self.home / "hbase.log"
        self.process = ServerProcess("HBase", self.java("768m", "master.HMaster", "start"), log)
        try:
            # Ports are open long before.
            self.process.wait_for_output("Master has completed initialization", START_S_MAX)
        except BaseException:
            self.process.kill()
            raise

    def start_gateway(self) -> None:
        log = self.home / "gateway.log"
        where = ("-threadpool", "-b", "127.0.0.1", "-p", str(self.port), "--infoport", "-1")
        command = self.java("384m", "thrift.ThriftServer", *where, "start")
        self.gateway = ServerProcess("HBase's Thrift gateway", command, log)
        try:
            self.gateway.wait_until(self.gateway_answers, f"does not answer on port {self.port}", START_S_MAX)
        except BaseException:
            self.gateway.kill()
            self.process.kill()
            raise

    def gateway_answers(self) -> bool:
        """Whether it reaches both parts of HBase, which it first tries long after it listens."""
        try:
            connection = happybase.Connection("127.0.0.1", self.port, timeout=int(ANSWER_S_MAX * 1000))
            try:
                connection.tables()  # known to the master
                connection.table("hbase:meta").row(b"none")  # of the region server
            finally:
                connection.close()
        except (TException, OSError):
            return False
        return True

    def kill(self) -> None:
        """Crash HBase (SIGKILL), not the gateway. Its data stays for `restart`."""
        self.process.kill()

    def restart(self) -> None:
        """Start HBase again on its data and ports, after killing it if it still runs. Returns once it is ready.

        The gateway finds it by itself, a little later.
        """
        self.process.kill()
        self.start()

    def kill_gateway(self) -> None:
        """Crash the Thrift gateway (SIGKILL), not HBase."""
        self.gateway.kill()

    def restart_gateway(self) -> None:
        """Start the gateway again on its port, after killing it if it still runs. Returns once it is ready."""
        self.gateway.kill()
        self.start_gateway()
