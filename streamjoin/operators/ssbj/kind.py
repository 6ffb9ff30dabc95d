"""ssbj, as the registry has it: its settings, and how a plan gets one."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from streamjoin.operators.kind import Joins, OperatorKind
from streamjoin.operators.meshjoin.settings import ScanSettings, refuses, scan_of
from streamjoin.operators.ssbj.moving import Inequality, Rule
from streamjoin.operators.ssbj.operator import BalancedJoin
from streamjoin.plan.sharing import Pairs
from streamjoin.settings.setting import setting
from streamjoin.settings.values import Choice, Whole

ROUNDS_MAX = 1 << 20


class BalancedSettings(ScanSettings):
    """How a relation is read, and what of it is cached."""

    switching_factor: Annotated[
        Annotated[float, Field(ge=0.01, le=1000, strict=True)],
        setting("how many times as much memory the other place must take before a value moves (s_f)", keeps_state=True),
    ] = 1.0
    eviction_period: Annotated[
        Annotated[int, Whole(1, ROUNDS_MAX)],
        setting("rounds through the relation until cached values are looked at again", keeps_state=True),
    ] = 10
    inequality: Annotated[
        Annotated[Inequality, Choice("inequality")],
        setting("whether a cached value's own entry counts as memory, or not, as in the paper", keeps_state=True),
    ] = Inequality.BYTES


def build(settings: BalancedSettings, plan: Pairs, slots: int) -> BalancedJoin:
    """The units of a stage."""
    rule = Rule(settings.switching_factor, settings.eviction_period, settings.inequality)
    return BalancedJoin(settings.units or slots, scan_of(settings), rule=rule)


SSBJ = OperatorKind(
    "ssbj", "semi-stream balanced join, SSBJ (DAPD 2019)", BalancedSettings, build, refuses, joins=Joins.RELATION
)
