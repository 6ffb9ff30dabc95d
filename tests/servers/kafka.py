"""A one-node Apache Kafka broker on the loopback interface, with the jars that let Spark read it.

The node is broker and controller in one process. Data and log live in a temporary folder that goes when the broker is
left; `kill` and `restart` keep them, as a crash does.
"""

from __future__ import annotations

import base64
import subprocess
import tempfile
import uuid
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # Documented, not exported.

from .maven import jars
from .process import ServerFailed, ServerProcess, free_ports

HERE = Path(__file__).parent

START_S_MAX = 300.0
ADMIN_S_MAX = 20.0
DELIVERY_S_MAX = 30.0

JAVA = (
    "java",
    "-Xmx384m",
    # One thread to collect garbage: the tests share a small machine with Spark.
    "-XX:+UseSerialGC",
    # Little more than the line that says it is ready; otherwise the reason of a failure is far from the log's end.
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
)

ANY_PARTITION = -1  # As the client library counts.

# No topic appears by itself: a client that still reads a deleted topic would bring it back, empty.
# After a crash the controller refuses the broker until its old session has ended. Less than the default, 9 s, would let
# a broker that a busy machine held up lose its session, and with it the lead of its partitions.
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=9000
broker.heartbeat.interval.ms=500
"""

# Throughput before latency: a test hands over millions of records, then waits once for all of them.
# Only failures are reported back, for a call into Python per record would take longer than sending it.
# A topic the broker does not know is one nobody created, as `create_topic` waits until it is known: 30 s of patience,
# the default, would only delay the error.
PRODUCER = {
    "linger.ms": 50,
    "batch.size": 1 << 20,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 1 << 18,
    "delivery.report.only.error": True,
    "enable.idempotence": True,
    "delivery.timeout.ms": int(DELIVERY_S_MAX * 1000),
    "topic.metadata.propagation.max.ms": 1000,
    "log_level": 3,
}


class KafkaBroker:
    """A broker that runs inside the `with` block, where `servers` is its "host:port".

    Raises:
        ServerUnavailable: on entering, when java or the jars are missing and cannot be downloaded.
        ServerFailed: on entering, when the broker does not start.
    """

    def __enter__(self) -> Self:
        self.jars = jars(HERE / "kafka")
        self.folder = tempfile.TemporaryDirectory(prefix="streamjoin-kafka-")
        try:
            self.port, controller_port = free_ports(2)
            self.servers = f"127.0.0.1:{self.port}"
            self.properties = Path(self.folder.name) / "server.properties"
            data = Path(self.folder.name) / "data"
            self.properties.write_text(PROPERTIES.format(port=self.port, controller_port=controller_port, data=data))
            self.format_storage()
            self.start()
        except BaseException:
            self.folder.cleanup()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Killed, not asked: an orderly end takes a second to save data that is deleted in the next line.
        self.process.kill()
        self.folder.cleanup()

    def format_storage(self) -> None:
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        tool = self.java("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(self.properties))
        run = subprocess.run(
            tool, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=START_S_MAX, check=False,
        )  # fmt: skip
        if run.returncode != 0:
            raise ServerFailed(f"Kafka's storage cannot be formatted:\n{run.stdout}")

    def java(self, main_class: str, *arguments: str) -> list[str]:
        return [*JAVA, "-cp", f"{self.jars}/*", main_class, *arguments]

    def start(self) -> None:
        log = Path(self.folder.name) / "broker.log"
        self.process = ServerProcess("Kafka", self.java("kafka.Kafka", str(self.properties)), log)
        try:
            self.process.wait_for_output("Kafka Server started", START_S_MAX)
        except BaseException:
            self.process.kill()
            raise

    def kill(self) -> None:
        """Crash the broker (SIGKILL). Its data stays for `restart`."""
        self.process.kill()

    def restart(self) -> None:
        """Start the broker again on its data and port, after stopping it if it still runs.

        Returns once the broker accepts clients.
        """
        self.process.stop()
        self.start()

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create an empty topic and wait until clients can see it.

        Raises:
            KafkaException: the broker refuses, for instance because the topic exists.
        """
        admin = self.admin()
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(ADMIN_S_MAX)
        self.wait_for_topic(admin, name, there=True)

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records and wait until clients cannot see it any more.

        Raises:
            KafkaException: the broker refuses, for instance because there is no such topic.
        """
        admin = self.admin()
        admin.delete_topics([name], operation_timeout=ADMIN_S_MAX)[name].result(ADMIN_S_MAX)
        self.wait_for_topic(admin, name, there=False)

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.servers})

    def wait_for_topic(self, admin: AdminClient, name: str, *, there: bool) -> None:
        """The controller answers as soon as it has decided; the broker learns of it a moment later."""
        otherwise = f'does not {"show" if there else "drop"} the topic "{name}"'
        self.process.wait_until(
            lambda: (name in admin.list_topics(timeout=ADMIN_S_MAX).topics) == there, otherwise, ADMIN_S_MAX
        )

    def produce(self, topic: str, values: Iterable[bytes], partition: int | None = None) -> None:
        """Append records without key to a topic and wait until the broker has them all.

        Args:
            values: one record each, in this order within a partition. May be larger than memory.
            partition: the partition that takes all of them; without it the client spreads them.
        Raises:
            KafkaException: a record was refused or not delivered; some others may be in the topic.
        """
        failures: list[KafkaError] = []

        def note_failure(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failures.append(error)

        producer = Producer(PRODUCER | {"bootstrap.servers": self.servers, "on_delivery": note_failure})
        target = ANY_PARTITION if partition is None else partition
        for value in values:
            while True:
                try:
                    producer.produce(topic, value, partition=target)
                    break
                except BufferError:
                    producer.poll(0.1)  # Full: wait for the sender to make room.
            if failures:
                break
        producer.flush()  # Ends by itself: each record is delivered or fails within DELIVERY_S_MAX.
        if failures:
            raise KafkaException(failures[0])


def spark_connector_jars() -> str:
    """The value of `spark.jars` that adds Spark's Kafka source and sink to a session.

    Raises:
        ServerUnavailable: java or the jars are missing and cannot be downloaded.
    """
    return ",".join(str(jar) for jar in sorted(jars(HERE / "spark-kafka").glob("*.jar")))
