"""Whose turn it is at a place of objects, and what another host needs to go on there.

    <uri>/driver/owner.json            the name of the generation that the place belongs to, and of one that starts
    <uri>/driver/<generation>.json     its head: who wrote which versions, and the small files of its checkpoint
    <uri>/driver/<generation>/...      what file logs have gained, in chunks

Each start is a generation, with a name that no other has, and so are changes of the state between two batches. Its head
is put before it becomes the owner, and before each batch. Whoever comes next reads the owner's head, says so, which
stops the owner, and has to find the same head again before it becomes the owner itself. No name that it knows is ever
written by an older generation again. A generation that is not the owner any more stops.
"""

from __future__ import annotations

import contextlib
import functools
import json
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from streamjoin.durable import put_durably
from streamjoin.errors import InputError, RunError, StateError
from streamjoin.failpoints import failpoint
from streamjoin.state.objects import Objects, Refused, get_sealed, number_of, sealed
from streamjoin.state.objectstore import ObjectStates
from streamjoin.state.root import Line, ObjectRoot
from streamjoin.state.store import KEPT_VERSIONS

Answer = TypeVar("Answer")
FORMAT = 1
HERE_FILE = "state.json"
"""In a checkpoint: at which place its states are, the generation whose folder it is, and which it was becoming."""
ASIDE = "dead-letters"
"""Where tasks put rows aside, a file for each piece of a batch, whose number its name begins with."""
_OWNER = "driver/owner.json"
_CHUNKS_MAX = 64
"""A file log that was put in so many chunks is put as a whole again."""


