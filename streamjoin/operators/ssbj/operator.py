"""Units that read a relation again and again, each with a cache of the rows that are asked for most."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamjoin.engine.unit import Step, Work
from streamjoin.operators.meshjoin import MeshJoin
from streamjoin.operators.ssbj.moving import Rule
from streamjoin.operators.ssbj.step import BalancedStep


@dataclass(frozen=True)
class BalancedJoin(MeshJoin):
    """As `MeshJoin`, with a cache.

    Args:
        rule: what is cached.
    """

    rule: Rule = field(default_factory=Rule)
    name: str = "ssbj"

    def __str__(self) -> str:
        return f"{super().__str__()}, and {'caches' if self.count == 1 else 'cache'} what takes less than its tuples"

    def step(self, work: Work) -> Step:
        """See `Operator`."""
        return BalancedStep(work, self.scan, self.rule)
