"""handshake, as the registry has it: its settings, and how a plan gets one."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from streamjoin.errors import UnsupportedError
from streamjoin.operators.costs import Prediction, StreamStatistics, UnitCosts
from streamjoin.operators.costs.handshake import handshake
from streamjoin.operators.handshake.chain import Handshake
from streamjoin.operators.kind import OperatorKind
from streamjoin.plan.sharing import Pairs
from streamjoin.plan.stages import Plan
from streamjoin.plan.window import FullHistory
from streamjoin.settings.setting import Settings, setting
from streamjoin.settings.values import Flag, Units, Whole

AUTO_BLOCK = "auto"
_TUPLES_MAX = 1 << 40
_BLOCK = Whole(1, _TUPLES_MAX)


def _block(value: object) -> object:
    return None if value == AUTO_BLOCK else _BLOCK.checked(value)


Block = Annotated[
    int | None,
    BeforeValidator(_block),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1, "maximum": _TUPLES_MAX}, {"const": AUTO_BLOCK}]}),
]


class HandshakeSettings(Settings):
    """The line of workers, and when tuples move along it."""

    workers: Annotated[
        Units | None,
        setting(
            "workers in the line (m)", unset="one per slot", label="Workers",
            keeps_state=True, counts_units=True, compared=True,
        ),
    ] = None  # fmt: skip
    block: Annotated[
        Block,
        setting(
            "tuples of a block, which are sent on together",
            unset="auto: half of a worker's fair share",
            keeps_state=True,
        ),
    ] = None
    balance: Annotated[
        Flag,
        setting(
            "false: each worker keeps tuples of a fixed age, an equal part of the window; needs a window",
            keeps_state=True,
        ),
    ] = True
    threshold: Annotated[
        Annotated[int, Whole(0, _TUPLES_MAX)],
        setting("how many tuples more than its successor a worker must have before it sends any on", keeps_state=True),
    ] = 0


def build(settings: HandshakeSettings, plan: Pairs, slots: int) -> Handshake:
    """The chain of a plan.

    Raises:
        UnsupportedError: fixed shares without a window.
    """
    if not settings.balance and isinstance(plan.window, FullHistory):
        raise UnsupportedError(
            "fixed shares are shares of the window, and this query has none; leave balance on, or add WITHIN",
            field="operator.balance",
        )
    return Handshake(settings.workers or slots, settings.block, settings.balance, settings.threshold)


def _predict(
    operator: Handshake, r: StreamStatistics, s: StreamStatistics, delay_s: float, unit_costs: UnitCosts | None
) -> Prediction:
    found = handshake(r, s, operator.workers)
    sets_block = operator.balance and operator.block is None
    return found if sets_block else replace(found, block=None)


def _refuses(plan: Plan) -> str | None:
    kind = next((stage.plan.queries[0].kind for stage in plan.stages if stage.plan.queries[0].kind.decided), None)
    if kind is None:
        return None
    return (
        f"{kind} JOIN needs one unit that knows of a row whether it was matched, and in a chain rows move from worker "
        "to worker; choose biclique, matrix or splitjoin"
    )


HANDSHAKE = OperatorKind("handshake", "handshake chain, ESJ", HandshakeSettings, build, _refuses, _predict)
