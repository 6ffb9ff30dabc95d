"""Which units `stream_join` gives the stages that its operator does not run: they stay, and slots may not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from streamjoin.engine.operator import Operator
from streamjoin.operators import registry
from streamjoin.operators.asof import AsOfJoin
from streamjoin.operators.biclique import Biclique, Routing
from streamjoin.operators.ring import Ring
from streamjoin.plan.stages import Plan
from streamjoin.query import plan_query
from streamjoin.spark.join import stage_operators
from tests.conformance import loops
from tests.conformance.groups import STREAMS, rows

BATCHES = 6
BEFORE = 3
AT = "ASOF JOIN c ON a.k = c.k AND a.ts >= c.ts"
IN_TWO = Biclique(2, 2, Routing.HASH)
CASES: dict[str, tuple[str, Operator, dict[str, Any]]] = {
    "windows": ("SELECT ONLINE k, COUNT(*) AS n FROM a GROUP BY k, TUMBLE(20 MICROSECONDS)", IN_TWO, {}),
    "groups that change, behind an as-of join": (
        f"SELECT ONLINE a.k, COUNT(c.id) AS n FROM a JOIN b ON a.k = b.k {AT} WITHIN 60 MICROSECONDS GROUP BY a.k "
        "EMIT EVERY 5 MICROSECONDS",
        IN_TWO,
        {},
    ),
    "DISTINCT": ("SELECT DISTINCT ONLINE a.k, b.p FROM a, b WHERE a.k = b.k WITHIN 60 MICROSECONDS", IN_TWO, {}),
    "an as-of join's own units beside others": (
        f"SELECT ONLINE a.id, b.id AS b, c.id AS c FROM a JOIN b ON a.k = b.k {AT} WITHIN 60 MICROSECONDS",
        AsOfJoin(2),
        {"units": 2},
    ),
    "a ring": (
        "SELECT ONLINE a.k, COUNT(*) AS n FROM a JOIN b ON a.k = b.k JOIN c ON a.k = c.k WITHIN 60 MICROSECONDS "
        "GROUP BY a.k EMIT EVERY 5 MICROSECONDS",
        Ring(2),
        {"nodes": 2},
    ),
}


def of_slots(operator: Operator, knobs: dict[str, Any], plan: Plan) -> tuple[Operator, ...]:
    """The operators of a start with `BEFORE` slots, when other stages had as many units as there were slots."""
    own = {"routing": "hash", "r_units": 2, "s_units": 2} if operator is IN_TWO else knobs
    return registry.build_all(operator.name, own, plan, BEFORE)


@pytest.mark.parametrize("batches_before", [0, 2])
@pytest.mark.parametrize("case", CASES)
def test_starts_with_other_slots_go_on_exactly(case: str, batches_before: int, tmp_path: Path) -> None:
    query, operator, knobs = CASES[case]
    plan = operator.planned(plan_query(query, STREAMS))
    streams = [rows(80 + "abc".index(stream.name), 60) for stream in plan.streams]
    whole = loops.loop_of(plan, operator.name, tmp_path / "whole")
    wanted = loops.joined(whole, streams, BATCHES)
    loop = loops.loop_of(plan, operator.name, tmp_path / "starts")
    state = tmp_path / "starts"
    loop.operators = of_slots(operator, knobs, plan) if batches_before else stage_operators(operator, plan, state)
    units = [len(one.units) for one in loop.operators]
    found: Counter[Any] = Counter()
    for number, parts in enumerate(loops.given(loop, streams, BATCHES), 1):
        found += Counter(row for part in parts for row in zip(*part.to_pydict().values(), strict=True))
        if number >= batches_before:
            loop.slots = 1 + number % 3
            loop.operators = stage_operators(operator, plan, state)
            assert [len(one.units) for one in loop.operators] == units
    assert found == wanted and wanted.total() > 10


def test_a_first_batch_that_was_not_done_leaves_units_as_many_as_the_operator_has(tmp_path: Path) -> None:
    """It may have ended when only some of its units had written their state."""
    plan = plan_query(CASES["windows"][0], STREAMS)
    (tmp_path / "0" / "0").mkdir(parents=True)
    (tmp_path / "0" / "0" / "1.json").write_text("{}")
    (groups,) = stage_operators(IN_TWO, plan, tmp_path)
    assert len(groups.units) == len(IN_TWO.units)
