"""A join on a cluster whose machines share an object store and no disk.

Driver and workers run apart: each has one folder to write to, which is empty when it starts and nobody else sees.
Rows come from generators, a topic, or files that nobody may write to, and results go to HBase.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from streamjoin.generate import generator
from streamjoin.results.answer import ask
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.spec.joinfile import load
from streamjoin.spec.outputs import store_job, store_spec
from streamjoin.state.generation import owner
from streamjoin.state.objects import Objects, opened
from tests import duck
from tests.servers import KafkaBroker
from tests.servers.apart import inside
from tests.servers.hbase import HbaseServer
from tests.servers.s3 import BUCKET, S3
from tests.servers.spark import SparkCluster

from .command import RUN_S_MAX, Command
from .jobs import check_same, unique

WORKERS = 3
BATCHES = 10
ROWS = 400
RATE = 10_000
OPTIONS = {"keys": 500, "skew": 0.5}
WINDOW_MS = 100
SEEDS = {"r": 3, "s": 4}
OPERATOR = "{name: biclique, routing: hash, r_units: 3, s_units: 3}"


def rows_of(name: str, first: int, stop: int) -> pa.Table:
    """Rows of a stream."""
    kind = generator(f"zipf.{name}")
    return pa.Table.from_batches([kind.rows(first, stop, seed=SEEDS[name], rate=float(RATE), options=OPTIONS)])


def generated(name: str, rows: int = BATCHES * ROWS) -> str:
    """A stream that every machine makes itself."""
    return (
        f"{{source: generator, kind: zipf.{name}, seed: {SEEDS[name]}, rate: {RATE}, rows: {rows}, "
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
        batches: how many there are to join.
        rows: of each stream in a batch.
        operator: of its join file.
        port: of a proxy in front of the store.
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
        batches: int = BATCHES,
        rows: int = ROWS,
        operator: str = OPERATOR,
        port: int | None = None,
    ) -> None:
        assert cluster.own is not None
        self.folder, self.cluster, self.own = folder, cluster, cluster.own
        self.streams = streams
        self.batches, self.rows, self.operator = batches, rows, operator
        self.state = s3.uri(f"{BUCKET}/{folder.name}", port)
        self.results = (
            f'{{store: hbase, hosts: ["127.0.0.1"], port: {hbase.port}, table: {unique("apart")}, '
            "snapshot: {batches: 1}}"
        )
        self.seen = 0
        self.file = self.join_file(
            folder, self.own, f"master: {cluster.master}",
            f"executors: {{min: {WORKERS}, max: {WORKERS}, memory: 512m}}",
            f"spark: {json.dumps({**cluster.settings, **({'spark.jars': jars} if jars else {})})}",
            *(["shared: true"] if is_read else ()),
        )  # fmt: skip

    def join_file(self, folder: Path, own: Path, *run: str) -> Path:
        """Write the join file into `folder`; its driver keeps files in `own`, and `run` are further lines of `run:`."""
        more = "".join(f"\n  {line}" for line in run)
        (file := folder / "join.yaml").write_text(f"""\
streams: {{r: {self.streams["r"]}, s: {self.streams["s"]}}}
query: SELECT ONLINE r.id AS r_id, s.id AS s_id FROM r, s WHERE r.k = s.k WITHIN {WINDOW_MS} MILLISECONDS
operator: {self.operator}
results: {self.results}
run:
  checkpoint: {own}/checkpoint
  cache: {{path: {own}/cache}}
  state: "{self.state}"
  offsets_per_batch: {self.rows}
  files_per_batch: 1
  slots: {WORKERS}{more}
""")
        return file

    def driver(self) -> Command:
        """Start a driver, as if on another machine."""
        return Command(self.file, "--until-end", own=self.own)

    def committed(self, driver: Command) -> int:
        """How many batches of the job a driver knows to be committed."""
        commits = inside(driver.pid, self.own / "checkpoint/offsets/commits").glob("[0-9]*")
        return max((int(commit.name) + 1 for commit in commits), default=0)

    def goes_on(self, driver: Command, batches: int) -> None:
        """Wait until so many more batches are committed since the last call; the job must not be done by then."""
        self.seen += batches
        driver.wait_until(lambda: self.committed(driver) >= self.seen, f"commits no {batches} batches", RUN_S_MAX)
        self.seen = self.committed(driver)
        assert self.seen < self.batches, "the job was done before anything could be killed"

    def check_apart(self) -> None:
        """Executors have caches of their own, and nothing of the driver's."""
        executors = self.cluster.executors()
        assert len(executors) == WORKERS, "all workers take part"
        for executor in executors:
            assert any(inside(executor.pid, self.own / "cache").rglob("*.arrow")), "each keeps what it wrote"
            assert not inside(executor.pid, self.own / "checkpoint").exists(), "nobody but the driver has a checkpoint"

    def generation(self) -> int:
        """The number of the generation that the state belongs to; 0 before the first."""
        filesystem, path = opened(self.state)
        head = owner(Objects(filesystem, path, "state"))
        return 0 if head is None else head.number

    def check_exact(self, generation: int) -> None:
        """HBase has what DuckDB joins; each driver went on with the state of the one before, to this generation."""
        assert not list(self.own.iterdir()), "what is there was written where all see it"
        for name in SEEDS:
            pq.write_table(rows_of(name, 0, self.batches * self.rows), self.folder / f"{name}.parquet")
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
        assert (found := self.generation()) == generation, f"the state is of generation {found}, not {generation}"
