"""States as objects: a store that is slow, fails or lies, and what the cache of a machine has."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from streamjoin import failpoints
from streamjoin.engine.state import Table, UnitState
from streamjoin.engine.unit import UnitReport
from streamjoin.errors import InputError, StateError
from streamjoin.index.segment import SegmentInfo, build
from streamjoin.state import objects
from streamjoin.state.cache import Cache, default_folder
from streamjoin.state.generation import Generation, Head, owner
from streamjoin.state.objects import Refused, opened
from streamjoin.state.objectstore import ObjectStates
from streamjoin.state.restored import restore
from streamjoin.state.root import ObjectRoot, root_of
from streamjoin.state.uris import without_secrets
from tests.failing import failing_at
from tests.servers.objects import MOODS, Moods, folder_root

BUSY = "AWS Error UNKNOWN (HTTP status 503)"
LINES = ((("g1-a", 1),),)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "_PAUSE_S", 0.001)


def a_segment(rows: int) -> tuple[pa.RecordBatch, SegmentInfo]:
    columns = pa.RecordBatch.from_arrays([pa.array(range(rows))], ["id"])
    return build(columns, np.arange(rows), None, {})


def root(folder: Path, moods: Moods | None = None, **more: float) -> ObjectRoot:
    found = folder_root(folder / "store", folder / "cache", lines=LINES, **more)
    if moods is not None:
        MOODS[found.uri] = moods
    return found


def written(store: ObjectStates, version: int = 1, unit: int = 0, segments: int = 1) -> UnitState:
    writer = store.writer(unit, version)
    infos = tuple(writer.save(*a_segment(5 + number)) for number in range(segments))
    writer.finish()
    state = UnitState(version, {"R": Table(0, infos)}, {"taken": [1, "a"]})
    store.commit(unit, state, UnitReport(unit, "R0"))
    return state


def once(*kinds: str, error: Exception | None = None) -> Callable[[str, str], None]:
    """The first call of each kind on each path fails."""
    seen: set[tuple[str, str]] = set()
    lock = threading.Lock()

    def mood(kind: str, path: str) -> None:
        with lock:
            first = (kind, path) not in seen
            seen.add((kind, path))
        if first and kind in kinds:
            raise error or OSError(BUSY)

    return mood


def test_another_machine_reads_what_one_wrote(tmp_path: Path) -> None:
    here = ObjectStates(root(tmp_path))
    state = written(here, segments=3)
    here.settle()
    there = ObjectStates(replace(here.root, cache=tmp_path / "other"))
    assert there.load(0, 1) == state
    rows = [there.open_segment(0, info).num_rows for info in state.segments("R")]
    assert rows == [5, 6, 7]
    traffic = there.objects.traffic.taken()
    assert (traffic["served"], traffic["fetched"]) == (0, 3)
    assert traffic["fetched_bytes"] > sum(info.bytes for info in state.segments("R"))
    again = ObjectStates(there.root)
    for info in state.segments("R"):
        again.open_segment(0, info)
    assert again.objects.traffic.taken()["served"] == 3


def test_nothing_counts_before_its_manifest_and_that_is_put_last(tmp_path: Path) -> None:
    order: list[str] = []
    looked = threading.Event()

    def waits(kind: str, path: str) -> None:
        if kind == "put" and path.endswith("-0.arrow"):
            assert looked.wait(60)

    store = ObjectStates(root(tmp_path, Moods(waits, lambda kind, path: order.append(path))))
    written(store, segments=4)
    with pytest.raises(StateError, match="no state of version 1"):
        ObjectStates(replace(store.root, cache=tmp_path / "other")).load(0, 1)
    looked.set()
    store.settle()
    puts = [path for path in order if "store/0/0" in path]
    assert puts[-1].endswith(".json") and len(puts) == 5


class SideBySide:
    """Calls that take a while; how many of them there were at once, at most."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.lock = threading.Lock()

    def __call__(self, kind: str, path: str) -> None:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.1)
        with self.lock:
            self.now -= 1


