"""What the streams of a join shed by under overload, and which joins cannot shed."""

from __future__ import annotations

from collections.abc import Sequence

from streamjoin.engine.operator import Operator
from streamjoin.errors import UnsupportedError
from streamjoin.intake.shedding import Rules
from streamjoin.plan.stages import Plan, asof_stages, entry_of, joins_relation
from streamjoin.plan.window import S
from streamjoin.spec.joinfile import JoinFile

SHEDS_NOTHING = "Spark's own join drops no tuples under overload; leave shed out, or choose another operator"


def shed_rules(file: JoinFile, plan: Plan) -> Rules:
    """What the streams of a join shed by; a stream that says nothing sheds nothing."""
    given = {number: file.streams[stream.name].shed for number, stream in enumerate(plan.streams)}
    for stage in asof_stages(plan):
        if (read := stage.inputs[S]) in given and given[read] is not None:
            raise UnsupportedError(
                f"with shed, a row of {stage.asof} could get an earlier row because the latest was dropped; leave shed "
                "out",
                field=f"streams.{stage.plan.streams[S].name}.shed",
            )
    rules = {number: shed.rule() for number, shed in given.items() if shed is not None}
    kinds = [query.kind for stage in plan.stages for query in stage.plan.queries]
    if rules and (kind := next((kind for kind in kinds if kind.preserved), None)):
        raise UnsupportedError(
            f"with shed, a row of {kind} JOIN could leave as unmatched because its partner was dropped; leave shed out",
            field=f"streams.{plan.streams[min(rules)].name}.shed",
        )
    return rules


def check_sheds(file: JoinFile, plan: Plan, operators: Sequence[Operator]) -> None:
    """Refuse a rule that would never shed: load is the stored tuples, and some operators store none.

    Args:
        operators: of each stage.
    Raises:
        UnsupportedError: names the stream.
    """
    for number in shed_rules(file, plan):
        stage, side = entry_of(plan, number)
        operator = operators[stage.number]
        if joins_relation(stage) and not operator.capabilities.reads_parts:
            name = stage.plan.streams[side].name
            raise UnsupportedError(
                f"{operator.name} stores no rows of {name}, so there is no load by which to shed; leave shed out, or "
                "give operator.memory, with which rows wait for the relation and are shed",
                field=f"streams.{name}.shed",
            )
