"""A join on a cluster whose machines share an object store and no disk: exact, whichever of them is lost.

Driver and workers run apart: each has one folder to write to, which is empty when it starts and nobody else sees.
Rows come from generators, a topic, or files that nobody may write to, and results go to HBase.
"""

from __future__ import annotations

import json
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from streamjoin.generate import generator
from streamjoin.results.answer import ask
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.spec.joinfile import load
from streamjoin.spec.outputs import store_job, store_spec
from streamjoin.state.generation import owner
from streamjoin.state.objects import Objects, opened
from tests import duck
from tests.servers import KafkaBroker, ServerUnavailable, spark_connector_jars
from tests.servers.apart import inside, refusal
from tests.servers.hbase import HbaseServer
from tests.servers.process import ServerProcess
from tests.servers.s3 import BUCKET, ENVIRONMENT, S3
from tests.servers.spark import SparkCluster

from .command import KILLS_S_MAX, RUN_S_MAX, Command
from .jobs import check_same, crash, unique

pytestmark = [pytest.mark.spark, pytest.mark.services, pytest.mark.slow]

BATCHES = 10
ROWS = 400
RATE = 10_000
OPTIONS = {"keys": 500, "skew": 0.5}
WINDOW_MS = 100
SEEDS = {"r": 3, "s": 4}


@pytest.fixture(scope="module")
def hbase() -> Iterator[HbaseServer]:
    try:
        with HbaseServer() as server:
            yield server
    except ServerUnavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """What every machine calls its own folder."""
    if (reason := refusal()) is not None:
        pytest.skip(reason)
    (folder := tmp_path / "own").mkdir()
    return folder


def rows_of(name: str, first: int, stop: int) -> pa.Table:
    """Rows of a stream."""
    kind = generator(f"zipf.{name}")
    return pa.Table.from_batches([kind.rows(first, stop, seed=SEEDS[name], rate=float(RATE), options=OPTIONS)])


def generated(name: str) -> str:
    """A stream that every machine makes itself."""
    return (
        f"{{source: generator, kind: zipf.{name}, seed: {SEEDS[name]}, rate: {RATE}, rows: {BATCHES * ROWS}, "
        f"time: ts, options: {json.dumps(OPTIONS)}}}"
    )


def of_files(folder: Path, name: str) -> str:
    """The same rows in files, which all machines may read and none may write."""
    (folder / name).mkdir()
    for batch in range(BATCHES):
        pq.write_table(rows_of(name, batch * ROWS, (batch + 1) * ROWS), folder / name / f"{batch:06d}.parquet")
    return f"{{source: parquet, path: {folder / name}, time: ts}}"


def of_topic(broker: KafkaBroker, name: str) -> str:
    """The same rows in a topic of two partitions."""
    broker.create_topic(topic := unique(f"apart-{name}"), partitions=2)
    rows = rows_of(name, 0, BATCHES * ROWS)
    times = rows["ts"].cast(pa.int64()).to_pylist()
    records = [
        json.dumps({"id": id, "ts": us, "k": k}).encode()
        for id, us, k in zip(rows["id"].to_pylist(), times, rows["k"].to_pylist(), strict=True)
    ]
    for partition in (0, 1):
        broker.produce(topic, records[partition::2], partition)
    return (
        f"{{source: kafka, servers: '{broker.servers}', topic: {topic}, format: json, time: ts, delay: 100ms, "
        "schema: {id: int64, ts: int64, k: int64}}"
    )