def test_puts_of_a_unit_and_of_units_go_side_by_side(tmp_path: Path) -> None:
    calls = SideBySide()
    store = ObjectStates(root(tmp_path, Moods(calls)))
    for unit in range(4):
        written(store, unit=unit, segments=4)
    store.settle()
    assert calls.most > 4, "no more than one unit's at once"
    fresh = ObjectStates(replace(store.root, cache=tmp_path / "other"))
    calls.most = 0
    fresh.prepare(range(4), 1)
    for unit in range(4):
        for info in fresh.load(unit, 1).named():
            fresh.open_segment(unit, info)
    assert calls.most > 4, "no more than one unit's at once"


def test_only_what_is_opened_is_fetched_ahead(tmp_path: Path) -> None:
    got: list[str] = []
    store = ObjectStates(root(tmp_path, Moods(lambda kind, path: got.append(path) if kind == "get" else None)))
    written(store, segments=4)
    store.settle()
    fresh = ObjectStates(replace(store.root, cache=tmp_path / "other"))
    fresh.prepare([0], 1, lambda state: list(state.named())[:1])
    infos = list(fresh.load(0, 1).named())
    fresh.open_segment(0, infos[0])
    assert len([path for path in got if path.endswith(".arrow")]) == 1
    for info in infos:
        assert fresh.open_segment(0, info).num_rows == info.rows
    assert len([path for path in got if path.endswith(".arrow")]) == 4


@pytest.mark.parametrize(
    "mood",
    [
        pytest.param(Moods(once("put", "get")), id="busy"),
        pytest.param(Moods(once("put", "get", error=ConnectionResetError("cut"))), id="cut"),
        pytest.param(Moods(after=once("put", "get", error=TimeoutError("no answer"))), id="done, and no answer"),
    ],
)
def test_what_passes_by_itself_is_tried_again_and_counted(mood: Moods, tmp_path: Path) -> None:
    store = ObjectStates(root(tmp_path, mood))
    state = written(store, segments=2)
    store.settle()
    fresh = ObjectStates(replace(store.root, cache=tmp_path / "other"))
    assert fresh.load(0, 1) == state
    assert [fresh.open_segment(0, info).num_rows for info in state.named()] == [5, 6]
    assert store.objects.traffic.taken()["retries"] >= 3
    assert fresh.objects.traffic.taken()["retries"] >= 3


def test_a_store_that_stays_away_stops_the_job_in_time(tmp_path: Path) -> None:
    def away(kind: str, path: str) -> None:
        raise OSError("Could not connect to server")

    store = ObjectStates(root(tmp_path, Moods(away), retry_s=0.05))
    written(store)
    with pytest.raises(StateError, match=r"^folder://.* has failed for 0\.05 s, and .*Could not connect"):
        store.settle()


def test_what_a_store_refuses_is_not_tried_again(tmp_path: Path) -> None:
    def refuses(kind: str, path: str) -> None:
        raise OSError("AWS Error ACCESS_DENIED during PutObject operation: Access Denied")

    mood = Moods(refuses)
    place = root(tmp_path, mood)
    with pytest.raises(Refused, match="the store does not permit it"):
        place.opened()[0].put("x", b"")
    assert mood.calls == Counter(put=1)
    with pytest.raises(InputError, match=r"^run\.state: folder://.*: the store does not permit it"):
        Generation(place, tmp_path, 1, 0)


def test_all_objects_of_a_place_are_removed_and_those_beside_it_stay(tmp_path: Path) -> None:
    objects_, other = root(tmp_path / "one").opened()[0], root(tmp_path / "one").opened()[0]
    for name in ("head.json", "a/b/1.arrow", "a/2.arrow"):
        objects_.put(name, b"x")
    beside = Path(f"{tmp_path}/one/store-beside")
    beside.mkdir()
    (beside / "kept").write_bytes(b"x")
    objects_.remove_all()
    assert list(other.listed("")) == [] and (beside / "kept").exists()
    objects_.remove_all()  # as often as it takes


def test_a_store_that_refuses_to_remove_is_heard_of(tmp_path: Path) -> None:
    def refuses(kind: str, path: str) -> None:
        if kind == "remove":
            raise PermissionError("AWS Error ACCESS_DENIED")

    place = root(tmp_path, Moods(before=refuses)).opened()[0]
    place.put("x", b"x")
    with pytest.raises(Refused, match="does not permit it"):
        place.remove_all()
    assert list(place.listed("")) == ["x"]


