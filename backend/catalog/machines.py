"""When a machine takes jobs, by what its worker said last, and what tells data folders of machines apart."""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Final

from backend.catalog.models import Machine

IDENTITY: Final = "folder-id"
SILENT_S: Final = 12.0
"""So long after its last word a machine gets no more jobs; shorter than a lease of ten seconds and what follows."""


def takes_jobs(machine: Machine, at_us: int) -> bool:
    """Whether it gets new ones then; none while its clock is as far ahead, as nobody could tell when it is gone."""
    return abs(at_us - machine.seen_at_us) <= round(SILENT_S * 1e6)


def folder_id(data: Path) -> str:
    """What tells this data folder from those of other machines; made when it is first asked for."""
    path = data / IDENTITY
    with suppress(FileExistsError):
        data.mkdir(parents=True, exist_ok=True)
        own = path.with_name(f"{IDENTITY}.{uuid.uuid4().hex}")
        own.write_text(uuid.uuid4().hex)
        try:
            os.link(own, path)  # of several that do it at once one is first, and none reads half of it
        except PermissionError:  # a file system without hard links
            if not path.exists():
                own.replace(path)
        finally:
            own.unlink(missing_ok=True)
    return path.read_text()
