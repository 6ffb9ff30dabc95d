"""meshjoin, as the registry has it."""

from __future__ import annotations

from streamjoin.operators.kind import Joins, OperatorKind
from streamjoin.operators.meshjoin.operator import MeshJoin
from streamjoin.operators.meshjoin.settings import ScanSettings, refuses, scan_of
from streamjoin.plan.sharing import Pairs


def build(settings: ScanSettings, plan: Pairs, slots: int) -> MeshJoin:
    """The units of a stage."""
    return MeshJoin(settings.units or slots, scan_of(settings))


MESHJOIN = OperatorKind(
    "meshjoin", "MESHJOIN, the baseline of SSBJ (DAPD 2019)", ScanSettings, build, refuses, joins=Joins.RELATION
)
