"""What a join file may not ask of an operator that has no units of StreamJoin's, as Spark's own join has none."""

from __future__ import annotations

from streamjoin.errors import UnsupportedError
from streamjoin.operators import registry
from streamjoin.operators.kind import Joins, OperatorKind
from streamjoin.plan.stages import Plan
from streamjoin.spec.joinfile import JoinFile
from streamjoin.spec.shed import SHEDS_NOTHING, shed_rules

WAITS_FOR_EVER = (
    "Spark's own join waits for the watermarks of both streams, however long one is silent; leave idle out, or choose "
    "another operator"
)


def check_without_units(found: OperatorKind, file: JoinFile, plan: Plan) -> None:
    """Refuse what needs units.

    Raises:
        InputError: a knob is wrong.
        UnsupportedError: the plan, or a stream's setting, is not for it.
    """
    registry.settings_of(found, file.operator.knobs)
    registry.check(found.name, plan)
    for side in shed_rules(file, plan):
        raise UnsupportedError(SHEDS_NOTHING, field=f"streams.{plan.streams[side].name}.shed")
    for stream in plan.streams:
        if stream.idle_us is not None and found.joins is not Joins.RELATION:
            raise UnsupportedError(WAITS_FOR_EVER, field=f"streams.{stream.name}.idle")
