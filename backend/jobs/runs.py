"""What a job asks of its driver, with the platform's part in it: the section `run` of its join file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backend.settings import Settings


def run_of(settings: Settings, run: Mapping[str, Any]) -> dict[str, Any]:
    """The section `run` of a join file, but for its checkpoint, of what a job says there."""
    asked = {name: value for name, value in run.items() if name != "until_end"}
    return {
        "slots": settings.job_slots,
        "driver_memory": settings.driver_memory_mib,
        **asked,
        **({"spark": {"spark.jars": settings.spark_jars}} if settings.spark_jars else {}),
    }
