"""Starts that change the state, killed at every rename and followed by another."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamjoin.state import rewrite
from streamjoin.state.store import StateStore

from .local import LocalRun


class Killed(Exception):
    """The process ends here."""


def killed_at_every_rename(
    begun: Callable[[Path], LocalRun],
    change: Callable[[LocalRun], None],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[int, list[int]]:
    """Check that what comes after a kill is what comes without one.

    Args:
        begun: a run in a folder of its own, as it is before the change.
        change: what the start does; nothing else renames a file.
    Returns:
        (how many starts there were, after how many renames the change had to be begun again).
    """
    real = os.replace
    change(begun(folder / "whole"))
    want = contents(folder / "whole")
    again: list[int] = []
    moved, killed = 0, True
    while killed:
        place = folder / str(moved)
        run = begun(place)
        left = [moved]

        def stops(source: Any, target: Any, left: list[int] = left) -> None:
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            real(source, target)

        with monkeypatch.context() as patched:
            patched.setattr(os, "replace", stops)
            try:
                change(run)
                killed = False
            except Killed:
                pass
        if killed:
            store = StateStore(place, sync=False)
            if rewrite.complete(store) is None:
                again.append(moved)
                store.sweep()
                change(run)
            rewrite.forget(store)
            store.sweep()
        assert contents(place) == want
        moved += 1
    return moved, again


def contents(folder: Path) -> dict[str, str]:
    """The files of a state directory, by what is in them."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*.*")
    }
