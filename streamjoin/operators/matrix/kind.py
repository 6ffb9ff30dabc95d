"""matrix, as the registry has it: its settings, and how a plan gets one."""

from __future__ import annotations

import math
from typing import Annotated

from streamjoin.operators import costs
from streamjoin.operators.costs import Prediction, StreamStatistics, UnitCosts
from streamjoin.operators.costs.slots import matrix_layout
from streamjoin.operators.kind import OperatorKind
from streamjoin.operators.matrix import Matrix
from streamjoin.plan.sharing import Pairs
from streamjoin.settings.setting import Settings, setting
from streamjoin.settings.values import Units

_SQUARE = "the root of twice the slots, rounded down"


class MatrixSettings(Settings):
    """How many cells there are."""

    rows: Annotated[
        Units | None,
        setting("partitions of the first stream", unset=_SQUARE, label="Rows", counts_units=True, compared=True),
    ] = None
    columns: Annotated[
        Units | None,
        setting("partitions of the second stream", unset=_SQUARE, label="Columns", counts_units=True, compared=True),
    ] = None


def build(settings: MatrixSettings, plan: Pairs, slots: int) -> Matrix:
    """The matrix of a plan."""
    # As many cells as the biclique has units, so that the two compare.
    side = max(math.isqrt(2 * slots), 1)
    return Matrix(settings.rows or side, settings.columns or side)


def _predict(
    operator: Matrix, r: StreamStatistics, s: StreamStatistics, delay_s: float, unit_costs: UnitCosts | None
) -> Prediction:
    return costs.matrix(r, s, operator.rows, operator.columns)


MATRIX = OperatorKind(
    "matrix", "join-matrix, BiStream's baseline", MatrixSettings, build, predict=_predict,
    layout=lambda operator: matrix_layout,
)  # fmt: skip
