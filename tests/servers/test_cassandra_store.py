"""Results in a real Cassandra: the contract of every store, and what comes of crashes and bad networks."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

pytest.importorskip("cassandra", reason="the driver for Cassandra is not installed")

from streamjoin.plan.join import RESULT_KEY
from streamjoin.results.answer import ask
from streamjoin.results.block import BlockRef, KeyCode, key_code
from streamjoin.results.description import Description
from streamjoin.results.head import Head
from streamjoin.results.ledger import Ledger
from streamjoin.results.names import snapshot_name
from streamjoin.results.patience import Patience
from streamjoin.results.policy import Collected, EpochPolicy
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.results.snapshot import Snapshot, SnapshotId
from streamjoin.results.stores.cassandra import store as cassandra
from streamjoin.results.stores.cassandra.store import CassandraStore
from streamjoin.results.stores.spec import StoreSpec
from streamjoin.results.stores.store import StoreDownError, StoreError, StoreUncertainError
from tests.conformance.stores.play import play_a_few
from tests.spark.periods import check_two_periods
from tests.unit.results.result_jobs import Job, ids, rows
from tests.unit.results.stores.contract import StoreContract, in_threads, key, steadily

from .cassandra import CassandraNode
from .process import comes_true, free_ports
from .proxy import Proxy

pytestmark = pytest.mark.services

IMPATIENT_S = 3.0
DOWN_S_MAX = 9.0  # less than the 10 s that a store waits unless told otherwise
SEEN_S_MAX = 30.0
READY_S_MAX = 180.0
BOOTSTRAP = Path(__file__).resolve().parents[2] / "docker" / "bootstrap.py"
WITH_USERS = "authenticator: PasswordAuthenticator\nauthorizer: CassandraAuthorizer"


@pytest.fixture(scope="module")
def node() -> Iterator[CassandraNode]:
    with CassandraNode() as node:
        store = CassandraStore("127.0.0.1", node.port)
        steadily(store.prepare)
        store.close()
        yield node


@pytest.fixture
def store(node: CassandraNode) -> Iterator[CassandraStore]:
    store = CassandraStore("127.0.0.1", node.port)
    yield store
    store.close()


@pytest.fixture
def proxy(node: CassandraNode) -> Iterator[Proxy]:
    with Proxy(node.port) as proxy:
        yield proxy


@pytest.fixture
def far(proxy: Proxy) -> Iterator[CassandraStore]:
    """The store over the proxy, connected and ready to commit."""
    store = CassandraStore("127.0.0.1", proxy.port)
    ready_to_commit(store)
    yield store
    store.close()


@pytest.fixture
def impatient(proxy: Proxy) -> Iterator[CassandraStore]:
    """`far` with little patience: what must succeed is asked of `store`, or steadily."""
    store = CassandraStore("127.0.0.1", proxy.port, timeout_s=IMPATIENT_S)
    ready_to_commit(store)
    yield store
    store.close()


@pytest.fixture
def job(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)


class TestContract(StoreContract):
    many = 2000
    rounds = 15

    @pytest.fixture
    def another(self, node: CassandraNode) -> Iterator[CassandraStore]:
        another = StoreSpec("cassandra", (("hosts", ("127.0.0.1",)), ("port", node.port))).open()
        assert isinstance(another, CassandraStore)
        yield another
        another.close()


def ready_to_commit(store: CassandraStore) -> None:
    """Connected, with the statements prepared: what fails from here on fails in the commit itself."""

    def connect() -> None:
        with store.keyspace.using() as link:
            for name in ("first_head", "swap_head"):
                link.statement(name)

    steadily(connect)


def down_soon(act: Callable[[], object]) -> str:
    """What it says, soon, when the store is down."""
    begun_s = time.monotonic()
    with pytest.raises(StoreDownError) as told:
        act()
    assert time.monotonic() - begun_s < DOWN_S_MAX
    return str(told.value)


def becomes(store: CassandraStore, job: str, head: bytes) -> bool:
    """Whether the head is that, or will be soon: who waited in vain for an answer may look before it is done."""
    return comes_true(lambda: steadily(lambda: store.head(job)) == head, SEEN_S_MAX)


def in_one_sentence(error: BaseException, *parts: str) -> None:
    text = str(error)
    assert all(part in text for part in parts), text
    assert "\n" not in text and not text.endswith(".")


# Large and many.


def test_blocks_larger_than_the_socket_takes_at_once(store: CassandraStore, job: str) -> None:
    blocks = {key(bucket=number % 3, number=number): bytes([number]) * store.block_bytes for number in range(100)}
    store.put_blocks(job, list(blocks.items()))
    assert dict(store.get_blocks(job, list(blocks))) == blocks


def test_many_blocks_of_many_partitions_come_in_the_order_asked_and_missing_ones_are_left_out(
    store: CassandraStore, job: str
) -> None:
    keys = [key(bucket=number % 5, batch=number // 2, lowest=-number) for number in range(400)]
    store.put_blocks(job, [(each, str(each).encode()) for each in keys[::3]])
    asked = keys[::-1]
    assert list(store.get_blocks(job, asked)) == [(each, str(each).encode()) for each in asked if each in keys[::3]]
    left = store.get_blocks(job, asked)
    next(left)
    store.get_blocks(job, asked)  # begun, and never asked for
    assert store.head(job) is None
    assert len(list(left)) == len(keys[::3]) - 1


def test_a_key_is_looked_for_in_one_bucket_and_a_bucket_of_64_batches_is_one_partition(
    store: CassandraStore, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Job(store, name=job, code=key_code(pa.int64(), equality=True, buckets=8)).start()
    batches = {number: rows(400, number) for number in (0, 1, 63, 64, 130)}
    for number, content in batches.items():
        made.batch(number, content)
    made.batch(131, rows(1, 131, keys=1))  # with which the snapshot before it is closed
    asked: list[tuple[int, int]] = []
    send = CassandraStore._send_requests

    def send_requests(self: CassandraStore, job: str, keys: Any) -> Any:
        sent = send(self, job, keys)
        asked.extend((bucket, chapter) for (_, bucket, chapter, _), _ in sent)
        return sent

    monkeypatch.setattr(CassandraStore, "_send_requests", send_requests)
    found = ids(ask(Reader(store, job), Question(key=7)))
    whole = pa.Table.from_batches(list(batches.values()))
    assert found == sorted(whole.filter(pc.equal(whole[RESULT_KEY], 7))["id"].to_pylist()) != []
    assert len(asked) == 3 and {bucket for bucket, _ in asked} == {asked[0][0]}
    assert [chapter for _, chapter in asked] == [0, 1, 2]


def test_the_largest_block_fits_and_a_larger_one_is_named(store: CassandraStore, job: str) -> None:
    largest = bytes(cassandra.LARGEST_BYTES)
    store.put_blocks(job, [(key(), largest), (key(number=1), largest)])
    assert [len(content) for _, content in store.get_blocks(job, [key(), key(number=1)])] == [len(largest)] * 2
    for act in (
        lambda: store.put_blocks(job, [(key(number=2), largest + b"x")]),
        lambda: store.put_records(job, [("job", largest + b"x")]),
        lambda: store.swap_head(job, None, largest + b"x"),
    ):
        with pytest.raises(StoreError, match=r"8,388,609 bytes, and .* takes 8,388,608 at most") as told:
            act()
        in_one_sentence(told.value, job, f"127.0.0.1:{store.keyspace.port}")


def test_a_long_range_of_large_records_is_read_in_pages(store: CassandraStore, job: str) -> None:
    names = [snapshot_name(SnapshotId(epoch, part), 1) for epoch in range(70, 130) for part in (0, 1)]
    store.put_records(job, [(name, name.encode() * 2000) for name in names])
    assert [name for name, _ in store.get_records(job, names[0], names[-1])] == names
    assert [name for name, _ in store.get_records(job, names[7], names[110])] == names[7:111]


# The lists of partitions.


def test_partitions_long_empty_are_forgotten_and_come_back(
    store: CassandraStore, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [key(bucket=bucket, batch=batch) for bucket in (1, 17) for batch in (0, 64)]
    names = [snapshot_name(SnapshotId(epoch, 0), 1) for epoch in (100, 250, 310, 400)]

    def chapters() -> list[tuple[int, int]]:
        return [(bucket, chapter) for bucket, chapter, _ in store._rows("list_chapters", job, 1)]

    def shelves() -> int:
        return len(store._rows("all_shelves", job))

    def put() -> None:
        store.put_blocks(job, [(each, b"x") for each in keys])
        store.put_records(job, [(name, b"x") for name in names])

    def read() -> tuple[int, int]:
        return len(list(store.list_blocks(job))), len(list(store.get_records(job, "a", "z")))

    put()
    store.delete_blocks(job, keys[1:3])
    store.delete_records(job, names[1:3])
    assert read() == (2, 2)
    assert len(chapters()) == 4 and shelves() == 4  # a writer may be about to fill them
    monkeypatch.setattr(cassandra, "_SETTLED_US", 0)
    assert read() == (2, 2)
    assert chapters() == [(1, 0), (17, 1)] and shelves() == 2
    put()
    assert read() == (4, 4)
    assert len(chapters()) == 4 and shelves() == 4


def test_a_partition_written_again_meanwhile_stays_on_its_list(store: CassandraStore, job: str) -> None:
    store.put_records(job, [("job", b"x")])
    [(shelf, written)] = store._rows("list_shelves", job, "job", "job")
    store.put_records(job, [("job", b"y")])
    store._forget("forget_shelf", [(written, job, shelf)])
    assert list(store.get_records(job, "", "~")) == [("job", b"y")]


# What is wrong is named.


def test_a_missing_keyspace_is_not_made_by_reading(node: CassandraNode) -> None:
    store = CassandraStore("127.0.0.1", node.port, keyspace="missing")
    for _ in range(2):
        with pytest.raises(StoreError, match="there is no result store in keyspace missing") as told:
            store.head("job")
        in_one_sentence(told.value, f"127.0.0.1:{node.port}", "`streamjoin run` makes it")


@pytest.mark.parametrize("keyspace", ["", "Streams", "1st", "a-b", "a" * 49, 'x"; DROP'])
def test_a_name_that_no_keyspace_can_have_is_refused(keyspace: str) -> None:
    with pytest.raises(StoreError, match="cannot be a keyspace; name one with"):
        CassandraStore("127.0.0.1", keyspace=keyspace)


def test_a_newer_layout_is_refused(node: CassandraNode) -> None:
    store = CassandraStore("127.0.0.1", node.port, keyspace="newer")
    store.prepare()
    with store.keyspace.using() as link:
        link.session.execute("UPDATE newer.layout SET version = 2 WHERE part = 'results'")
    store.close()
    for act in (store.prepare, store.jobs):
        with pytest.raises(StoreError, match="has layout 2, and this version reads layout 1") as told:
            act()
        in_one_sentence(told.value, "keyspace newer", f"127.0.0.1:{node.port}", "another keyspace")
        store.close()


def test_a_dropped_keyspace_is_named_and_can_be_made_anew(node: CassandraNode) -> None:
    store = CassandraStore("127.0.0.1", node.port, keyspace="anew")
    store.prepare()
    assert store.swap_head("job", None, b"old")
    with store.keyspace.using() as link:
        link.session.execute("DROP KEYSPACE anew", timeout=READY_S_MAX)
    with pytest.raises(StoreError, match=r"keyspace anew") as told:
        store.jobs()
    assert not isinstance(told.value, StoreDownError)
    store.close()
    store.prepare()
    assert store.jobs() == []
    assert store.swap_head("job", None, b"new")
    store.close()


def test_two_may_make_the_tables_at_once(node: CassandraNode) -> None:
    stores = [CassandraStore("127.0.0.1", node.port, keyspace="together", replication={"datacenter1": 1})] * 2
    stores = [pickle.loads(pickle.dumps(store)) for store in stores]
    failures: list[BaseException] = []

    def prepare(store: CassandraStore) -> None:
        try:
            store.prepare()
        except BaseException as error:
            failures.append(error)

    in_threads(*(lambda store=store: prepare(store) for store in stores))
    assert failures == []
    assert stores[0].swap_head("job", None, b"x") and stores[1].head("job") == b"x"
    for store in stores:
        store.close()


def test_nobody_at_the_port_is_a_store_that_is_down() -> None:
    [port] = free_ports(1)
    store = CassandraStore(["127.0.0.1", "localhost"], port)
    for act in (store.prepare, store.jobs, lambda: store.swap_head("job", None, b"x")):
        assert f"127.0.0.1:{port}, localhost:{port} cannot be reached; check host and port" in down_soon(act)


def test_a_host_that_has_no_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_address(*_: object, **__: object) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    # A machine without a network may ask in vain for long.
    monkeypatch.setattr(socket, "getaddrinfo", no_address)
    said = down_soon(CassandraStore("no-such-host.invalid").jobs)
    assert "no-such-host.invalid:9042 cannot be reached" in said


def test_somebody_silent_at_the_port_is_a_store_that_is_down(node: CassandraNode) -> None:
    with Proxy(node.port) as proxy:
        proxy.swallow_answers()
        store = CassandraStore("127.0.0.1", proxy.port, timeout_s=IMPATIENT_S)
        assert f"127.0.0.1:{proxy.port}" in down_soon(store.jobs)


@pytest.mark.slow
def test_users_and_their_rights(tmp_path: Path) -> None:
    with CassandraNode(WITH_USERS) as node:

        def login(name: str | None = None, password: str | None = None) -> CassandraStore:
            return CassandraStore("127.0.0.1", node.port, username=name, password=password)

        admin = login("cassandra", "cassandra")

        def ready() -> bool:
            try:
                admin.prepare()
            except StoreError:  # the first user is made a moment after the node answers
                return False
            return True

        assert comes_true(ready, READY_S_MAX)
        admin.put_records("job", [("a", b"x"), ("s/00000000000000000009", b"x")])
        admin.delete_records("job", ["a"])
        with admin.keyspace.using() as link:
            link.session.execute("CREATE ROLE reader WITH PASSWORD = 'r' AND LOGIN = true")
            link.session.execute("GRANT SELECT ON KEYSPACE streamjoin TO reader")
        for store, said in (
            (login(), "asks who we are; give username and password"),
            (login("cassandra", "wrong"), 'refuses user "cassandra"; check username and password'),
        ):
            with pytest.raises(StoreError) as told:
                store.jobs()
            in_one_sentence(told.value, f"127.0.0.1:{node.port}", said)
            assert not isinstance(told.value, StoreDownError)
        reader = login("reader", "r")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cassandra, "_SETTLED_US", 0)
            assert [name for name, _ in reader.get_records("job", "", "~")] == ["s/00000000000000000009"]
        reader.prepare()  # nothing to do
        with pytest.raises(StoreError, match='does not allow user "reader"') as told:
            reader.put_records("job", [("a", b"x")])
        in_one_sentence(told.value, "keyspace streamjoin", "grant it")
        with pytest.raises(StoreError, match='does not allow user "reader"'):
            reader.swap_head("job", None, b"x")
        reader.close()
        admin.close()

        # What docker-compose.yml runs beside a new Cassandra, twice.
        (tmp_path / "password").write_text("of ours")
        for _ in range(2):
            command = [sys.executable, str(BOOTSTRAP), "cassandra", f"127.0.0.1:{node.port}", "ours"]
            variables = {**os.environ, "STREAMJOIN_CASSANDRA_PASSWORD_FILE": str(tmp_path / "password")}
            done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=90, check=False)
            assert done.returncode == 0, done.stderr
            assert "of ours" not in done.stdout + done.stderr
        ours = login("ours", "of ours")
        ours.prepare()
        ours.put_records("job", [("a", b"x")])
        ours.close()

        def locked() -> bool:
            known = login("cassandra", "cassandra")  # a new one: who is in stays in
            try:
                known.jobs()
            except StoreError as refused:
                return bool(re.search(r'refuses user "cassandra"|is not permitted to log in', str(refused)))
            finally:
                known.close()
            return False

        assert comes_true(locked, READY_S_MAX)  # Cassandra remembers for two seconds who may log in


# Processes.


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forking with threads, which is the point
def test_a_child_connects_for_itself(store: CassandraStore, job: str) -> None:
    assert store.swap_head(job, None, b"parent")

    def child() -> None:
        assert store.head(job) == b"parent"
        assert store.swap_head(job, b"parent", b"child")
        store.close()

    for _ in range(2):
        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        process.join(READY_S_MAX)
        assert process.exitcode == 0
        assert store.head(job) == b"child"
        assert store.swap_head(job, b"child", b"parent")


def test_it_travels(store: CassandraStore, job: str) -> None:
    assert store.swap_head(job, None, b"x")
    copy = pickle.loads(pickle.dumps(store))
    assert copy.head(job) == b"x"
    copy.close()


def test_readers_see_whole_snapshots_in_order_while_drivers_are_killed(node: CassandraNode, tmp_path: Path) -> None:
    play_a_few(StoreSpec("cassandra", (("hosts", "127.0.0.1"), ("port", node.port))), "epochs, immediate", tmp_path)


@pytest.mark.spark
def test_each_period_of_a_job_is_closed_with_all_its_rows(
    node: CassandraNode, session: SparkSession, tmp_path: Path
) -> None:
    check_two_periods(session, tmp_path, f"store: cassandra, hosts: [127.0.0.1], port: {node.port}, job: periods")


# Faults.


def test_a_crash_of_the_node_loses_nothing_that_was_answered_or_written_through_it(
    node: CassandraNode, store: CassandraStore, job: str
) -> None:
    blocks = [(key(batch=batch), b"%d" % batch) for batch in range(200)]
    store.put_blocks(job, blocks)
    store.put_records(job, [("job", b"x")])
    assert store.swap_head(job, None, b"1")
    written: list[int] = []
    is_back = threading.Event()

    def write() -> None:
        through = CassandraStore("127.0.0.1", node.port)
        while not is_back.is_set() or len(written) < 100:
            number = len(written)
            steadily(lambda number=number: through.put_blocks(job, [(key(bucket=9, batch=number), b"x")]))
            written.append(number)
        through.close()

    writer = threading.Thread(target=write)
    writer.start()
    assert comes_true(lambda: len(written) > 10, READY_S_MAX)
    node.kill()
    for act in (
        lambda: store.head(job),
        lambda: store.put_blocks(job, blocks),
        lambda: list(store.get_blocks(job, [key()])),
        lambda: store.swap_head(job, b"1", b"lost"),
        lambda: store.drop(job),
        store.prepare,
    ):
        assert f"127.0.0.1:{node.port}" in down_soon(act)
    node.restart()
    is_back.set()
    writer.join()
    assert steadily(lambda: store.head(job)) == b"1"
    assert steadily(lambda: sorted(store.get_blocks(job, [each for each, _ in blocks]))) == blocks
    through = [key(bucket=9, batch=number) for number in written]
    assert steadily(lambda: sorted(store.list_blocks(job))) == sorted([*(each for each, _ in blocks), *through])
    assert steadily(lambda: list(store.get_records(job, "", "~"))) == [("job", b"x")]
    assert steadily(lambda: store.swap_head(job, b"1", b"2") or store.head(job) == b"2")


def test_a_lost_connection_is_down_until_it_is_back(proxy: Proxy, far: CassandraStore, job: str) -> None:
    assert far.swap_head(job, None, b"1")
    proxy.cut()
    for act in (lambda: far.head(job), lambda: far.swap_head(job, b"1", b"2"), far.jobs):
        down_soon(act)
    proxy.restore()
    assert far.head(job) == b"1"  # at once
    assert far.swap_head(job, b"1", b"2")


def test_a_connection_lost_after_a_fetch_began_is_told_when_blocks_are_asked_for(
    proxy: Proxy, far: CassandraStore, job: str
) -> None:
    far.put_blocks(job, [(key(), b"x")])
    assert list(far.get_blocks(job, [key()])) == [(key(), b"x")]
    proxy.swallow_answers()
    begun = far.get_blocks(job, [key()])
    proxy.cut()
    down_soon(lambda: list(begun))
    down_soon(far.jobs)
    begun = far.get_blocks(job, [key()])  # not told here
    down_soon(lambda: list(begun))
    begun = far.get_blocks(job, [key()])
    proxy.restore()
    assert list(begun) == [(key(), b"x")]  # it tries once more


def test_slow_answers_are_waited_for_up_to_the_time_out(
    proxy: Proxy, far: CassandraStore, impatient: CassandraStore, job: str
) -> None:
    proxy.delay(0.3)
    assert far.swap_head(job, None, b"1")
    far.put_records(job, [("job", b"x")])
    assert list(far.get_records(job, "job", "job")) == [("job", b"x")]
    proxy.delay(IMPATIENT_S * 3)
    down_soon(lambda: impatient.put_records(job, [("job", b"y")]))
    proxy.restore()
    assert steadily(lambda: impatient.head(job)) == b"1"


def test_a_commit_without_an_answer_is_uncertain_and_can_be_read_back(
    proxy: Proxy, store: CassandraStore, impatient: CassandraStore, job: str
) -> None:
    assert store.swap_head(job, None, b"1")
    proxy.swallow_answers()
    begun_s = time.monotonic()
    with pytest.raises(StoreUncertainError, match="did not say whether a commit was done") as told:
        impatient.swap_head(job, b"1", b"2")
    assert time.monotonic() - begun_s < DOWN_S_MAX
    in_one_sentence(told.value, f"127.0.0.1:{proxy.port}")
    down_soon(lambda: impatient.head(job))
    proxy.restore()
    assert becomes(impatient, job, b"2")
    assert not steadily(lambda: impatient.swap_head(job, b"1", b"2"))


def test_a_connection_lost_during_a_commit_is_uncertain(
    proxy: Proxy, store: CassandraStore, far: CassandraStore, job: str
) -> None:
    assert far.swap_head(job, None, b"1")
    proxy.swallow_answers()

    def cut_once_committed() -> None:
        becomes(store, job, b"2")
        proxy.cut()

    cutting = threading.Thread(target=cut_once_committed)
    cutting.start()
    begun_s = time.monotonic()
    with pytest.raises(StoreUncertainError):
        far.swap_head(job, b"1", b"2")
    assert time.monotonic() - begun_s < DOWN_S_MAX
    cutting.join()
    proxy.restore()
    assert steadily(lambda: far.head(job)) == b"2"


# The ledger.


class UnluckyStore(CassandraStore):
    """Loses the answers to some swaps, by their number from 0, and gets the network back after the failure."""

    proxy: Proxy
    lost: frozenset[int]
    swaps = 0

    def swap_head(self, job: str, expected: bytes | None, new: bytes) -> bool:
        number, self.swaps = self.swaps, self.swaps + 1
        if number not in self.lost:
            return super().swap_head(job, expected, new)
        ready_to_commit(self)
        self.proxy.swallow_answers()
        try:
            return super().swap_head(job, expected, new)
        finally:
            self.proxy.restore()


def test_a_ledger_commits_once_though_answers_are_lost(proxy: Proxy, store: CassandraStore, job: str) -> None:
    unlucky = UnluckyStore("127.0.0.1", proxy.port, timeout_s=IMPATIENT_S)
    unlucky.proxy, unlucky.lost = proxy, frozenset([0, 2, 4, 6])
    published: list[Snapshot] = []
    ledger = Ledger(
        unlucky,
        job,
        Description(pa.schema([("id", pa.int64())]), KeyCode(ordered=True)),
        EpochPolicy(span_us=None, batches=1, delayed=None),
        publish=published.append,
        patience=Patience(READY_S_MAX),
    )
    generation = ledger.take_over()
    given = [[BlockRef(key(generation=generation, batch=batch), 10, 5, batch, 0, 0, 0, 0, 0)] for batch in range(5)]
    for batch, blocks in enumerate(given):
        store.put_blocks(job, [(block.key, b"block") for block in blocks])
        collected = Collected(batch, batch, (None, None), blocks)
        ledger.commit(collected)
        assert ledger.commit(collected) == []
    ledger.finish()
    assert unlucky.swaps > max(unlucky.lost)
    assert ledger.patience.retries >= len(unlucky.lost)
    unlucky.close()

    head = Head.from_bytes(store.head(job) or b"")
    assert (head.generation, head.batch, head.snapshots, head.rows) == (generation, 4, 5, 50)
    manifests = [Snapshot.from_bytes(content) for _, content in store.get_records(job, "s", "t")]
    assert manifests == published
    assert [block for found in manifests for block in found.blocks] == [block for blocks in given for block in blocks]