@dataclass(frozen=True, slots=True)
class Head:
    """What a generation says of itself.

    Args:
        version: of all units' states, the newest that is known to be whole.
        files: the small files of its checkpoint, by their path in it.
        logs: by path, the chunks of files that only grow: (name of the object, bytes).
    """

    name: str
    number: int
    lines: tuple[Line, ...] = ()
    version: int = 0
    files: Mapping[str, str] = field(default_factory=dict)
    logs: Mapping[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """`from_bytes` reads it back."""
        return json.dumps(
            {
                "format": FORMAT, "name": self.name, "number": self.number, "lines": self.lines,
                "version": self.version, "files": dict(self.files), "logs": dict(self.logs),
            }
        ).encode()  # fmt: skip

    @staticmethod
    def from_bytes(content: bytes, place: str) -> Head:
        """The inverse of `to_bytes`.

        Raises:
            InputError: another version of StreamJoin wrote it.
        """
        found = json.loads(content)
        if found["format"] != FORMAT:
            raise InputError(
                f"the state at {place} has format {found['format']} and this version of StreamJoin reads format "
                f"{FORMAT}; use another run.state, run.checkpoint and place for results to start anew",
                field="run.state",
            )
        lines = tuple(tuple((name, first) for name, first in line) for line in found["lines"])
        logs = {path: tuple((name, size) for name, size in chunks) for path, chunks in found["logs"].items()}
        return Head(found["name"], found["number"], lines, found["version"], found["files"], logs)


NOBODY = Head("", 0)
"""In place of the owner's head where nobody has used a place yet."""


def owner(objects: Objects) -> Head | None:
    """The head of the generation that a place belongs to; None where nobody has used it yet.

    Raises:
        StateError: what is there cannot be read.
    """
    name = _shown(objects).get("name", "")
    if not name:
        return None
    head = get_sealed(objects, f"driver/{name}.json")
    if head is None:
        raise StateError(
            f"{objects.place}/driver/{name}.json is lost, and it says which state counts; restore it from a copy, or "
            "start the job anew with another run.checkpoint and run.state"
        )
    return Head.from_bytes(head, objects.place)


def _shown(objects: Objects) -> dict[str, str]:
    """What `owner.json` says; nothing where there is none."""
    found = get_sealed(objects, _OWNER)
    return {} if found is None else json.loads(found)


def seen(root: ObjectRoot) -> Head:
    """The owner's head as who starts sees it before it makes its checkpoint of it; `NOBODY` where there is none.

    Raises:
        InputError: the store refuses.
        StateError: what is there cannot be read.
    """
    return asked(lambda: owner(root.opened()[0])) or NOBODY


def newest_head(root: ObjectRoot) -> tuple[ObjectRoot, Head] | None:
    """A place as its owner sees it; None where nobody has used it yet."""
    head = owner(root.opened()[0])
    return None if head is None else (replace(root, lines=head.lines), head)


def own_head(root: ObjectRoot) -> Head:
    """The head of the generation that a place was handed on by.

    Raises:
        StateError: it is lost.
    """
    name = _name(root)
    found = get_sealed(root.opened()[0], f"driver/{name}.json")
    if found is None:
        raise StateError(f"{root.place}/driver/{name}.json is lost, and batches cannot be done without it")
    return Head.from_bytes(found, root.place)


class Generation:
    """The generation that this process is, of a place and a checkpoint that it holds.

    Args:
        root: the place.
        stages: how many a job has.
        version: the newest that all units have.
        before: what was `seen` before the checkpoint was made of it; unless given, what there is now.
    Raises:
        InputError: the store will not take anything.
        RunError: another driver has done something since, or starts as well.
    """

    def __init__(
        self, root: ObjectRoot, checkpoint: Path, stages: int, version: int, before: Head | None = None
    ) -> None:
        self.objects, _ = root.opened()
        self.checkpoint = checkpoint
        self._logs: dict[str, list[tuple[str, int]]] = {}
        self._replaced: list[list[str]] = [[], []]
        self._sweeping: threading.Thread | None = None
        self.head = before or seen(root)
        lines = (*self.head.lines, *((),) * (stages - len(self.head.lines)))  # queries that start have stages more
        self.root = replace(root, lines=lines)
        self._said: dict[str, str] = {}
        firsts = dict.fromkeys(range(stages), version + 1)
        begun = self.begun(firsts)
        self._fence(_name(begun))
        self.become(firsts, version, begun)

    @property
    def number(self) -> int:
        """Later generations have greater ones."""
        return self.head.number

    def begun(self, firsts: Mapping[int, int]) -> ObjectRoot:
        """The place as the next generation will see it, which writes from these versions on, by stage."""
        name = f"g{self.head.number + 1}-{uuid.uuid4().hex[:8]}"
        lines = []
        for stage, line in enumerate(self.root.lines):
            first = firsts[stage]
            # What an older one wrote from there on does not count, and what nobody reads any more need not be known.
            known = [one for one in line if one[1] < first]
            while len(known) > 1 and known[1][1] <= first - 1 - KEPT_VERSIONS:
                known.pop(0)
            lines.append((*known, (name, first)))
        return replace(self.root, lines=tuple(lines))

    def become(
        self,
        firsts: Mapping[int, int],
        version: int,
        root: ObjectRoot | None = None,
        changed: Mapping[str, str] | None = None,
    ) -> None:
        """Be the next generation.

        Args:
            root: what `begun` gave, where something was written under its name already.
            changed: files of the checkpoint that are others from now on. They change here once they have in the place:
                a folder that is not the owner's own is made anew from there.
        """
        before = self.head.name
        self.root = root or self.begun(firsts)
        name = _name(self.root)
        self._logs = {}
        self.head = Head(name, self.head.number + 1, self.root.lines)
        asked(lambda: self.put(version, changed))
        # Who is killed as it becomes the owner finds its own folder again.
        self._note({"name": before, "becoming": name})
        failpoint("generation.before_owner")
        now = {"name": name}
        self._say(now, lambda found: found in (self._said, now))
        failpoint("generation.after_owner")
        for path, text in (changed or {}).items():
            put_durably(self.checkpoint / path, text.encode())
        self._note({"name": name})

    def _fence(self, name: str) -> None:
        """Stop the owner, which may be alive, and make sure that nothing was done since its head was read.

        It puts a batch's head before it looks for the last time whether it is the owner. So whatever it commits after
        this is in the head by now.

        Raises:
            RunError: something was; the next start knows of it.
        """
        before = self.head
        self._say({"name": before.name, "next": name}, lambda found: found.get("name", "") == before.name)
        failpoint("generation.after_fence")
        if seen(self.root) != before:
            raise RunError(
                f"another driver went on with the state at {self.root.place} while this one started; it stops, so "
                "start this one again"
            )

    def _say(self, now: dict[str, str], is_right: Callable[[Mapping[str, str]], bool]) -> None:
        """Put `owner.json`, unless another driver has.

        Args:
            is_right: whether what is there may be replaced.
        Raises:
            RunError: it may not.
        """

        def look() -> None:
            if not is_right(_shown(self.objects)):
                raise self._taken_over()

        content = sealed(json.dumps(now).encode())
        asked(lambda: self.objects.put(_OWNER, content, look))
        self._said = now

    def _taken_over(self) -> RunError:
        return RunError(
            f"another driver has taken over the state at {self.root.place}; this one stops, and its batch is the "
            "other's to do"
        )

    def _note(self, here: Mapping[str, str]) -> None:
        put_durably(self.checkpoint / HERE_FILE, json.dumps({"place": self.root.place, **here}).encode())

    def put(self, version: int, changed: Mapping[str, str] | None = None) -> None:
        """Put what another host needs to go on from here."""
        files = {str(path.relative_to(self.checkpoint)): _as_text(path.read_bytes()) for path in self._files()}
        files |= changed or {}
        for path in sorted((self.checkpoint / "sources").glob("*.jsonl")):
            self._put_log(str(path.relative_to(self.checkpoint)), path)
        logs = {path: tuple(chunks) for path, chunks in self._logs.items()}
        self.head = replace(self.head, version=version, files=files, logs=logs)
        self.objects.put(f"driver/{self.head.name}.json", sealed(self.head.to_bytes()))
        # Whoever has read the head before this one may be about to read what it names.
        now, before = self._replaced
        self._replaced = [[], now]
        if before:
            _quietly(functools.partial(self.objects.remove, before))

    def put_checked(self, version: int) -> None:
        """`check` and `put`, side by side: nobody reads what one puts that is not the owner any more.

        Raises:
            RunError: another driver has become the owner.
        """
        checked = self.objects.submit(self.check)
        self.put(version)
        checked.result()

    def sweep(self, units: Sequence[int], version: int) -> None:
        """In the background, remove what older generations have left that no kept state names.

        Args:
            units: of how many the states are, by stage.
        """

        def run() -> None:
            for stage, count in enumerate(units):
                ObjectStates(root, stage).sweep(count, version, number)
            self._sweep_heads(number)

        # What the states are may have changed before the thread comes to it.
        root, number = self.root, self.number
        self._sweeping = threading.Thread(target=_quietly, args=(run,), name="sweep-objects", daemon=True)
        self._sweeping.start()

    def swept(self) -> None:
        """Wait until the sweep is through."""
        if self._sweeping is not None:
            self._sweeping.join()

    def _sweep_heads(self, number: int) -> None:
        heads = (name for name in self.objects.listed("driver") if name != _OWNER)
        mine = [name for name in heads if number_of(name.split("/")[1]) < number]
        done = [name for name in self.objects.listed(ASIDE) if number_of(name.split("/")[1]) < self.head.version]
        self.objects.remove([*mine, *done])

    def check(self) -> None:
        """Make sure that no other driver has become the owner, or is about to.

        Raises:
            RunError: one has, or is.
        """
        if _shown(self.objects) != self._said:
            raise self._taken_over()

    def _files(self) -> Iterator[Path]:
        """Small files of the checkpoint that are needed to go on."""
        for name in ("job.json", "shedding.json", "runs.json", "measured.json", "results.json", "stores.json"):
            yield from self.checkpoint.glob(name)
        offsets = self.checkpoint / "offsets"
        yield from (path for path in offsets.glob("metadata") if path.is_file())
        yield from (path for path in offsets.glob("sources/**/*") if path.is_file() and path.name.isdecimal())
        for log in ("offsets", "commits"):
            found = sorted((int(path.name), path) for path in (offsets / log).glob("[0-9]*") if path.name.isdecimal())
            yield from (path for _, path in found[-2:])

    def _put_log(self, name: str, path: Path) -> None:
        chunks = self._logs.setdefault(name, [])
        known = sum(size for _, size in chunks)
        with open(path, "rb") as file:
            file.seek(known)
            more = file.read()
            more = more[: more.rfind(b"\n") + 1]
            if not more:
                return
            if len(chunks) >= _CHUNKS_MAX:
                file.seek(0)
                more, known = file.read(known + len(more)), 0
                self._replaced[0] += [name for name, _ in chunks]
                chunks.clear()
        chunk = f"driver/{self.head.name}/{path.name}/{known}-{len(more)}"
        self.objects.put(chunk, sealed(more))
        chunks.append((chunk, len(more)))


def last_logged(offsets: Path, log: str) -> int:
    """The last batch in one of the logs of Spark's that lie in `offsets`, such as `commits`; -1 for none."""
    return max((int(path.name) for path in (offsets / log).glob("[0-9]*")), default=-1)


def asked(ask: Callable[[], Answer]) -> Answer:
    """What is wrong with a place shows at the start, as a mistake of the join file."""
    try:
        return ask()
    except Refused as refusal:
        raise InputError(str(refusal), field="run.state") from None


def _as_text(content: bytes) -> str:
    # What Spark's sources note of themselves need not be text.
    return content.decode("utf-8", "surrogateescape")


def _quietly(run: Callable[[], None]) -> None:
    # What is not swept now is litter until the next start, and no reason to stop a job.
    with contextlib.suppress(StateError):
        run()


def _name(root: ObjectRoot) -> str:
    """The generation that writes to a place as it is known here."""
    return root.lines[0][-1][0]
