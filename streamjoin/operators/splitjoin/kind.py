"""splitjoin, as the registry has it: its settings, and how a plan gets one."""

from __future__ import annotations

from typing import Annotated

from streamjoin.operators.costs import Prediction, StreamStatistics, UnitCosts
from streamjoin.operators.costs.slots import splitjoin_layout
from streamjoin.operators.costs.splitjoin import splitjoin
from streamjoin.operators.kind import OperatorKind
from streamjoin.operators.splitjoin import SplitJoin
from streamjoin.plan.sharing import Pairs
from streamjoin.settings.setting import Settings, setting
from streamjoin.settings.values import Units, Whole

TURN_TUPLES_MAX = 1 << 20


class SplitJoinSettings(Settings):
    """How many cores there are, and how they take turns."""

    cores: Annotated[
        Units | None,
        setting(
            "join cores (k)", unset="one per slot", label="Cores", keeps_state=True, counts_units=True, compared=True
        ),
    ] = None
    turn_tuples: Annotated[
        Annotated[int, Whole(1, TURN_TUPLES_MAX)],
        setting("tuples of a stream that a core stores in a row before the next core's turn", keeps_state=True),
    ] = 1


def build(settings: SplitJoinSettings, plan: Pairs, slots: int) -> SplitJoin:
    """The cores of a plan."""
    return SplitJoin(settings.cores or slots, settings.turn_tuples)


def _predict(
    operator: SplitJoin, r: StreamStatistics, s: StreamStatistics, delay_s: float, unit_costs: UnitCosts | None
) -> Prediction:
    # One shuffle hands tuples to all cores, and one gathers results: trees as wide as there are cores.
    fan_out = max(operator.cores, 2)
    return splitjoin(r, s, operator.cores, fan_out, fan_out, unit_costs)


SPLITJOIN = OperatorKind(
    "splitjoin", "SplitJoin (USENIX ATC 2016)", SplitJoinSettings, build, predict=_predict,
    layout=lambda operator: splitjoin_layout,
)  # fmt: skip
