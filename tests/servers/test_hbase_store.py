"""Results in a real HBase: the contract of stores, what happens when something breaks, and ranges of keys."""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import happybase
import pyarrow as pa
import pytest
from Hbase_thrift import IllegalArgument  # which happybase makes
from pyspark.sql import SparkSession

from streamjoin.plan.join import RESULT_KEY, RESULT_TIME
from streamjoin.results.block import BlockRef, KeyCode, cut, decode
from streamjoin.results.description import Description
from streamjoin.results.head import Head
from streamjoin.results.ledger import Ledger
from streamjoin.results.names import snapshot_name
from streamjoin.results.patience import Patience
from streamjoin.results.policy import Collected, EpochPolicy
from streamjoin.results.snapshot import FIRST, Snapshot, SnapshotId
from streamjoin.results.stores.hbase.store import CELL_BYTES_MAX, HbaseStore
from streamjoin.results.stores.spec import StoreSpec
from streamjoin.results.stores.store import BlockKey, Store, StoreDownError, StoreError, StoreUncertainError
from tests.conformance.stores.play import play_a_few
from tests.spark.periods import check_two_periods
from tests.unit.results.stores.contract import STEADY_S_MAX, StoreContract, steadily

from .hbase import HbaseServer
from .process import comes_true
from .proxy import Proxy

pytestmark = pytest.mark.services

IMPATIENT_S = 3.0
SOON_S_MAX = 9.0  # less than the 10 s that a store waits unless told otherwise
SEEN_S_MAX = 30.0
JOB = "job"

SCHEMA = pa.schema([("id", pa.int64()), (RESULT_TIME, pa.int64()), (RESULT_KEY, pa.int64())])
CODE = KeyCode(ordered=True)
EVERY_BATCH = EpochPolicy(span_us=None, batches=1, immediate=False)


@pytest.fixture(scope="module")
def server() -> Iterator[HbaseServer]:
    with HbaseServer() as server:
        yield server


@pytest.fixture
def store(server: HbaseServer) -> Iterator[HbaseStore]:
    store = HbaseStore(port=server.port)
    steadily(store.prepare)
    yield store
    steadily(lambda: store.drop(JOB))
    store.close()


@pytest.fixture
def proxy(server: HbaseServer) -> Iterator[Proxy]:
    with Proxy(server.port) as proxy:
        yield proxy


@pytest.fixture
def far(store: HbaseStore, proxy: Proxy) -> Iterator[HbaseStore]:
    """A client behind a bad network, on the tables of `store`."""
    far = HbaseStore(port=proxy.port)
    yield far
    far.close()


@pytest.fixture
def impatient(store: HbaseStore, proxy: Proxy) -> Iterator[HbaseStore]:
    """`far` with little patience: what must succeed is asked of `store`, or steadily."""
    impatient = HbaseStore(port=proxy.port, timeout_s=IMPATIENT_S)
    yield impatient
    impatient.close()


class TestContract(StoreContract):
    """What every store must do."""

    @pytest.fixture
    def store(self, store: HbaseStore) -> HbaseStore:
        return store

    @pytest.fixture
    def another(self, server: HbaseServer) -> Iterator[HbaseStore]:
        another = HbaseStore(port=server.port)
        yield another
        another.close()

    @pytest.mark.soak
    def test_groups_that_change_are_what_they_were_as_of_every_snapshot(self, store: Store, job: str) -> None:
        super().test_groups_that_change_are_what_they_were_as_of_every_snapshot(store, job)


def block_key(lowest: int, number: int = 0, batch: int = 0) -> BlockKey:
    return BlockKey(0, lowest, 1, batch, 0, number)


def blocks_of(keys: Sequence[BlockKey]) -> list[tuple[BlockKey, bytes]]:
    return [(key, f"{key.lowest}/{key.batch}".encode()) for key in keys]


