"""The code of other commits, each in a worktree of its own that is there as long as it is needed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.scale import ROOT


class NoCommitError(Exception):
    """The repository does not have it."""


def resolve(commit: str, root: Path = ROOT) -> str:
    """The full id of a commit that is given by its id, a branch, a tag.

    Raises:
        NoCommitError: there is none.
    """
    words = ["git", "rev-parse", "--quiet", "--verify", "--end-of-options", f"{commit}^{{commit}}"]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoCommitError(f"there is no commit {commit} here; git log has those that there are")
    return done.stdout.strip()


@contextmanager
def checkout(commit: str | None, root: Path = ROOT) -> Iterator[Path]:
    """The folder with the code of a commit, removed at the end; `root` itself if none is named.

    Raises:
        NoCommitError: there is no such commit.
    """
    if commit is None:
        yield root
        return
    found = resolve(commit, root)
    with tempfile.TemporaryDirectory(prefix="streamjoin-checkout-") as place:
        theirs = Path(place) / "code"
        git = ["git", "-C", str(root), "worktree"]
        try:
            # A session of its own: Ctrl-C is for us, who then remove what git has made so far.
            subprocess.run([*git, "add", "--quiet", "--detach", str(theirs), found], check=True, start_new_session=True)
            yield theirs
        finally:
            # Twice --force: one that git was still making is locked.
            remove = [*git, "remove", "--force", "--force", str(theirs)]
            if subprocess.run(remove, check=False, capture_output=True, start_new_session=True).returncode:
                shutil.rmtree(theirs, ignore_errors=True)
                subprocess.run(remove, check=False, capture_output=True, start_new_session=True)
