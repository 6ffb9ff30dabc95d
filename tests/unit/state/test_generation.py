"""Who becomes the owner of a place of objects, where several drivers start, fail and live on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from streamjoin.errors import RunError
from streamjoin.failpoints import FailpointError
from streamjoin.state.generation import NOBODY, Generation, Head, owner, seen
from streamjoin.state.root import ObjectRoot
from tests.failing import failing_at
from tests.servers.objects import MOODS, Moods, folder_root

GOES_ON = r"^another driver went on with the state at folder://\S+ while this one started; it stops, so start this one"
TAKEN_OVER = r"^another driver has taken over the state at folder://\S+; this one stops"


def started(place: ObjectRoot, folder: Path, before: Head | None = None) -> Generation:
    """A driver with a folder of its own."""
    folder.mkdir(exist_ok=True)
    return Generation(place, folder, 1, 0, before)


def do_batch(made: Generation, number: int = 0) -> None:
    """What a driver asks of its generation as it plans a batch and commits it."""
    log = made.checkpoint / "offsets" / "offsets"
    log.mkdir(parents=True, exist_ok=True)
    (log / str(number)).write_text("planned")
    made.put_checked(number)
    made.check()


def does_batch(made: Generation) -> bool:
    """Whether it may."""
    try:
        do_batch(made)
    except RunError:
        return False
    return True


def start_with(place: ObjectRoot, folder: Path, meanwhile: Callable[[str, str], None]) -> bool:
    """Start, with somebody at each call of the store's; whether it came to a batch."""
    before = seen(place)
    MOODS[place.uri].before = lambda kind, path: meanwhile(kind, Path(path).name)
    try:
        made = started(place, folder, before)
    except RunError:
        return False
    finally:
        MOODS[place.uri].before = Moods().before
    return does_batch(made)


@dataclass
class Meeting:
    """A start of a driver, in which another one does a batch as the start asks the store for something.

    Attributes:
        at: at which of the calls.
        calls: those that were asked before that.
        rivals: whether the other one did its batch.
    """

    place: ObjectRoot
    folder: Path
    old: Generation | None
    rival: str
    at: int
    calls: list[tuple[str, str]] = field(default_factory=list)
    rivals: bool | None = None

    def __call__(self, kind: str, name: str) -> None:
        if self.rivals is None and len(self.calls) == self.at:
            self.rivals = False
            made = self.old if self.rival == "owner" and self.old else started(self.place, self.folder / "rival")
            self.rivals = does_batch(made)
        elif self.rivals is None:
            self.calls.append((kind, name))


@pytest.mark.parametrize(("is_used", "rival"), [(True, "owner"), (True, "start"), (False, "start")])
def test_of_two_drivers_that_meet_as_one_starts_one_at_most_goes_on(rival: str, is_used: bool, tmp_path: Path) -> None:
    """At each call but the puts of the owner: what comes between such a put and the look before it, nobody sees."""
    calls: list[tuple[str, str]] = []
    done: set[bool] = set()
    for at in range(-1, 20):
        if at >= 0 and (at >= len(calls) or calls[at] == ("put", "owner.json")):
            continue
        folder = tmp_path / str(at + 1)
        folder.mkdir()
        place = folder_root(folder / "store")
        meeting = Meeting(place, folder, started(place, folder / "old") if is_used else None, rival, at)
        mine = start_with(place, folder / "new", meeting)
        if at < 0:
            calls = meeting.calls
            continue
        assert not (mine and meeting.rivals), calls[at]
        done.add(mine)
        # An owner that puts a head as it is stopped stops the other one, too.
        assert mine or meeting.rivals or does_batch(started(place, folder / "next")), calls[at]
    assert calls.count(("put", "owner.json")) == 2 and calls[-1] == ("put", "owner.json")
    # Of two that start the later one has it, and an owner loses it once the other has begun.
    assert done == ({True, False} if rival == "owner" else {False})


@pytest.mark.parametrize("is_first", [True, False])
def test_who_dies_as_it_takes_over_stops_the_owner_and_nobody_else(is_first: bool, tmp_path: Path) -> None:
    place = folder_root(tmp_path / "store")
    old = None if is_first else started(place, tmp_path / "old")
    before = seen(place)
    assert (before == NOBODY) == is_first
    with failing_at("generation.after_fence"), pytest.raises(FailpointError):
        started(place, tmp_path / "dead")
    assert seen(place) == before and not (tmp_path / "dead" / "state.json").exists()
    if old is not None:
        with pytest.raises(RunError, match=TAKEN_OVER):
            old.check()
        with pytest.raises(RunError, match=TAKEN_OVER):
            old.become({0: 1}, 0)  # a change of its units, which would end the other's turn
        assert seen(place) == before
    do_batch(started(place, tmp_path / "next", before))


def test_a_first_batch_of_the_same_version_shows(tmp_path: Path) -> None:
    place = folder_root(tmp_path / "store")
    old = started(place, tmp_path / "old")
    before = seen(place)
    do_batch(old)
    assert seen(place).version == before.version
    with pytest.raises(RunError, match=GOES_ON):
        started(place, tmp_path / "new", before)
    assert owner(place.opened()[0]) == old.head
    do_batch(started(place, tmp_path / "new"))


@pytest.mark.parametrize("is_done", [True, False])
def test_the_owner_is_not_put_by_a_try_that_comes_too_late(is_done: bool, tmp_path: Path) -> None:
    """The store fails for a while, once it has done what it was asked or before; meanwhile another driver starts."""
    place = folder_root(tmp_path / "store")
    old = started(place, tmp_path / "old")
    later: list[Generation] = []

    def fails(kind: str, path: str) -> None:
        if (kind, Path(path).name) == ("put", "owner.json") and not later:
            moods.before = moods.after = Moods().before
            later.append(started(place, tmp_path / "later"))
            do_batch(later[0])
            raise OSError("SLOW_DOWN")

    moods = MOODS[place.uri]
    setattr(moods, "after" if is_done else "before", fails)
    with pytest.raises(RunError, match=TAKEN_OVER):
        old.become({0: 1}, 0)
    do_batch(later[0], 1)


def test_a_put_of_the_owner_that_was_done_without_an_answer_is_done_again(tmp_path: Path) -> None:
    place = folder_root(tmp_path / "store")
    puts = 0

    def fails(kind: str, path: str) -> None:
        nonlocal puts
        if (kind, Path(path).name) == ("put", "owner.json"):
            puts += 1
            if puts % 2:
                raise OSError("SLOW_DOWN")

    MOODS[place.uri] = Moods(after=fails)
    for number in range(2):
        do_batch(started(place, tmp_path / str(number)))
    assert puts == 2 * 2 * 2
