"""Which batches the source offers at the end of the input and while nothing arrives, without Spark's Java."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.streaming.datasource import ReadAllAvailable

from streamjoin.engine.operator import Operator
from streamjoin.engine.state import UnitState
from streamjoin.engine.unit import UnitReport
from streamjoin.flow.punctuation import IDLE_TIMEOUT_US, StreamClock
from streamjoin.flow.silence import REST_US
from streamjoin.operators.biclique import Biclique
from streamjoin.operators.handshake import Handshake
from streamjoin.plan.kinds import JoinKind
from streamjoin.sources.file_kinds import OPENS
from streamjoin.sources.spec import SourceSpec
from streamjoin.spark.source import StreamJoinReader, Task, pack
from streamjoin.spec.job import Job
from streamjoin.state.store import StateStore
from tests.conformance.check import plan
from tests.conformance.histories import COLUMNS, history
from tests.spark.jobs import write_history

FILES = 2
BEGUN_US = 1_700_000_000_000_000
BEAT_US = 1_000_000
BEATS_MAX = 200


def reader(
    folder: Path,
    operator: Operator,
    *,
    ends: bool = True,
    heartbeat_us: int = 0,
    resizes: int = 0,
    sides: str = "rs",
    kind: JoinKind = JoinKind.INNER,
) -> StreamJoinReader:
    found = replace(plan(history(0), "equality", "20 us"), kind=kind)
    sources = {
        side: SourceSpec(OPENS, {"format": "parquet", "path": folder / name, "files_per_batch": 1}, COLUMNS)
        for side, name in enumerate("rs") if name in sides
    }  # fmt: skip
    job = Job(found, (operator,), 2, folder / "checkpoint", sources, heartbeat_us=heartbeat_us, resizes=resizes)
    made = StreamJoinReader(pack(job))
    if ends:
        made.prepareForTriggerAvailableNow()
    return made


def offered(made: StreamJoinReader, start: dict[str, Any]) -> list[dict[str, Any]]:
    """All offsets that Spark would log."""
    offsets: list[dict[str, Any]] = []
    while (end := made.latestOffset(start, ReadAllAvailable())) != start:
        offsets.append(end)
        start = end
        assert len(offsets) < 20, "no end"
    return offsets


@pytest.mark.parametrize(("operator", "batches"), [(Handshake(3), 3), (Handshake(1), 0), (Biclique(2, 2), 0)])
def test_the_input_is_followed_by_the_batches_that_the_operator_asks_for(
    operator: Operator, batches: int, tmp_path: Path
) -> None:
    write_history(history(0), tmp_path, FILES + 1, range(FILES))
    made = reader(tmp_path, operator)
    start = made.initialOffset()
    offsets = offered(made, start)
    assert [end.get("drained", 0) for end in offsets] == [0] * FILES + list(range(1, batches + 1))
    for before, end in zip([start, *offsets], offsets, strict=False):
        for task in made.partitions(before, end):
            assert isinstance(task, Task)
            assert task.drains == ("drained" in end) == (not task.reads)
    # From any of them on a new start offers the rest, and after the last one nothing.
    for number, end in enumerate(offsets):
        assert [later.get("drained", 0) for later in offered(reader(tmp_path, operator), end)] == [
            later.get("drained", 0) for later in offsets[number + 1 :]
        ]
    # More input is drained anew.
    write_history(history(0), tmp_path, FILES + 1, [FILES])
    again = offered(reader(tmp_path, operator), offsets[-1])
    assert [end.get("drained", 0) for end in again] == [0, *range(1, batches + 1)]


def test_a_job_without_an_end_does_not_drain(tmp_path: Path) -> None:
    write_history(history(0), tmp_path, FILES)
    made = reader(tmp_path, Handshake(3), ends=False)
    assert [end.get("drained", 0) for end in offered(made, made.initialOffset())] == [0] * FILES


def test_a_chain_of_another_length_drains_from_the_beginning(tmp_path: Path) -> None:
    write_history(history(0), tmp_path, FILES)
    made = reader(tmp_path, Handshake(3))
    *_, middle, end = offered(made, made.initialOffset())

    def drained(workers: int, resizes: int, start: dict[str, Any]) -> list[int]:
        return [found["drained"] for found in offered(reader(tmp_path, Handshake(workers), resizes=resizes), start)]

    assert drained(3, 0, middle) == [3] and drained(3, 0, end) == []
    assert drained(5, 1, middle) == [1, 2, 3, 4, 5]
    # As long as before, but with another length in between.
    assert drained(3, 2, middle) == [1, 2, 3]
    # One worker needs no batch, but it was several.
    assert drained(1, 1, middle) == [1]


class Beats:
    """The offsets of a live job, each asked for just when the next heartbeat is due."""

    def __init__(self, made: StreamJoinReader, monkeypatch: pytest.MonkeyPatch) -> None:
        for source in made.job.sources.values():
            source.settings["path"].mkdir(exist_ok=True)
        self.made, self.now_us, self.monkeypatch = made, BEGUN_US, monkeypatch
        self.offset = made.initialOffset()

    def at(self, now_us: int, made: StreamJoinReader | None = None) -> bool:
        """Whether there is a batch at a time."""
        self.monkeypatch.setattr("streamjoin.spark.source._clocks", lambda: (now_us, now_us))
        before = json.dumps(self.offset)
        self.offset = json.loads(json.dumps((made or self.made).latestOffset(self.offset, ReadAllAvailable())))
        return json.dumps(self.offset) != before

    def until_rest(self) -> int:
        """How many heartbeats there are a second apart until one is left out."""
        for count in range(BEATS_MAX):
            self.now_us += BEAT_US
            if not self.at(self.now_us):
                return count
        raise AssertionError("it never rests")


def test_a_live_job_rests_until_its_first_tuple(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beats = Beats(reader(tmp_path, Biclique(2, 2), ends=False, heartbeat_us=BEAT_US), monkeypatch)
    assert beats.at(BEGUN_US), "the first batch is due at once"
    assert not beats.at(BEGUN_US + REST_US - 1) and beats.at(BEGUN_US + REST_US)
    # What arrives is not waited with.
    write_history(history(0), tmp_path, FILES, [0])
    now_us = BEGUN_US + REST_US + 1
    assert beats.at(now_us)
    assert not beats.at(now_us + BEAT_US - 1) and beats.at(now_us + BEAT_US)


@pytest.mark.parametrize(
    ("operator", "kind", "drained"),
    [
        (Biclique(2, 2), JoinKind.INNER, 0), (Handshake(3), JoinKind.INNER, 3), (Biclique(2, 2), JoinKind.LEFT, 1),
        (Biclique(2, 2), JoinKind.FULL, 1), (Biclique(2, 2), JoinKind.ANTI, 1),
    ],
)  # fmt: skip
def test_a_live_job_rests_once_its_routers_are_idle_its_chain_is_drained_and_its_rows_are_decided(
    operator: Operator, kind: JoinKind, drained: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_history(history(0), tmp_path, 1)
    beats = Beats(reader(tmp_path, operator, ends=False, heartbeat_us=BEAT_US, kind=kind), monkeypatch)
    assert beats.at(BEGUN_US)
    until_idle = IDLE_TIMEOUT_US // BEAT_US + 1
    assert beats.until_rest() == until_idle + drained
    # A new start knows it; one with another number of units does not.
    again = reader(tmp_path, operator, ends=False, heartbeat_us=BEAT_US, kind=kind)
    assert not beats.at(beats.now_us + BEAT_US, again)
    resized = reader(tmp_path, operator, ends=False, heartbeat_us=BEAT_US, resizes=1, kind=kind)
    assert beats.at(beats.now_us + BEAT_US, resized)


def test_a_stop_is_not_taken_for_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Units do not, so heartbeats have to come until routers are idle and a chain is drained."""
    write_history(history(0), tmp_path, 1)
    beats = Beats(reader(tmp_path, Handshake(3), ends=False, heartbeat_us=BEAT_US), monkeypatch)
    assert beats.at(BEGUN_US)
    ran = 10
    for _ in range(ran):
        beats.now_us += BEAT_US
        assert beats.at(beats.now_us)
    beats.now_us += 9 * IDLE_TIMEOUT_US
    beats.made = reader(tmp_path, Handshake(3), ends=False, heartbeat_us=BEAT_US)
    assert ran + beats.until_rest() == IDLE_TIMEOUT_US // BEAT_US + 1 + 3 + 1, "the first one ends the stop"


