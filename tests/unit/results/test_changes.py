"""Groups that change in a store: the last value of each, as of a snapshot or a time, through retention and crashes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from changing_jobs import SCHEMA, Changes, Group, asked, filled, history
from result_jobs import Job

from streamjoin.errors import InputError
from streamjoin.plan.join import RESULT_KEY, RESULT_TIME
from streamjoin.results import base, latest
from streamjoin.results.answer import ask
from streamjoin.results.follow import follow
from streamjoin.results.names import BASES
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.results.snapshot import FIRST, BaseId, Snapshot
from streamjoin.results.stores.memory import MemoryStore
from streamjoin.results.stores.sqlite import SqliteStore
from streamjoin.results.stores.store import BlockKey, Store

pytestmark = pytest.mark.slow


@pytest.fixture(params=["memory", "sqlite", "many bases"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    if request.param == "many bases":
        bases_after(monkeypatch, blocks=4)
    with closing(SqliteStore(tmp_path / "results.db") if request.param == "sqlite" else MemoryStore()) as opened:
        opened.prepare()
        yield opened


def bases_after(monkeypatch: pytest.MonkeyPatch, blocks: int) -> None:
    monkeypatch.setattr(base, "TAIL_MAX", blocks * base.BLOCK_ROWS)
    monkeypatch.setattr(base, "TAIL_BASES", 0)


def base_blocks(store: Store) -> set[BlockKey]:
    return {key for key in store.list_blocks("j") if key.unit == base.BASE_UNIT}


def recorded_blocks(store: Store) -> set[BlockKey]:
    """Of every base that has a record; all that is there beside them is lost."""
    found = (Snapshot.from_bytes(content) for _, content in store.get_records("j", *BASES))
    return {ref.key for one in found for ref in one.blocks}


def named_blocks(store: Store) -> set[BlockKey]:
    """Of every base that the head or a snapshot names."""
    reader = Reader(store, "j")
    head = reader.refresh()
    named = {head.floor_base, head.newest_base, *(found.base for found in reader.snapshots())}
    found = [base.read_base(store, "j", one) for one in named if one is not None and one.upto >= head.floor]
    return {ref.key for one in found if one is not None for ref in one.blocks}


def test_the_last_value_of_each_group_now_and_as_of_every_snapshot_and_time(store: Store) -> None:
    changes, tables = history()
    job = filled(store, changes)
    assert asked(store) == tables[-1] != {}
    reader = Reader(store, "j")
    reader.refresh()
    for found in reader.snapshots():
        assert asked(store, as_of=str(found.id)) == tables[found.batches[1]]
    for number, table in enumerate(tables):
        assert asked(store, as_of=10 * number) == asked(store, as_of=10 * number + 9) == table
    assert asked(store, as_of=-1) == {}
    assert job.ledger.head.base == 0


def test_last_values_are_found_before_conditions_and_ranges(store: Store) -> None:
    changes, tables = history()
    filled(store, changes)
    least = sorted(tables[-1].values())[len(tables[-1]) // 2]
    assert asked(store, where=f"n >= {least}") == {at: n for at, n in tables[-1].items() if n >= least}
    assert asked(store, where=f"n < {least}") == {at: n for at, n in tables[-1].items() if n < least}
    assert asked(store, key=2) == {at: n for at, n in tables[-1].items() if at[0] == 2}
    # A group that was given in the range and again later is what it is now.
    middle = 10 * (len(tables) // 2)
    assert asked(store, to_us=middle) == {at: n for at, n in tables[-1].items() if n // 100 * 10 <= middle}
    assert asked(store, from_us=middle) == {at: n for at, n in tables[-1].items() if n // 100 * 10 >= middle}


def test_pages_are_one_answer(store: Store) -> None:
    changes, tables = history()
    job = filled(store, changes)
    found: dict[Group, int] = {}
    cursor = None
    for _ in range(20):
        answer = ask(Reader(store, "j"), Question(limit=2, cursor=cursor))
        rows = [row for batch in answer for row in batch.to_pylist()]
        found |= {(row["k"], row["t"]): row["n"] for row in rows}
        if (cursor := answer.cursor) is None:
            break
        job.change(job.ledger.head.batch + 1, [((9, "later"), 1)])
    assert found == tables[-1] and len(found) > 3


def test_wide_groups_are_held_once_however_often_they_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(latest, "_HELD_BYTES", 10_000)
    wide = "x" * 1000
    store = MemoryStore()
    filled(store, [[((k, wide), number) for k in (1, 2)] for number in range(100)])
    held: list[int] = []
    answer = ask(Reader(store, "j"), Question(select=("k",), where="n >= 99"), holds=held.append)
    assert [row for batch in answer for row in batch.to_pylist()] == [{"k": 1}, {"k": 2}]
    assert len(held) > 10 and max(held) < 3_000  # 2 of 200 rows, each of 1,000 bytes

    def refuse(size: int) -> None:
        raise InputError(f"{size}")

    with pytest.raises(InputError):
        list(ask(Reader(store, "j"), Question(), holds=refuse))


def test_columns_that_nobody_asks_for_are_not_held(store: Store) -> None:
    changes, tables = history()
    filled(store, changes)
    held: list[int] = []
    for select in (None, ("k",)):
        assert sum(batch.num_rows for batch in ask(Reader(store, "j"), Question(select=select), holds=held.append))
    assert held[-1] < held[0]
    assert asked(store) == tables[-1]


def test_all_changes_are_the_history(store: Store) -> None:
    changes, _ = history()
    filled(store, changes)
    found = [row for batch in ask(Reader(store, "j"), Question(history=True)) for row in batch.to_pylist()]
    assert sorted(
        (row["emit_time"].microsecond, str(row["k"]), str(row["t"]), str(row["n"])) for row in found
    ) == sorted((10 * number, str(k), str(t), str(n)) for number, some in enumerate(changes) for (k, t), n in some)


def test_what_came_after_a_snapshot_are_changes(store: Store) -> None:
    changes, _ = history()
    filled(store, changes)
    question = Question(after="20.0", where="n >= 2500")
    found = [row for batch in ask(Reader(store, "j"), question) for row in batch.to_pylist()]
    wanted = [n if n is not None and n >= 2500 else None for some in changes[20:] for _, n in some]
    assert sorted(map(str, wanted)) == sorted(str(row["n"]) for row in found)
    assert all((row["op"] == "upsert") == (row["n"] is not None) for row in found)


def test_retention_keeps_the_last_value_of_each_group(store: Store) -> None:
    changes, tables = history(40)
    job = filled(store, changes, retain=5)
    head = job.ledger.head
    assert head.floor > FIRST and head.base == head.generation
    assert asked(store) == tables[-1]
    for number in range(36, 40):
        assert asked(store, as_of=10 * number) == tables[number]
    with pytest.raises(
        InputError,
        match=r"at 1970-01-01T00:00:00\.000100Z is not known any more.* up to 1970-01-01T00:00:00\.0003\d\dZ; ask",
    ):
        asked(store, as_of=100)
    with pytest.raises(InputError, match="have been removed, and groups are known"):
        asked(store, as_of="3.0")
    assert asked(store, as_of=str(head.floor)) == tables[head.floor.epoch - 1]
    # Nothing is left of the bases before.
    assert base_blocks(store) == recorded_blocks(store)
    first, *_ = (Snapshot.from_bytes(content) for _, content in store.get_records("j", *BASES))
    assert BaseId(first.id, first.generation) == head.floor_base
    assert base_blocks(store) == named_blocks(store) or head.newest_base != head.floor_base


@pytest.mark.parametrize("restarts", [False, True], ids=["one driver", "a driver for each heartbeat"])
def test_retention_in_silence_keeps_the_last_value_of_each_group(restarts: bool, store: Store) -> None:
    changes, tables = history(20)
    job = filled(store, changes, retain=5)
    for number in range(20, 32):
        if restarts:
            job = Changes(store, job.policy, retain_us=5_000_000).start()
        job.change(number, [])
        assert asked(store) == tables[-1]
        assert asked(store, as_of=str(job.ledger.head.floor)) == tables[max(job.ledger.head.floor.epoch - 1, 0)]
    head = job.ledger.head
    assert head.floor == head.state.last, "every snapshot has gone"
    assert base_blocks(store) == named_blocks(store) == recorded_blocks(store) == set(store.list_blocks("j"))
    for number in range(32, 45):  # and they are not lost when there is input again, and then none
        job.change(number, [((1, "a"), number)] if number < 34 else [])
        assert asked(store) == tables[-1] | {(1, "a"): min(number, 33)}
    assert job.ledger.head.floor == job.ledger.head.state.last > head.floor


@pytest.mark.parametrize("place", ["ledger.after_base", "ledger.mid_expire"])
def test_a_driver_that_dies_while_it_writes_a_base(place: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    changes, tables = history(20)
    job = filled(store, changes[:11], retain=5)

    def die(here: str) -> None:
        if here == place:
            raise RuntimeError(place)

    for module in ("base", "ledger"):
        monkeypatch.setattr(f"streamjoin.results.{module}.failpoint", die)
    with pytest.raises(RuntimeError, match=place):
        job.change(11, changes[11])
    assert asked(store) == tables[11]
    monkeypatch.undo()
    job = Changes(store, job.policy, retain_us=5_000_000).start()
    assert asked(store) == tables[11]
    assert base_blocks(store) == recorded_blocks(store)
    for number in range(12, 20):
        job.change(number, changes[number])
        assert asked(store) == tables[number]


def test_a_filter_that_turns_false_ends_the_group_for_who_follows(store: Store) -> None:
    changes, tables = history()
    filled(store, changes)
    reader = Reader(store, "j")
    last = max(tables[-1].values())
    for condition, is_asked in (("n % 2 = 0", lambda n: n % 2 == 0), ("k = 2", None)):
        table: dict[Group, int] = {}
        for news in follow(reader, after=FIRST, question=Question(where=condition)):
            for row in (row for batch in news.rows for row in batch.to_pylist()):
                group = row["k"], row["t"]
                if row["op"] == "delete":
                    assert row["n"] is None
                    table.pop(group, None)
                else:
                    table[group] = row["n"]
            reader.refresh()
            if news.snapshot.id == reader.snapshots()[-1].id:
                break
        wanted = {at: n for at, n in tables[-1].items() if (is_asked(n) if is_asked else at[0] == 2)}
        assert table == wanted
    assert last


def test_what_cannot_be_asked_is_said(store: Store) -> None:
    filled(store, history()[0])
    for question, words in (
        ({"as_of": 3, "history": True}, "not for both"),
        ({"as_of": "yesterday"}, "is not a snapshot id"),
    ):
        with pytest.raises(InputError, match=words):
            asked(store, **question)
    job = Job(MemoryStore()).start()
    with pytest.raises(InputError, match="results of this query are final"):
        ask(Reader(job.store, "j"), Question(history=True))


def test_an_order_of_rows_is_no_order_of_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many rows are folded a part at a time, wherever the last one of a group lies."""
    monkeypatch.setattr(latest, "_HELD_ROWS", 3)
    chosen = random.Random(2)
    rows = [{"k": at % 5, "t": None, "n": at, "op": "upsert", RESULT_TIME: at, RESULT_KEY: at % 5} for at in range(100)]
    chosen.shuffle(rows)
    batches = [pa.RecordBatch.from_pylist(rows[at : at + 7], SCHEMA) for at in range(0, 100, 7)]
    found = latest.latest(batches, ("k", "t"))
    assert found is not None and found.column("n").to_pylist() == [95, 96, 97, 98, 99]
    found = latest.latest(batches, ("k", "t"), 42)
    assert found is not None and found.column("n").to_pylist() == [40, 41, 42, 38, 39]
