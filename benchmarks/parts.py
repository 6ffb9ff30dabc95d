"""The parts, in the order they run: short ones first, so that something wrong with the machine shows soon."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from benchmarks import band, equi_large, equi_small, index, kafka_json, memory, operators, startup, stores

PARTS: Mapping[str, ModuleType] = {
    "index": index,
    "startup": startup,
    "equi_large": equi_large,
    "equi_small": equi_small,
    "band": band,
    "kafka_json": kafka_json,
    "operators": operators,
    "stores": stores,
    "memory": memory,
}
"""Name -> module with `run(scale)` and `EXPECTED_S`, seconds on a quiet machine of two cores."""