def took_s(act: Callable[[], object], error: type[StoreError]) -> float:
    """How long it took to fail, which must be soon; that exact error and no kind of it."""
    began_s = time.monotonic()
    with pytest.raises(error) as failure:
        act()
    lasted_s = time.monotonic() - began_s
    assert failure.type is error, failure.value
    assert lasted_s < SOON_S_MAX
    return lasted_s


def becomes(store: HbaseStore, head: bytes) -> bool:
    """Whether the head is that, or will be soon: who waited in vain for an answer may look before it is done."""
    return comes_true(lambda: steadily(lambda: store.head(JOB)) == head, SEEN_S_MAX)


def collected(store: HbaseStore, batch: int, keys: Sequence[int], generation: int = 1) -> Collected:
    """A batch with a row for each key, in blocks that the store has."""
    columns = [pa.array(range(len(keys)), pa.int64()), pa.array([batch] * len(keys), pa.int64()), pa.array(keys)]
    rows = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    blocks = list(cut(rows, CODE, generation=generation, batch=batch, unit=0, first_number=0, block_bytes=1 << 10))
    steadily(lambda: store.put_blocks(JOB, [(ref.key, content) for ref, content in blocks]))
    return Collected(batch, batch, (None, None), [ref for ref, _ in blocks])


def ledger_on(store: HbaseStore, published: list[Snapshot] | None = None) -> Ledger:
    publish = None if published is None else published.append
    description = Description(SCHEMA, CODE)
    return Ledger(store, JOB, description, EVERY_BATCH, publish=publish, patience=Patience(STEADY_S_MAX))


# Preparing.


def test_any_number_of_processes_may_prepare_at_once(server: HbaseServer) -> None:
    stores = [HbaseStore(port=server.port, table="crowd") for _ in range(3)]
    with ThreadPoolExecutor(len(stores)) as pool:
        list(pool.map(HbaseStore.prepare, stores))
    stores[0].put_records(JOB, [("a", b"1")])
    assert list(stores[2].get_records(JOB, "a", "a")) == [("a", b"1")]


def test_tables_that_are_not_there_are_named_with_the_way_out(server: HbaseServer) -> None:
    store = HbaseStore(port=server.port, table="nobodys")
    with pytest.raises(
        StoreError, match=rf"^HBase at 127\.0\.0\.1:{server.port} has no .*nobodys_\*.*`streamjoin run`"
    ):
        store.head(JOB)
    with pytest.raises(StoreError, match=r"refuses: .*Namespace"):
        HbaseStore(port=server.port, table="nowhere:results").prepare()


def test_tables_of_something_else_are_named(server: HbaseServer) -> None:
    connection = happybase.Connection("127.0.0.1", server.port)
    connection.create_table("theirs_heads", {"family": {}})
    connection.close()
    for act in (HbaseStore.prepare, HbaseStore.jobs):
        store = HbaseStore(port=server.port, table="theirs")
        with pytest.raises(StoreError, match=r"tables theirs_\* .* are of something else; name another"):
            act(store)
        store.close()


def test_a_newer_layout_is_refused(server: HbaseServer) -> None:
    HbaseStore(port=server.port, table="crowd").prepare()
    connection = happybase.Connection("127.0.0.1", server.port)
    layout = connection.table("crowd_heads")
    layout.put(b"\0layout", {b"d:v": b"2"})
    try:
        with pytest.raises(StoreError, match="have layout 2, and this version reads layout 1"):
            HbaseStore(port=server.port, table="crowd").prepare()
        with pytest.raises(StoreError, match="have layout 2"):
            HbaseStore(port=server.port, table="crowd").head(JOB)
    finally:
        layout.put(b"\0layout", {b"d:v": b"1"})
        connection.close()


def test_a_block_beyond_the_limit_of_hbase_is_refused_and_one_just_within_is_kept(store: HbaseStore) -> None:
    large = os.urandom(1 << 20) * 9
    assert len(large) == CELL_BYTES_MAX
    with pytest.raises(StoreError, match="KeyValue limit is 10 MiB"):
        store.put_blocks(JOB, [(block_key(2), large + b"!")])
    store.put_blocks(JOB, [(block_key(1), large)])
    assert list(store.get_blocks(JOB, [block_key(1), block_key(2)])) == [(block_key(1), large)]