@pytest.mark.parametrize("damage", ["short", "flipped"])
@pytest.mark.parametrize("what", [".arrow", ".json"])
@pytest.mark.parametrize("always", [False, True])
def test_what_comes_damaged_is_fetched_once_more(damage: str, what: str, always: bool, tmp_path: Path) -> None:
    seen: set[str] = set()

    def lies(path: str, content: bytes) -> bytes:
        if not path.endswith(what) or (path in seen and not always):
            return content
        seen.add(path)
        middle = len(content) // 2
        return (
            content[:middle]
            if damage == "short"
            else content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        )

    store = ObjectStates(root(tmp_path))
    written(store)
    store.settle()
    fresh = ObjectStates(replace(root(tmp_path), cache=tmp_path / "other"))
    MOODS[fresh.root.uri].given = lies
    if always:
        with pytest.raises(StateError, match=r"folder://\S+ is damaged.*restore it from a copy"):
            fresh.open_segment(0, *fresh.load(0, 1).named())
    else:
        assert fresh.open_segment(0, *fresh.load(0, 1).named()).num_rows == 5
        assert fresh.objects.traffic.taken()["retries"] == 1


def test_a_lost_segment_is_an_error_and_not_a_silent_hole(tmp_path: Path) -> None:
    store = ObjectStates(root(tmp_path))
    (info,) = written(store).named()
    store.settle()
    (tmp_path / "store" / "0" / "0" / info.file).unlink()
    with pytest.raises(StateError, match="is lost; without it results would be missing"):
        ObjectStates(replace(store.root, cache=tmp_path / "other")).open_segment(0, info)


def test_a_file_of_the_cache_that_a_crash_left_damaged_is_fetched_again(tmp_path: Path) -> None:
    store = ObjectStates(root(tmp_path))
    (info,) = written(store).named()
    store.settle()
    store.objects.traffic.taken()
    path = store.cache.path(f"0/0/{info.file}")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert ObjectStates(store.root).open_segment(0, info).column("id").to_pylist() == list(range(5))
    assert store.objects.traffic.taken()["fetched"] == 1


def test_a_cache_that_is_deleted_in_mid_batch_does_no_harm(tmp_path: Path) -> None:
    store = ObjectStates(root(tmp_path))
    first = written(store, segments=2)
    shutil.rmtree(tmp_path / "cache", ignore_errors=True)  # while its manifest is written
    store.settle()
    assert [store.open_segment(0, info).num_rows for info in first.named()] == [5, 6]


def test_a_large_object_comes_in_parts_side_by_side(tmp_path: Path) -> None:
    mood = Moods(lambda kind, path: time.sleep(0.05))
    found, _ = root(tmp_path, mood).opened()
    content = np.random.default_rng(1).bytes(3 * objects._PART_BYTES + 5)
    found.put("large", content)
    got = found.get("large", len(content))
    assert got is not None and got.to_pybytes() == content
    assert mood.calls["get"] == 4


