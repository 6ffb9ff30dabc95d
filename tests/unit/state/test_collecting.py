"""What a job lets go in an object store: removed side by side, soon given up, and found again later."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from streamjoin.engine.state import NUMBERS, UnitState
from streamjoin.engine.unit import UnitReport
from streamjoin.errors import StateError
from streamjoin.state import objects
from streamjoin.state.generation import Generation
from streamjoin.state.objectstore import ObjectStates
from streamjoin.state.root import ObjectRoot
from streamjoin.state.store import KEPT_VERSIONS
from tests.servers.objects import MOODS, Moods, folder_root
from tests.unit.state.test_objects import a_segment

ROOT = Path(__file__).resolve().parents[3]
LINES = ((("g1-a", 1),),)
DOWN = "Could not connect to server"
PATIENCE_S = 60
"""How long a test waits for something that should come at once."""


@pytest.fixture
def place(tmp_path: Path) -> ObjectRoot:
    return folder_root(tmp_path / "store", tmp_path / "cache", lines=LINES)


def do_batch(store: ObjectStates, version: int, units: Collection[int], plan: Sequence[int] | None = None) -> None:
    """As a slot does it; each unit drops a segment that it has just written."""
    for unit in units:
        writer = store.writer(unit, version)
        info = writer.save(*a_segment(3))
        writer.finish()
        values = {NUMBERS: list(plan)} if plan and not unit else {}
        store.commit(unit, UnitState(version, {}, values, dropped=(info.file,)), UnitReport(unit, f"U{unit}"))
        store.collect(unit, version)
    if plan:
        store.collect_left(units, version)
    store.settle()


def versions(folder: Path) -> dict[int, set[int]]:
    """By unit, those that have an object in a store."""
    return {
        int(unit.name): {int(path.name.partition(".")[0]) for path in unit.iterdir()}
        for unit in (folder / "0").iterdir()
    }


def kept(version: int) -> set[int]:
    return set(range(version - KEPT_VERSIONS + 1, version + 1))


def test_what_units_let_go_in_a_batch_goes_side_by_side_and_manifests_last(place: ObjectRoot, tmp_path: Path) -> None:
    units, store = range(8), ObjectStates(place)
    for version in range(1, KEPT_VERSIONS + 1):
        do_batch(store, version, units)
    store.collected()
    shutil.rmtree(tmp_path / "cache")  # as on a machine that did not write them
    meetings = {kinds: threading.Barrier(len(units)) for kinds in ("get .json", "remove .arrow", "remove .json")}
    done: list[str] = []

    def meets(kind: str, path: str) -> None:
        kinds = f"{kind} {Path(path).suffix}"
        if kinds in meetings:
            meetings[kinds].wait(PATIENCE_S)
            done.append(kinds)

    MOODS[place.uri].before = meets
    do_batch(store, KEPT_VERSIONS + 1, units)
    store.collected()
    assert done == [kinds for kinds in meetings for _ in units]
    assert versions(tmp_path / "store") == {unit: kept(KEPT_VERSIONS + 1) for unit in units}


def test_what_many_batches_let_go_while_the_store_is_slow_goes_at_once(place: ObjectRoot, tmp_path: Path) -> None:
    store, newest, more = ObjectStates(place), KEPT_VERSIONS + 1, 6
    is_held, goes_on, meeting = threading.Event(), threading.Event(), threading.Barrier(more)

    def slow(kind: str, path: str) -> None:
        if kind == "remove" and not goes_on.is_set():
            is_held.set()
            assert goes_on.wait(PATIENCE_S)
        elif kind == "remove" and path.endswith(".json") and "/1." not in path:
            meeting.wait(PATIENCE_S)

    for version in range(1, newest):
        do_batch(store, version, [0])
    MOODS[place.uri].before = slow
    do_batch(store, newest, [0])
    assert is_held.wait(PATIENCE_S)
    for version in range(newest + 1, newest + 1 + more):
        do_batch(store, version, [0])
    goes_on.set()
    store.collected()
    assert versions(tmp_path / "store") == {0: kept(newest + more)}


def test_a_cache_is_trimmed_while_the_store_is_slow(place: ObjectRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ObjectStates(place)
    goes_on, is_trimmed = threading.Event(), threading.Event()

    def slow(kind: str, path: str) -> None:
        if kind == "remove":
            goes_on.wait(PATIENCE_S)

    for version in range(1, KEPT_VERSIONS + 1):
        do_batch(store, version, [0])
    store.collected()
    MOODS[place.uri].before = slow
    do_batch(store, KEPT_VERSIONS + 1, [0])
    monkeypatch.setattr(store.cache, "trim", is_trimmed.set)
    do_batch(store, KEPT_VERSIONS + 2, [0])
    assert is_trimmed.wait(PATIENCE_S / 4)
    goes_on.set()
    store.collected()


def test_a_batch_that_fails_lets_nothing_go(place: ObjectRoot, tmp_path: Path) -> None:
    store = ObjectStates(replace(place, retry_s=0.01))
    for version in range(1, KEPT_VERSIONS + 1):
        do_batch(store, version, [0])

    def fails(kind: str, path: str) -> None:
        if kind == "put":
            raise OSError(DOWN)

    moods, MOODS[place.uri].before = MOODS[place.uri], fails
    with pytest.raises(StateError, match=DOWN):
        do_batch(store, KEPT_VERSIONS + 1, [0])
    moods.before = Moods().before
    store.collected()
    assert versions(tmp_path / "store") == {0: kept(KEPT_VERSIONS)}
    do_batch(store, KEPT_VERSIONS + 1, [0])
    store.collected()
    assert versions(tmp_path / "store") == {0: kept(KEPT_VERSIONS + 1)}


def test_litter_is_left_soon_where_the_store_is_down_and_found_by_the_next_sweep(
    place: ObjectRoot, tmp_path: Path
) -> None:
    store = ObjectStates(replace(place, retry_s=0.05))
    for version in range(1, KEPT_VERSIONS + 1):
        do_batch(store, version, [0])
    store.collected()
    tried: set[str] = set()

    def down(kind: str, path: str) -> None:
        if kind == "remove":
            tried.add(path)
            raise OSError(DOWN)

    moods, MOODS[place.uri].before = MOODS[place.uri], down
    do_batch(store, KEPT_VERSIONS + 1, [0])
    store.collected()
    assert versions(tmp_path / "store") == {0: kept(KEPT_VERSIONS + 1) | {1}}
    for number in range(200):
        (tmp_path / "store" / "0" / "0" / f"2.g0-dead-{number}.arrow").write_bytes(b"of a task that died")
    tried.clear()
    assert store.sweep(1, KEPT_VERSIONS + 1, 2) > 200
    assert len(tried) <= objects._AT_ONCE, "the rest is given up"
    moods.before = Moods().before
    store.sweep(1, KEPT_VERSIONS + 1, 2)
    assert versions(tmp_path / "store") == {0: kept(KEPT_VERSIONS + 1)}
    assert not list((tmp_path / "store" / "0" / "0").glob("*dead*"))


def test_one_object_that_may_not_be_removed_keeps_no_other(place: ObjectRoot, tmp_path: Path) -> None:
    found, _ = place.opened()
    names = [f"x/{number}" for number in range(100)]
    for name in names:
        found.put(name, b"x")

    def refuses(kind: str, path: str) -> None:
        if kind == "remove" and path.endswith("/0"):
            raise OSError("AWS Error ACCESS_DENIED")

    MOODS[place.uri].before = refuses
    found.remove(names)
    assert list(found.listed("")) == ["x/0"]


def test_litter_is_not_worth_the_patience_of_a_state(place: ObjectRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(objects, "time", SimpleNamespace(monotonic=lambda: sum(slept), sleep=slept.append))

    def down(kind: str, path: str) -> None:
        raise OSError(DOWN)

    MOODS[place.uri] = Moods(down)
    found, _ = replace(place, retry_s=60.0).opened()
    found.remove(["x"])
    assert 0 < sum(slept) <= objects.LITTER_RETRY_S
    slept.clear()
    with pytest.raises(StateError, match="has failed for 60 s"):
        found.put("x", b"")
    assert sum(slept) > 30


def test_a_manifest_that_only_litter_needs_is_not_asked_for_in_patience(
    place: ObjectRoot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store, slept = ObjectStates(place), list[float]()
    for version in range(1, KEPT_VERSIONS + 1):
        do_batch(store, version, [0])
    shutil.rmtree(tmp_path / "cache")
    monkeypatch.setattr(objects, "time", SimpleNamespace(monotonic=lambda: sum(slept), sleep=slept.append))

    def down(kind: str, path: str) -> None:
        if kind == "get":
            raise OSError(DOWN)

    MOODS[place.uri].before = down
    do_batch(store, KEPT_VERSIONS + 1, [0])
    store.collected()
    assert 0 < sum(slept) <= objects.LITTER_RETRY_S


_ENDS = """
import atexit, sys, threading, time
from pathlib import Path
from tests.servers.objects import MOODS, Moods, folder_root