# Connections.


def test_a_store_travels_and_a_forked_process_has_a_connection_of_its_own(
    server: HbaseServer, store: HbaseStore
) -> None:
    assert store.swap_head(JOB, None, b"1")
    copy = pickle.loads(pickle.dumps(store))
    assert copy.head(JOB) == b"1" and copy.gateway.port == server.port
    copy.close()
    process = os.fork()
    if process == 0:
        try:
            right = all(store.head(JOB) == b"1" for _ in range(20))
            store.close()
            os._exit(0 if right else 1)
        finally:
            os._exit(2)
    assert all(store.head(JOB) == b"1" for _ in range(20))
    assert os.waitpid(process, 0)[1] == 0
    assert store.head(JOB) == b"1"


def test_a_spec_opens_it(server: HbaseServer, store: HbaseStore) -> None:
    assert store.swap_head(JOB, None, b"1")
    opened = StoreSpec("hbase", (("port", server.port),)).open()
    assert (opened.kind, opened.head(JOB)) == ("hbase", b"1")
    opened.close()


def test_a_scan_that_the_gateway_forgot_goes_on_where_it_was(server: HbaseServer, store: HbaseStore) -> None:
    keys = [block_key(number) for number in range(200)]
    store.put_blocks(JOB, blocks_of(keys))
    found = store.list_blocks(JOB)
    seen = [next(found) for _ in range(10)]
    assert close_scans(server) >= 1
    assert seen + list(found) == keys


def close_scans(server: HbaseServer) -> int:
    """Close all scans that the gateway has, as it does with old ones; how many there were."""
    connection = happybase.Connection("127.0.0.1", server.port)
    newest = connection.client.scannerOpen(b"streamjoin_records", b"", [], {})  # they are numbered from 0
    closed = 0
    for number in range(newest):
        try:
            connection.client.scannerClose(number)
            closed += 1
        except IllegalArgument:  # none of this number
            continue
    connection.client.scannerClose(newest)
    connection.close()
    return closed


# Faults.


def test_a_network_that_fails_is_told_at_once_and_used_again_when_it_is_back(far: HbaseStore, proxy: Proxy) -> None:
    assert far.swap_head(JOB, None, b"1")
    proxy.cut()
    for act in (
        lambda: far.head(JOB),
        lambda: far.swap_head(JOB, b"1", b"2"),  # not even asked, as nobody is there
        lambda: far.put_blocks(JOB, blocks_of([block_key(1)])),
        lambda: list(far.get_blocks(JOB, [block_key(1)])),
        lambda: list(far.list_blocks(JOB)),
        far.jobs,
        far.prepare,
    ):
        took_s(act, StoreDownError)
    proxy.restore()
    assert far.head(JOB) == b"1"
    assert far.swap_head(JOB, b"1", b"2")


def test_slow_answers_are_awaited_for_the_timeout_and_not_mistaken_for_later_ones(
    store: HbaseStore, impatient: HbaseStore, proxy: Proxy
) -> None:
    assert store.swap_head(JOB, None, b"1")
    store.put_records(JOB, [("a", b"a")])
    proxy.delay(IMPATIENT_S / 3)
    assert steadily(lambda: impatient.head(JOB)) == b"1"
    proxy.delay(IMPATIENT_S * 3)
    assert took_s(lambda: impatient.head(JOB), StoreDownError) > IMPATIENT_S * 0.9
    took_s(lambda: impatient.swap_head(JOB, b"1", b"2"), StoreUncertainError)
    proxy.restore()
    assert steadily(lambda: list(impatient.get_records(JOB, "a", "a"))) == [("a", b"a")]
    assert becomes(impatient, b"2")


