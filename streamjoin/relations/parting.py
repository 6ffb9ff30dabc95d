"""Rows of a relation as they came, dealt out to units: for operators that read a relation again and again.

They are selected and projected as those are that are sorted, and written once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa

from streamjoin.engine.routing import split, unit_of
from streamjoin.index.kernels import mix
from streamjoin.index.table import Part
from streamjoin.index.view import CELL, column_of
from streamjoin.relations.sorting import Sorting


@dataclass
class Parting(Sorting):
    """Rows of one relation on their way to a stage's units, by the join value; see `Sorting`.

    Args:
        units: how many units the stage has.
    """

    units: int = 1
    _parts: list[Part] = field(default_factory=list)

    def _let_go(self) -> None:
        rows = pa.concat_batches(self._held)
        for unit, mine in split(unit_of(mix(column_of(rows, CELL)), self.units)):
            part = self._part(rows.take(pa.array(mine)), len(self._parts))
            self._parts.append(replace(part, low=0, high=0, unit=unit))

    def parts(self) -> list[Part]:
        """The segments, written, each unit's in the order in which rows came; no further rows may come."""
        if self._held:
            self._let_go()
        self._held = []
        return self._parts
