"""How often a stream has each join value, and how many rows a relation has of it: what the model of SSBJ starts from.

Values that are alike are one class, so a domain of 10^8 values is some thousand numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

_ALONE = 1_000
"""So many of the most frequent values are a class each; behind them a class has one value in a hundred."""
_GROWTH = 1.01
_REPEATED_MAX = 12


@dataclass(frozen=True, slots=True)
class Keys:
    """Classes of join values; each array is float64 of shape (n,).

    Args:
        values: how many values a class has.
        shares: p_j, the share of the stream's tuples that have one of them.
        rows: m_j, how many rows the relation has of one of them.
    """

    values: np.ndarray
    shares: np.ndarray
    rows: np.ndarray

    @property
    def matches(self) -> float:
        """Rows of the relation that a tuple meets, on average."""
        return float((self.values * self.shares * self.rows).sum())


def zipf_keys(domain: int, exponent: float, rows: float) -> Keys:
    """A stream after Zipf's law, and a relation whose values are drawn at random with repetition (section 4.1).

    How many rows a value has is then distributed after Poisson, whatever its place.

    Args:
        domain: how many values there are.
        exponent: 0 for values that are all as frequent.
        rows: R_t, of the relation.
    """
    firsts = _firsts(domain)
    values = np.diff(firsts)
    weights = np.where(values == 1, firsts[:-1] ** -exponent, _integral(firsts, exponent))
    shares = weights / weights.sum() / values
    mean = rows / domain
    many = np.arange(max(_REPEATED_MAX, math.ceil(mean + 8 * math.sqrt(mean))) + 1, dtype=np.float64)
    log_chances = many * math.log(mean) - mean - np.array([math.lgamma(count + 1) for count in many])
    chances = np.exp(log_chances)
    classes = (values[:, None] * chances, np.repeat(shares, many.size), np.tile(many, values.size))
    return Keys(classes[0].ravel(), classes[1], classes[2])


def _firsts(domain: int) -> np.ndarray:
    """The rank that each class begins with, and one past the last."""
    many = max(math.ceil(math.log(max(domain / _ALONE, 1)) / math.log(_GROWTH)), 0)
    spread = np.floor(_ALONE * _GROWTH ** np.arange(1, many + 1))
    ranks = np.concatenate([np.arange(1.0, min(_ALONE, domain) + 1), spread[spread <= domain], [domain + 1.0]])
    return np.unique(ranks)


def _integral(firsts: np.ndarray, exponent: float) -> np.ndarray:
    """The sum of rank ** -exponent over each class, by the integral from half a rank before to half a rank past."""
    low, high = firsts[:-1] - 0.5, firsts[1:] - 0.5
    if exponent == 1:
        return np.asarray(np.log(high / low))
    return np.asarray((high ** (1 - exponent) - low ** (1 - exponent)) / (1 - exponent))
