"""Cases with explicit casts of numbers in their conditions."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from .case import Case
from .generator import generate
from .terms import CASTS, COMPARISONS, Node, Term, node

_AROUND = {*COMPARISONS, "BETWEEN", "+", "-", "ABS"}
"""Operators that take any number."""


def with_casts(seed: int) -> Case:
    """The case of a seed, in which some numbers are cast."""
    case, rng = generate(seed), Random(-1 - seed)
    return replace(case, conjuncts=tuple(_cast(part, rng, 0.4) for part in case.conjuncts), items=())


def _cast(term: Term, rng: Random, chance: float) -> Term:
    if not isinstance(term, Node):
        return term
    operands = tuple(_cast(operand, rng, chance) for operand in term.operands)
    if term.operator in _AROUND:
        operands = tuple(_number(operand, rng) if rng.random() < chance else operand for operand in operands)
    return replace(term, operands=operands)


def _number(term: Term, rng: Random) -> Term:
    # What becomes of a float's digits as a decimal is no question of joins.
    names = [name for name, kind in CASTS.items() if not (term.type.family == "float" and kind.family == "decimal")]
    if term.type.family not in ("int", "decimal", "float"):
        return term
    return node(rng.choice(["DOUBLE", *names]), term)
