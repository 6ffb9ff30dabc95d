"""Routing in the biclique and the matrix (BiStream, section 3.2.2)."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from streamjoin.engine.operator import Operator
from streamjoin.engine.routing import PROBE, STORE, Tuples
from streamjoin.errors import InputError, UnsupportedError
from streamjoin.index.kernels import mix
from streamjoin.operators.biclique import Biclique, Routing
from streamjoin.operators.matrix import Matrix


def tuples(count: int, keys: np.ndarray | None = None) -> Tuples:
    return Tuples(mix(np.arange(count)), keys)


def destinations(operator: Operator, side: int, given: Tuples) -> list[tuple[tuple[int, int], ...]]:
    """Targets of every tuple, by row."""
    found: dict[int, tuple[tuple[int, int], ...]] = {}
    for route in operator.route(side, given):
        assert np.all(np.diff(route.rows) > 0)
        for row in route.rows.tolist():
            assert row not in found
            found[row] = route.targets
    assert len(found) == len(given)
    return [found[row] for row in range(len(given))]


KEYS = mix(np.arange(500) % 97)


@pytest.mark.parametrize(
    "operator",
    [Biclique(2, 3), Biclique(3, 2, Routing.HASH), Biclique(5, 6, Routing.CONTRAND, 2, 3), Matrix(2, 3)],
    ids=str,
)
def test_every_pair_of_equal_keys_meets_in_exactly_one_place_in_each_order(operator: Operator) -> None:
    given = tuples(500, KEYS)
    r, s = destinations(operator, 0, given), destinations(operator, 1, given)
    for i in range(0, 500, 7):
        for j in np.flatnonzero(KEYS[i] == KEYS).tolist():
            r_stores = {unit for unit, role in r[i] if role & STORE}
            s_probes = {unit for unit, role in s[j] if role & PROBE}
            assert len(r_stores & s_probes) == 1
            s_stores = {unit for unit, role in s[j] if role & STORE}
            r_probes = {unit for unit, role in r[i] if role & PROBE}
            assert len(s_stores & r_probes) == 1


def test_a_tuple_reaches_one_store_and_a_whole_opposite_subgroup() -> None:
    operator = Biclique(5, 6, Routing.CONTRAND, 2, 3)
    sizes = {len(group) for group in operator.groups[1]}
    assert [len(group) for group in operator.groups[0]] == [3, 2]
    for targets in destinations(operator, 0, tuples(500, KEYS)):
        assert len(targets) - 1 in sizes
        probed = {unit for unit, role in targets if role == PROBE}
        assert probed in [set(group) for group in operator.groups[1]]


def test_contrand_with_single_units_is_hash_and_with_one_group_is_random() -> None:
    given = tuples(500, KEYS)
    for side in (0, 1):
        hashed = destinations(Biclique(4, 3, Routing.HASH), side, given)
        assert hashed == destinations(Biclique(4, 3, Routing.CONTRAND, 4, 3), side, given)
        spread = destinations(Biclique(4, 3), side, given)
        assert spread == destinations(Biclique(4, 3, Routing.CONTRAND, 1, 1), side, given)


def test_routing_depends_on_identity_and_key_alone() -> None:
    operator = Biclique(5, 6, Routing.CONTRAND, 2, 3)
    whole = destinations(operator, 0, tuples(500, KEYS))
    half = Tuples(mix(np.arange(250, 500)), KEYS[250:])
    assert destinations(operator, 0, half) == whole[250:]


def test_a_hot_key_stays_in_its_subgroup_and_spreads_inside_it() -> None:
    operator = Biclique(6, 1, Routing.CONTRAND, 2, 1)
    stored = Counter(targets[0][0] for targets in destinations(operator, 0, tuples(3_000, np.full(3_000, 42))))
    assert set(stored) in [set(group) for group in operator.groups[0]]
    assert max(stored.values()) / min(stored.values()) < 1.2


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ((0, 1), "operator.r_units"),
        ((1, 0), "operator.s_units"),
        ((4, 4, Routing.CONTRAND, 0, 1), "operator.r_groups"),
        ((4, 4, Routing.CONTRAND, 5, 1), "operator.r_groups"),
        ((4, 4, Routing.CONTRAND, 1, 5), "operator.s_groups"),
    ],
)
def test_impossible_numbers_of_units_and_groups_are_refused_by_name(arguments: tuple[int, ...], field: str) -> None:
    with pytest.raises(InputError) as refused:
        Biclique(*arguments)  # type: ignore[arg-type]
    assert refused.value.field == field


def test_content_sensitive_routing_without_a_key_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="no equality"):
        Biclique(2, 2, Routing.HASH).route(0, tuples(5))
