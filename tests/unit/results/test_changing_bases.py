"""Bases of groups that change: what a question reads, however many changes there are, and that it stays right."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import changing_jobs
import pyarrow as pa
import pytest
from changing_jobs import SCHEMA, Change, Changes, Group, asked, filled, history
from pydantic import ValidationError
from test_changes import base_blocks, bases_after, named_blocks, recorded_blocks

from backend.results.question import QueryIn
from streamjoin.cli.results import Asked
from streamjoin.errors import InputError, StateError
from streamjoin.plan.join import RESULT_KEY, RESULT_TIME
from streamjoin.results import base, reader
from streamjoin.results.answer import ask
from streamjoin.results.base import Bases
from streamjoin.results.head import Head
from streamjoin.results.names import BASES, base_name
from streamjoin.results.policy import Collected, EpochPolicy
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.results.snapshot import Snapshot
from streamjoin.results.stores.memory import MemoryStore
from streamjoin.results.stores.store import StoreDownError

pytestmark = pytest.mark.slow


def blocks_read(store: MemoryStore, **question: Any) -> int:
    answer = ask(Reader(store, "j"), Question(**question))
    list(answer)
    return answer.blocks_read


def test_what_is_read_does_not_grow_with_the_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    bases_after(monkeypatch, blocks=20)
    changes, tables = history(150)
    store = MemoryStore()
    job = filled(store, changes)
    assert len(list(store.list_blocks("j"))) > 150
    # At most twenty blocks, those of the base, and those of one snapshot.
    for question in ({}, {"as_of": 1234}, {"as_of": "70.0"}, {"key": 2}, {"key": 2, "as_of": 870}):
        assert blocks_read(store, **question) < 30
    for number in range(0, 150, 7):
        assert asked(store, as_of=10 * number) == tables[number]
        assert asked(store, as_of=10 * number + 9, key=2) == {at: n for at, n in tables[number].items() if at[0] == 2}
    assert job.ledger.head.floor < job.ledger.head.newest_base.upto  # type: ignore[union-attr]
    found = [row for batch in ask(Reader(store, "j"), Question(history=True)) for row in batch.to_pylist()]
    assert len(found) == sum(map(len, changes))


def test_a_base_is_as_small_where_each_of_its_groups_changed_in_a_period_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bases_after(monkeypatch, blocks=20)
    monkeypatch.setattr(changing_jobs, "DESCRIBED", replace(changing_jobs.DESCRIBED, period_us=5))
    store = MemoryStore()
    filled(store, [[((number, None), number)] for number in range(60)])
    head = Head.from_bytes(store.head("j") or b"")
    assert head.newest_base is not None
    found = base.read_base(store, "j", head.newest_base)
    assert found is not None and found.rows > 30 and len(found.blocks) == 2, "of two buckets"
    assert asked(store) == {(number, None): number for number in range(60)}


def test_with_default_settings_few_changes_need_no_base_and_many_do() -> None:
    store = MemoryStore()
    job = filled(store, history(20)[0])
    assert job.ledger.head.newest_base is None
    groups: list[Group] = [(k, None) for k in range(1_000)]
    for number in range(20, 250):
        job.change(number, [(group, number) for group in groups])
    assert job.ledger.head.newest_base is not None
    assert blocks_read(store) < base.TAIL_MAX / base.BLOCK_ROWS and len(asked(store)) >= 1_000


@pytest.mark.soak
def test_writing_bases_is_a_small_part_of_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many groups and few changes a base is written when there are several times as many changes."""
    monkeypatch.setattr(base, "TAIL_MAX", 0)
    written: list[int] = []
    write = Bases._write

    def counted(self: Bases, *given: Any) -> Snapshot:
        found = write(self, *given)
        written.append(base.reading_cost(found.blocks))
        return found

    monkeypatch.setattr(Bases, "_write", counted)
    store, changed = MemoryStore(), 0
    job = Changes(store, filled(MemoryStore(), []).policy).start()
    for number in range(120):
        some = [((k, None), number) for k in range(number % 10, 2_000, 10)]
        job.change(number, some)
        changed += sum(base.reading_cost(found.blocks) for found in _last(store))
    assert len(written) > 3 and sum(written) < changed / 3


def _last(store: MemoryStore) -> list[Snapshot]:
    found = Reader(store, "j")
    found.refresh()
    return found.snapshots()[-1:]


