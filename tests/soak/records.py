"""What parts of the soak have passed, for which state of the product: one file for each in `docs/soak/HASH`."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from benchmarks.scale import ROOT
from streamjoin.durable import write_durably

from .queue import GOALS, Part

PRODUCT: Final = ("streamjoin", "backend", "worker", "migrations", "simulate", "requirements.lock")
"""What the soak says something about: a change elsewhere leaves its records as they are."""
SHOWN: Final = 12
SAID_LINES: Final = 15


class ChangedError(Exception):
    """The product differs from its commit, so that nothing could be said about a commit."""


@dataclass(frozen=True)
class Record:
    """A part that passed.

    Args:
        product: the hash of the product's folders.
        begun: ISO 8601 with its zone.
        said: the last lines that it printed.
    """

    part: str
    what: str
    amount: int
    product: str
    commit: str
    begun: str
    seconds: float
    said: list[str]


def product(root: Path = ROOT) -> str:
    """The hash of the product's folders as the commit that is checked out has them.

    Raises:
        ChangedError: a file there differs from the commit, or there is no commit.
    """
    changed = _git(root, "status", "--porcelain", "--untracked-files=all", "--", *PRODUCT)
    if changed:
        files = [line[3:] for line in changed.splitlines()]
        raise ChangedError(f"{', '.join(files[:5])} differ from the commit; commit that, or put it away")
    trees = _git(root, "ls-tree", "HEAD", "--", *PRODUCT)
    if not trees:
        raise ChangedError("this is no git checkout with the product in it")
    return hashlib.sha256(trees.encode()).hexdigest()[:SHOWN]


def commit(root: Path = ROOT) -> str:
    """The commit that is checked out."""
    return _git(root, "rev-parse", f"--short={SHOWN}", "HEAD").strip()


def keep(record: Record, root: Path = ROOT) -> Path:
    """Write a record down; its file."""
    path = _folder(root, record.product) / f"{record.part}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_durably(path, (json.dumps(asdict(record), indent=1) + "\n").encode())
    return path


def passed(product: str, root: Path = ROOT) -> dict[str, Record]:
    """The parts that have passed for one state of the product, by name."""
    files = sorted(_folder(root, product).glob("*.json"))
    return {path.stem: Record(**json.loads(path.read_text())) for path in files}


def sums(records: Iterable[Record]) -> Mapping[str, int]:
    """What parts add up to, for each goal."""
    found = Counter[str]()
    for record in records:
        found[record.what] += record.amount
    return {what: found[what] for what in GOALS}


def left(parts: Iterable[Part], done: Mapping[str, Record]) -> list[Part]:
    """The parts that have not passed, in order."""
    return [part for part in parts if part.name not in done]


def _folder(root: Path, product: str) -> Path:
    return root / "docs" / "soak" / product


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ChangedError(f"git {words[0]} fails: {done.stderr.strip()[:200]}")
    return done.stdout
