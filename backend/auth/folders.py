"""Which files and folders of this machine may be read.

    allowed_paths   named by the platform's owner: all in them
    own_paths       of whoever started `streamjoin up`: all in them but what is hidden, such as ~/.ssh
    the data folder never; rows that were posted are read by their own stream, see `hosts.check_place`

Where one lies in another, the innermost decides: a data folder in the home folder stays closed, and a folder inside of
it that is named in `allowed_paths` is open.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from backend.settings import Settings

SETTING: Final = "STREAMJOIN_ALLOWED_PATHS"
_NAMED_MAX = 5
"""So many allowed folders are named in a refusal."""


@dataclass(frozen=True, slots=True)
class Root:
    """A folder with a rule for what is in it.

    Args:
        path: absolute, without links.
        is_open: whether it may be read at all.
        with_hidden: also what is in it below a name that begins with a dot.
    """

    path: Path
    is_open: bool
    with_hidden: bool = True


class Folders:
    """The rules of a platform, as they are at this moment: links may lead elsewhere later.

    Cost: a look at each folder that the settings name.
    """

    def __init__(self, settings: Settings) -> None:
        data = settings.data
        own = [Root(_real(path), True, with_hidden=False) for path in settings.own_paths]
        named = [Root(_real(path), True) for path in settings.allowed_paths]
        # What people sent may be on another disk, by a link.
        sent = [Root(_real(data / folder), False) for folder in ("spool", "uploads")]
        # Of two rules for one folder the later counts.
        self._roots = {root.path: root for root in (*own, *sent, *named, Root(_real(data), False))}
        self.allowed = tuple(dict.fromkeys(
            root.path for root in (*named, *own) if self._roots[root.path].is_open and self.is_readable(root.path)
        ))  # fmt: skip
        """Those that people may choose from; the owner's own choice comes first."""

    def is_readable(self, real: Path) -> bool:
        """Whether what is at a path without links may be read."""
        return self.why_not(real) is None

    def why_not(self, real: Path) -> str | None:
        """Why it may not be read, as the end of a sentence about it; None if it may."""
        root = next((self._roots[path] for path in (real, *real.parents) if path in self._roots), None)
        if root is None:
            return f"is in none of the folders that may be read from: {self._named()}"
        if not root.is_open:
            return f"is in the platform's own data folder, which no stream reads; {SETTING} names other folders"
        if not root.with_hidden and any(part.startswith(".") for part in real.relative_to(root.path).parts):
            return f"is hidden, and of {root.path} only what is not hidden may be read; name its folder in {SETTING}"
        return None

    def _named(self) -> str:
        if not self.allowed:
            return f"no folder is allowed; the platform's owner names them in {SETTING}"
        more = len(self.allowed) - _NAMED_MAX
        listed = ", ".join(str(path) for path in self.allowed[:_NAMED_MAX])
        return f"{listed}{f' and {more} more' if more > 0 else ''}; the platform's owner names others in {SETTING}"


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # unlike resolve it takes links that lead in a circle as they are
