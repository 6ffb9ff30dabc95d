"""What a join file says of how a relation is read again and again, and which plans have one that can be."""

from __future__ import annotations

from typing import Annotated, Any

from streamjoin.errors import InputError
from streamjoin.index.layout import layout_of
from streamjoin.operators.meshjoin.scan import Scan
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.stages import Plan, joins_relation
from streamjoin.plan.window import S
from streamjoin.settings.setting import Settings, setting
from streamjoin.settings.values import Rate, Units, Whole

MEMORY_MIB = 256
PARTITIONS_MAX = 1 << 20
MEMORY_MIB_MAX = 1 << 24


class ScanSettings(Settings):
    """How a relation is read, and how much memory that may take."""

    units: Annotated[
        Units | None,
        setting(
            "units that share the join values", unset="one per slot", label="Units", counts_units=True, compared=True
        ),
    ] = None
    memory: Annotated[
        Annotated[int, Whole(1, MEMORY_MIB_MAX)] | None,
        setting(
            "MiB that all units together may take for rows of the relation and tuples that wait",
            unset=f"{MEMORY_MIB}, or as much as it takes with a rate",
            label="Memory (MiB)",
            keeps_state=True,
        ),
    ] = None
    rate: Annotated[
        Rate | None,
        setting(
            "tuples a second that are joined as they come, however much memory that takes",
            unset="memory is given",
            keeps_state=True,
        ),
    ] = None
    partitions: Annotated[
        Annotated[int, Whole(1, PARTITIONS_MAX)] | None,
        setting(
            "parts in which each unit reads its rows of the relation (k)",
            unset="as many as make one a tenth of the memory; 10 with a rate",
            label="Partitions",
            keeps_state=True,
        ),
    ] = None
    steps: Annotated[
        Annotated[int, Whole(1, PARTITIONS_MAX)] | None,
        setting(
            "parts of the relation that a batch reads",
            unset="as many as have 64 MiB together, at most all",
            label="Parts a batch",
            keeps_state=True,
        ),
    ] = None


def scan_of(settings: ScanSettings) -> Scan:
    """How units read, as a join file says.

    Raises:
        InputError: it gives both a memory and a rate.
    """
    if settings.memory is not None and settings.rate is not None:
        raise InputError(
            "give a memory or a rate: a memory bounds the rate, and a rate takes the memory that it needs",
            field="operator.rate",
        )
    memory = None if settings.rate is not None else (settings.memory or MEMORY_MIB) << 20
    return Scan(settings.partitions, memory, settings.steps, settings.rate)


def refuses(plan: Plan) -> str | None:
    """Why a relation cannot be read in parts by the join value."""
    joins: list[Any] = [stage.plan for stage in plan.stages if joins_relation(stage)]
    if not joins:
        return "it joins a stream with a relation, and this query reads none"
    for join in joins:
        assert isinstance(join, JoinPlan)
        if not join.predicate.equalities:
            return (
                f"it needs an equality between {join.names[0]} and {join.names[S]}, by which rows are dealt out; "
                "lookup joins by any condition"
            )
        if not layout_of(join, S).equal:
            return "it finds partners by their equal values only; leave operator.index out, or write hash"
    return None
