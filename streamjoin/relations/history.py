"""What is known of a relation's versions beside the versions themselves, for people and for the next start.

    <folder>/<relation>/uses.jsonl   for each version that a batch has joined, what it had, and which batch was first
    <folder>/<relation>/look.json    how the last look for a new version ended, and how many have failed so far
    <folder>/<relation>/reading.json how far the version is that is being read; gone once it is whole
    <folder>/<relation>/asked        somebody wants it read anew; renamed by the job that does
    <folder>/<relation>/answering    the same while that is done, or where the job stopped meanwhile

None of it decides what a batch joins: that is logged with the batch's offsets.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from streamjoin.durable import put_durably
from streamjoin.errors import StateError
from streamjoin.relations.versions import Version, Versions

USES_KEPT = 1_000
"""Versions whose use is remembered: a job may run for years."""
READING_US_MAX = 300_000_000
"""What was told of a version that is being read longer ago is of somebody who died."""
_USES, _LOOK, _READING, _ASKED, _ANSWERING = "uses.jsonl", "look.json", "reading.json", "asked", "answering"


@dataclass(frozen=True, slots=True)
class Use:
    """A version that was joined.

    Args:
        batch: the first that joined it, and `used_us` when that was done.
        read_us, rows, bad, bytes: see `Version`.
    """

    version: int
    batch: int
    used_us: int
    read_us: int
    rows: int
    bad: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Look:
    """How often a relation was looked at for a new version while its job ran.

    Args:
        looked_us: when the last look ended; None before the first.
        refreshes: how many new versions were found.
        failures: how many looks found nothing that could be read.
        problem: why the last one did; None where it did not.
    """

    looked_us: int | None = None
    refreshes: int = 0
    failures: int = 0
    problem: str | None = None

    def found(self, now_us: int, *, new: bool) -> Look:
        """After a look that went well."""
        return Look(now_us, self.refreshes + new, self.failures)

    def failed(self, now_us: int, problem: str) -> Look:
        """After a look that did not."""
        return replace(self, looked_us=now_us, failures=self.failures + 1, problem=problem)


@dataclass(frozen=True, slots=True)
class Reading:
    """A version that is being read.

    Args:
        version: the number that it will have.
        rows: of the relation that were read by `at_us`.
    """

    version: int
    rows: int
    at_us: int


class History:
    """One relation's.

    Args:
        folder: of all relations of the job.
    """

    def __init__(self, folder: Path, relation: str) -> None:
        self.folder = folder / relation
        self.relation = relation

    def uses(self) -> list[Use]:
        """Of each version, oldest first; a batch that was repeated counts once. Unreadable lines are left out."""
        found: dict[int, Use] = {}
        for use in self._lines():
            found.setdefault(use.version, use)
        return [found[version] for version in sorted(found)]

    def _lines(self) -> Iterator[Use]:
        try:
            lines = (self.folder / _USES).read_text().splitlines()
        except FileNotFoundError:
            return
        for line in lines:
            try:
                yield Use(**json.loads(line))
            except (ValueError, TypeError):
                continue

    def used(self, version: Version, batch: int, now_us: int) -> None:
        """Note that a batch joined a version, if it is the first one; `uses` tells."""
        known = self.uses()
        if any(use.version == version.number for use in known):
            return
        use = Use(version.number, batch, now_us, version.read_us, version.rows, version.bad, version.bytes)
        lines = [json.dumps(asdict(one)) for one in [*known, use][-USES_KEPT:]]
        self._put(_USES, "".join(f"{line}\n" for line in lines))

    def _put(self, name: str, text: str) -> None:
        for left in self.folder.glob(f".{name}.*"):
            left.unlink()  # from a process that was killed; nobody else writes this file
        put_durably(self.folder / name, text.encode())

    def look(self) -> Look:
        """How the last look ended."""
        try:
            return Look(**json.loads((self.folder / _LOOK).read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return Look()

    def looked(self, look: Look) -> None:
        """Keep how a look ended."""
        self._put(_LOOK, json.dumps(asdict(look)))

    def reading(self, now_us: int) -> Reading | None:
        """The version that is being read just now."""
        try:
            found = Reading(**json.loads((self.folder / _READING).read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None
        return found if now_us - found.at_us < READING_US_MAX else None

    def reads(self, reading: Reading) -> None:
        """Tell how far a version is; nothing depends on it, so it need not last."""
        new = self.folder / f"{_READING}.new"
        new.write_text(json.dumps(asdict(reading)))
        os.replace(new, self.folder / _READING)

    def reads_nothing(self) -> None:
        """No version is being read any more."""
        (self.folder / _READING).unlink(missing_ok=True)

    def ask(self) -> None:
        """Have the job that runs read the relation anew.

        Raises:
            StateError: no job has ever read it here.
        """
        if not self.folder.is_dir():
            raise StateError(f"no job has read relation {self.relation} here; start one first")
        (self.folder / _ASKED).touch()

    def is_asked(self) -> bool:
        """Whether somebody wants it read anew. Says so once; a job that starts before `answered` is told again."""
        return self._renamed(_ASKED, _ANSWERING)

    def answered(self) -> None:
        """The read that was asked for has ended, well or badly."""
        (self.folder / _ANSWERING).unlink(missing_ok=True)

    def ask_again(self) -> None:
        """Ask again for a read that a stopped job did not finish."""
        self._renamed(_ANSWERING, _ASKED)

    def _renamed(self, name: str, to: str) -> bool:
        try:
            os.replace(self.folder / name, self.folder / to)
        except FileNotFoundError:
            return False
        return True


def versions_known(folder: Path, relation: str) -> list[dict[str, Any]]:
    """What is known of each version of a relation, newest first.

    Returns:
        `version`, `rows`, `bad`, `bytes`, when it was `read_us`, when and by which `batch` it was first `used_us` (both
        None where it was not yet), and its `state`: next, in use, kept for batches that may be repeated, or removed.
    """
    versions, uses = Versions(folder, relation), {use.version: use for use in History(folder, relation).uses()}
    there = versions.numbers()
    last = max(uses, default=0)
    found: list[dict[str, Any]] = []
    for number in sorted({*there, *uses}, reverse=True):
        use = uses.get(number)
        if use is not None:
            told = asdict(use)
        else:
            try:
                version = versions.load(number)
            except StateError:
                if number not in versions.numbers():  # the job has removed it meanwhile
                    continue
                raise
            told = {"version": number, "batch": None, "used_us": None, "read_us": version.read_us,
                    "rows": version.rows, "bad": version.bad, "bytes": version.bytes}  # fmt: skip
        state = _state(number, there, last)
        found.append({**told, "state": state})
    return found


def _state(number: int, there: Sequence[int], last_used: int) -> str:
    if number == last_used:
        return "in use"
    if number not in there:
        return "removed"
    return "next" if number > last_used and number == there[-1] else "kept"


def relations_in(folder: Path) -> list[str]:
    """The relations that a job keeps versions of, by name."""
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
