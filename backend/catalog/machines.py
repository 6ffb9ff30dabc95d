"""When a machine takes jobs, by what its worker said last."""

from __future__ import annotations

from typing import Final

from backend.catalog.models import Machine

SILENT_S: Final = 12.0
"""So long after its last word a machine gets no more jobs; shorter than a lease of ten seconds and what follows."""


def takes_jobs(machine: Machine, at_us: int) -> bool:
    """Whether it gets new ones then; none while its clock is as far ahead, as nobody could tell when it is gone."""
    return abs(at_us - machine.seen_at_us) <= round(SILENT_S * 1e6)
