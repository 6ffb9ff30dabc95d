"""The parts, in the order they run: short ones first, so that something wrong with the machine shows soon."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from benchmarks import (
    aggregate,
    asof,
    band,
    cluster,
    elastic,
    equi_large,
    equi_small,
    group_questions,
    index,
    kafka_json,
    memory,
    operators,
    outer,
    refresh,
    scaling,
    startup,
    stores,
    three_streams,
)

PARTS: Mapping[str, ModuleType] = {
    "index": index,
    "startup": startup,
    "elastic": elastic,
    "equi_large": equi_large,
    "equi_small": equi_small,
    "outer": outer,
    "aggregate": aggregate,
    "asof": asof,
    "three_streams": three_streams,
    "band": band,
    "kafka_json": kafka_json,
    "operators": operators,
    "stores": stores,
    "group_questions": group_questions,
    "scale": scaling,
    "cluster": cluster,
    "refresh": refresh,
    "memory": memory,
}
"""Name -> module with `run(scale)` and `EXPECTED_S`, seconds on a quiet machine of two cores."""
