"""The three sets of data of SSBJ's evaluation (section 4.1): join values of the relation and of the stream, and sizes.

The real weather reports are not here. In their place longitudes of relation and stream follow weights that are drawn
once: a longitude with many stations has many rows, and as in the paper one value has about 555 rows on average.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from simulate.ssbj.disk import with_repetition, zipf_shares
from streamjoin.operators.costs.keys import Keys, zipf_keys

Relation = Callable[[int, int], np.ndarray]
Shares = Callable[[int, float], np.ndarray]
Classes = Callable[[int, float], Keys]


@dataclass(frozen=True, slots=True)
class Data:
    """A relation and a stream, of any size.

    Args:
        row_bytes, tuple_bytes: v_R, and v_S with a pointer.
        relation: of so many rows, and a seed: their join values, int64, as they lie.
        shares: of so many rows, and a skew: how often the stream has each value, float64.
        keys: the same as classes of values, as the model takes them.
    """

    name: str
    row_bytes: int
    tuple_bytes: int
    relation: Relation
    shares: Shares
    keys: Classes


_POINTER = 4
CUSTOMERS_WITH_ORDERS = 2 / 3
"""TPC-H has no order of every third customer."""
ROWS_OF_A_LONGITUDE = 555
_SPREAD = 1.5


def _orders(rows: int, skew: float) -> np.ndarray:
    """Of each customer: alike for two thirds of them, and none for the others; or after Zipf's law."""
    if skew:
        return zipf_shares(rows, skew)
    asked = round(rows * CUSTOMERS_WITH_ORDERS)
    return np.where(np.arange(rows) < asked, 1 / asked, 0.0)


def _weights(rows: int, seed: int) -> np.ndarray:
    """Of each longitude, log-normal."""
    weights = np.random.default_rng(seed).lognormal(0.0, _SPREAD, max(rows // ROWS_OF_A_LONGITUDE, 2))
    return np.asarray(weights / weights.sum())


def _stations(rows: int, seed: int) -> np.ndarray:
    weights = _weights(rows, 1)
    return np.random.default_rng(seed).choice(weights.size, rows, p=weights)


def _each(relation_rows: Callable[[int], np.ndarray], shares: Shares) -> Classes:
    """Every value as a class of its own."""
    return lambda rows, skew: Keys(np.ones(relation_rows(rows).size), shares(rows, skew), relation_rows(rows))


def _reports(seed: int) -> Shares:
    return lambda rows, skew: _weights(rows, seed)


SYNTHETIC = Data(
    "synthetic", 120, 20 + _POINTER, lambda rows, seed: with_repetition(rows, rows, seed), zipf_shares,
    lambda rows, skew: zipf_keys(rows, skew, rows),
)  # fmt: skip
TPC_H = Data(
    "TPC-H", 223, 138 + _POINTER, lambda rows, seed: np.random.default_rng(seed).permutation(rows), _orders,
    _each(lambda rows: np.ones(rows), _orders),
)  # fmt: skip
WEATHER = Data(
    "weather", 128, 128 + _POINTER, _stations, _reports(1), _each(lambda rows: rows * _weights(rows, 1), _reports(1))
)
"""Reports come from where the stations are."""
OTHER_WEATHER = Data(
    "weather of another month", 128, 128 + _POINTER, _stations, _reports(2),
    _each(lambda rows: rows * _weights(rows, 1), _reports(2)),
)  # fmt: skip
"""Reports come as often from one place as from another, whatever the relation has of it."""
