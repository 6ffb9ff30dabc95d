"""A simulated run and what the cost model says of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from simulate.ssbj.data import SYNTHETIC, Data
from simulate.ssbj.disk import Disk
from simulate.ssbj.unit import Counts, Memory, Unit
from streamjoin.operators.costs.ssbj import Balance, Bytes, Join, StepTimes
from streamjoin.operators.ssbj.cache import ENTRY_BYTES
from streamjoin.operators.ssbj.moving import Rule
from streamjoin.operators.ssbj.step import COLLECTED_SHARE

TIMES = StepTimes(seek=8e6, read=1200, look_up=100, output=50, take=30, append=70, remove=40)
"""A disk that seeks in 8 ms and reads 100 MB of rows of 120 bytes a second, and steps as hash tables take them."""
WARM_ROUNDS = 24
"""As many as all that is worth it needs to come into the cache, three rounds at a time."""


@dataclass(frozen=True, slots=True)
class Case:
    """A setting of the paper's evaluation.

    Args:
        rows: R_t; of synthetic data, as many as there are values.
        skew: Zipf's exponent.
        memory: M as a share of the relation; 0 with a rate.
        rate_per_s: lambda, where memory is not given.
        parts: k.
        rule: None for MESHJOIN.
        data: what is joined.
    """

    rows: int
    skew: float
    memory: float
    parts: int
    rule: Rule | None
    rate_per_s: float = 0.0
    data: Data = SYNTHETIC

    @property
    def memory_bytes(self) -> int:
        """M."""
        return round(self.memory * self.rows * self.data.row_bytes)

    def without_cache(self) -> Case:
        """The same for MESHJOIN."""
        return replace(self, rule=None)

    def simulated(self, rounds: int = 6, seed: int = 3) -> Counts:
        """What a unit does in so many rounds, once it is warm."""
        unit = self.unit(seed)
        unit.run(WARM_ROUNDS if self.rule else 2)
        return unit.run(rounds)

    def unit(self, seed: int = 3) -> Unit:
        """A unit that begins."""
        disk = Disk(self.data.relation(self.rows, seed), self.data.row_bytes, TIMES)
        memory = Memory(self.memory_bytes or None, self.data.tuple_bytes, self.parts, self.rate_per_s)
        return Unit(disk, self.data.shares(self.rows, self.skew), memory, self.rule, seed)

    def predicted(self) -> Balance:
        """What the formulas say; the room that ssbj keeps for rows it collects is not there for others."""
        sizes = Bytes(self.data.tuple_bytes, self.data.row_bytes, entry=ENTRY_BYTES)
        join = Join(sizes, TIMES, self.rows, self.data.keys(self.rows, self.skew))
        buffer_rows, caches = self.rows / self.parts, self.rule is not None
        if not self.memory:
            return join.given_rate(self.rate_per_s, buffer_rows, caches=caches)
        kept = (self.memory_bytes - buffer_rows * self.data.row_bytes) / COLLECTED_SHARE if caches else 0
        return join.given_memory(self.memory_bytes - kept, buffer_rows, caches=caches)