def test_a_reader_that_begins_reads_only_what_comes_after_the_newest_base(monkeypatch: pytest.MonkeyPatch) -> None:
    bases_after(monkeypatch, blocks=10)
    changes, tables = history(210)
    store = MemoryStore()
    job = filled(store, changes[:200])
    found = Reader(store, "j")

    def now(**question: Any) -> dict[Group, int]:
        rows = [row for batch in ask(found, Question(**question)) for row in batch.to_pylist()]
        return {(row["k"], row["t"]): row["n"] for row in rows}

    assert now() == tables[199]
    assert 0 < len(found.snapshots()) < 20
    job.change(200, changes[200])
    assert now() == tables[200] and len(found.snapshots()) < 20
    # The others come once they are needed, and stay.
    assert now(as_of=300) == tables[30]
    whole = len(found.snapshots())
    assert whole > 100
    for number in range(201, 210):
        job.change(number, changes[number])
    assert now() == tables[209] and now(as_of=2055) == tables[205] and len(found.snapshots()) > whole


def late(job: Changes, number: int, rows: list[tuple[Group, int | None, int]]) -> None:
    """Changes with times of their own."""
    listed = [
        {
            "k": k, "t": t, "n": n, "op": "delete" if n is None else "upsert", "emit_time": at, RESULT_TIME: at,
            RESULT_KEY: k,
        }
        for (k, t), n, at in rows
    ]  # fmt: skip
    refs = job.put(number, pa.RecordBatch.from_pylist(listed, SCHEMA))
    job.ledger.commit(Collected(number, number * 1_000_000, (None,), refs))


def disordered(store: MemoryStore, seed: int) -> list[tuple[Group, int | None, int]]:
    """Groups whose units are behind by different times; all changes."""
    chosen = random.Random(seed)
    job = Changes(store, filled(MemoryStore(), []).policy).start()
    every: list[tuple[Group, int | None, int]] = []
    for number in range(60):
        some = [
            ((k, None), None if chosen.random() < 0.2 else number, 10 * number - 70 * k)
            for k in range(4)
            if chosen.random() < 0.6
        ]
        late(job, number, some)
        every += some
    return every


