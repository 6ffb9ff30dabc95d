"""A checkpoint made anew from what the owner of a place of objects put there, on another host or in an old folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from streamjoin.durable import have_folder, put_durably
from streamjoin.errors import InputError, StateError
from streamjoin.state.generation import HERE_FILE, Head, asked, last_logged, owner
from streamjoin.state.objects import Objects, get_sealed
from streamjoin.state.root import ObjectRoot


def restore(root: ObjectRoot, checkpoint: Path, staying: str | None = None) -> bool:
    """Make a checkpoint what the place's owner says, unless it is that already; whether it was made.

    Only while no driver holds the checkpoint.

    Args:
        staying: what of the job is in its checkpoint and not at the place, so that another folder cannot go on.
    Raises:
        InputError: the checkpoint's states are somewhere else, or what stays is.
        StateError: the place cannot be read.
    """
    objects, _ = root.opened()
    here = _here(checkpoint)
    if here is not None and here["place"] != root.place:
        raise InputError(
            f"the states of checkpoint {checkpoint} are at {here['place']}, and not at {root.place}; write that, or "
            "use another run.checkpoint and place for results to start anew",
            field="run.state",
        )
    head = asked(lambda: owner(objects))
    if head is None:
        was_there = here is not None and here["name"] != ""  # else its first start was killed
        if was_there or (checkpoint / "offsets").exists():
            where = f"at {root.place}" if was_there else f"in {checkpoint}"
            raise InputError(
                f"the states of checkpoint {checkpoint} were {where}, and there is nothing at {root.place}; use "
                "another run.checkpoint and place for results to start anew",
                field="run.state",
            )
        return False
    if here is None:
        _check_empty(checkpoint, root.place)
    elif here["name"] == head.name and last_logged(checkpoint / "offsets", "commits") + 1 >= head.version:
        return False  # one from before that, a disk of a week ago, would begin where states are collected already
    if staying and not _is_own(checkpoint, here, head):
        raise InputError(
            f"the job at {root.place} last ran with another checkpoint or a newer copy of {checkpoint}, and {staying} "
            "are in that one alone; copy it here, or use another run.checkpoint, run.state and place for results to "
            "start anew",
            field="run.checkpoint",
        )
    for path in (*head.files, *head.logs):
        _check_inside(path, root.place)
    nobodys = {"place": root.place, "name": "", "becoming": head.name}
    # Who is killed in between finds a folder that is nobody's own, and not one with a state of its own.
    _put(checkpoint / HERE_FILE, json.dumps(nobodys).encode())
    for old in ("offsets", "sources"):
        shutil.rmtree(checkpoint / old, ignore_errors=True)
    for path, text in head.files.items():
        _put(checkpoint / path, text.encode("utf-8", "surrogateescape"))
    for path, chunks in head.logs.items():
        _put(checkpoint / path, b"".join(_chunk(objects, name, size) for name, size in chunks))
    return True


def _put(path: Path, content: bytes) -> None:
    have_folder(path.parent)
    put_durably(path, content)


def _check_empty(checkpoint: Path, place: str) -> None:
    """Refuse to make a checkpoint anew whose states are in it."""
    if any((checkpoint / own).exists() for own in ("state", "offsets")):
        raise InputError(
            f"the states of checkpoint {checkpoint} are in it or in a folder, and {place} has those of another job; "
            "write run.state as it was to go on with the checkpoint, or use another run.checkpoint to go on with what "
            f"is at {place}",
            field="run.state",
        )


def _is_own(checkpoint: Path, here: dict[str, str] | None, head: Head) -> bool:
    """Whether the owner planned its last batch in this folder, though a crash may have lost what came after it."""
    if here is None:
        return False
    return here.get("becoming") == head.name or (
        here["name"] == head.name and last_logged(checkpoint / "offsets", "offsets") >= head.version
    )


def _check_inside(path: str, place: str) -> None:
    """Refuse a path that would be written outside of the checkpoint."""
    if Path(path).is_absolute() or ".." in Path(path).parts:
        raise StateError(
            f"what is at {place} would write {path} outside of the checkpoint, which no job's does; find out who wrote "
            "it, and restore the place from a copy"
        )


def checked_local(checkpoint: Path) -> None:
    """Refuse a checkpoint whose states are not in it.

    Raises:
        InputError: they are elsewhere.
    """
    if (here := _here(checkpoint)) is not None:
        raise InputError(
            f"the states of checkpoint {checkpoint} are at {here['place']}; write that, or use another run.checkpoint "
            "and place for results to start anew",
            field="run.state",
        )


def _chunk(objects: Objects, name: str, size: int) -> bytes:
    content = get_sealed(objects, name)
    if content is None or len(content) != size:
        raise StateError(
            f"{objects.place}/{name} is lost, and a log of the job's files is not whole without it; restore it from a "
            "copy, or start the job anew with another run.checkpoint and run.state"
        )
    return content


def _here(checkpoint: Path) -> dict[str, str] | None:
    try:
        found: dict[str, str] = json.loads((checkpoint / HERE_FILE).read_text())
        return found
    except FileNotFoundError:
        return None
    except ValueError:
        return {"place": "", "name": ""}
