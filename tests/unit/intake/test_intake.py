"""Intake of one stream: what is counted, what is put aside, what is sent where, and that nothing gets lost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.engine.operator import Operator
from streamjoin.engine.router import Router, announced
from streamjoin.engine.routing import STORE
from streamjoin.engine.slot import SlotStep, StageJob
from streamjoin.errors import RunError, StateError
from streamjoin.flow import periods
from streamjoin.flow.block import Block
from streamjoin.flow.punctuation import Punctuation
from streamjoin.intake.deadletter import BAD_VALUE, DeadLetter
from streamjoin.intake.event_time import MISSING, OUT_OF_RANGE
from streamjoin.intake.intake import Intake, Piece, Routed
from streamjoin.operators.biclique import Biclique, Routing
from streamjoin.operators.matrix import Matrix
from streamjoin.plan.ending import Ending, EndsByFile, EndsByRow
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.window import R, S
from streamjoin.query import plan_query
from streamjoin.state.store import StateStore

COLUMNS = pa.schema([("t", pa.int64()), ("id", pa.int64()), ("k", pa.int64()), ("note", pa.string())])
BY_KEY = "SELECT ONLINE r.id AS a, s.id AS b FROM r, s WHERE r.k = s.k WITHIN 10 SECONDS"
PIECE = Piece("0-a", "all", "file", 0, 77)


def plan(query: str = BY_KEY, columns: pa.Schema = COLUMNS, time_unit: str = "s", time: str = "t") -> JoinPlan:
    streams = {name: StreamSchema(name, columns, time, time_unit) for name in ("r", "s")}
    return plan_query(query, streams)


def rows(*times: int | None, keys: Sequence[int | None] | None = None, note: str = "") -> pa.RecordBatch:
    count = len(times)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(times, pa.int64()),
            pa.array(range(count), pa.int64()),
            pa.array(keys if keys is not None else range(count), pa.int64()),
            pa.array([note] * count),
        ],
        schema=COLUMNS,
    )


class Taken:
    """What intake of some rows gave."""

    def __init__(
        self, *batches: pa.RecordBatch, plan: JoinPlan, operator: Operator | None = None, side: int = R,
        slots: int = 2, strict: bool = False, piece: Piece = PIECE,
    ) -> None:  # fmt: skip
        self.letters: list[DeadLetter] = []
        router = Router(Intake(plan, side, self.letters.extend, strict), operator or Biclique(2, 2), slots)
        self.routed = [routed for batch in batches for routed in router.take(batch, piece)]
        self.punctuations = list(router.punctuate(piece))

    @property
    def counts(self) -> dict[str, int]:
        return dict(self.punctuations[0][2].counts)

    @property
    def stored(self) -> list[dict[str, Any]]:
        """The tuples sent to the units that store them."""
        return [
            row
            for routed in self.routed
            if any(role & STORE for _, role in routed.targets)
            for row in Block.from_ipc(routed.block).rows.to_pylist()
        ]

    @property
    def places(self) -> Counter[tuple[tuple[int, ...], tuple[tuple[int, int], ...]]]:
        """Each tuple's values, and the units and roles it was sent to, whatever blocks it travelled in."""
        found: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
        for routed in self.routed:
            for row in Block.from_ipc(routed.block).rows.to_pylist():
                found.setdefault(tuple(row.values()), []).extend(routed.targets)
        return Counter((values, tuple(sorted(targets))) for values, targets in found.items())


# ---- event times ------------------------------------------------------------------------------------------------


def test_row_without_a_time_is_a_dead_letter_with_its_place_and_text() -> None:
    taken = Taken(rows(1, None, 3), rows(None), plan=plan())
    assert [(letter.stream, letter.source, letter.position, letter.detail) for letter in taken.letters] == [
        ("r", "file", 1, MISSING),
        ("r", "file", 3, MISSING),
    ]
    assert json.loads(taken.letters[0].record or b"") == {"t": None, "id": 1, "k": 1, "note": ""}
    assert taken.counts["dead_letters"] == 2
    assert taken.counts["rows"] == 2
    assert sorted(row["id"] for row in taken.stored) == [0, 2]