def wrong_moments(store: MemoryStore, every: list[tuple[Group, int | None, int]]) -> int:
    wrong = 0
    for moment in range(-250, 600, 10):
        there: dict[Group, int] = {}
        for group, n, at in every:  # a group's times rise
            if at <= moment:
                there.pop(group, None)
                if n is not None:
                    there[group] = n
        wrong += asked(store, as_of=moment) != there
    return wrong


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.soak), 1])
def test_as_of_a_time_while_units_are_behind_one_another(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bases_after(monkeypatch, blocks=4)
    store = MemoryStore()
    every = disordered(store, seed)
    assert wrong_moments(store, every) == 0
    # By the newest base alone, later rows would hide earlier ones.
    monkeypatch.setattr(reader._Bases, "newest", lambda self, upto, until_us: self.bases[-1])
    assert wrong_moments(store, every) > 0


def _last_before_it_dies(job: Changes, changes: list[list[Change]]) -> int:
    for number in range(11, 30):
        try:
            job.change(number, changes[number])
        except RuntimeError:
            return number
    raise AssertionError("it did not die")


def _dies(place: str) -> Callable[[str], None]:
    def die(here: str) -> None:
        if here == place:
            raise RuntimeError(place)

    return die


def test_a_base_that_no_snapshot_names_is_removed_and_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bases_after(monkeypatch, blocks=4)
    changes, tables = history(40)
    store = MemoryStore()
    job = filled(store, changes[:11])
    with monkeypatch.context() as patched:
        patched.setattr(base, "failpoint", _dies("ledger.after_base"))
        number = _last_before_it_dies(job, changes)
    assert base_blocks(store) > named_blocks(store)
    assert asked(store) == tables[number]
    for again in range(number, 40):
        job = Changes(store, job.policy).start()  # a driver for each batch
        assert base_blocks(store) == named_blocks(store)
        job.change(again, changes[again])
        assert asked(store) == tables[again]
    assert all(asked(store, as_of=10 * at) == tables[at] for at in range(40))


def test_a_driver_that_was_taken_over_leaves_no_base_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    bases_after(monkeypatch, blocks=4)
    changes, tables = history(30)
    store = MemoryStore()
    slow = filled(store, changes[:12])
    job = Changes(store, slow.policy).start()
    for number in range(12, 20):
        job.change(number, changes[number])
    # The slow one writes its base now, of what it committed last.
    assert slow.ledger.bases is not None
    slow.ledger.bases.begin(slow.ledger.head)
    slow.ledger.bases.write_due(_due(slow.ledger.head), slow.ledger._owned)
    assert base_blocks(store) > named_blocks(store)
    assert [asked(store, as_of=10 * number) for number in range(20)] == tables[:20]
    job = Changes(store, job.policy).start()
    assert base_blocks(store) == named_blocks(store)


def _due(head: Head) -> Head:
    return replace(head, tail=10**9)


@pytest.mark.parametrize("retain", [3, 25])
def test_retention_takes_a_base_that_is_there(retain: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bases_after(monkeypatch, blocks=6)
    changes, tables = history(90)
    store = MemoryStore()
    job = filled(store, [], retain=retain)
    for number in range(90):
        if number % 20 == 13:
            job = Changes(store, job.policy, retain_us=retain * 1_000_000).start()
        job.change(number, changes[number])
        assert asked(store) == tables[number]
        assert base_blocks(store) == recorded_blocks(store) >= named_blocks(store)
    for number in range(90 - retain + 1, 90):
        assert asked(store, as_of=10 * number) == tables[number]


def test_with_many_groups_retention_waits_until_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each snapshot brings one of 1,000 groups; a base for each would be a thousand rows a row."""
    store = MemoryStore()
    job = Changes(store, filled(MemoryStore(), []).policy, retain_us=400_000_000).start()
    job.change(0, [((k, None), 0) for k in range(1_000)])
    floors: list[Any] = []
    for number in range(1, 700):
        some: list[Change] = [((number % 1_000, None), number)]
        job.change(number, some)
        floors.append(job.ledger.head.floor)
    moved = [at for at in range(1, len(floors)) if floors[at] != floors[at - 1]]
    # The first one's rows are as many as there are groups; then an eighth of what is retained is 50 snapshots.
    assert len(moved) == 1 + (700 - 402) // 51
    assert asked(store) == {(k, None): k if k < 700 else 0 for k in range(1_000)} | {(0, None): 0}


def test_a_store_from_before_there_were_several_bases_gets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    bases_after(monkeypatch, blocks=4)
    changes, tables = history(30)
    with monkeypatch.context() as patched:
        patched.setattr(base, "TAIL_MAX", 10**9)
        store = MemoryStore()
        job = filled(store, changes[:20])
    stored = store.head("j")
    assert stored is not None
    text = json.loads(stored)
    del text["tail"]
    monkeypatch.setattr(base, "TAIL_MAX", 25)  # the rows that there are, which is all that an old head says
    store.swap_head("j", stored, json.dumps(text).encode())
    job = Changes(store, job.policy).start()
    for number in range(20, 30):
        job.change(number, changes[number])
    assert job.ledger.head.newest_base is not None and asked(store) == tables[29]


def _one_of_ten(number: int) -> list[Change]:
    """Ten groups, of which one changes."""
    return [((k, None), 0) for k in range(10)] if number == 0 else [((0, None), number)]


def test_a_driver_that_wakes_in_its_sweep_leaves_what_later_ones_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    bases_after(monkeypatch, blocks=6)
    store = MemoryStore()
    first = filled(store, [], retain=30)
    for number in range(2):
        first.change(number, _one_of_ten(number))
    sweep, held = Bases.sweep, []
    with monkeypatch.context() as asleep:
        asleep.setattr(Bases, "sweep", lambda self, head: held.append((self, head)))
        Changes(store, first.policy, retain_us=30_000_000).start()
    job = Changes(store, first.policy, retain_us=30_000_000).start()
    for number in range(2, 60):
        job.change(number, _one_of_ten(number))
    there = base_blocks(store)
    sweep(*held[0])
    assert base_blocks(store) == there and len(asked(store)) == 10
    for number in range(60, 90):
        job.change(number, _one_of_ten(number))
    assert len(asked(store)) == 10


def test_a_base_that_is_lost_is_an_error_and_no_job_without_its_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    bases_after(monkeypatch, blocks=6)
    store = MemoryStore()
    job = filled(store, [], retain=30)
    for number in range(100):
        job.change(number, _one_of_ten(number))
    head = job.ledger.head
    named = max(one for one in (head.floor_base, head.newest_base) if one is not None)
    content = dict(store.get_records("j", *BASES))[base_name(named.upto, named.generation)]
    store.delete_records("j", [base_name(named.upto, named.generation)])
    with pytest.raises(StateError, match="is lost from the store"):
        Changes(store, job.policy, retain_us=30_000_000).start()
    store.put_records("j", [(base_name(named.upto, named.generation), content)])
    store.delete_blocks("j", [ref.key for ref in Snapshot.from_bytes(content).blocks])
    again = Changes(store, job.policy, retain_us=30_000_000).start()

    def goes_on() -> None:
        for number in range(100, 200):
            again.change(number, _one_of_ten(number))

    with pytest.raises(StateError, match="is lost from the store"):
        goes_on()


class Racing(MemoryStore):
    """Something happens between a reader's look at the head and at the snapshots that it speaks of."""

    meanwhile: Callable[[], None] | None = None

    def get_records(self, job: str, first: str, last: str) -> Any:
        if self.meanwhile is not None and first.startswith("s/"):
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return super().get_records(job, first, last)


@pytest.mark.parametrize("until", [14, 40])
@pytest.mark.parametrize("known", [10, 20])
def test_retention_between_two_looks_of_a_reader_loses_no_group(known: int, until: int) -> None:
    store = Racing()
    job = filled(store, [], retain=10)
    for number in range(known):
        job.change(number, _one_of_ten(number))
    found = Reader(store, "j")

    def meanwhile() -> None:
        for number in range(known, until):
            job.change(number, _one_of_ten(number))

    store.meanwhile = meanwhile
    rows = [row for batch in ask(found, Question()) for row in batch.to_pylist()]
    assert len(rows) == 10 and store.meanwhile is None


def test_a_moment_that_retention_passes_between_two_looks_is_refused() -> None:
    store = Racing()
    job = filled(store, [], retain=10)
    every: list[Change] = [((k, None), 0) for k in range(10)]
    for number in range(20):
        job.change(number, every)
    limit_us = job.ledger.head.below_time_max_us or 0
    found = Reader(store, "j")

    def meanwhile() -> None:
        for number in range(20, 24):
            job.change(number, every)

    store.meanwhile = meanwhile
    with pytest.raises(InputError, match="not known any more"):
        list(ask(found, Question(as_of=limit_us + 10)))


def test_with_retention_the_tail_after_the_newest_base_stays_short(monkeypatch: pytest.MonkeyPatch) -> None:
    bases_after(monkeypatch, blocks=20)
    store = MemoryStore()
    job = filled(store, [], retain=60)
    for number in range(70):
        job.change(number, [((k, None), number) for k in range(5)])
    for number in range(70, 200):
        job.change(number, [((k, None), number) for k in range(50)])
    assert blocks_read(store) < 30


class _BreaksOff(MemoryStore):
    """Gives so many manifests and then nothing, once."""

    left: int | None = None

    def get_records(self, job: str, first: str, last: str) -> Iterator[tuple[str, bytes]]:
        for name, content in super().get_records(job, first, last):
            if self.left == 0:
                self.left = None
                raise StoreDownError("no answer")
            if self.left is not None and name.startswith("s/"):
                self.left -= 1
            yield name, content


def test_a_reader_whose_first_look_broke_off_reads_all_that_is_asked_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    bases_after(monkeypatch, blocks=10)
    changes, tables = history(100)
    store = _BreaksOff()
    filled(store, changes)
    found = Reader(store, "j")
    store.left = 1
    with pytest.raises(StoreDownError):
        list(ask(found, Question()))
    assert store.left is None
    for number in (5, 30, 60, 99):
        rows = [row for batch in ask(found, Question(as_of=10 * number)) for row in batch.to_pylist()]
        assert {(row["k"], row["t"]): row["n"] for row in rows} == tables[number]


def test_attack_a_moment_that_is_no_time_is_refused_where_a_base_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    bases_after(monkeypatch, blocks=10)
    changes, _ = history(100)
    store = MemoryStore()
    job = filled(store, changes)
    assert job.ledger.expire(50_000_000)
    for moment in (-(2**62), -1):
        with pytest.raises(InputError, match="is not known any more: retention has kept the last values up to"):
            ask(Reader(store, "j"), Question(as_of=moment))
    for text in ("-9999999999999999999", str(2**63)):
        with pytest.raises(InputError, match="takes a time such as"):
            Asked(as_of=text).question()
        with pytest.raises(ValidationError):
            QueryIn(job="j", as_of=int(text))


@pytest.mark.parametrize("begin_us", [0, -(10**12), -2_000_000])
def test_a_moment_that_retention_passed_is_refused_also_before_1970_and_where_batches_were_empty(begin_us: int) -> None:
    job = Changes(MemoryStore(), EpochPolicy(span_us=1_000_000, delayed=0.5, delays=1), retain_us=4_000_000).start()
    for number in range(14):
        at = begin_us + 1_000_000 * number
        late(job, number, [] if 3 <= number <= 8 else [((k, None), 10 * number + k, at) for k in (0, 1)])
        if number >= 11:
            for gone in (0, 1):
                with pytest.raises(InputError, match="is not known any more"):
                    asked(job.store, as_of=begin_us + 1_000_000 * gone)
            assert asked(job.store, as_of=begin_us + 2_000_000) == {(0, None): 20, (1, None): 21}
    assert asked(job.store, as_of=begin_us + 11_000_000) == {(0, None): 110, (1, None): 111}
