"""The states of units as objects, with the files of a cache to map into memory.

    <uri>/<stage>/<unit>/<version>.<generation>.json         manifests, sealed
    <uri>/<stage>/<unit>/<version>.<generation>-<n>.arrow    segments

A unit's segments are put side by side, and so are units: a step goes on while they travel. A manifest is put once its
segments are there, and a slot is done once its manifests are. Names are computed from what a generation knows, so no
listing is needed; a generation never reads what an older one writes after it began.
"""

from __future__ import annotations

import posixpath
import threading
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from streamjoin.engine.state import NUMBERS, Opened, UnitState
from streamjoin.engine.unit import UnitReport
from streamjoin.errors import StateError
from streamjoin.failpoints import failpoint
from streamjoin.index.files import mapped_segment, write_rows
from streamjoin.index.segment import SegmentInfo
from streamjoin.state import manifest
from streamjoin.state.objects import Objects, checksum, get_sealed, number_of, sealed, unsealed
from streamjoin.state.root import ObjectRoot
from streamjoin.state.store import KEPT_VERSIONS

_MANIFESTS_AT_ONCE = 32


class ObjectStates:
    """Reads and writes the state of one stage's units below a root of objects."""

    def __init__(self, root: ObjectRoot, stage: int = 0) -> None:
        self.root = root
        self.stage = stage
        self.objects, self.cache = root.opened()
        self._attached: dict[int, dict[str, pa.RecordBatch]] = {}
        self._states: dict[tuple[int, int], UnitState] = {}
        self._written: set[str] = set()
        self._last: dict[int, int] = {}  # by unit, the newest version that it has written, where units come and go
        self._left_at = 0  # the version that `_last` describes
        self._coming: dict[str, Future[Path]] = {}
        self._puts: dict[int, list[Future[None]]] = {}
        self._manifests: list[Future[None]] = []
        self._let_go: list[str] = []  # manifests that the current batch no longer needs
        self._uncollected: deque[str] = deque()  # the same from earlier batches, not removed yet
        self._lock = threading.Lock()
        # They wait for segments, which have threads of their own.
        self._pool = ThreadPoolExecutor(_MANIFESTS_AT_ONCE, "manifests")
        self._behind = ThreadPoolExecutor(1, "collect")
        self._trims = ThreadPoolExecutor(1, "trim")  # the disk may fill up while the store is slow

    def prepare(self, units: Iterable[int], version: int, opened: Opened = UnitState.named) -> None:
        """Get what these units will open and this machine has not, side by side."""
        if not version:
            return
        for unit, state in zip(units, self._pool.map(partial(self.load, version=version), units), strict=True):
            attached = self._attached.get(unit, {})
            for info in opened(state):
                name = self._name(unit, info.file)
                if name not in attached and name not in self._coming and not self.cache.path(name).exists():
                    self._coming[name] = self.objects.submit(partial(self._fetched, name, info))

    def load(self, unit: int, version: int) -> UnitState:
        """A unit's state at `version`; version 0 is empty and needs no object.

        Raises:
            StateError: the version is missing or damaged.
        """
        if version == 0:
            return UnitState(0)
        if (known := self._states.get((unit, version))) is not None:
            return known
        if (state := self.find(unit, version)) is None:
            raise StateError(
                f"unit {unit} has no state of version {version} below {self.root.place}: the state and the offsets of "
                "this checkpoint do not belong together"
            )
        self._keep(unit, state)
        return state

    def find(self, unit: int, version: int) -> UnitState | None:
        """A unit's state at `version`, which is 1 or later; None where there is none.

        Raises:
            StateError: it is damaged.
        """
        name = self._manifest(unit, version)
        text = self._manifest_text(name) if name else None
        return None if name is None or text is None else manifest.load(text, name)

    def _keep(self, unit: int, state: UnitState) -> None:
        with self._lock:
            self._states[unit, state.version] = state
            for old in [known for known in self._states if known[0] == unit and known[1] < state.version - 1]:
                del self._states[old]

    def _manifest(self, unit: int, version: int) -> str | None:
        writer = self.root.writer(self.stage, version)
        return None if writer is None else f"{self.stage}/{unit}/{version}.{writer}.json"

    def _manifest_text(self, name: str, objects: Objects | None = None) -> bytes | None:
        # A generation writes a version of a unit once, or again with the same content, so a copy is as good.
        path = self.cache.path(name)
        try:
            if (text := unsealed(path.read_bytes())) is not None:
                return text
        except FileNotFoundError:
            pass
        found = get_sealed(objects or self.objects, name)
        if found is not None:
            self.objects.traffic.count(fetched_bytes=len(found))
            self.cache.add(name, partial(_write_bytes, sealed(found)))
        return found

    def numbers(self, units: int, version: int) -> list[int]:
        """The units that have a state of `version`, which is 1 or later, or had one before they left.

        Args:
            units: how many there were at first.
        """
        first = self.find(0, version)
        if version == 1 or first is None or NUMBERS not in first.values:
            return list(range(units))
        # Who is in batch b writes version b + 1. Who left with the oldest version that is kept stores nothing.
        before = self.find(0, version - 1) or first
        return list(before.values[NUMBERS])

    def staying(self, units: int, version: int) -> Iterator[tuple[int, UnitState]]:
        """The state of each unit that the next batch goes on with; see `numbers`.

        Raises:
            StateError: one is missing or damaged.
        """
        for unit in self.numbers(units, version):
            next_ = self.load(0, version).values.get(NUMBERS)
            if next_ is None or unit in next_:
                yield unit, self.load(unit, version)

    def check_units(self, units: int, version: int) -> None:
        """Nothing to do: a generation knows of how many units the states are before it begins."""

    def live_tuples(self, units: Iterable[int], version: int) -> int:
        """Tuples of both streams that these units store or send on at `version`; one that two store counts twice.

        Raises:
            StateError: as `load`.
        """
        states = self._pool.map(partial(self.load, version=version), units)
        return sum(info.rows for state in states for info in state.tuples())

    def open_segment(self, unit: int, info: SegmentInfo) -> pa.RecordBatch:
        """A segment's rows, mapped into memory.

        Raises:
            StateError: it is missing in the store, or damaged there.
        """
        name = self._name(unit, info.file)
        attached = self._attached.setdefault(unit, {})
        if (rows := attached.get(name)) is not None:
            self.objects.traffic.count(served=1)
            return rows
        if (coming := self._coming.pop(name, None)) is not None:
            path = coming.result()
        else:
            path = self.cache.path(name)
            if self._is_whole(name, path, info):
                self.cache.used(path)
                self.objects.traffic.count(served=1)
            else:
                path = self._fetched(name, info)
        try:
            attached[name] = batch = mapped_segment(path, info.rows, "manifest")
        except StateError:
            if path.exists():
                raise
            # The cache of a machine is for all its processes: another one has made room.
            attached[name] = batch = mapped_segment(self._fetched(name, info), info.rows, "manifest")
        return batch

    def _is_whole(self, name: str, path: Path, info: SegmentInfo) -> bool:
        """Whether the cache has a segment; what this process did not write may be older than a crash."""
        try:
            if name in self._written:
                self._written.discard(name)
                return path.exists()
            return _fits(path, info)
        except OSError:
            return False

    def _fetched(self, name: str, info: SegmentInfo) -> Path:
        """A segment from the store; what comes damaged is asked for once more."""
        for again in (True, False):
            found = self.objects.get(name, info.bytes)
            size = 0 if found is None else found.size
            if found is None:
                raise StateError(
                    f"segment {self.root.place}/{name} is lost; without it results would be missing, so the job stops"
                )
            if size == info.bytes and checksum(found) == info.checksum:
                self.objects.traffic.count(fetched=1, fetched_bytes=size)
                return self.cache.add(name, partial(_write_bytes, found))
            self.objects.traffic.count(retries=int(again))
        raise StateError(
            f"segment {self.root.place}/{name} is damaged: its manifest tells of {info.bytes:,} bytes of another "
            f"content, and the store has {size:,}; restore it from a copy, or start the job anew with another "
            "run.checkpoint and run.state"
        )

    def _name(self, unit: int, file: str) -> str:
        return posixpath.normpath(f"{self.stage}/{unit}/{file}")

    def writer(self, unit: int, version: int | str) -> ObjectWriter:
        """Where the segments that first appear in `version` go; their names begin with it and the generation's."""
        (*_, (generation, _)) = self.root.lines[self.stage]
        self._puts[unit] = []  # without those of a step that failed
        return ObjectWriter(self, unit, f"{version}.{generation}")

    def commit(self, unit: int, state: UnitState, report: UnitReport) -> None:
        """Make `state` the unit's state of its version, in one step, by the time that `settle` returns."""
        name = self._manifest(unit, state.version)
        assert name is not None
        puts, self._puts[unit] = self._puts.get(unit, []), []
        content = sealed(manifest.dump(state, report))

        def put() -> None:
            for segment in puts:
                segment.result()
            failpoint("unit.after_segments")
            failpoint("unit.before_manifest")
            self.cache.add(name, partial(_write_bytes, content))
            self.objects.put(name, content)
            failpoint("unit.after_manifest")

        self._manifests.append(self._pool.submit(put))
        self._keep(unit, state)

    def settle(self) -> None:
        """All that was committed lasts from now on.

        Raises:
            StateError: the store did not take all of it.
        """
        manifests, self._manifests = self._manifests, []
        let_go, self._let_go = self._let_go, []
        try:
            for put in manifests:
                put.result()
        except BaseException:
            self._states.clear()
            raise
        self._trims.submit(self.cache.trim)
        self._uncollected += let_go
        self._behind.submit(self._collect)

    def saving(self, unit: int, name: str, content: pa.Buffer) -> None:
        """A segment of a unit is on its way."""
        put = self.objects.submit(partial(self.objects.put, name, content))
        self._puts.setdefault(unit, []).append(put)
        self._written.add(name)

    def collect(self, unit: int, version: int) -> None:
        """In the background, remove the version that falls out of the kept ones, and segments it was the last to name.

        Versions are missed where nobody knows any more which generation wrote them, after a crash, or if the store
        fails. The next start sweeps them. See `StateStore.collect`.
        """
        failpoint("state.before_collect")
        old = version - KEPT_VERSIONS
        if old >= 1 and (name := self._manifest(unit, old)) is not None:
            self._let_go.append(name)

    def _collect(self) -> None:
        """Remove everything that batches let go since the last time, side by side, so as not to fall behind."""
        names = [self._uncollected.popleft() for _ in range(len(self._uncollected))]
        dropped = self.objects.some_at_once(partial(self._dropped, self.objects.hasty()), names)
        for gone in ([name for some in dropped for name in some], names):
            self.objects.remove(gone)
            for name in gone:
                self.cache.path(name).unlink(missing_ok=True)

    def _dropped(self, objects: Objects, name: str) -> list[str]:
        """The segments that a manifest was the last to name."""
        text = self._manifest_text(name, objects)
        unit = int(name.split("/")[1])
        return [self._name(unit, file) for file in manifest.load(text, name).dropped] if text else []

    def collect_left(self, units: Collection[int], version: int) -> None:
        """Do the same for units that left: all recent units except these.

        Cost: reads a few manifests if another process did the previous batch.
        """
        if version - 1 != self._left_at:  # another process did the previous batch, if there was one
            lately = range(max(version - KEPT_VERSIONS, 1), version)
            plans = zip(lately, self._pool.map(partial(self.find, 0), lately), strict=True)
            self._last = {
                unit: number + 1 for number, first in plans if first for unit in first.values.get(NUMBERS, ())
            }
        self._last |= dict.fromkeys(units, version)
        self._left_at = version
        for unit in self._last.keys() - units:
            self.collect(unit, version)
            if self._last[unit] <= version - KEPT_VERSIONS + 1:
                # After this batch no kept plan names the unit, so nobody could find its last version.
                self.collect(unit, version + 1)
                del self._last[unit]

    def collected(self) -> None:
        """Wait until what was let go so far is removed."""
        self._behind.submit(lambda: None).result()

    def detach_except(self, unit: int, state: UnitState) -> None:
        """Forget mapped segments of a unit that its state no longer names."""
        live = {self._name(unit, info.file) for info in state.named()}
        attached = self._attached.get(unit, {})
        self._attached[unit] = {name: rows for name, rows in attached.items() if name in live}
        own = f"{self.stage}/{unit}/"
        self._written = {name for name in self._written if name in live or not name.startswith(own)}
        for name in self._attached[unit]:
            self.cache.used(self.cache.path(name))

    def sweep(self, units: int, version: int, own: int) -> int:
        """Remove what no kept state names, of generations before `own`; how many objects.

        A listing may miss some, which stay until another start. Only while no older generation's state is read.

        Args:
            units, version: of how many units the states are at first, and the newest version.
        Raises:
            StateError: a unit has none of that version, so nobody can tell what is litter.
        """
        kept: set[str] = set()
        for number in range(max(version - KEPT_VERSIONS, 0) + 1, version + 1):
            there = dict(self.staying(units, number)) if number == version else {}
            for unit in self.numbers(units, number):
                name = self._manifest(unit, number)
                state = there.get(unit) or self.find(unit, number)
                if name is not None and state is not None:
                    files = (*(info.file for info in state.named()), *state.dropped)
                    kept |= {name, *(self._name(unit, file) for file in files)}
        others = (name for name in self.objects.listed(str(self.stage)) if name not in kept)
        litter = [name for name in others if number_of(posixpath.basename(name).partition(".")[2]) < own]
        self.objects.remove(litter)
        return len(litter)