def test_attack_text_that_is_none_does_not_stop_the_job() -> None:
    """A file may call bytes text that are not UTF-8; Arrow looks at them only where somebody reads them."""
    good = rows(1, None)
    at = good.schema.get_field_index("note")
    wild = pa.Array.from_buffers(pa.string(), 2, pa.array([b"a", b"\xff\xed\xa0\x80"], pa.binary()).buffers())
    taken = Taken(good.set_column(at, "note", wild), plan=plan())
    [letter] = taken.letters
    assert json.loads(letter.record or b"")["note"] == "\\xff\\xed\\xa0\\x80"


def test_letters_of_a_piece_that_are_too_many_are_counted_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamjoin.intake.intake.LETTERS_BYTES_MAX", 3_000)
    taken = Taken(rows(*[None] * 20), rows(None, None, 7), plan=plan())
    assert 0 < len(taken.letters) < 10
    kept = len(taken.letters)
    assert (taken.counts["dead_letters"], taken.counts["rejected:no_time"], taken.counts["kept:no_time"]) == (
        22,
        22,
        kept,
    )
    assert [row["id"] for row in taken.stored] == [2]


YEAR_9999_S = 253_402_300_799
LIMIT_S = 2**62 // 1_000_000


@pytest.mark.parametrize(
    ("time_unit", "good", "bad"),
    [
        ("s", [0, -1, YEAR_9999_S, -YEAR_9999_S, LIMIT_S - 1], [LIMIT_S + 1, -LIMIT_S - 1, 2**63 - 1, -(2**63), 2**45]),
        ("ms", [0, -1, YEAR_9999_S * 1_000], [2**62 // 1_000 + 1, 2**63 - 1, -(2**63)]),
        ("us", [0, -1, YEAR_9999_S * 1_000_000, 2**62 - 1, -(2**62) + 1], [2**62, -(2**62), 2**63 - 1, -(2**63)]),
    ],
)
def test_time_outside_the_range_is_a_dead_letter(time_unit: str, good: list[int], bad: list[int]) -> None:
    taken = Taken(rows(*good, *bad), plan=plan(time_unit=time_unit))
    assert [letter.position for letter in taken.letters] == list(range(len(good), len(good) + len(bad)))
    assert {letter.detail for letter in taken.letters} == {OUT_OF_RANGE}
    unit = {"s": 1_000_000, "ms": 1_000, "us": 1}[time_unit]
    assert taken.punctuations[0][2].ts_max_us == max(good) * unit
    sent = [int(ts) for routed in taken.routed for ts in Block.from_ipc(routed.block).ts_us]
    assert set(sent) == {time * unit for time in good}


def test_timestamp_outside_the_range_is_a_dead_letter() -> None:
    columns = pa.schema([("t", pa.timestamp("us", "UTC")), ("id", pa.int64()), ("k", pa.int64())])
    times = pa.array([0, 2**62, 2**63 - 1, -(2**63) + 1, None], pa.timestamp("us", "UTC"))
    batch = pa.RecordBatch.from_arrays([times, pa.array(range(5)), pa.array(range(5))], schema=columns)
    taken = Taken(batch, plan=plan(columns=columns))
    assert [(letter.position, letter.detail) for letter in taken.letters] == [
        (4, MISSING), (1, OUT_OF_RANGE), (2, OUT_OF_RANGE), (3, OUT_OF_RANGE),
    ]  # fmt: skip
    assert len(taken.stored) == 1


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint32(), pa.date32()])
def test_every_integer_and_dates_are_times(kind: pa.DataType) -> None:
    columns = pa.schema([("t", kind), ("id", pa.int64()), ("k", pa.int64())])
    batch = pa.RecordBatch.from_arrays(
        [pa.array([1, 2], pa.int32()).cast(kind), pa.array([1, 2]), pa.array([1, 2])], schema=columns
    )
    taken = Taken(batch, plan=plan(columns=columns))
    unit = 86_400_000_000 if kind == pa.date32() else 1_000_000
    assert taken.punctuations[0][2].ts_max_us == 2 * unit
    assert not taken.letters


def test_arrival_is_the_logged_time_of_the_batch() -> None:
    taken = Taken(rows(None, 2**63 - 1), plan=plan(time="arrival"))
    assert not taken.letters
    assert {int(ts) for routed in taken.routed for ts in Block.from_ipc(routed.block).ts_us} == {PIECE.now_us}


