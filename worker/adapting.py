"""Units that come and go, in the reports of a job: of a batch, and of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

OF_RINGS = ("best", "model")
"""What a ring tells when it looks: N*, and what else the formulas say and were given."""


def told_now(units: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Which units there are of joins whose units come and go, and what was decided."""
    told = [(unit.get("stage", 0) + 1, unit["adapting"]) for unit in units if unit.get("adapting")]
    if not told:
        return {}
    return {
        "adaptive": [
            {
                "stage": stage,
                **{name: one[name] for name in ("plan", "units", "draining")},
                "loads": _loads(one),
                **{name: one[name] for name in OF_RINGS if one.get(name) is not None},
            }
            for stage, one in told
        ],
        "decisions": [{"stage": stage, **decision} for stage, one in told for decision in one["decisions"]],
    }


def merged(bodies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The units of the last report, with the loads and N* that were told last; all decisions."""
    if not (told := [body for body in bodies if "adaptive" in body]):
        return {}
    now = []
    for stage in told[-1]["adaptive"]:  # whose order may be another in each batch
        same = (one for body in reversed(told) for one in body["adaptive"] if one["stage"] == stage["stage"])
        asked: Mapping[str, Any] = next((one for one in same if one["loads"]), {"loads": {}})
        now.append({**stage, **{name: asked[name] for name in ("loads", *OF_RINGS) if name in asked}})
    return {"adaptive": now, "decisions": [decision for body in told for decision in body["decisions"]]}


def _loads(told: Mapping[str, Any]) -> dict[str, float]:
    """What share of its capacity each subgroup stored, if the batch asked."""
    return {name: round(asked["load"], 4) for name, asked in told["round"].items()}
