"""Ways in which a folder comes to be at another path."""

from __future__ import annotations

import shutil
from pathlib import Path

WAYS = ("moved", "copied", "linked")


def relocate(how: str, old: Path, new: Path) -> None:
    """Have what is in one folder in another one, by one of WAYS."""
    if how == "moved":
        old.rename(new)
    elif how == "copied":
        shutil.copytree(old, new)
    else:
        new.symlink_to(old)