def test_strict_job_stops_at_the_first_row_that_cannot_be_joined() -> None:
    with pytest.raises(RunError, match="stream r, file, row 1: event time is NULL; the job is strict, so it stops"):
        Taken(rows(1, None), plan=plan(), strict=True)
    Taken(rows(1, 2, keys=[None, 1]), plan=plan(), strict=True)


def test_bad_records_of_the_decoder_are_counted_and_stop_a_strict_job() -> None:
    letters: list[DeadLetter] = []
    counted = {"dead_letters": 1, "rejected:bad_value": 1, "kept:bad_value": 1}
    bad = [DeadLetter("r", "1.csv", 4, BAD_VALUE, "why", b"x", "record")]
    router = Router(Intake(plan(), R, letters.extend), Biclique(1, 1), 1)
    router.intake.bad_records([])
    router.intake.bad_records(bad)
    [(_, sent, punctuation)] = router.punctuate(PIECE)
    assert (letters, sent, punctuation.rows, punctuation.counts) == (bad, 0, 0, counted)
    with pytest.raises(RunError, match=r"stream r, 1\.csv, record 4: why"):
        Intake(plan(), R, letters.extend, strict=True).bad_records(bad)


# ---- keys and selections ----------------------------------------------------------------------------------------


def test_tuple_with_a_null_key_is_counted_and_stays_behind() -> None:
    taken = Taken(rows(1, 2, 3, 4, keys=[5, None, 5, None]), plan=plan())
    assert taken.counts["null_keys"] == 2
    assert taken.counts["routed"] == 2
    assert sorted(row["id"] for row in taken.stored) == [0, 2]
    assert taken.punctuations[0][2].rows == 4  # they still tell the time, and count as tuples of the stream
    assert not taken.letters


def test_selection_is_done_before_routing_and_what_it_drops_is_counted() -> None:
    query = BY_KEY.replace("WITHIN", "AND r.id > 0 AND r.note = 'a' WITHIN")
    taken = Taken(rows(1, 2, 9, note="a"), rows(3, note="b"), plan=plan(query))
    assert taken.counts["dropped_by_selection"] == 2
    assert sorted(row["id"] for row in taken.stored) == [1, 2]
    assert (taken.punctuations[0][2].rows, taken.punctuations[0][2].ts_max_us) == (4, 9_000_000)
    assert "dropped_by_selection" not in Taken(rows(1), plan=plan(query), side=S).counts


def test_selection_that_is_null_drops_the_tuple() -> None:
    taken = Taken(rows(1, 2, keys=[None, 7]), plan=plan(BY_KEY.replace("WITHIN", "AND r.k > 0 WITHIN")))
    assert taken.counts["dropped_by_selection"] == 1
    assert "null_keys" not in taken.counts


# ---- rows and files that end periods ----------------------------------------------------------------------------


def ending(rule: Ending, query: str = BY_KEY) -> JoinPlan:
    return plan_query(query, {name: StreamSchema(name, COLUMNS, "t", "s", ending=rule) for name in ("r", "s")})


AT_END = EndsByRow("note", pa.scalar("end"))


def test_a_marker_row_ends_a_period_behind_its_time_and_is_joined_like_any_other() -> None:
    taken = Taken(rows(5, note="end"), rows(4), rows(2, 9, note="end"), plan=ending(AT_END))
    told = [item for _, _, item in taken.punctuations]
    assert [item.ends_us for item in told] == [(2_000_001, 5_000_001, 9_000_001), ()], "said to one slot only"
    assert all(item.file is None for item in told)
    assert len(taken.stored) == 4


def test_a_marker_row_ends_a_period_whatever_becomes_of_it() -> None:
    selected = ending(AT_END, BY_KEY.replace("WHERE", "WHERE r.note <> 'end' AND"))
    taken = Taken(rows(5, note="end"), plan=selected)
    assert taken.stored == [] and taken.punctuations[0][2].ends_us == (5_000_001,)
    without_key = Taken(rows(5, keys=[None], note="end"), plan=ending(AT_END))
    assert without_key.stored == [] and without_key.punctuations[0][2].ends_us == (5_000_001,)
    router = Router(Intake(ending(AT_END), R, lambda letters: None, shed_factor=1.0), Biclique(2, 2), 2)
    assert list(router.take(rows(5, note="end"), PIECE)) == []
    assert next(iter(router.punctuate(PIECE)))[2].ends_us == (5_000_001,)


