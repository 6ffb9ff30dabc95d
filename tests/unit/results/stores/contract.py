"""The contract of a result store, as tests: a class for each store inherits them and gives two fixtures.

`store` is a fresh or a used store, prepared; `another` is a second object on the same data. Tests use job names of
their own, so they may share one server.
"""

from __future__ import annotations

import random
import string
import threading
import time
import uuid
from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamjoin.results.reader import Reader
from streamjoin.results.stores.store import BlockKey, Store, StoreDownError, StoreUncertainError
from tests.unit.results.changing_jobs import asked, filled, history

T = TypeVar("T")

LOWEST, HIGHEST = -(2**63), 2**63 - 1
STEADY_S_MAX = 240.0

NAMES = st.text(st.sampled_from("abs/0129"), min_size=1, max_size=30) | st.integers(0, 10**6).map(
    lambda epoch: f"s/{epoch:020d}/{1:010d}/{epoch % 3:08d}"
)


def key(
    bucket: int = 0, lowest: int = 0, generation: int = 1, batch: int = 0, unit: int = 0, number: int = 0
) -> BlockKey:
    return BlockKey(bucket, lowest, generation, batch, unit, number)


def steadily(act: Callable[[], T]) -> T:
    """What a client does about an answer that did not come: asks again."""
    ends_s = time.monotonic() + STEADY_S_MAX
    while True:
        try:
            return act()
        except (StoreDownError, StoreUncertainError):
            if time.monotonic() > ends_s:
                raise
            time.sleep(0.01 + random.random() / 10)


def swap(store: Store, job: str, expected: bytes | None, new: bytes) -> bool:
    """Compare-and-set that reads back when no answer came; `new` must be this caller's alone."""
    try:
        return store.swap_head(job, expected, new)
    except StoreUncertainError:
        return steadily(lambda: store.head(job)) == new