class ObjectWriter:
    """Puts one unit's new segments of a batch; see `ObjectStates.commit` for when they last."""

    def __init__(self, store: ObjectStates, unit: int, start: str) -> None:
        self.store = store
        self.unit = unit
        self._start = start
        self._written = 0

    def save(self, rows: pa.RecordBatch, info: SegmentInfo) -> SegmentInfo:
        """Write a segment under its next name, and return its description with that name."""
        file = f"{self._start}-{self._written}.arrow"
        self._written += 1
        name = f"{self.store.stage}/{self.unit}/{file}"
        failpoint("unit.before_segments")
        made: list[pa.Buffer] = []

        def write(temporary: Path) -> None:
            write_rows(temporary, rows)
            # Mapped before it has its name: whatever becomes of the file, the content is there to be put.
            made.append(pa.memory_map(str(temporary)).read_buffer())

        self.store.cache.add(name, write)
        content = made[-1]
        self.store.saving(self.unit, name, content)
        return replace(info, file=file, bytes=content.size, checksum=checksum(content))

    def finish(self) -> None:
        """They are on their way; the manifest that names them waits for them."""


def _fits(path: Path, info: SegmentInfo) -> bool:
    if path.stat().st_size != info.bytes:
        return False
    with pa.memory_map(str(path)) as file:
        return checksum(file.read_buffer()) == info.checksum


def _write_bytes(content: bytes | pa.Buffer, path: Path) -> None:
    with open(path, "wb") as file:
        file.write(content)
