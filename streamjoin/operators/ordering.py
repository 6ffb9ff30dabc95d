"""Which order of joins `auto` takes: rules, of which the first that says anything decides, and says why.

Predictions of trees come of the same formulas, and their mistakes are alike; those of a ring come of others. Most are
within a factor of two of what is measured (`python -m benchmarks.orders`), so a ring has to be better by that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

CLEAR = 1.5
"""A tree with this many times less work than the order of FROM is chosen; below it, predictions say nothing."""
CLEAR_OTHER = 2.0
"""The same of a ring."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to join the streams.

    Args:
        number: its place among all.
        name: such as `(a, (b, c))`.
        is_written: the streams are joined in the order of FROM.
        is_tree: it is a tree of joins of two.
    """

    number: int
    name: str
    work_s: float
    is_written: bool
    is_tree: bool


@dataclass(frozen=True, slots=True)
class Known:
    """What is known before the choice.

    Args:
        rates: what the streams bring, in words.
        candidates: those that can run; empty where nothing is known of the streams.
        unknown: why nothing is, in words, where somebody was asked.
    """

    rates: str
    candidates: Sequence[Candidate]
    unknown: str = ""

    @property
    def written(self) -> Candidate:
        return next(one for one in self.candidates if one.is_written)

    @property
    def least(self) -> Candidate:
        return min(self.candidates, key=lambda one: one.work_s)

    def times_less(self, one: Candidate) -> float:
        """How many times the work of a candidate the order of FROM has."""
        return self.written.work_s / one.work_s if one.work_s else 1.0

    @property
    def clear(self) -> list[Candidate]:
        """Those that are better than the order of FROM by more than predictions are wrong, the best one first."""
        found = [one for one in self.candidates if self.times_less(one) >= (CLEAR if one.is_tree else CLEAR_OTHER)]
        return sorted(found, key=lambda one: one.work_s)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What was chosen, by its number, and why; None for the order of FROM."""

    number: int | None
    reason: str


def unknown(known: Known) -> Chosen | None:
    """Streams that nobody can look at before the start."""
    if known.candidates:
        return None
    why = f": {known.unknown}" if known.unknown else ""
    return Chosen(None, f"in the order of FROM, as the rates of the streams are not known before the start{why}")


def written_is_least(known: Known) -> Chosen | None:
    """The query has the best order already."""
    if known.least is not known.written:
        return None
    return Chosen(None, f"the order of FROM has the least work at {known.rates}")


def clearly_less(known: Known) -> Chosen | None:
    """Another one is better, whatever is wrong with the predictions."""
    if not known.clear:
        return None
    best = known.clear[0]
    return Chosen(best.number, f"{1 / known.times_less(best):.0%} of the work of the order of FROM at {known.rates}")


def too_near(known: Known) -> Chosen | None:
    """Another one may be better, and may be not."""
    least = known.least
    return Chosen(
        None,
        f"in the order of FROM: {least.name} has {1 / known.times_less(least):.0%} of its work at {known.rates}, which "
        "is too near to tell",
    )


Rule = Callable[[Known], Chosen | None]
RULES: tuple[Rule, ...] = (unknown, written_is_least, clearly_less, too_near)


def choice(known: Known) -> Chosen:
    """What the first rule says that says anything."""
    said = (rule(known) for rule in RULES)
    return next(one for one in said if one is not None)