class StoreContract:
    """Inherit it, and give the fixtures `store` and `another`."""

    many = 2000
    rounds = 20

    @pytest.fixture
    def job(self) -> str:
        return f"A.{uuid.uuid4().hex}_-9"

    # Results.

    def test_groups_that_change_are_what_they_were_as_of_every_snapshot(self, store: Store, job: str) -> None:
        changes, tables = history(batches=8)
        filled(store, changes, of=job)
        assert any(value is None for some in changes for _, value in some)
        assert asked(store, job) == tables[-1] != {}
        reader = Reader(store, job)
        reader.refresh()
        found = reader.snapshots()
        assert len(found) > 3
        for snapshot in found:
            assert asked(store, job, as_of=str(snapshot.id)) == tables[snapshot.batches[1]]

    # Blocks.

    def test_blocks_come_back_as_they_were(self, store: Store, another: Store, job: str) -> None:
        blocks = {
            key(): b"",
            key(bucket=3, lowest=-5): b"negative",
            key(lowest=LOWEST, batch=HIGHEST): b"\x00\xff",
            key(lowest=HIGHEST, generation=99_999_999, unit=2**31 - 1, number=2**31 - 1): b"extreme",
            key(bucket=2**31 - 1): bytes(range(256)) * 4096,
        }
        store.put_blocks(job, list(blocks.items()))
        assert dict(store.get_blocks(job, list(blocks))) == blocks
        assert {found: bytes(content) for found, content in another.get_blocks(job, list(blocks))} == blocks
        assert sorted(another.list_blocks(job)) == sorted(blocks)

    @pytest.mark.parametrize("field", ["bucket", "lowest", "generation", "batch", "unit", "number"])
    def test_every_part_of_a_key_tells_blocks_apart(self, store: Store, job: str, field: str) -> None:
        keys = [key(**{field: value}) for value in (0, 1, 2, 63, 64, 65, 1000)]
        store.put_blocks(job, [(each, str(each).encode()) for each in keys])
        assert dict(store.get_blocks(job, keys)) == {each: str(each).encode() for each in keys}
        store.delete_blocks(job, keys[1:2])
        assert sorted(store.list_blocks(job)) == sorted(keys[:1] + keys[2:])

    def test_putting_a_block_again_changes_nothing(self, store: Store, another: Store, job: str) -> None:
        for each in (store, another, store):
            each.put_blocks(job, [(key(), b"same"), (key(number=1), b"too")])
        assert sorted(store.get_blocks(job, [key(), key(number=1)])) == [(key(), b"same"), (key(number=1), b"too")]
        assert sorted(store.list_blocks(job)) == [key(), key(number=1)]

    def test_missing_blocks_are_left_out(self, store: Store, job: str) -> None:
        assert list(store.get_blocks(job, [key(), key(bucket=9)])) == []
        store.put_blocks(job, [(key(), b"x")])
        assert list(store.get_blocks(job, [key(bucket=9), key(), key(lowest=1)])) == [(key(), b"x")]
        assert list(store.get_blocks(job, [])) == []

    def test_deleted_blocks_are_gone_and_may_be_deleted_again(self, store: Store, another: Store, job: str) -> None:
        keys = [key(number=number) for number in range(4)]
        store.put_blocks(job, [(each, b"x") for each in keys])
        for each in (store, another):
            each.delete_blocks(job, [keys[1], keys[3], key(bucket=7)])
            assert sorted(each.list_blocks(job)) == [keys[0], keys[2]]
            assert sorted(found for found, _ in each.get_blocks(job, keys)) == [keys[0], keys[2]]
        store.delete_blocks(job, [])
        store.put_blocks(job, [(keys[1], b"again")])
        assert list(another.get_blocks(job, [keys[1]])) == [(keys[1], b"again")]

    def test_many_blocks_at_once(self, store: Store, another: Store, job: str) -> None:
        blocks = {key(n % 7, (-1) ** n * n**5, 1 + n % 2, n // 10, n % 3, n): b"%d" % n for n in range(self.many)}
        store.put_blocks(job, list(blocks.items()))
        assert dict(another.get_blocks(job, [*blocks, key(bucket=50)])) == blocks
        assert set(another.list_blocks(job)) == set(blocks)
        gone = list(blocks)[::2]
        another.delete_blocks(job, gone)
        assert set(store.list_blocks(job)) == set(blocks) - set(gone)
        assert dict(store.get_blocks(job, list(blocks))) == {each: blocks[each] for each in set(blocks) - set(gone)}

    def test_nothing_at_all_may_be_put(self, store: Store, job: str) -> None:
        store.put_blocks(job, [])
        store.put_records(job, [])
        assert list(store.list_blocks(job)) == []

    # Records.

    def test_records_are_read_by_range_with_both_ends(self, store: Store, another: Store, job: str) -> None:
        names = [f"s/{epoch:020d}/{part:010d}/{1:08d}" for epoch in (0, 1, 99, 100, 101, 12345) for part in (1, 2)]
        records = [(name, name.encode()) for name in [*names, "job", "b/00000000000003/00000001"]]
        store.put_records(job, random.Random(1).sample(records, len(records)))
        assert list(another.get_records(job, names[0], names[-1])) == [(name, name.encode()) for name in names]
        assert [name for name, _ in store.get_records(job, names[3], names[7])] == names[3:8]
        assert [name for name, _ in store.get_records(job, names[2], names[2])] == [names[2]]
        assert [name for name, _ in store.get_records(job, names[2] + "x", names[3] + "x")] == [names[3]]
        assert list(store.get_records(job, names[4], names[3])) == []
        assert list(store.get_records(job, "job", "job")) == [("job", b"job")]
        assert [name for name, _ in store.get_records(job, "", "~")] == sorted(name for name, _ in records)

    def test_a_record_of_the_same_name_is_replaced(self, store: Store, another: Store, job: str) -> None:
        store.put_records(job, [("job", b"old")])
        another.put_records(job, [("job", b"")])
        assert list(store.get_records(job, "job", "job")) == [("job", b"")]

    def test_deleted_records_are_gone_and_may_be_deleted_again(self, store: Store, another: Store, job: str) -> None:
        store.put_records(job, [(name, b"x" * 1000) for name in ("a", "b", "c")])
        for each in (another, store):
            each.delete_records(job, ["a", "c", "d"])
            assert [name for name, _ in each.get_records(job, "a", "z")] == ["b"]
        store.delete_records(job, [])
        store.put_records(job, [("a", b"again")])
        assert list(another.get_records(job, "a", "a")) == [("a", b"again")]

    def test_many_records_come_in_order(self, store: Store, another: Store, job: str) -> None:
        names = [f"s/{epoch:020d}/{1:010d}/{1:08d}" for epoch in range(0, self.many * 3, 3)]
        store.put_records(job, [(name, b"m") for name in reversed(names)])
        assert [name for name, _ in another.get_records(job, names[0], names[-1])] == names
        assert [name for name, _ in another.get_records(job, names[500], names[1499])] == names[500:1500]

    @settings(
        max_examples=15,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
    )
    @given(names=st.sets(NAMES, max_size=12), ends=st.tuples(NAMES, NAMES), gone=st.sets(NAMES, max_size=3))
    def test_records_sort_as_their_names(
        self, store: Store, names: set[str], ends: tuple[str, str], gone: set[str]
    ) -> None:
        job = f"r{uuid.uuid4().hex}"
        store.put_records(job, [(name, name.encode()) for name in names])
        store.delete_records(job, sorted(gone))
        expected = sorted(name for name in names - gone if ends[0] <= name <= ends[1])
        assert list(store.get_records(job, *ends)) == [(name, name.encode()) for name in expected]
        assert [name for name, _ in store.get_records(job, " ", "~")] == sorted(names - gone)

    # The head.

    def test_a_job_begins_once(self, store: Store, another: Store, job: str) -> None:
        assert store.head(job) is None and another.head(job) is None
        assert store.swap_head(job, None, b"first")
        assert not another.swap_head(job, None, b"second")
        assert store.head(job) == another.head(job) == b"first"

    def test_the_head_changes_only_from_what_was_expected(self, store: Store, another: Store, job: str) -> None:
        assert not store.swap_head(job, b"none", b"new")
        assert store.head(job) is None
        assert store.swap_head(job, None, b"1")
        assert another.swap_head(job, b"1", b"2")
        assert not store.swap_head(job, b"1", b"3")
        assert not store.swap_head(job, b"", b"3")
        assert not store.swap_head(job, b"2 ", b"3")
        assert store.head(job) == another.head(job) == b"2"
        assert store.swap_head(job, b"2", b"2")
        large = bytes(range(256)) * 200
        assert store.swap_head(job, b"2", large)
        assert another.swap_head(job, large, large + b"x")
        assert store.head(job) == large + b"x"

    def test_of_swaps_at_the_same_time_one_wins(self, store: Store, another: Store, job: str) -> None:
        both = threading.Barrier(2, timeout=STEADY_S_MAX)
        wins: list[tuple[int, str]] = []
        failures: list[BaseException] = []

        def contend(store: Store, name: str) -> None:
            try:
                before: bytes | None = None
                for number in range(self.rounds):
                    both.wait()
                    mine = f"{number} {name}".encode()
                    won = steadily(lambda before=before, mine=mine: swap(store, job, before, mine))  # type: ignore[misc]
                    both.wait()
                    before = steadily(lambda: store.head(job))
                    # A swap that was repeated may have been done the first time.
                    if won or before == mine:
                        wins.append((number, name))
            except BaseException as error:
                failures.append(error)
                both.abort()

        in_threads(lambda: contend(store, "a"), lambda: contend(another, "b"))
        assert failures == []
        assert sorted(number for number, _ in wins) == list(range(self.rounds))

    def test_no_increment_is_lost(self, store: Store, another: Store, job: str) -> None:
        failures: list[BaseException] = []

        def count(store: Store, name: str) -> None:
            try:
                for number in range(self.rounds):
                    mine = f" {name}{number}".encode()
                    while mine not in (before := steadily(lambda: store.head(job)) or b""):
                        steadily(lambda: swap(store, job, before or None, before + mine))  # noqa: B023
            except BaseException as error:
                failures.append(error)

        in_threads(lambda: count(store, "a"), lambda: count(another, "b"))
        assert failures == []
        counted = (store.head(job) or b"").decode().split()
        assert sorted(counted) == sorted(f"{name}{number}" for name in "ab" for number in range(self.rounds))
        assert [each for each in counted if each[0] == "a"] == [f"a{number}" for number in range(self.rounds)]

    # Jobs.

    def test_jobs_are_apart(self, store: Store, job: str) -> None:
        other = job + "x"
        store.put_blocks(job, [(key(), b"mine")])
        store.put_records(job, [("job", b"mine")])
        assert store.swap_head(job, None, b"mine")
        assert store.head(other) is None
        assert not list(store.get_blocks(other, [key()])) and not list(store.list_blocks(other))
        assert list(store.get_records(other, "", "~")) == []
        store.put_blocks(other, [(key(), b"other")])
        store.delete_blocks(other, [key()])
        store.delete_records(other, ["job"])
        store.drop(other)
        assert list(store.get_blocks(job, [key()])) == [(key(), b"mine")]
        assert list(store.get_records(job, "job", "job")) == [("job", b"mine")]
        assert store.head(job) == b"mine"

    def test_jobs_with_a_head_are_listed_by_name(self, store: Store, another: Store, job: str) -> None:
        names = [job + "b", job + "a", job + "." + "c" * 40]
        for name in names:
            assert store.swap_head(name, None, b"x")
        store.put_records(job + "d", [("job", b"no head yet")])
        found = another.jobs()
        assert found == sorted(found)
        assert [name for name in found if name.startswith(job)] == sorted(names)

    def test_a_dropped_job_is_gone_and_may_begin_anew(self, store: Store, another: Store, job: str) -> None:
        keys = [key(bucket=bucket, batch=batch) for bucket in (0, 1, 17) for batch in (0, 64, 1000)]
        names = ["job", "s/00000000000000000001/0000000001/00000001", "b/00000000000001/00000001"]
        for each in (store, another):
            each.put_blocks(job, [(some, b"x") for some in keys])
            each.put_records(job, [(name, b"x") for name in names])
            assert each.swap_head(job, None, b"x")
            store.drop(job)
            store.drop(job)
            assert another.head(job) is None
            assert job not in another.jobs()
            assert not list(another.list_blocks(job)) and not list(another.get_blocks(job, keys))
            assert list(another.get_records(job, "", "~")) == []
        another.put_blocks(job, [(keys[0], b"new")])
        another.put_records(job, [("job", b"new")])
        assert another.swap_head(job, None, b"new")
        assert store.head(job) == b"new" and job in store.jobs()
        assert list(store.get_blocks(job, keys)) == [(keys[0], b"new")]
        assert list(store.get_records(job, "", "~")) == [("job", b"new")]

    def test_jobs_may_have_all_the_names_they_may_have(self, store: Store) -> None:
        for name in (string.ascii_letters, "-" + string.digits + "._-", "j" * 100):
            name = (uuid.uuid4().hex + name)[:100]
            assert store.swap_head(name, None, b"x")
            store.put_blocks(name, [(key(), b"x")])
            store.put_records(name, [("job", b"x")])
            assert name in store.jobs()
            assert list(store.list_blocks(name)) == [key()]
            store.drop(name)

    # The objects.

    def test_preparing_again_keeps_what_is_there(self, store: Store, another: Store, job: str) -> None:
        assert store.swap_head(job, None, b"x")
        failures: list[BaseException] = []

        def prepare(store: Store) -> None:
            try:
                for _ in range(3):
                    store.prepare()
            except BaseException as error:
                failures.append(error)

        in_threads(lambda: prepare(store), lambda: prepare(another))
        assert failures == []
        assert another.head(job) == b"x"

    def test_a_closed_store_opens_again(self, store: Store, another: Store, job: str) -> None:
        store.put_records(job, [("job", b"x")])
        store.close()
        store.close()
        assert list(store.get_records(job, "job", "job")) == [("job", b"x")]
        assert store.swap_head(job, None, b"x")
        another.close()
        assert another.head(job) == b"x"
        store.close()
        store.prepare()
        assert store.head(job) == b"x"

    def test_a_store_says_what_it_is(self, store: Store) -> None:
        assert store.kind in ("memory", "redis", "sqlite", "cassandra", "hbase")
        assert 1 << 12 <= store.block_bytes <= 1 << 23


def in_threads(*acts: Callable[[], None]) -> None:
    """Run them at the same time, each in a thread, until all have ended."""
    threads = [threading.Thread(target=act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
