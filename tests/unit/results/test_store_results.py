"""Results in a store as people meet them: the join file's `results:`, what the sink keeps, `query` and `tail`."""

from __future__ import annotations

import copy
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from result_jobs import Job, assert_once, ids, rows, seen

from streamjoin.cli import commands as cli
from streamjoin.errors import InputError
from streamjoin.plan.join import RESULT_KEY, RESULT_TIME
from streamjoin.results.block import key_code
from streamjoin.results.parts import BatchDone
from streamjoin.results.patience import RETRY_S
from streamjoin.results.policy import DELAYS, EPOCH_US, THRESHOLD_ROWS, EpochPolicy, PunctuationPolicy
from streamjoin.results.reader import Reader
from streamjoin.results.sink import StoreSink
from streamjoin.results.stores.cassandra.kind import CASSANDRA_BUCKETS
from streamjoin.results.stores.sqlite import SqliteStore
from streamjoin.spec.joinfile import parse
from streamjoin.spec.outputs import snapshot_policy, store_job, store_sink, store_spec
from streamjoin.spec.prepare import Bound, bind

pytestmark = pytest.mark.slow

ORDERS = "ts,id,k,price\n2026-01-01T00:00:00Z,1,1,9.5\n2026-01-01T00:00:01Z,2,2,3.25\n"
PAYMENTS = "ts,id,k\n2026-01-01T00:00:01Z,10,1\n2026-01-01T00:00:05Z,11,2\n"
GOOD: dict[str, Any] = {
    "streams": {
        "orders": {"source": "csv", "path": "orders.csv", "time": "ts"},
        "payments": {"source": "csv", "path": "payments.csv", "time": "ts", "delay": "2s"},
    },
    "query": "SELECT ONLINE orders.id AS order_id, payments.id AS payment_id, orders.price AS price "
    "FROM orders, payments WHERE orders.k = payments.k WITHIN 10 SECONDS",
    "results": {"store": "sqlite", "path": "results.db"},
    "run": {"slots": 1, "checkpoint": "state"},
}
RANGE = GOOD["query"].replace("orders.k = payments.k", "orders.k <= payments.k")
SECOND = {"punctuate": {"every": "1s"}}


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    (folder / "orders.csv").write_text(ORDERS)
    (folder / "payments.csv").write_text(PAYMENTS)
    return folder


Bind = Callable[..., Bound]


@pytest.fixture
def bound(place: Path) -> Bind:
    """The good file with these results, bound."""

    def call(results: dict[str, Any] | None = None, query: str | None = None, **streams: Any) -> Bound:
        content = copy.deepcopy(GOOD)
        if results is not None:
            content["results"] = results
        if query is not None:
            content["query"] = query
        for name, more in streams.items():
            content["streams"][name].update(copy.deepcopy(more))  # YAML would have an alias for what is there twice
        return bind(parse(yaml.dump(content), base=place, name="my join"))

    return call


def sink_of(made: Bound) -> StoreSink:
    """Where the results of the only query go."""
    return store_sink(made.file, made.plan)


def sqlite(**more: Any) -> dict[str, Any]:
    return {"store": "sqlite", "path": "results.db", **more}


def snapshot(**more: Any) -> dict[str, Any]:
    return sqlite(snapshot=more)


CASSANDRA: dict[str, Any] = {"store": "cassandra", "hosts": ["127.0.0.1"]}
HBASE: dict[str, Any] = {"store": "hbase", "hosts": ["127.0.0.1"]}