begun = threading.Event()

def slow(kind, path):
    begun.set()
    time.sleep(0.05)

place = folder_root(Path(sys.argv[1]))
moods = MOODS[place.uri] = Moods(slow)
atexit.register(lambda: print(moods.calls["remove"]))
names = [str(number) for number in range(3_200)]
threading.Thread(target=place.opened()[0].remove, args=(names,), daemon=True).start()
begun.wait()
"""


def test_a_process_that_ends_removes_no_more_than_it_has_begun(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", _ENDS, str(tmp_path / "store")],
        env=environment, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert 0 < int(done.stdout) < 1_600 and not done.stderr


@pytest.mark.parametrize("turns", ["stays", "moves once and back", "moves each batch", "moves every seventh batch"])
def test_units_that_left_are_removed_whoever_does_the_first_slot(turns: str, place: ObjectRoot, tmp_path: Path) -> None:
    workers = ObjectStates(place), ObjectStates(place)
    left_at = 8
    whose = {
        "stays": lambda version: 0,
        "moves once and back": lambda version: int(4 <= version <= left_at),
        "moves each batch": lambda version: version % 2,
        "moves every seventh batch": lambda version: version // 7 % 2,
    }[turns]
    last = left_at + 2 * KEPT_VERSIONS
    for version in range(1, last + 1):
        units = [0, 1, 2] if 4 <= version <= left_at else [0, 1]
        plan = [0, 1, 2] if 4 <= version + 1 <= left_at else [0, 1]
        do_batch(workers[whose(version)], version, units, plan)
        for worker in workers:
            worker.collected()
        if version == left_at + KEPT_VERSIONS - 2:
            assert versions(tmp_path / "store")[2] == {left_at - 1, left_at}, "they are kept as long as others"
    assert versions(tmp_path / "store") == {0: kept(last), 1: kept(last), 2: set()}


def test_a_start_takes_for_litter_what_is_of_generations_and_batches_before_it_alone(
    place: ObjectRoot, tmp_path: Path
) -> None:
    (checkpoint := tmp_path / "checkpoint").mkdir()
    made = Generation(place, checkpoint, 1, 20)
    stays = [
        "0/0/20.g77-live.json", "0/0/20.g77-live-0.arrow", "0/0/notes.txt", "driver/g77-live.json", "driver/notes.txt",
        "driver/g77-live/0-r.jsonl/0-5", "dead-letters/000000020-0-0_0.jsonl", "dead-letters/notes.txt",
    ]  # fmt: skip
    goes = [
        "0/0/3.g0-dead.json", "0/0/3.g0-dead-0.arrow", "driver/g0-dead.json", "driver/g0-dead/0-r.jsonl/0-5",
        "dead-letters/000000019-0-0_0.jsonl",
    ]  # fmt: skip
    for name in (*stays, *goes):
        made.objects.put(name, b"x")
    do_batch(ObjectStates(made.root), 21, [0])
    before = set(made.objects.listed(""))
    made.sweep([1], 21)
    made.swept()
    assert before - set(made.objects.listed("")) == set(goes)
