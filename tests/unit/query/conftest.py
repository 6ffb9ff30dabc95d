"""Two streams to query, R and S, and one registered predicate."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pytest

from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import ARRIVAL, StreamSchema, parse_schema
from streamjoin.query import RegisteredPredicate, plan_query

R = StreamSchema(
    "R",
    parse_schema(
        {
            **{"k": "int64", "x": "float64", "name": "string", "ts": "timestamp", "ok": "bool"},
            **{"day": "date", "id": "int32", "price": "decimal(12,2)"},
        }
    ),
    "ts",
)
S = StreamSchema("S", parse_schema({"k": "int64", "y": "float64", "label": "string", "a b": "int32"}), ARRIVAL)
NEAR = RegisteredPredicate(lambda left, right: abs(left - right) < 1, (pa.float64(), pa.float64()))


@pytest.fixture(scope="session")
def plan() -> Callable[..., JoinPlan]:
    """Query text -> plan over R, S and the predicate near(float64, float64)."""
    return partial(plan_query, streams={"R": R, "S": S}, predicates={"near": NEAR})