@pytest.mark.parametrize(
    ("results", "field", "said"),
    [
        ({}, "results", "name exactly one of parquet, jsonl, discard and store"),
        (sqlite(parquet="out"), "results", "name exactly one"),
        ({"store": "postgres", "path": "x"}, "results.store", "must be 'sqlite', 'cassandra' or 'hbase'"),
        ({"store": "sqlite"}, "results.path", "is missing; sqlite needs it: the file of the store, such as results.db"),
        (sqlite(path="  "), "results.path", "is empty"),
        (sqlite(path="a\tb"), "results.path", "has characters that no path should have"),
        (sqlite(hosts=["a"]), "results.hosts", "sqlite takes no such field; it is for cassandra and hbase"),
        (sqlite(keyspace="a"), "results.keyspace", "sqlite takes no such field; it is for cassandra"),
        (sqlite(table="a"), "results.table", "sqlite takes no such field; it is for hbase"),
        ({**CASSANDRA, "path": "x"}, "results.path", "cassandra takes no such field; it is for sqlite"),
        ({**CASSANDRA, "table": "x"}, "results.table", "cassandra takes no such field; it is for hbase"),
        ({**HBASE, "username": "x"}, "results.username", "hbase takes no such field; it is for cassandra"),
        ({"store": "cassandra"}, "results.hosts", "is missing; cassandra needs it: the hosts of the store"),
        ({"store": "cassandra", "hosts": []}, "results.hosts", "is missing"),
        ({"store": "hbase"}, "results.hosts", "is missing"),
        ({"store": "hbase", "hosts": ["a", "b"]}, "results.hosts", "is one host: that of the Thrift gateway"),
        ({**CASSANDRA, "port": 0}, "results.port", "must be at least 1"),
        ({**CASSANDRA, "port": 65_536}, "results.port", "must be at most 65535"),
        ({**CASSANDRA, "hosts": "127.0.0.1"}, "results.hosts", "list"),
        (sqlite(job=""), "results.job", "is not a job name"),
        (sqlite(job="a b"), "results.job", '"a b" is not a job name'),
        (sqlite(job="../x"), "results.job", "is not a job name"),
        (sqlite(job="x" * 101), "results.job", "is not a job name"),
        (sqlite(job="größe"), "results.job", "is not a job name"),
        (sqlite(select=[]), "results.select", "is empty; name result columns"),
        (sqlite(select=["nope"]), "results.select", 'there is no result column "nope"; columns are order_id'),
        (sqlite(select=["price", "price"]), "results.select", '"price" is given twice'),
        (sqlite(select=[RESULT_TIME]), "results.select", "there is no result column"),
        (sqlite(select="price"), "results.select", "list"),
        (sqlite(where=""), "results.where", "a condition is missing"),
        (sqlite(where="nope > 1"), "results.where", "nope"),
        (sqlite(where="price >"), "results.where", "line 1, column"),
        (sqlite(where="price"), "results.where", "condition"),
        (sqlite(where="orders.k > 1"), "results.where", ""),
        (sqlite(retain="0s"), "results.retain", "is 0s; give a span"),
        (sqlite(retain="-1s"), "results.retain", "is negative"),
        (sqlite(retain=5), "results.retain", "is not a span of time"),
        (sqlite(retry="soon"), "results.retry", "is not a span of time"),
        (sqlite(snapshots={}), "results.snapshots", 'did you mean "snapshot"?'),
        (snapshot(epoch="0s"), "results.snapshot.epoch", "is 0s; an epoch lasts longer"),
        (snapshot(epoch="1s", batches=2), "results.snapshot.batches", "an epoch is a span or a number of batches"),
        (snapshot(batches=0), "results.snapshot.batches", "must be at least 1"),
        (snapshot(threshold_rows=0), "results.snapshot.threshold_rows", "must be at least 1"),
        (snapshot(threshold_bytes=-1), "results.snapshot.threshold_bytes", "must be at least 1"),
        (snapshot(immediate="yes"), "results.snapshot.immediate", "needs true or false"),
        (snapshot(delayed=0), "results.snapshot.delayed", ""),
        (snapshot(delayed=1.5), "results.snapshot.delayed", "must be at most 1"),
        (snapshot(delays=3), "results.snapshot.delays", "means nothing without delayed"),
        (snapshot(delayed=0.5, delays=0), "results.snapshot.delays", "must be at least 1"),
        (snapshot(punctuation=True, delays=5), "results.snapshot.delays", "belongs to commits by epoch"),
        (snapshot(punctuation=True, immediate=False), "results.snapshot.immediate", "belongs to commits by epoch"),
        (snapshot(punctuation=True, epoch="1s"), "results.snapshot.epoch", "belongs to commits by epoch"),
        (snapshot(punctuation=True), "streams.orders.punctuate", "is missing; commits by punctuation need it"),
        ({"jsonl": "-", "retain": "1d"}, "results.retain", "is for result stores only"),
        ({"parquet": "out", "where": "price > 1"}, "results.where", "is for result stores only"),
        ({"discard": True, "snapshot": {}}, "results.snapshot", "is for result stores only"),
    ],
)  # fmt: skip
def test_wrong_results_name_the_field(bound: Bind, results: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(InputError) as wrong:
        bound(results)
    assert wrong.value.field == field
    assert said in str(wrong.value) and "\n" not in str(wrong.value)


def test_punctuations_of_both_streams_have_one_span(bound: Bind) -> None:
    by_pairs = snapshot(punctuation=True)
    with pytest.raises(InputError) as wrong:
        bound(by_pairs, orders=SECOND, payments={"punctuate": {"every": "2s"}})
    assert wrong.value.field == "streams.payments.punctuate.every"
    with pytest.raises(InputError) as wrong:
        bound(by_pairs, orders=SECOND)
    assert wrong.value.field == "streams.payments.punctuate"
    with pytest.raises(InputError) as wrong:
        bound(by_pairs, orders={"punctuate": {"every": "0s"}}, payments=SECOND)
    assert wrong.value.field == "streams.orders.punctuate.every"
    made = bound(by_pairs, orders=SECOND, payments=SECOND)
    assert snapshot_policy(made.file, made.plan) == PunctuationPolicy(1_000_000)


@pytest.mark.parametrize(
    ("given", "policy"),
    [
        (None, EpochPolicy(EPOCH_US, 1, THRESHOLD_ROWS, None, True, None, DELAYS)),
        ({}, EpochPolicy()),
        ({"epoch": "250ms"}, EpochPolicy(span_us=250_000)),
        ({"batches": 5}, EpochPolicy(span_us=None, batches=5)),
        ({"threshold_rows": 7}, EpochPolicy(threshold_rows=7)),
        ({"threshold_bytes": 7}, EpochPolicy(threshold_rows=None, threshold_bytes=7)),
        ({"threshold_rows": 7, "threshold_bytes": 8}, EpochPolicy(threshold_rows=7, threshold_bytes=8)),
        ({"immediate": False}, EpochPolicy(immediate=False)),
        ({"delayed": 0.5}, EpochPolicy(delayed=0.5)),
        ({"delayed": 1.0, "delays": 9}, EpochPolicy(delayed=1.0, delays=9)),
        ({"punctuation": False, "epoch": "2s"}, EpochPolicy(span_us=2_000_000)),
    ],
)  # fmt: skip
def test_snapshots_close_as_the_file_says(bound: Bind, given: dict[str, Any] | None, policy: EpochPolicy) -> None:
    made = bound(sqlite() if given is None else sqlite(snapshot=given))
    assert snapshot_policy(made.file, made.plan) == policy


def test_the_store_is_opened_as_the_file_says(bound: Bind, place: Path) -> None:
    spec = store_spec(bound().file)
    assert (spec.kind, dict(spec.settings)) == ("sqlite", {"path": str(place / "results.db")})
    spec = store_spec(bound({**CASSANDRA, "hosts": ["a", "b"], "port": 9043, "keyspace": "ks", "username": "u"}).file)
    assert (spec.kind, dict(spec.settings)) == (
        "cassandra", {"hosts": "a,b", "port": 9043, "keyspace": "ks", "username": "u"}
    )  # fmt: skip
    spec = store_spec(bound({**HBASE, "table": "t"}).file)
    assert (spec.kind, dict(spec.settings)) == ("hbase", {"host": "127.0.0.1", "table": "t"})
    with pytest.raises(InputError, match="no store is configured") as wrong:
        store_spec(bound({"jsonl": "-"}).file)
    assert wrong.value.field == "results"


def test_results_are_called_as_the_file_unless_it_says_otherwise(bound: Bind) -> None:
    assert store_job(bound().file) == "my_join"
    assert store_job(bound(sqlite(job="other.1")).file) == "other.1"
    assert store_job(bound().file.model_copy(update={"name": "_x"})) == "join_x"


def test_the_sink_keeps_what_was_asked_for_and_what_the_engine_needs(bound: Bind) -> None:
    every = sink_of(bound())
    assert every.description.schema.names == ["order_id", "payment_id", "price", RESULT_TIME, RESULT_KEY]
    assert every.description.key_name is not None and "k" in every.description.key_name
    some = sink_of(bound(sqlite(select=["price", "order_id"], retain="30d", retry="5s")))
    assert some.description.schema.names == ["price", "order_id", RESULT_TIME, RESULT_KEY]
    assert (some.retain_us, some.retry_s) == (30 * 86_400_000_000, 5.0)
    assert (every.retain_us, every.retry_s) == (None, RETRY_S)
    assert every.description.code == key_code(pa.int64(), equality=True, buckets=1)
    assert sink_of(bound(CASSANDRA)).description.code.buckets == CASSANDRA_BUCKETS > 1
    assert sink_of(bound(CASSANDRA, RANGE)).description.code.buckets == 1


def test_a_filter_on_a_column_that_is_not_kept_works_and_counts_what_is_left(bound: Bind, tmp_path: Path) -> None:
    given = sqlite(
        path=str(tmp_path / "filtered.db"), select=["order_id"], where="price >= 99",
        snapshot={"batches": 100, "threshold_rows": 200},
    )  # fmt: skip
    made = bound(given)
    sink = sink_of(made)
    writer = sink.begin("origin")
    kept = 0
    for number in range(4):
        n = 10_000
        batch = pa.RecordBatch.from_arrays(
            [
                pa.array(range(number * n, (number + 1) * n), pa.int64()), pa.array([0] * n, pa.int64()),
                pa.array([at % 100 for at in range(n)], pa.float64()), pa.array([number] * n, pa.int64()),
                pa.array([at % 7 for at in range(n)], pa.int64()),
            ],
            schema=made.plan.emitted,
        )  # fmt: skip
        with writer.part(number, 0, made.plan.emitted) as part:
            part.write(batch.slice(0, 5000), unit=0)
            part.write(batch.slice(5000), unit=1)
        assert part.summary()["rows"] == 100
        kept += part.summary()["rows"]
        sink.commit(BatchDone(number, number), [part.summary()])
    sink.finish()
    reader = Reader(SqliteStore(tmp_path / "filtered.db"), "my_join")
    reader.refresh()
    assert [found.rows for found in reader.snapshots()] == [200, 200]
    batches = [batch for found in reader.snapshots() for _, batch in reader.rows(found.blocks)]
    assert {tuple(batch.schema.names) for batch in batches} == {("order_id", RESULT_TIME, RESULT_KEY)}
    found = sorted(id for batch in batches for id in batch.column("order_id").to_pylist())
    assert found == list(range(99, 40_000, 100)) and len(found) == kept


def test_a_batch_whose_results_are_all_filtered_away_commits(bound: Bind, tmp_path: Path) -> None:
    made = bound(sqlite(path=str(tmp_path / "none.db"), where="price > 1000"))
    sink = sink_of(made)
    writer = sink.begin("origin")
    with writer.part(0, 0, made.plan.emitted) as part:
        part.write(pa.RecordBatch.from_pylist([dict.fromkeys(made.plan.emitted.names, 1)], schema=made.plan.emitted))
    sink.commit(BatchDone(0, 5), [part.summary()])
    sink.finish()
    assert sink.ledger.head.batch == 0
    reader = Reader(SqliteStore(tmp_path / "none.db"), "my_join")
    assert reader.refresh().rows == 0


# ---- the command line -------------------------------------------------------------------------------------------

FILE = """streams:
  orders: {source: csv, path: orders.csv, time: ts}
  payments: {source: csv, path: payments.csv, time: ts}
query: SELECT ONLINE orders.id FROM orders, payments WHERE orders.k = payments.k WITHIN 1 SECONDS
results: {store: sqlite, path: results.db}
"""


@dataclass(frozen=True)
class Said:
    status: int
    out: bytes
    err: str


Command = Callable[..., Said]


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A folder with join.yaml and a store that is filled; it is the working directory."""
    (tmp_path / "join.yaml").write_text(FILE)
    (tmp_path / "nostore.yaml").write_text(FILE.replace("{store: sqlite, path: results.db}", "{jsonl: -}"))
    (tmp_path / "empty.yaml").write_text(FILE.replace("results.db", "not-there.db"))
    monkeypatch.chdir(tmp_path)
    job = Job(SqliteStore(tmp_path / "results.db"), EpochPolicy(span_us=None), name="join", rows_max=64).start()
    for number in range(3):
        job.batch(number, rows(300, number, 20, number * 1_000_000, (number + 1) * 1_000_000))
    job.ledger.finish()
    return job


WHOLE = [rows(300, number, 20, number * 1_000_000, (number + 1) * 1_000_000) for number in range(3)]


@pytest.fixture
def streamjoin(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Command:
    def call(*arguments: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["streamjoin", *arguments])
        status = 0
        try:
            cli.main()
        except SystemExit as ended:
            status = int(ended.code or 0)
        out, err = capfdbinary.readouterr()
        return Said(status, out, err.decode())

    return call


def lines(said: Said) -> list[int]:
    assert said.status == 0, said.err
    return sorted(json.loads(line)["id"] for line in said.out.splitlines())


def test_query_answers_and_says_what_it_read(filled: Job, streamjoin: Command) -> None:
    said = streamjoin("query", "join.yaml", "-o", "ndjson")
    assert lines(said) == ids(WHOLE)
    assert said.err.startswith("900 rows from ") and "in 3 snapshots, up to snapshot 3.0" in said.err
    assert set(json.loads(said.out.splitlines()[0])) == {"id", "price", "name"}
    assert streamjoin("query", "join.yaml", "-o", "ndjson", "--quiet").err == ""


def test_query_takes_keys_times_conditions_and_columns(filled: Job, streamjoin: Command) -> None:
    every = [row for batch in WHOLE for row in batch.to_pylist()]

    def wanted(keep: Callable[[dict[str, Any]], bool]) -> list[int]:
        return sorted(row["id"] for row in every if keep(row))

    ask = ("query", "join.yaml", "-o", "ndjson", "--quiet")
    assert lines(streamjoin(*ask, "--key", "7")) == wanted(lambda row: row[RESULT_KEY] == 7)
    assert lines(streamjoin(*ask, "--key-from", "3", "--key-to", "5")) == wanted(lambda row: 3 <= row[RESULT_KEY] <= 5)
    assert lines(streamjoin(*ask, "--key=-1")) == []
    middle = wanted(lambda row: 500_000 <= row[RESULT_TIME] <= 1_500_000)
    assert lines(streamjoin(*ask, "--from", "500000", "--to", "1500000")) == middle
    iso = ("--from", "1970-01-01T00:00:00.5Z", "--to", "1970-01-01T01:00:01.5+01:00")
    assert lines(streamjoin(*ask, *iso)) == middle
    assert lines(streamjoin(*ask, "--where", "price > 0.5 AND name = 'n1'")) == wanted(
        lambda row: row["price"] > 0.5 and row["name"] == "n1"
    )
    said = streamjoin(*ask, "--select", "name, id", "--where", "price > 0.9")
    assert list(json.loads(said.out.splitlines()[0])) == ["name", "id"]
    assert lines(streamjoin(*ask, "--after", "2.0")) == ids([WHOLE[2]])


def test_query_gives_a_cursor_where_there_is_more(filled: Job, streamjoin: Command) -> None:
    found: list[int] = []
    cursor: tuple[str, ...] = ()
    pages = 0
    for _ in range(5):
        said = streamjoin("query", "join.yaml", "-o", "ndjson", "--limit", "250", *cursor)
        found += lines(said)
        pages += 1
        if "--cursor" not in said.err:
            break
        cursor = ("--cursor", said.err.split("--cursor ")[1].strip())
    assert pages == 4
    assert_once(found, ids(WHOLE))


def test_query_gives_aggregates_in_place_of_rows(filled: Job, streamjoin: Command) -> None:
    said = streamjoin("query", "join.yaml", "--aggregate", "count, max(id)", "-o", "ndjson")
    assert json.loads(said.out) == {"count": 900, "max_id": max(ids(WHOLE))} and "900 rows from" in said.err
    said = streamjoin("query", "join.yaml", "--by", "name", "-o", "ndjson", "--quiet")
    assert sum(json.loads(line)["count"] for line in said.out.splitlines()) == 900 and said.err == ""
    said = streamjoin("query", "join.yaml", "--aggregate", "sum(name)")
    assert (said.status, said.out) == (2, b"") and "sum is of numbers" in said.err


@pytest.mark.parametrize("output", ["table", "json", "ndjson", "csv", "arrow", "parquet"])
def test_query_writes_every_format(filled: Job, streamjoin: Command, tmp_path: Path, output: str) -> None:
    said = streamjoin("query", "join.yaml", "-o", output, "--quiet")
    assert said.status == 0 and said.err == ""
    match output:
        case "table" | "csv":
            assert said.out.count(b"\n") == 901
        case "json":
            assert len(json.loads(said.out)) == 900
        case "ndjson":
            assert said.out.count(b"\n") == 900
        case "arrow":
            assert ids(pa.ipc.open_stream(said.out).read_all().to_batches()) == ids(WHOLE)
        case "parquet":
            assert said.out[:4] == said.out[-4:] == b"PAR1"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("query", "nope.yaml"), "there is no file nope.yaml"),
        (("query", "nostore.yaml"), "results: no store is configured"),
        (("query", "join.yaml", "--key", "x"), '"x" is not a key of this join; keys are int64'),
        (("query", "join.yaml", "--key-from", "5", "--key-to", "3"), "the key range is empty"),
        (("query", "join.yaml", "--from", "soon"), '--from takes a time such as 2026-01-31T12:00:00Z'),
        (("query", "join.yaml", "--from", "2", "--to", "1"), "the time range is empty"),
        (("query", "join.yaml", "--select", "nope"), 'there is no result column "nope"; columns are id, price, name'),
        (("query", "join.yaml", "--select", " , "), "--select takes names of columns"),
        (("query", "join.yaml", "--where", "nope > 1"), "nope"),
        (("query", "join.yaml", "--limit", "0"), "a limit is between 1 and"),
        (("query", "join.yaml", "--cursor", "zz"), "this is not a cursor"),
        (("query", "join.yaml", "--after", "one"), "is not a snapshot id"),
        (("query", "join.yaml", "--set", "results.job=other"), "no results of a job other; there are join"),
        (("tail", "nostore.yaml"), "results: no store is configured"),
        (("tail", "join.yaml", "--where", "nope > 1"), "nope"),
        (("tail", "join.yaml", "--select", "nope"), 'there is no result column "nope"'),
        (("tail", "join.yaml", "--key", "x"), '"x" is not a key of this join'),
        (("tail", "join.yaml", "--after", "one"), "is not a snapshot id"),
        (("tail", "join.yaml", "--set", "results.job=other"), "the store has no results of a job other"),
    ],
)  # fmt: skip
def test_wrong_input_is_one_line_and_status_two(
    filled: Job, streamjoin: Command, arguments: tuple[str, ...], said: str
) -> None:
    told = streamjoin(*arguments)
    assert (told.status, told.out) == (2, b"")
    assert said in told.err and told.err.startswith("streamjoin: ") and told.err.count("\n") == 1


def test_a_store_that_is_not_there_is_not_made_by_asking(filled: Job, streamjoin: Command) -> None:
    told = streamjoin("query", "empty.yaml")
    assert told.status == 1 and told.err.count("\n") == 1
    assert "there is no result store" in told.err and "streamjoin run" in told.err
    assert not Path("not-there.db").exists()


def test_tail_after_what_was_removed_is_wrong_input(filled: Job, streamjoin: Command) -> None:
    filled.ledger.expire(2_500_000)
    told = streamjoin("tail", "join.yaml", "--after", "1.0")
    assert (told.status, told.out) == (2, b"") and "removed" in told.err and told.err.count("\n") == 1


def test_tail_shows_what_comes_and_ends_on_ctrl_c_promptly(filled: Job, tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    process = subprocess.Popen(
        [sys.executable, "-m", "streamjoin", "tail", "join.yaml", "--after", "2.0", "--where", "price > 0.5"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    try:
        assert process.stdout is not None and process.stderr is not None
        wanted = [row["id"] for row in WHOLE[2].to_pylist() if row["price"] > 0.5]
        assert_once([json.loads(process.stdout.readline())["id"] for _ in wanted], wanted)
        assert process.stderr.readline() == b"snapshot 3.0: 300 rows\n"
        more = rows(50, 9, 20)
        filled.batch(3, more)
        filled.ledger.finish()
        wanted = [row["id"] for row in more.to_pylist() if row["price"] > 0.5]
        assert_once([json.loads(process.stdout.readline())["id"] for _ in wanted], wanted)
        assert process.stderr.readline() == b"snapshot 4.0: 50 rows\n"
        begun_s = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (0, b"", b"")
        assert time.monotonic() - begun_s < 15
    finally:
        process.kill()
        process.wait()
    assert_once(seen(filled.store, "join"), ids([*WHOLE, more]))


@pytest.mark.parametrize("made", [True, False], ids=["which comes", "which never comes"])
def test_tail_waits_for_the_store(made: bool, filled: Job, tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    process = subprocess.Popen(
        [sys.executable, "-m", "streamjoin", "tail", "empty.yaml"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    try:
        assert process.stdout is not None and process.stderr is not None
        said = process.stderr.readline().decode()
        assert said.startswith("waiting: there is no result store ") and "`streamjoin run` makes it" in said
        if made:
            later = Job(SqliteStore(tmp_path / "not-there.db"), EpochPolicy(span_us=None), name="empty").start()
            given = rows(30, 1, 20)
            later.batch(0, given)
            later.ledger.finish()
            assert process.stderr.readline() == b"snapshot 1.0: 30 rows\n", "after its rows"
        process.send_signal(signal.SIGINT)
        shown, more = process.stdout.read(), process.stderr.read()
        assert more == b"" and process.wait(timeout=20) == 0
        if made:
            assert_once([json.loads(line)["id"] for line in shown.splitlines()], ids([given]))
        else:
            assert shown == b""
        assert process.returncode == 0 and (tmp_path / "not-there.db").exists() == made
    finally:
        process.kill()
        process.wait()