def test_a_commit_whose_answer_is_lost_is_uncertain(store: HbaseStore, impatient: HbaseStore, proxy: Proxy) -> None:
    assert store.swap_head(JOB, None, b"1")
    assert steadily(lambda: impatient.head(JOB)) == b"1"
    proxy.swallow_answers()
    took_s(lambda: impatient.swap_head(JOB, b"1", b"2"), StoreUncertainError)
    assert becomes(store, b"2")
    proxy.restore()
    assert steadily(lambda: impatient.head(JOB)) == b"2"
    assert not steadily(lambda: impatient.swap_head(JOB, b"1", b"2"))


def test_a_commit_on_a_connection_that_breaks_meanwhile_is_uncertain(
    store: HbaseStore, far: HbaseStore, proxy: Proxy
) -> None:
    assert far.swap_head(JOB, None, b"1")
    proxy.swallow_answers()

    def cut_once_committed() -> None:
        becomes(store, b"2")
        proxy.cut()

    breaker = threading.Thread(target=cut_once_committed)
    breaker.start()
    took_s(lambda: far.swap_head(JOB, b"1", b"2"), StoreUncertainError)
    breaker.join()
    proxy.restore()
    assert far.head(JOB) == b"2"


def test_a_driver_commits_exactly_once_through_lost_answers(
    store: HbaseStore, impatient: HbaseStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    published: list[Snapshot] = []
    ledger = ledger_on(impatient, published)
    generation = ledger.take_over()
    swap = impatient.swap_head
    losses = iter((True, False, True, False))

    def loses_answers(job: str, expected: bytes | None, new: bytes) -> bool:
        if next(losses, False):
            proxy.swallow_answers()
        try:
            return swap(job, expected, new)
        finally:
            proxy.restore()

    monkeypatch.setattr(impatient, "swap_head", loses_answers)
    for batch in range(4):
        ledger.commit(collected(impatient, batch, range(batch * 10, batch * 10 + 10), generation))
    ledger.finish()
    assert next(losses, None) is None
    assert ledger.patience.retries >= 2
    assert [found.rows for found in published] == [10, 10, 10, 10]
    stored = store.head(JOB)
    assert stored is not None
    assert Head.from_bytes(stored) == ledger.head
    assert (ledger.head.snapshots, ledger.head.rows, ledger.head.batch) == (4, 40, 3)
    names = snapshot_name(published[0].id), snapshot_name(published[-1].id, generation)
    manifests = [Snapshot.from_bytes(content) for _, content in store.get_records(JOB, *names)]
    assert manifests == published
    read = {
        row
        for found in manifests
        for row in rows_of(store, found.blocks)
    }  # fmt: skip
    assert sorted(key for key, _ in read) == list(range(40))


def test_a_driver_waits_until_a_network_is_back(far: HbaseStore, proxy: Proxy) -> None:
    ledger = ledger_on(far)
    generation = ledger.take_over()
    first = collected(far, 0, range(10), generation)
    proxy.cut()

    def sleep(seconds: float) -> None:
        if ledger.patience.retries == 3:
            proxy.restore()
        time.sleep(seconds)

    ledger.patience.sleep = sleep
    ledger.commit(first)
    assert ledger.patience.retries >= 3
    ledger.commit(collected(far, 1, range(10), generation))
    assert (ledger.head.batch, ledger.head.snapshots) == (1, 1)


def test_a_gateway_that_was_killed_is_found_again(server: HbaseServer, store: HbaseStore) -> None:
    keys = [block_key(number) for number in range(100)]
    store.put_blocks(JOB, blocks_of(keys))
    assert store.swap_head(JOB, None, b"1")
    listed = store.list_blocks(JOB)
    begun = [next(listed) for _ in range(10)]
    server.kill_gateway()
    try:
        took_s(lambda: store.head(JOB), StoreDownError)
        took_s(lambda: store.swap_head(JOB, b"1", b"2"), StoreDownError)
    finally:
        server.restart_gateway()
    # The new gateway numbers its scans from the start again: this is another one than `listed` began.
    other = store.get_records(JOB, "a", "b")
    assert list(other) == []
    assert begun + list(listed) == keys
    assert store.head(JOB) == b"1"
    # A connection that died while nobody used it is noticed before a commit is sent on it.
    server.restart_gateway()
    assert store.swap_head(JOB, b"1", b"2")


def test_a_region_that_nobody_serves_is_waited_for(server: HbaseServer, store: HbaseStore) -> None:
    store.put_records(JOB, [("a", b"a")])
    connection = happybase.Connection("127.0.0.1", server.port)
    connection.disable_table("streamjoin_records")
    try:
        for act in (lambda: store.put_records(JOB, [("b", b"b")]), lambda: list(store.get_records(JOB, "a", "b"))):
            with pytest.raises(StoreDownError, match=r"cannot do it now: .*; look at its log"):
                act()
        impatient = HbaseStore(port=server.port, timeout_s=IMPATIENT_S)
        with pytest.raises(StoreDownError, match=r"the table streamjoin_records .* is disabled; enable it"):
            impatient.prepare()
        impatient.close()
    finally:
        connection.enable_table("streamjoin_records")
        connection.close()
    assert list(store.get_records(JOB, "a", "b")) == [("a", b"a")]


def test_data_survives_a_crash_of_hbase_which_is_told_in_time(server: HbaseServer, store: HbaseStore) -> None:
    keys = [block_key(number) for number in range(300)]
    store.put_blocks(JOB, blocks_of(keys))
    store.put_records(JOB, [("a", b"a")])
    assert store.swap_head(JOB, None, b"1")
    impatient = HbaseStore(port=server.port, timeout_s=IMPATIENT_S)
    assert steadily(lambda: impatient.head(JOB)) == b"1"
    server.kill()
    try:
        took_s(lambda: impatient.head(JOB), StoreDownError)
        took_s(lambda: impatient.put_records(JOB, [("b", b"b")]), StoreDownError)
        took_s(lambda: impatient.swap_head(JOB, b"0", b"2"), StoreUncertainError)
    finally:
        server.restart()
    impatient.close()
    # Each table comes back by itself, and the gateway finds each by itself.
    assert steadily(lambda: store.head(JOB)) == b"1"
    assert steadily(lambda: sorted(store.list_blocks(JOB))) == keys
    assert steadily(lambda: sorted(store.get_blocks(JOB, keys))) == blocks_of(keys)
    assert ("a", b"a") in steadily(lambda: list(store.get_records(JOB, "a", "z")))
    assert steadily(lambda: store.swap_head(JOB, b"1", b"2") or store.head(JOB) == b"2")


@pytest.mark.soak
def test_readers_see_whole_snapshots_in_order_while_drivers_are_killed(server: HbaseServer, tmp_path: Path) -> None:
    play_a_few(StoreSpec("hbase", (("port", server.port),)), "punctuations", tmp_path)


@pytest.mark.soak
@pytest.mark.spark
def test_each_period_of_a_job_is_closed_with_all_its_rows(
    server: HbaseServer, store: HbaseStore, session: SparkSession, tmp_path: Path
) -> None:
    check_two_periods(session, tmp_path, f"store: hbase, hosts: [127.0.0.1], port: {server.port}, job: {JOB}")


# Ranges of keys.


def rows_of(store: HbaseStore, refs: Sequence[BlockRef]) -> list[tuple[int, int]]:
    """(key, batch) of the rows of blocks."""
    by_key = {ref.key: ref for ref in refs}
    rows = [decode(by_key[key], content) for key, content in store.get_blocks(JOB, [ref.key for ref in refs])]
    return [
        pair
        for found in rows
        for pair in zip(found[RESULT_KEY].to_pylist(), found[RESULT_TIME].to_pylist(), strict=True)
    ]


def counts(store: HbaseStore) -> tuple[int, int, int]:
    return store.scans, store.rows_scanned, store.gets


def test_a_range_of_keys_is_one_scan_that_reads_no_more_for_snapshots_outside_it(
    server: HbaseServer, store: HbaseStore
) -> None:
    ledger = ledger_on(store)
    generation = ledger.take_over()

    def commit(batch: int, keys: Sequence[int]) -> None:
        ledger.commit(collected(store, batch, keys, generation))

    def asked_for() -> tuple[set[tuple[int, int]], tuple[int, int, int]]:
        """The rows of all blocks that have keys of 200 to 299, and what they cost."""
        reader = HbaseStore(port=server.port)
        names = snapshot_name(FIRST), snapshot_name(SnapshotId(10**9, 0))
        snapshots = [Snapshot.from_bytes(content) for _, content in reader.get_records(JOB, *names)]
        assert len(snapshots) == ledger.head.snapshots
        refs = [ref for found in snapshots for ref in found.blocks if ref.code_min <= 299 and ref.code_max >= 200]
        rows = rows_of(reader, refs)
        reader.close()
        return set(rows), counts(reader)

    for batch in range(4):
        commit(batch, range(-640, 640))
    commit(4, [])
    rows, cost = asked_for()
    assert rows == {(key, batch) for key in range(192, 320) for batch in range(4)}
    assert cost == (1, 8, 0)
    for batch in range(5, 55):
        commit(batch, range(-5000 - batch, -4000) if batch % 2 else range(1000, 2000 + batch))
    ledger.finish()
    assert ledger.head.snapshots == 54
    assert asked_for() == (rows, cost)


def test_blocks_come_in_the_order_of_their_keys(store: HbaseStore) -> None:
    lowest = [-(2**63), -(2**62), -300, -2, -1, 0, 1, 255, 256, 2**40, 2**63 - 1]
    keys = [block_key(low, batch=batch) for low in lowest for batch in (0, 7, 300)]
    store.put_blocks(JOB, blocks_of(keys)[::-1])
    others = ("jo", "job.1", "job0")  # around it in the table
    for other in others:
        store.put_blocks(other, blocks_of(keys))
    assert list(store.get_blocks(JOB, keys[::2])) == blocks_of(keys)[::2]
    assert list(store.list_blocks(JOB)) == keys
    assert counts(store) == (1, len(keys), 0)
    for other in others:
        store.drop(other)


def test_a_few_blocks_and_a_scattered_choice_are_asked_for_by_name(store: HbaseStore) -> None:
    keys = [block_key(number) for number in range(2000)]
    store.put_blocks(JOB, blocks_of(keys))
    assert list(store.get_blocks(JOB, [keys[5], keys[0], keys[1999]])) == blocks_of([keys[0], keys[5], keys[1999]])
    assert counts(store) == (0, 0, 3)
    scattered = keys[::20]
    assert list(store.get_blocks(JOB, scattered)) == blocks_of(scattered)
    assert store.scans <= 4
    assert store.rows_scanned <= 4 * 16
    assert store.gets >= 90


def test_one_block_far_from_a_range_does_not_make_it_read_what_lies_between(store: HbaseStore) -> None:
    keys = [block_key(number) for number in range(2000)]
    store.put_blocks(JOB, blocks_of(keys))
    asked = [keys[0], *keys[1500:]]
    assert list(store.get_blocks(JOB, asked)) == blocks_of(asked)
    assert store.scans == 2
    assert store.gets == 16
    assert store.rows_scanned < len(asked) + 16


def test_a_large_range_is_read_in_answers_of_bounded_size(store: HbaseStore) -> None:
    content = os.urandom(store.block_bytes)
    keys = [block_key(number) for number in range(150)]
    store.put_blocks(JOB, [(key, content) for key in keys])
    found = store.get_blocks(JOB, keys)
    assert next(found) == (keys[0], content)
    assert store.rows_scanned == 16
    assert sum(1 for _ in found) == 149
    assert counts(store) == (1, 150, 0)
