"""The data folder of `streamjoin up`: kept out of git, and known again when the next start is in another folder.

Unless it is set, the folder is in the one that `up` is started in. A start elsewhere would be an empty platform without
a word, so the folder used last is written down in the user's state directory.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from backend.settings import Settings, is_given

CATALOG: Final = "catalog.db"
"""What shows that a folder has been in use."""


def make(data: Path) -> None:
    """Make the folder unless it is there; git ignores all that is in a new one."""
    if data.exists():
        return
    data.mkdir(parents=True)
    (data / ".gitignore").write_text("*\n")


def remember(settings: Settings) -> None:
    """Write down that this folder is in use, where it was not set; without a home, nobody is told later."""
    if is_given("data"):
        return
    record = _record()
    with suppress(OSError, RuntimeError, UnicodeEncodeError):
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(str(settings.data.absolute()), encoding="utf-8")


def other(settings: Settings) -> Path | None:
    """The data folder used last, if it is another one that is still there, and none was set."""
    if is_given("data"):
        return None
    with suppress(OSError, RuntimeError, ValueError):
        last = Path(_record().read_text(encoding="utf-8"))
        if last.is_absolute() and (last / CATALOG).exists() and not _is_same(last, settings.data):
            return last
    return None


def other_text(last: Path) -> str:
    """What people are told of it."""
    return f"jobs and results of an earlier start are in {last}; to go on with them, set STREAMJOIN_DATA={last}"


def _is_same(one: Path, two: Path) -> bool:
    return one.resolve() == two.resolve()


def _record() -> Path:
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (state if state.is_absolute() else Path.home() / ".local" / "state") / "streamjoin" / "data-folder"
