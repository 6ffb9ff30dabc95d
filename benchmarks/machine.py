"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from benchmarks import provenance
from benchmarks.baselines.flink_join import FLINK_VERSION
from benchmarks.scale import SLOTS

PACKAGES = ("pyspark", "pyarrow", "numpy", "numba", "duckdb", "pandas")


def describe() -> dict[str, Any]:
    """Cores, model, memory and versions; no names and no paths of the machine."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "slots": SLOTS,
        "model": _model(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
        "java": _java(),
        "flink": FLINK_VERSION,
        **{package: metadata.version(package) for package in PACKAGES},
        "commit": provenance.commit(),
    }


def _model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _java() -> str:
    try:
        answer = subprocess.run(["java", "-version"], capture_output=True, text=True, timeout=30, check=False)
        return answer.stderr.split('"')[1]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return "unknown"
