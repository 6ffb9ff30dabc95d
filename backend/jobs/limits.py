"""How much of the machine one job may ask for, as the platform's owner set it."""

from __future__ import annotations

from backend.problems import Place, Problem
from backend.settings import Settings


def check_limits(settings: Settings, slots: int, memory_mib: int) -> None:
    """Refuse a job that asks for too much.

    Args:
        slots, memory_mib: of its driver.
    Raises:
        Problem: names the field, and the setting.
    """
    asked = (
        ("slots", slots, settings.job_slots_max, "STREAMJOIN_JOB_SLOTS_MAX", ""),
        ("driver_memory", memory_mib, settings.driver_memory_mib_max, "STREAMJOIN_DRIVER_MEMORY_MIB_MAX", " MiB"),
    )
    for field, value, most, setting, unit in asked:
        if value > most:
            detail = (
                f"{value:,}{unit} is more than a job may have here, {most:,}{unit}; the platform's owner set {setting}"
            )
            raise Problem("invalid.over_limit", f"run.{field}: {detail}", params={"limit": most},
                          errors=[Place(pointer=f"/run/{field}", detail=detail)])  # fmt: skip
