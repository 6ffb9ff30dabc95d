"""Generated streams as sources: how far a batch goes, and that parts make the whole."""

from __future__ import annotations

import pyarrow as pa
import pytest

from streamjoin.errors import InputError
from streamjoin.generate import generator
from streamjoin.generate.stream import BASE_US
from streamjoin.sources import GeneratorSource

SECOND_US = 1_000_000


def source(
    rows: int | None = 100, rate: float = 10.0, rows_per_batch: int = 1_000, kind: str = "band.r"
) -> GeneratorSource:
    return GeneratorSource(kind, rate, rows, 1, rows_per_batch)


def test_live_source_gives_what_is_due_since_its_first_batch() -> None:
    found = source(rows=None)
    first = found.latest(found.initial(), 50 * SECOND_US)
    assert first == {"rows": 1, "begun_us": 50 * SECOND_US}
    assert found.latest(first, 52 * SECOND_US) == {"rows": 21, "begun_us": 50 * SECOND_US}
    assert found.backlog(first) is None


def test_nothing_due_is_the_same_offset() -> None:
    found = source()
    first = found.latest(found.initial(), SECOND_US)
    assert found.latest(first, SECOND_US) is first


def test_clock_set_back_gives_nothing_and_takes_nothing_away() -> None:
    found = source()
    offset = {"rows": 21, "begun_us": 50 * SECOND_US}
    assert found.latest(offset, 10 * SECOND_US) is offset


def test_a_batch_has_an_upper_bound_and_the_stream_an_end() -> None:
    found = source(rows=25, rate=1e9, rows_per_batch=10)
    offsets = [found.initial()]
    while (offset := found.latest(offsets[-1], SECOND_US * len(offsets))) != offsets[-1]:
        offsets.append(offset)
    assert [offset["rows"] for offset in offsets] == [0, 1, 11, 21, 25]
    assert found.backlog(offsets[-1]) == 0


def test_frozen_source_gives_all_rows_without_waiting() -> None:
    found = source(rows=25, rate=0.001, rows_per_batch=10)
    found.freeze(SECOND_US)
    offset, sizes = found.initial(), []
    while (following := found.latest(offset, SECOND_US)) != offset:
        sizes.append(following["rows"] - offset["rows"])
        offset = following
    assert sizes == [10, 10, 5]


def test_endless_stream_cannot_run_until_its_end() -> None:
    with pytest.raises(InputError, match=r"generator band\.r never ends; give it `rows` to run until the end"):
        source(rows=None).freeze(0)


@pytest.mark.parametrize("tasks", [1, 2, 3, 64, 1_000])
@pytest.mark.parametrize("start", [0, 17])
def test_parts_make_the_whole_whatever_their_number(start: int, tasks: int) -> None:
    reads = source().reads({"rows": start, "begun_us": 1}, {"rows": 83, "begun_us": 1}, tasks)
    rows = [batch for part in reads for batch, bad in part.rows(["ts", "id", "x"]) if not bad]
    whole = generator("band.r").rows(start, 83, seed=1, rate=10.0).select(["ts", "id", "x"])
    assert pa.Table.from_batches(rows).combine_chunks().to_batches() == [whole]
    assert len(reads) <= tasks
    assert [part.position for part in reads] == sorted({part.position for part in reads})
    assert {part.identity for part in reads} == {"band.r"}
    assert [part.name for part in reads] == sorted(part.name for part in reads)


def test_no_rows_are_no_reads() -> None:
    assert source().reads({"rows": 5, "begun_us": 1}, {"rows": 5, "begun_us": 1}, 4) == []


def test_unknown_kind_and_option_are_refused_when_the_source_is_made() -> None:
    with pytest.raises(InputError, match='"nope" is not a kind'):
        source(kind="nope")
    with pytest.raises(InputError, match=r'band\.r has no option "keys"'):
        GeneratorSource("band.r", 1.0, 1, 1, 1, {"keys": 2})


@pytest.mark.parametrize("kind", ["nexmark.person", "nexmark.auction", "nexmark.bid", "band.r", "zipf.s"])
def test_event_time_keeps_step_with_the_clock_whatever_share_of_the_events_a_stream_has(kind: str) -> None:
    live = source(None, 1000.0, 10**6, kind)
    begun = live.latest(live.initial(), 1)
    (read,) = live.reads(begun, live.latest(begun, 1 + 60 * SECOND_US), 1)
    *_, (rows, _) = read.rows(["ts"])
    assert rows.column("ts")[-1].value - BASE_US == pytest.approx(60 * SECOND_US, abs=SECOND_US)


def test_event_times_can_begin_when_the_job_does_and_stay_so_when_a_batch_is_repeated() -> None:
    now_us = 1_800_000_000 * SECOND_US
    live = GeneratorSource("nexmark.auction", 1000.0, None, 1, 10**6, begins_now=True)
    begun = live.latest(live.initial(), now_us)
    later = live.latest(begun, now_us + 10 * SECOND_US)

    def rows(source: GeneratorSource) -> pa.RecordBatch:
        (read,) = source.reads(begun, later, 1)
        ((found, _),) = read.rows(["id", "expires", "ts"])
        return found

    first, plain = rows(live), rows(source(None, 1000.0, 10**6, "nexmark.auction"))
    assert first.column("id").equals(plain.column("id"))
    for name in ("expires", "ts"):
        moved = {new.value - old.value for new, old in zip(first.column(name), plain.column(name), strict=True)}
        assert moved == {now_us - BASE_US}
    again = GeneratorSource("nexmark.auction", 1000.0, None, 1, 10**6, begins_now=True)
    assert rows(again).equals(first)