def test_a_marker_row_without_a_time_ends_none() -> None:
    taken = Taken(rows(None, 3, note="end"), plan=ending(AT_END))
    assert len(taken.letters) == 1 and taken.punctuations[0][2].ends_us == (3_000_001,)


def test_a_column_of_every_row_tells_no_more_than_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periods, "PERIODS_AHEAD_MAX", 3)
    taken = Taken(rows(5, 1, note="end"), rows(2, 3, 4, note="end"), plan=ending(AT_END))
    assert taken.punctuations[0][2].ends_us == (1_000_001, 2_000_001, 5_000_001)


def test_a_file_is_named_to_one_slot_where_files_end_periods_and_nowhere_else() -> None:
    piece = replace(PIECE, file=7)
    by_file = Taken(rows(5), plan=ending(EndsByFile()), piece=piece)
    assert [item.file for _, _, item in by_file.punctuations] == [7, None]
    assert [item.file for _, _, item in Taken(plan=ending(EndsByFile()), piece=piece).punctuations] == [7, None]
    assert [item.file for _, _, item in Taken(rows(5), plan=plan(), piece=piece).punctuations] == [None, None]


def test_other_stages_hear_of_time_and_not_of_periods() -> None:
    taken = Taken(rows(5, note="end"), plan=ending(AT_END))
    told = list(announced(taken.punctuations, 0, 0, [1]))
    assert [item.ends_us for stage, _, _, item in told if stage == 1] == [(), ()]
    assert sum(bool(item.ends_us) for _, _, _, item in told) == 1


# ---- counts and punctuations ------------------------------------------------------------------------------------


@pytest.mark.parametrize("slots", [1, 2, 5])
def test_every_slot_is_told_and_the_first_alone_gets_the_counts(slots: int) -> None:
    query = BY_KEY.replace("WITHIN", "AND r.id <> 3 WITHIN")
    batch = rows(1, None, 3, 4, 5, keys=[1, 2, None, 4, 5])
    taken = Taken(batch, plan=plan(query), slots=slots)
    assert [slot for slot, _, _ in taken.punctuations] == list(range(slots))
    assert all(not punctuation.counts for slot, _, punctuation in taken.punctuations if slot)
    assert taken.counts.pop("sent_bytes") == sum(routed.block.size for routed in taken.routed)
    counts = taken.counts
    assert counts.pop("bytes") > 0
    counts.pop("sent_bytes")
    assert counts == {
        "rows": 4,
        "dead_letters": 1,
        "rejected:no_time": 1,
        "kept:no_time": 1,
        "dropped_by_selection": 1,
        "null_keys": 1,
        "routed": 2,
    }
    same = {replace_counts(punctuation) for _, _, punctuation in taken.punctuations}
    assert same == {(R, "all", "0-a", 4, 5_000_000, 77)}


def replace_counts(punctuation: Punctuation) -> tuple[Any, ...]:
    return (punctuation.side, punctuation.router, punctuation.piece, punctuation.rows, punctuation.ts_max_us,
            punctuation.clock_us)  # fmt: skip


def test_slots_are_told_how_many_tuples_were_sent_to_them() -> None:
    taken = Taken(rows(*range(100)), rows(*range(50)), plan=plan(), operator=Matrix(2, 3), slots=4)
    sent = Counter[int]()
    for routed in taken.routed:
        sent[routed.slot] += routed.rows
        assert {unit % 4 for unit, _ in routed.targets} == {routed.slot}
    assert {slot: count for slot, count, _ in taken.punctuations} == {slot: sent[slot] for slot in range(4)}


def test_piece_without_rows_is_complete_too() -> None:
    taken = Taken(rows(), plan=plan())
    assert [(sent, item.rows, item.ts_max_us) for _, sent, item in taken.punctuations] == [(0, 0, None)] * 2
    assert taken.routed == []


# ---- routing ----------------------------------------------------------------------------------------------------