def test_the_least_used_files_leave_a_full_cache(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", "one", 100_000)
    names = [f"{number}.arrow" for number in range(30)]
    for number, name in enumerate(names):
        path = cache.add(name, lambda temporary: Path(temporary).write_bytes(bytes(5_000)) and None)
        os.utime(path, (1_000 + number, 1_000 + number))
    cache.used(cache.path(names[0]))
    made = cache.own / ".31.arrow.1.1"
    made.write_bytes(bytes(5_000))
    assert cache.trim() > 0
    left = {path.name for path in cache.own.iterdir()}
    assert names[0] in left and names[-1] in left and made.name in left
    assert names[1] not in left and sum(path.stat().st_size for path in cache.own.iterdir()) <= 100_000
    assert cache.trim() == 0, "nothing was added"


@pytest.mark.parametrize("gone", [FileNotFoundError, FileExistsError])
def test_a_file_whose_folder_goes_while_it_is_made_is_made_again(gone: type[OSError], tmp_path: Path) -> None:
    cache, left = Cache(tmp_path / "cache", "one"), 3

    def write(path: Path) -> None:
        nonlocal left
        left -= 1
        if left:
            raise gone
        path.write_bytes(b"made")

    assert cache.add("x.arrow", write).read_bytes() == b"made"
    left = 1_000
    with pytest.raises(StateError, match=r"cannot keep x\.arrow"):
        cache.add("x.arrow", write)
    assert left > 900, "it is given up"


def test_a_cache_that_is_full_says_so(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    with pytest.raises(StateError, match=r"cannot keep x\.arrow \(.*\); give run\.cache a path with more room"):
        Cache(tmp_path / "cache", "one").add("x.arrow", lambda path: None)


def test_the_default_cache_is_this_users_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    place = replace(folder_root(tmp_path / "store"), cache=None)
    before = os.umask(0)
    try:
        place.opened()
        again = replace(place, retry_s=1.0)
        again.opened()
        mode = default_folder().stat().st_mode & 0o777
    finally:
        os.umask(before)
    assert mode == 0o700


def test_the_default_cache_is_where_each_machine_has_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place = root_of("s3://key:secret@bucket/job?scheme=http&endpoint_override=127.0.0.1:1", Path, None, None)
    assert isinstance(place, ObjectRoot)
    (there := tmp_path / "another machine's").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(there))
    _, cache = pickle.loads(pickle.dumps(place)).opened()
    assert cache.folder == default_folder() and there in cache.folder.parents


@pytest.mark.parametrize("wrong", ["of others", "of a group", "another user's", "a link", "a file"])
def test_a_default_cache_that_others_can_write_to_is_refused(
    wrong: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = default_folder()
    if wrong == "a file":
        folder.touch(0o600)
    elif wrong == "a link":
        (tmp_path / "planted").mkdir(0o700)
        folder.symlink_to(tmp_path / "planted")
    else:
        folder.mkdir(0o700)
        folder.chmod({"of others": 0o702, "of a group": 0o770}.get(wrong, 0o700))
    if wrong == "another user's":
        monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(
        InputError, match=r"^run\.cache\.path: \S+ is not a folder that this user alone can write to, .*remove it"
    ):
        folder_root(tmp_path / "store", folder).opened()
    folder_root(tmp_path / "store", tmp_path / "own").opened()


def test_states_that_are_slightly_older_than_the_cache_are_told_apart_by_their_generation(tmp_path: Path) -> None:
    store = ObjectStates(root(tmp_path))
    written(store, 1)
    written(store, 2)
    store.settle()
    later = ObjectStates(replace(store.root, lines=((("g1-a", 1), ("g2-b", 2)),)))
    assert later.load(0, 1) == store.load(0, 1)
    with pytest.raises(StateError, match="no state of version 2"):
        later.load(0, 2)


def test_secrets_of_a_uri_are_nobody_elses(tmp_path: Path) -> None:
    uri = "s3://key:secret@bucket/a/b?endpoint_override=127.0.0.1:1&scheme=http"
    assert without_secrets(uri) == "s3://bucket/a/b" == ObjectRoot(uri).place
    with pytest.raises(InputError) as refused:
        opened("s3://key:secret@bucket/a?nonsense=1")
    assert "secret@" not in str(refused.value) and "nonsense" in str(refused.value)
    with pytest.raises(InputError, match=r"^run\.state: ftp://x cannot be opened"):
        opened("ftp://x")


@pytest.mark.parametrize("scheme", ["hdfs", "viewfs"])
def test_where_a_put_may_be_seen_in_part_no_state_is_kept(scheme: str) -> None:
    with pytest.raises(
        InputError, match=rf"^run\.state: {scheme}://host:9/x may keep a part of .*; use an object store"
    ):
        ObjectRoot(f"{scheme}://somebody:secret@host:9/x?replication=1").opened()


def test_a_head_comes_back_and_another_format_is_refused() -> None:
    head = Head("g1-a", 1, LINES, 3, {"job.json": "{}"}, {"sources/0-r.jsonl": (("driver/g1-a/0-r.jsonl/0-5", 5),)})
    assert Head.from_bytes(head.to_bytes(), "s3://b") == head
    with pytest.raises(InputError, match=r"has format 9 and this version of StreamJoin reads format 1; use another"):
        Head.from_bytes(head.to_bytes().replace(b'"format": 1', b'"format": 9'), "s3://b")


def test_a_checkpoint_is_made_again_from_its_states(tmp_path: Path) -> None:
    place, checkpoint = folder_root(tmp_path / "store", tmp_path / "cache"), tmp_path / "checkpoint"
    files = {
        "job.json": "{}", "runs.json": "{}", "offsets/metadata": "m", "offsets/offsets/6": "6",
        "offsets/offsets/7": "7",
        "offsets/commits/6": "c", "offsets/sources/0/0": "initial",
    }  # fmt: skip
    for name, text in {**files, "offsets/offsets/5": "5", "sources/0-r.jsonl": '["a", 1]\n'}.items():
        (checkpoint / name).parent.mkdir(parents=True, exist_ok=True)
        (checkpoint / name).write_text(text)
    (checkpoint / "offsets" / "sources" / "1").mkdir()
    (checkpoint / "offsets" / "sources" / "1" / "0").write_bytes(b"\x00v1\r\n\xff{}")
    assert owner(place.opened()[0]) is None
    (checkpoint / "offsets").rename(checkpoint / "aside")
    made = Generation(place, checkpoint, 2, 6)
    (checkpoint / "aside").rename(checkpoint / "offsets")
    made.put(7)
    with open(checkpoint / "sources" / "0-r.jsonl", "a") as log:
        log.write('["b", 2]\n["tor')
    made.put(7)
    moved = tmp_path / "moved"
    assert restore(place, moved) and not restore(place, checkpoint)
    binary = moved / "offsets" / "sources" / "1" / "0"
    assert binary.read_bytes() == b"\x00v1\r\n\xff{}"
    binary.unlink()
    found = {str(path.relative_to(moved)): path.read_text() for path in moved.rglob("*") if path.is_file()}
    assert {name: text for name, text in found.items() if name.startswith("offsets")} == {
        name: text for name, text in {**files, "offsets/offsets/6": "6"}.items() if name.startswith("offsets")
    }
    assert found["sources/0-r.jsonl"] == '["a", 1]\n["b", 2]\n'
    Generation(place, moved, 2, 7)
    assert not restore(place, moved)
    (checkpoint / "sources" / "0-r.jsonl").write_text("stale")
    assert restore(place, checkpoint), "the folder of an older generation is made anew"
    assert (checkpoint / "sources" / "0-r.jsonl").read_text() == '["a", 1]\n["b", 2]\n'


def test_states_that_are_elsewhere_are_not_begun_anew(tmp_path: Path) -> None:
    place, checkpoint = folder_root(tmp_path / "store"), tmp_path / "checkpoint"
    checkpoint.mkdir()
    Generation(place, checkpoint, 1, 0)
    with pytest.raises(InputError, match=r"are at folder://.*/store, and not at folder://.*/other; write that"):
        restore(folder_root(tmp_path / "other"), checkpoint)
    shutil.rmtree(tmp_path / "store")
    with pytest.raises(InputError, match=r"there is nothing at folder://"):
        restore(place, checkpoint)


@pytest.mark.parametrize("own", ["state/0/0/1.json", "offsets/commits/3"])
def test_a_checkpoint_with_states_of_its_own_does_not_become_another_jobs(own: str, tmp_path: Path) -> None:
    place, checkpoint = folder_root(tmp_path / "store"), tmp_path / "checkpoint"
    for name in (own, "sources/0-r.jsonl", "job.json"):
        (checkpoint / name).parent.mkdir(parents=True, exist_ok=True)
        (checkpoint / name).write_text("mine")
    other = tmp_path / "other"
    other.mkdir()
    (other / "job.json").write_text("theirs")
    Generation(place, other, 1, 0)
    with pytest.raises(
        InputError, match=r"^run\.state: .* and folder://\S+ has those of another job; write run\.state"
    ):
        restore(place, checkpoint)
    assert {path.read_text() for path in checkpoint.rglob("*") if path.is_file()} == {"mine"}
    assert not (checkpoint / "state.json").exists()


def test_a_checkpoint_that_was_half_made_anew_is_made_anew_again(tmp_path: Path) -> None:
    place, checkpoint, moved = folder_root(tmp_path / "store"), tmp_path / "checkpoint", tmp_path / "moved"
    (checkpoint / "sources").mkdir(parents=True)
    made = Generation(place, checkpoint, 1, 3)
    (checkpoint / "offsets" / "commits").mkdir(parents=True)
    (checkpoint / "offsets" / "commits" / "3").write_text("done")
    (checkpoint / "sources" / "0-r.jsonl").write_text('["a", 1]\n')
    made.put(4)
    (chunk,) = (tmp_path / "store" / "driver").glob("*/0-r.jsonl/*")
    kept = chunk.rename(tmp_path / "kept")
    with pytest.raises(StateError, match="is lost, and a log"):
        restore(place, moved)
    assert (moved / "offsets" / "commits" / "3").exists() and not (moved / "sources").exists()
    kept.rename(chunk)
    assert restore(place, moved), "offsets that came from there are no state of its own"
    assert (moved / "sources" / "0-r.jsonl").exists()


def test_an_old_copy_of_the_owners_own_folder_is_made_anew(tmp_path: Path) -> None:
    place, checkpoint = folder_root(tmp_path / "store"), tmp_path / "checkpoint"
    checkpoint.mkdir()
    made = Generation(place, checkpoint, 1, 0)
    commits = checkpoint / "offsets" / "commits"
    commits.mkdir(parents=True)
    for batch in range(10):
        made.put(batch)
        (commits / str(batch)).write_text("done")
        if batch == 3:
            shutil.copytree(checkpoint, tmp_path / "snapshot")
    assert not restore(place, checkpoint), "a batch that is done and whose next one has not begun is no sign of age"
    shutil.rmtree(checkpoint)
    (tmp_path / "snapshot").rename(checkpoint)
    assert restore(place, checkpoint)
    assert max(int(path.name) for path in commits.iterdir()) == 8


def test_a_sweep_goes_by_what_the_states_were_as_it_began(tmp_path: Path) -> None:
    place, checkpoint = folder_root(tmp_path / "store", tmp_path / "cache"), tmp_path / "checkpoint"
    checkpoint.mkdir()
    changed = threading.Event()

    def waits(kind: str, path: str) -> None:
        if kind == "list":
            changed.wait(10)

    MOODS[place.uri] = Moods(waits)
    first = Generation(place, checkpoint, 2, 0)
    for stage in (0, 1):
        store = ObjectStates(first.root, stage)
        state = written(store, segments=2)
        store.settle()
    second = Generation(place, checkpoint, 2, 1)
    second.sweep([1, 1], 1)
    # Meanwhile the second stage has two units, and the other one has what was the first one's.
    begun = second.begun({0: 2, 1: 1})
    store, (mine, others) = ObjectStates(begun, 1), state.named()
    for unit, info in enumerate((mine, replace(others, file=f"../0/{others.file}"))):
        store.commit(unit, UnitState(1, {"R": Table(0, (info,))}), UnitReport(unit, f"R{unit}"))
    store.settle()
    second.become({0: 2, 1: 1}, 1, begun)
    changed.set()
    second.swept()
    fresh = ObjectStates(replace(second.root, cache=tmp_path / "other"), 1)
    found = [fresh.open_segment(unit, info) for unit in (0, 1) for info in fresh.load(unit, 1).named()]
    assert [rows.num_rows for rows in found] == [5, 6]


def batches(made: Generation, *numbers: int) -> None:
    """What a checkpoint has of batches: each is planned, put, and done."""
    offsets = made.checkpoint / "offsets"
    for log in ("offsets", "commits"):
        (offsets / log).mkdir(parents=True, exist_ok=True)
    for number in numbers:
        (offsets / "offsets" / str(number)).write_text("planned")
        made.put(number)
        (offsets / "commits" / str(number)).write_text("done")


def test_another_folder_is_refused_where_not_all_of_a_job_is_in_the_place(tmp_path: Path) -> None:
    place, checkpoint = folder_root(tmp_path / "store"), tmp_path / "checkpoint"
    checkpoint.mkdir()
    made = Generation(place, checkpoint, 1, 0)
    batches(made, 0, 1)
    shutil.copytree(checkpoint, tmp_path / "old")
    batches(made, 2, 3)
    for other in ("moved", "old"):
        (tmp_path / other).mkdir(exist_ok=True)
        before = sorted((tmp_path / other).rglob("*"))
        with pytest.raises(
            InputError, match=r"^run\.checkpoint: the job at folder://\S+ last ran .*, and its X are in"
        ):
            restore(place, tmp_path / other, "its X")
        assert sorted((tmp_path / other).rglob("*")) == before
    assert not restore(place, checkpoint, "its X")
    (checkpoint / "offsets" / "commits" / "3").unlink()
    assert not restore(place, checkpoint, "its X"), "batch 3 is done again"
    (checkpoint / "offsets" / "commits" / "2").unlink()
    assert restore(place, checkpoint, "its X"), "a power cut lost what the place has"
    assert (checkpoint / "offsets" / "commits" / "2").exists()
    assert restore(place, tmp_path / "moved")


@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("dies", ["generation.before_owner", "generation.after_owner"])
def test_a_start_that_was_killed_knows_its_own_folder_again(dies: str, is_first: bool, tmp_path: Path) -> None:
    place, checkpoint = folder_root(tmp_path / "store"), tmp_path / "checkpoint"
    checkpoint.mkdir()
    if not is_first:
        batches(Generation(place, checkpoint, 1, 0), 0, 1)
    with failing_at(dies), pytest.raises(failpoints.FailpointError):
        Generation(place, checkpoint, 1, 0 if is_first else 2)
    assert restore(place, checkpoint, "its X") == (dies == "generation.after_owner")
    restore(place, checkpoint, "its X")
    made = Generation(place, checkpoint, 1, 0 if is_first else 2)
    assert made.number == (not is_first) + (dies == "generation.after_owner") + 1
    assert not restore(place, checkpoint, "its X")


@pytest.mark.parametrize("path", ["../elsewhere", "offsets/../../elsewhere", "/proc/elsewhere"])
@pytest.mark.parametrize("is_log", [False, True])
def test_nothing_is_written_outside_of_a_checkpoint(path: str, is_log: bool, tmp_path: Path) -> None:
    place, checkpoint, moved = folder_root(tmp_path / "store"), tmp_path / "checkpoint", tmp_path / "moved"
    checkpoint.mkdir()
    made = Generation(place, checkpoint, 1, 0)
    head = replace(made.head, logs={path: ()}) if is_log else replace(made.head, files={"job.json": "{}", path: "x"})
    made.objects.put(f"driver/{head.name}.json", objects.sealed(head.to_bytes()))
    with pytest.raises(StateError, match=r"folder://\S+ would write \S*elsewhere outside of the checkpoint"):
        restore(place, moved)
    assert not moved.exists(), "before anything is changed"


def test_a_file_log_in_many_chunks_becomes_one(tmp_path: Path) -> None:
    place, checkpoint = folder_root(tmp_path / "store"), tmp_path / "checkpoint"
    log = checkpoint / "sources" / "0-r.jsonl"
    log.parent.mkdir(parents=True)
    made = Generation(place, checkpoint, 1, 0)
    for number in range(70):
        with open(log, "a") as file:
            file.write(f'["{number}", 1]\n')
        made.put(number)
    assert len(made.head.logs["sources/0-r.jsonl"]) < 10
    assert restore(place, tmp_path / "moved")
    assert (tmp_path / "moved" / "sources" / "0-r.jsonl").read_text() == log.read_text()


def test_a_log_that_grows_for_long_leaves_nothing_that_no_head_names(tmp_path: Path) -> None:
    place, checkpoint = folder_root(tmp_path / "store", tmp_path / "cache"), tmp_path / "checkpoint"
    for name in ("results.json", "stores.json"):
        (checkpoint / name).parent.mkdir(parents=True, exist_ok=True)
        (checkpoint / name).write_text(name)
    (checkpoint / "sources").mkdir()
    made = Generation(place, checkpoint, 1, 0)
    objects, _ = place.opened()
    most = 0
    for number in range(400):
        with open(checkpoint / "sources" / "0-r.jsonl", "a") as log:
            log.write(f'["{number}", 1]\n')
        made.put(number)
        named = {name for chunks in made.head.logs.values() for name, _ in chunks}
        there = {name for name in objects.listed("driver") if "0-r.jsonl" in name}
        assert named <= there
        most = max(most, len(there - named))
    assert most <= 64 + 1, "those that the head before names"
    moved = tmp_path / "moved"
    assert restore(place, moved)
    assert (moved / "sources" / "0-r.jsonl").read_text() == (checkpoint / "sources" / "0-r.jsonl").read_text()
    assert (moved / "results.json").read_text() == "results.json", "where results went, so that these are completed"
    assert (moved / "stores.json").read_text() == "stores.json"
