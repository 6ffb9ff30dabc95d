"""What operators declare is what they do, and nothing asks what an operator is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import streamjoin
from streamjoin.engine.operator import Operator, RoutesBy
from streamjoin.engine.routing import STORE, Tuples
from streamjoin.errors import UnsupportedError
from streamjoin.operators.biclique import Biclique, Routing
from streamjoin.operators.handshake import Handshake
from streamjoin.operators.matrix import Matrix
from streamjoin.operators.splitjoin import SplitJoin
from streamjoin.plan.window import R, S

OPERATORS = [
    Biclique(3, 2),
    Biclique(3, 2, Routing.HASH),
    Biclique(4, 4, Routing.CONTRAND, 2, 2),
    Biclique(4, 4, Routing.CONTRAND, 2, 2, bounds=((5,), (6,))),
    Matrix(2, 3),
    SplitJoin(3),
    Handshake(1),
    Handshake(4),
]


def tuples(seed: int, *, equal: np.ndarray, key: np.ndarray) -> Tuples:
    identity = np.random.default_rng(seed).integers(-(1 << 60), 1 << 60, equal.size)
    return Tuples(identity, equal, key, key - 1, key + 1)


def reached(operator: Operator, side: int, given: Tuples) -> list[frozenset[tuple[int, int]]]:
    """By tuple, the units it goes to, with its roles there."""
    found: dict[int, frozenset[tuple[int, int]]] = {}
    for route in operator.route(side, given):
        for row in route.rows.tolist():
            assert row not in found
            found[row] = frozenset(route.targets)
    return [found[row] for row in range(len(given))]


@pytest.mark.parametrize("operator", OPERATORS, ids=repr)
@pytest.mark.parametrize("side", [R, S])
def test_routing_looks_at_nothing_that_is_not_declared(operator: Operator, side: int) -> None:
    rng = np.random.default_rng(7)
    equal, key = rng.integers(0, 40, 300), rng.integers(0, 12, 300)
    usual = reached(operator, side, tuples(1, equal=equal, key=key))
    other_equal = reached(operator, side, tuples(1, equal=rng.permutation(equal), key=key))
    other_key = reached(operator, side, tuples(1, equal=equal, key=rng.permutation(key)))
    by = operator.capabilities.routes_by
    assert (other_equal != usual) == (by is RoutesBy.EQUALITY)
    assert (other_key != usual) == (by is RoutesBy.RANGE)


@pytest.mark.parametrize("operator", OPERATORS, ids=repr)
@pytest.mark.parametrize("side", [R, S])
def test_a_key_is_stored_in_one_unit_where_that_is_declared(operator: Operator, side: int) -> None:
    same = np.full(200, 9)
    routes = reached(operator, side, tuples(3, equal=same, key=same))
    stored = {unit for found in routes for unit, role in found if role & STORE}
    many = tuples(4, equal=np.arange(2_000), key=np.arange(2_000))
    storing = {unit for found in reached(operator, side, many) for unit, role in found if role & STORE}
    by_key = operator.capabilities.units_by_key
    assert (by_key is not None) == (len(stored) == 1 and len(storing) > 1)
    assert by_key is None or len(storing) == by_key[side]


@pytest.mark.parametrize("operator", OPERATORS, ids=repr)
def test_those_that_resize_have_as_many_units_as_they_are_told_and_others_refuse(operator: Operator) -> None:
    if operator.capabilities.resizes:
        assert [len(operator.with_units(units).units) for units in (1, 2, 7)] == [1, 2, 7]
        assert operator.with_units(7).lasting == operator.lasting
    else:
        with pytest.raises(UnsupportedError, match=f"units of {operator.name}"):
            operator.with_units(7)
        with pytest.raises(UnsupportedError, match=f"units of {operator.name}"):
            operator.resized({})
        assert operator.lasting == repr(operator)


@pytest.mark.parametrize("operator", OPERATORS, ids=repr)
def test_only_those_that_hand_tuples_on_drain(operator: Operator) -> None:
    hands_on = operator.capabilities.hands_on and len(operator.units) > 1
    assert (operator.drain_batches > 0) == hands_on


def _asks_what_it_is(module: Path) -> Iterator[int]:
    """Lines of `isinstance` and `getattr` on something called operator."""
    for node in ast.walk(ast.parse(module.read_text())):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "getattr" | "hasattr"), args=[asked, *_]):
                name = (
                    asked.attr if isinstance(asked, ast.Attribute) else asked.id if isinstance(asked, ast.Name) else ""
                )
                if name == "operator":
                    yield node.lineno


@pytest.mark.slow
def test_the_engine_never_asks_what_an_operator_is() -> None:
    root = Path(streamjoin.__file__).parent
    modules = list(root.rglob("*.py"))
    found = [f"{path.relative_to(root)}:{line}" for path in modules for line in _asks_what_it_is(path)]
    assert len(modules) > 200 and found == []
