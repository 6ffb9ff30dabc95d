"""How much a folder that people fill may hold, so that they do not fill the disk that everything is on."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Final

from backend.problems import Problem

LOOK_S: Final = 60.0
"""So often it is looked how much there really is: other processes write there, and things are removed."""


class Space:
    """What one process knows of a folder. Safe for threads.

    Args:
        bytes_max: of all files in it.
        setting: by which the platform's owner says so.
    """

    def __init__(self, folder: Path, bytes_max: int, setting: str) -> None:
        self.folder = folder
        self.bytes_max = bytes_max
        self.setting = setting
        self._bytes = 0
        self._looked_s: float | None = None
        self._lock = threading.Lock()

    def take(self, size: int) -> None:
        """Before so many bytes are written.

        Raises:
            Problem: there is no room for them.
        Cost: every `LOOK_S`, and before it is said that there is no room, a look at each file.
        """
        with self._lock:
            now_s = time.monotonic()
            if self._looked_s is None or now_s - self._looked_s >= LOOK_S or self._bytes + size > self.bytes_max:
                self._bytes = _bytes_in(self.folder)
                self._looked_s = time.monotonic()
            if self._bytes + size > self.bytes_max:
                raise Problem(
                    "conflict.space_used_up",
                    f"what people sent takes {self._bytes:,} bytes, and {self.bytes_max:,} is the limit; remove what "
                    f"is not needed, or ask the platform's owner, who set {self.setting}",
                    params={"limit": self.bytes_max},
                )
            self._bytes += size


def _bytes_in(folder: Path) -> int:
    found = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                found += os.lstat(os.path.join(place, name)).st_size
            except FileNotFoundError:  # it went meanwhile
                continue
    return found
