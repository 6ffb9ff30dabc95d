"""Whether the order that `auto` chose is still the one to have, at the rates that streams have come to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from streamjoin.explain.candidates import Candidates, Way
from streamjoin.explain.figures import figure
from streamjoin.operators.ordering import CLEAR
from streamjoin.spec.order import Order, numbered

TREES = 4
"""The cheapest at today's rates, beside the one that runs."""
EVERY_S = 30.0
Steady = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Drift:
    """What became of the rates for which an order was chosen.

    Args:
        plan: the way that runs, such as `((a, b), c)`.
        chosen_for, rates: by stream, tuples a second of event time, then and now.
        better: a way that has clearly less work now.
        times: how many times its work the one that runs has.
    """

    plan: str
    chosen_for: Mapping[str, float]
    rates: Mapping[str, float]
    better: Way | None = None
    times: float = 1.0

    def to_json(self) -> dict[str, Any]:
        """For reports and the API."""
        better = self.better
        return {
            "plan": self.plan,
            "chosen_for": {name: round(rate, 3) for name, rate in self.chosen_for.items()},
            "rates": {name: round(rate, 3) for name, rate in self.rates.items()},
            "better": None
            if better is None
            else {
                "plan": better.plan,
                "setting": better.setting,
                "operator": better.operator,
                "times": round(self.times, 2),
            },
            "text": str(self),
        }

    def __str__(self) -> str:
        then = f"{self.plan} was chosen for {_words(self.chosen_for)}"
        if self.better is None:
            return f"{then}; at today's {_words(self.rates)} no other order is clearly better"
        return (
            f"{then}; at today's {_words(self.rates)} it has {self.times:.1f} times the work of {self.better.plan}, "
            "by prediction"
        )


def drift(order: Order | None, rates_per_s: Mapping[str, float]) -> Drift | None:
    """What measured rates say of an order; None where it was chosen by no prediction, or a rate is not known.

    Args:
        rates_per_s: by stream, of event time; of tuples that conditions on the stream alone let through.
    """
    if order is None or order.costs is None:
        return None
    of = Candidates.from_json(order.costs)
    if not all(rates_per_s.get(name, 0.0) > 0 for name in of.names):
        return None
    plan = str(order.costs["chosen"])
    tree = None if order.tree is None else numbered(order.tree, of.names)
    ways = of.at_rates(rates_per_s).ways(TREES, plan, tree)
    (runs,) = (way for way in ways if way.runs)
    best = ways[0]
    then = {name: one.rate_per_s for name, one in zip(of.names, of.known.streams, strict=True)}
    now = {name: rates_per_s[name] for name in of.names}
    times = runs.cost.work_s / best.cost.work_s if best.cost.work_s else 1.0
    if times < CLEAR:
        return Drift(plan, then, now)
    return Drift(plan, then, now, replace(best, operator={"name": order.operator, **best.operator}), times)


class Watch:
    """Says again and again what rates have come to mean for an order.

    For nine streams a prediction takes more than a second, so a thread makes it, and whoever asks goes on.
    """

    def __init__(self, order: Order | None, every_s: float = EVERY_S, steady_s: Steady = time.monotonic) -> None:
        self.order = order
        self.every_s = every_s
        self._steady_s = steady_s
        self._said: dict[str, Any] | None = None
        self._due_s = steady_s()
        self._predicts: threading.Thread | None = None

    def look(self, rates_per_s: Callable[[], Mapping[str, float]]) -> dict[str, Any] | None:
        """What `drift` said last, for the API. Where that is long ago it is asked again, for a later look."""
        is_busy = self._predicts is not None and self._predicts.is_alive()
        if self.order is not None and not is_busy and self._steady_s() >= self._due_s:
            self._predicts = threading.Thread(
                target=self._predict, args=(dict(rates_per_s()),), name="drift", daemon=True
            )
            self._predicts.start()
        return self._said

    def settle(self) -> None:
        """Wait for a prediction that is being made."""
        if self._predicts is not None:
            self._predicts.join()

    def _predict(self, rates_per_s: Mapping[str, float]) -> None:
        found = drift(self.order, rates_per_s)
        self._said = None if found is None else found.to_json()
        self._due_s = self._steady_s() + (self.every_s if found else 1.0)


def _words(rates_per_s: Mapping[str, float]) -> str:
    return ", ".join(f"{figure(rate)} {name}/s" for name, rate in rates_per_s.items())
