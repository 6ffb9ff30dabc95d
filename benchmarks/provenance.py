"""Where figures come from: when they were measured, and at which commit."""

from __future__ import annotations

import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.scale import ROOT

PAGES = ("docs/benchmarks.json", "docs/benchmarks.md", "docs/benchmarks", "docs/evaluation")
"""What the benchmarks write themselves: the part before must not make the tree dirty for the next one."""
DIRTY = "-dirty"
NAMED = 5


class DirtyError(Exception):
    """What would be measured is no commit."""


def commit(root: Path = ROOT) -> str:
    """The commit that is checked out, with "-dirty" if anything differs from it; empty where there is none."""
    head = _git(root, "rev-parse", "--short=12", "HEAD")
    if head is None:
        return ""
    return head.strip() + (DIRTY if changed(root) else "")


def changed(root: Path = ROOT) -> list[str]:
    """Files that differ from the commit or are not in it; neither ignored ones nor the pages of figures."""
    status = _git(root, "status", "--porcelain", "--untracked-files=all", "--", ".", *(f":!{page}" for page in PAGES))
    return ["git status fails"] if status is None else [line[3:] for line in status.splitlines()]


def require_clean(root: Path = ROOT) -> str:
    """The commit that is checked out.

    Raises:
        DirtyError: there is none, or files differ from it; names some of them.
    """
    found = commit(root)
    if not found:
        raise DirtyError("this is not a git checkout, so figures could not say at which commit they were measured")
    if found.endswith(DIRTY):
        files = changed(root)
        named = ", ".join(files[:NAMED]) + (f" and {len(files) - NAMED} more" if len(files) > NAMED else "")
        raise DirtyError(f"the tree is not commit {found.removesuffix(DIRTY)}: {named}; commit, stash or remove that")
    return found


def is_gone(measured: str, root: Path = ROOT) -> bool | None:
    """Whether a commit, as `commit` gives it, is not in the history of the one that is checked out.

    None where that cannot be told: of no commit, without git, and in a clone that has only the newest commits.
    """
    if not measured or (_git(root, "rev-parse", "--is-shallow-repository") or "true").strip() == "true":
        return None
    return _git(root, "merge-base", "--is-ancestor", measured.removesuffix(DIRTY), "HEAD") is None


def note_gone(found: dict[str, Any], root: Path = ROOT) -> None:
    """Note beside its `commit` that it is gone: what a page says must not hang on the clone that writes it.

    Where nothing can be told, a note stays.
    """
    if (gone := is_gone(found.get("commit") or "", root)) is not None:
        found.pop("commit_gone", None)
        found |= {"commit_gone": True} if gone else {}


def said(begun: str | None, measured: str | None, *, gone: bool = False) -> str:
    """When and at which commit something was measured, as a sentence; also that nobody knows.

    Args:
        begun: ISO 8601 with its zone.
        measured: as `commit` gives it.
        gone: see `is_gone`.
    """
    if begun is None and measured is None:
        return "Measured before parts said when and at which commit."
    when = (
        "on a day that was not written down" if begun is None else f"{datetime.fromisoformat(begun):%Y-%m-%d %H:%M %Z}"
    )
    if not measured:
        return f"Measured {when}, at a commit that was not written down."
    dirty = ", with changes that were not committed" if measured.endswith(DIRTY) else ""
    lost = " (not in this repository's history any more)" if gone else ""
    return f"Measured {when} at commit {measured.removesuffix(DIRTY)}{lost}{dirty}."


def _git(root: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None
