"""asof, as the registry has it: its settings, and how a plan gets one."""

from __future__ import annotations

from typing import Annotated

from streamjoin.operators.asof.asof import AsOfJoin
from streamjoin.operators.kind import Joins, OperatorKind
from streamjoin.plan.sharing import Pairs
from streamjoin.plan.stages import Plan, asof_stages
from streamjoin.settings.setting import Settings, setting
from streamjoin.settings.values import Units


class AsOfSettings(Settings):
    """How many units there are."""

    units: Annotated[
        Units | None,
        setting("units that share the keys", unset="one per slot", label="Units", counts_units=True, compared=True),
    ] = None


def build(settings: AsOfSettings, plan: Pairs, slots: int) -> AsOfJoin:
    """The units of a plan."""
    return AsOfJoin(settings.units or slots)


def _refuses(plan: Plan) -> str | None:
    return None if asof_stages(plan) else "it runs ASOF JOIN only; choose another operator, or leave operator.name out"


ASOF = OperatorKind("asof", "as-of join, by versions of each key", AsOfSettings, build, _refuses, joins=Joins.AS_OF)
