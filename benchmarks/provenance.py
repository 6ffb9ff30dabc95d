"""Where figures come from: when they were measured, and at which commit."""

from __future__ import annotations

import subprocess
from datetime import datetime
from pathlib import Path

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


def said(begun: str | None, measured: str | None) -> str:
    """When and at which commit something was measured, as a sentence; also that nobody knows.

    Args:
        begun: ISO 8601 with its zone.
        measured: as `commit` gives it.
    """
    if begun is None and measured is None:
        return "Measured before parts said when and at which commit."
    when = (
        "on a day that was not written down" if begun is None else f"{datetime.fromisoformat(begun):%Y-%m-%d %H:%M %Z}"
    )
    if not measured:
        return f"Measured {when}, at a commit that was not written down."
    dirty = ", with changes that were not committed" if measured.endswith(DIRTY) else ""
    return f"Measured {when} at commit {measured.removesuffix(DIRTY)}{dirty}."


def _git(root: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None