def test_columns_that_the_query_does_not_need_are_not_sent() -> None:
    batch = rows(*range(200), note="x" * 500)
    narrow = Taken(batch, plan=plan())
    wide = Taken(batch, plan=plan(BY_KEY.replace("r.id AS a", "r.id AS a, r.note")))
    assert narrow.counts["bytes"] == wide.counts["bytes"]
    assert wide.counts["sent_bytes"] - narrow.counts["sent_bytes"] > 200 * 500
    assert set(narrow.stored[0]) == {"id", "k"}
    assert set(wide.stored[0]) == {"id", "k", "note"}


def test_column_of_a_selection_alone_is_not_sent() -> None:
    taken = Taken(rows(1, note="a"), plan=plan(BY_KEY.replace("WITHIN", "AND r.note = 'a' WITHIN")))
    assert set(taken.stored[0]) == {"id", "k"}


@pytest.mark.parametrize(
    "operator",
    [Biclique(3, 2), Biclique(3, 4, Routing.HASH), Biclique(4, 4, Routing.CONTRAND, 2, 2), Matrix(3, 2)],
    ids=str,
)
@pytest.mark.parametrize("side", [R, S])
def test_targets_do_not_depend_on_how_a_piece_is_cut(operator: Operator, side: int) -> None:
    batch = rows(*range(60), keys=[row % 7 for row in range(60)])
    whole = Taken(batch, plan=plan(), operator=operator, side=side).places
    by_read = Taken(*(batch.slice(at, 9) for at in range(0, 60, 9)), plan=plan(), operator=operator, side=side).places
    assert by_read == whole
    parts = Counter[Any]()
    for at in range(0, 60, 11):
        piece = replace(PIECE, name=f"0-{at:04d}", position=at)
        parts += Taken(batch.slice(at, 11), plan=plan(), operator=operator, side=side, piece=piece).places
    assert parts == whole
    assert Taken(batch, plan=plan(), operator=operator, side=side, slots=5).places == whole


def test_targets_of_the_good_rows_do_not_depend_on_the_bad_ones() -> None:
    batch = rows(*range(40))
    with_gaps = rows(*(None if row % 3 == 0 else row for row in range(40)))
    good = {key: n for key, n in Taken(batch, plan=plan()).places.items() if key[0][0] % 3}
    assert dict(Taken(with_gaps, plan=plan()).places) == good


def test_given_positions_are_the_identities() -> None:
    batch = rows(*range(40))
    whole = Taken(batch, plan=plan()).places
    letters: list[DeadLetter] = []
    router = Router(Intake(plan(), R, letters.extend), Biclique(2, 2), 2)
    order = np.array([*range(20, 40), *range(20)])
    taken = Taken(rows(), plan=plan())
    taken.routed = list(router.take(batch.take(pa.array(order)), PIECE, order.astype(np.int64)))
    assert taken.places == whole


def test_another_file_sends_its_rows_elsewhere() -> None:
    batch = rows(*range(60))
    assert Taken(batch, plan=plan()).places != Taken(batch, plan=plan(), piece=replace(PIECE, identity="other")).places


# ---- loss -------------------------------------------------------------------------------------------------------


def slot_step(state: Path, query: JoinPlan, slot: int) -> SlotStep:
    return SlotStep(StageJob(query, Biclique(2, 2), 2), slot, 0, StateStore(state, sync=False))


@pytest.mark.parametrize("loss", ["none", "a block", "a punctuation", "a block twice"])
def test_message_that_got_lost_is_noticed_before_any_result(loss: str, tmp_path: Path) -> None:
    query = plan()
    steps = [slot_step(tmp_path, query, slot) for slot in (0, 1)]
    for side in (R, S):
        taken = Taken(rows(*range(50)), plan=query, side=side)
        messages: list[Routed] = taken.routed
        if side == S and loss == "a block":
            messages = messages[:-1]
        if side == S and loss == "a block twice":
            messages = [*messages, messages[-1]]
        for routed in messages:
            steps[routed.slot].take(routed)
        for slot, sent, punctuation in taken.punctuations:
            if not (side == S and loss == "a punctuation"):
                steps[slot].punctuate(punctuation, sent)
    if loss == "none":
        assert sum(part.num_rows for step in steps for part in step.results()) == 50
        return
    with pytest.raises(StateError, match=r"slot \d got \d+ tuples of batch 0 where its routers sent \d+"):
        _drain(steps)


def _drain(steps: Sequence[SlotStep]) -> None:
    for step in steps:
        for _ in step.results():
            pass
