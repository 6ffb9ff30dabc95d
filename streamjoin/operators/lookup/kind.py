"""lookup, as the registry has it: its settings, and how a plan gets one."""

from __future__ import annotations

from typing import Annotated

from streamjoin.operators.kind import Joins, OperatorKind
from streamjoin.operators.lookup.operator import Lookup
from streamjoin.plan.sharing import Pairs
from streamjoin.plan.stages import Plan, joins_relation
from streamjoin.settings.setting import Settings, setting
from streamjoin.settings.values import Units


class LookupSettings(Settings):
    """How many units there are."""

    units: Annotated[
        Units | None,
        setting(
            "units that look rows up",
            unset="one per slot",
            label="Units",
            keeps_state=True,
            counts_units=True,
            compared=True,
        ),
    ] = None


def build(settings: LookupSettings, plan: Pairs, slots: int) -> Lookup:
    """The lookups of a stage."""
    return Lookup(settings.units or slots)


def _refuses(plan: Plan) -> str | None:
    return (
        None
        if any(map(joins_relation, plan.stages))
        else "lookup joins a stream with a relation, and this query reads none"
    )


LOOKUP = OperatorKind(
    "lookup", "a relation, sorted once and looked up", LookupSettings, build, _refuses, joins=Joins.RELATION
)