def test_input_that_another_source_reads_is_known_by_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = reader(tmp_path, Biclique(2, 2), ends=False, heartbeat_us=BEAT_US, sides="r")
    store = StateStore(made.job.state, sync=False)
    versions = itertools.count(1)

    def input_at(*seen_us: int) -> None:
        clocks = (StreamClock(), StreamClock(len(seen_us), 0, {f"{n}": (0, at_us) for n, at_us in enumerate(seen_us)}))
        version = next(versions)
        store.writer(0, version).finish()
        store.commit(0, UnitState(version, clocks=clocks), UnitReport(0, "R0"))

    beats = Beats(made, monkeypatch)
    assert beats.at(BEGUN_US)
    input_at()
    assert beats.until_rest() == 0, "it rests until the first tuple"
    input_at(beats.now_us - 9 * BEAT_US, beats.now_us)
    until_idle = IDLE_TIMEOUT_US // BEAT_US + 1
    assert beats.until_rest() == until_idle
    input_at(beats.now_us)
    assert beats.until_rest() == until_idle


def test_an_offset_of_a_job_that_did_not_note_it_is_taken_for_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats = Beats(reader(tmp_path, Biclique(2, 2), ends=False, heartbeat_us=BEAT_US), monkeypatch)
    assert beats.at(BEGUN_US)
    del beats.offset["silence"]
    assert beats.until_rest() == IDLE_TIMEOUT_US // BEAT_US + 1
