"""The checks of readers notice a wrong commit: each mutation makes them fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamjoin.errors import StateError
from streamjoin.results.stores.memory import MemoryStore

from .inside import Inside, Looked
from .job import CASES

pytestmark = pytest.mark.slow

CRASHES = (2, 6, 9, 11, 8)
PAUSES = (0, 1, 3, 5, 6)


def play(store: Looked, case: str, folder: Path) -> None:
    """A job whose drivers die and come too late at chosen changes.

    Raises:
        AssertionError: a promise was broken.
    """
    with Inside(store, case, folder) as inside:
        for crash, pause in zip(CRASHES, PAUSES, strict=True):
            inside.crash(crash)
            inside.pause(pause)
        inside.run_to_the_end()


@pytest.mark.parametrize("case", CASES)
def test_the_commit_as_it_is_passes(case: str, tmp_path: Path) -> None:
    play(Looked(), case, tmp_path)


class HeadFirst(Looked):
    """Blocks are written after the head that makes their snapshot visible."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[Any] = []

    def put_blocks(self, *arguments: Any) -> None:
        self.held.append(arguments)

    def swap_head(self, *arguments: Any) -> bool:
        done = super().swap_head(*arguments)
        held, self.held = self.held, []
        for blocks in held:
            super().put_blocks(*blocks)
        return done


class HeadBeforeManifests(Looked):
    """Manifests are written after the head that makes them visible."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[Any] = []

    def put_records(self, job: str, records: Any) -> None:
        if records[0][0] == "job":
            super().put_records(job, records)
        else:
            self.held.append((job, records))

    def swap_head(self, *arguments: Any) -> bool:
        done = super().swap_head(*arguments)
        held, self.held = self.held, []
        for records in held:
            super().put_records(*records)
        return done


class Unfenced(Looked):
    """Whoever wants to change the head may."""

    def swap_head(self, job: str, expected: bytes | None, new: bytes) -> bool:
        return super().swap_head(job, MemoryStore.head(self, job), new)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mutation", [HeadFirst, HeadBeforeManifests, Unfenced])
def test_a_wrong_commit_is_caught(mutation: type[Looked], case: str, tmp_path: Path) -> None:
    # A driver that is not fenced off is one that does not raise.
    with pytest.raises((AssertionError, StateError, pytest.fail.Exception)):
        play(mutation(), case, tmp_path)
