"""What a job asks of its driver, with the platform's part in it: the section `run` of its join file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from backend.settings import Settings, cluster_of
from streamjoin.spec.cluster import ExecutorsFile, slots_of


def run_of(settings: Settings, run: Mapping[str, Any]) -> dict[str, Any]:
    """The section `run` of a join file, but for its checkpoint, of what a job says there."""
    cluster = cluster_of(settings)
    jars = {"spark.jars": settings.spark_jars} if settings.spark_jars else {}
    spark = {**cluster.pop("spark", {}), **jars}
    asked = {name: value for name, value in run.items() if name != "until_end"}
    return {
        "slots": _slots(settings, cluster.get("executors")),
        "driver_memory": settings.driver_memory_mib,
        **asked,
        **cluster,
        **({"spark": spark} if spark else {}),
    }


def slots_of_run(run: Mapping[str, Any]) -> int:
    """What `JoinFile.slots` says of such a section; it may say null."""
    executors = run.get("executors")
    of_executors = slots_of(ExecutorsFile.model_validate(executors)) if executors is not None else None
    return run["slots"] or of_executors or len(os.sched_getaffinity(0))


def _slots(settings: Settings, executors: Mapping[str, Any] | None) -> int:
    """Of a job that names none: all that its executors work on, as in a join file, and no more than a job may have."""
    most = slots_of(ExecutorsFile.model_validate(executors)) if executors is not None else None
    return settings.job_slots if most is None else min(most, settings.job_slots_max)