class Run:
    """A join whose driver and executors run apart.

    Args:
        streams: of its join file.
        is_read: whether a stream is in files that all may read.
        jars: what executors need beside Spark.
    """

    def __init__(
        self,
        folder: Path,
        cluster: SparkCluster,
        s3: S3,
        hbase: HbaseServer,
        streams: dict[str, str],
        *,
        is_read: bool = False,
        jars: str | None = None,
    ) -> None:
        assert cluster.own is not None
        self.folder, self.cluster, self.own = folder, cluster, cluster.own
        self.streams = streams
        self.state = s3.uri(f"{BUCKET}/{folder.name}")
        self.results = (
            f'{{store: hbase, hosts: ["127.0.0.1"], port: {hbase.port}, table: {unique("apart")}, '
            "snapshot: {batches: 1}}"
        )
        self.seen = 0
        self.file = self.join_file(
            folder, self.own, f"master: {cluster.master}", "executors: {min: 2, max: 2, memory: 512m}",
            f"spark: {json.dumps({**cluster.settings, **({'spark.jars': jars} if jars else {})})}",
            *(["shared: true"] if is_read else ()),
        )  # fmt: skip

    def join_file(self, folder: Path, own: Path, *run: str) -> Path:
        """The join, for a driver with a folder of its own, and with more that is said in `run:`."""
        more = "".join(f"\n  {line}" for line in run)
        (file := folder / "join.yaml").write_text(f"""\
streams: {{r: {self.streams["r"]}, s: {self.streams["s"]}}}
query: SELECT ONLINE r.id AS r_id, s.id AS s_id FROM r, s WHERE r.k = s.k WITHIN {WINDOW_MS} MILLISECONDS
operator: {{name: biclique, routing: hash, r_units: 2, s_units: 2}}
results: {self.results}
run:
  checkpoint: {own}/checkpoint
  cache: {{path: {own}/cache}}
  state: "{self.state}"
  offsets_per_batch: {ROWS}
  files_per_batch: 1
  slots: 2{more}
""")
        return file

    def driver(self) -> Command:
        """Another machine on which the driver runs."""
        return Command(self.file, "--until-end", own=self.own)

    def committed(self, driver: Command) -> int:
        """How many batches of the job a driver knows to be committed."""
        commits = inside(driver.pid, self.own / "checkpoint/offsets/commits").glob("[0-9]*")
        return max((int(commit.name) + 1 for commit in commits), default=0)

    def goes_on(self, driver: Command, batches: int) -> None:
        """Wait until so many more batches are committed than when this was last called, and not all there are."""
        self.seen += batches
        driver.wait_until(lambda: self.committed(driver) >= self.seen, f"commits no {batches} batches", RUN_S_MAX)
        self.seen = self.committed(driver)
        assert self.seen < BATCHES, "something was to be killed before its end"

    def check_apart(self) -> None:
        """Executors have caches of their own, and nothing of the driver's."""
        executors = self.cluster.executors()
        assert len(executors) == 2, "both workers take part"
        for executor in executors:
            assert any(inside(executor.pid, self.own / "cache").rglob("*.arrow")), "each keeps what it wrote"
            assert not inside(executor.pid, self.own / "checkpoint").exists(), "nobody but the driver has a checkpoint"

    def lose(self, worker: ServerProcess) -> None:
        """A machine is gone with its executor and all it had, and another one takes its place."""
        worker.kill()
        self.cluster.start_worker()

    def check_exact(self, drivers: int) -> None:
        """HBase has what DuckDB joins; each driver went on with the state of the one before."""
        assert not list(self.own.iterdir()), "what is there was written where all see it"
        for name in SEEDS:
            pq.write_table(rows_of(name, 0, BATCHES * ROWS), self.folder / f"{name}.parquet")
        wanted = Counter(
            duck.rows(f"""
                SELECT r.id, s.id FROM '{self.folder}/r.parquet' AS r JOIN '{self.folder}/s.parquet' AS s
                ON r.k = s.k AND abs(epoch_us(r.ts) - epoch_us(s.ts)) <= {WINDOW_MS * 1000}""")
        )
        assert wanted.total() > 1000
        join = load(self.file)
        reader = Reader(store_spec(join).open(), store_job(join))
        reader.refresh()
        got: Counter[Any] = Counter(tuple(row.values()) for rows in ask(reader, Question()) for row in rows.to_pylist())
        check_same(got, wanted)
        filesystem, path = opened(self.state)
        head = owner(Objects(filesystem, path, "state"))
        assert head is not None and head.number == drivers


@pytest.mark.timeout(KILLS_S_MAX)
def test_a_cluster_goes_on_with_what_another_machine_left_in_the_store_and_loses_a_worker_with_its_disk(
    session: SparkSession, s3: S3, hbase: HbaseServer, own: Path, tmp_path: Path
) -> None:
    with SparkCluster(2, own, ENVIRONMENT) as cluster:
        run = Run(tmp_path, cluster, s3, hbase, {name: generated(name) for name in SEEDS})
        (other := tmp_path / "other machine").mkdir()
        crash(session, run.join_file(other, other), "batch.before_commit:3")
        shutil.rmtree(other)
        with run.driver() as driver:
            run.goes_on(driver, 4)
            run.check_apart()
            run.lose(cluster.workers[0])
            assert driver.exit_status() == 0, driver.output()
        run.check_exact(drivers=2)


@pytest.mark.soak
@pytest.mark.timeout(KILLS_S_MAX)
def test_workers_and_drivers_are_lost_with_their_disks(
    s3: S3, hbase: HbaseServer, broker: KafkaBroker, own: Path, tmp_path: Path
) -> None:
    streams = {"r": of_topic(broker, "r"), "s": of_files(tmp_path, "s")}
    with SparkCluster(2, own, ENVIRONMENT) as cluster:
        run = Run(tmp_path, cluster, s3, hbase, streams, is_read=True, jars=spark_connector_jars())
        for lost in cluster.workers[:]:
            with run.driver() as driver:
                run.goes_on(driver, 1)
                run.check_apart()
                run.lose(lost)
                run.goes_on(driver, 1)
                assert driver.crash() == -signal.SIGKILL
        with run.driver() as last:
            assert last.exit_status() == 0, last.output()
        run.check_exact(drivers=3)
