"""How much of a relation is read for each row of a stream, by the operators that read it part by part: a prediction.

Source: SSBJ (DAPD 2019), section 3: the cache inequality and equation 1 say how many tuples a round through the
relation has. What a round takes in time depends on the machine, so no rate is predicted here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa

from streamjoin.errors import InputError, StreamJoinError
from streamjoin.explain.figures import bytes_text, figure
from streamjoin.explain.sampling import SAMPLE_ROWS, Look
from streamjoin.index.columns import routed_columns
from streamjoin.index.layout import equality_cells
from streamjoin.index.table import Part
from streamjoin.intake.selection import select
from streamjoin.operators import registry
from streamjoin.operators.costs.keys import Keys
from streamjoin.operators.costs.ssbj import Balance, Bytes, Join, StepTimes
from streamjoin.operators.meshjoin.operator import MeshJoin
from streamjoin.operators.ssbj.cache import ENTRY_BYTES
from streamjoin.operators.ssbj.step import COLLECTED_SHARE
from streamjoin.plan.evaluation import evaluate
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.stages import joins_relation, stages_of
from streamjoin.plan.window import R, S
from streamjoin.spec.prepare import Bound, with_operator
from streamjoin.spec.room import INDEX_BYTES, read_of

_ANY_TIMES = StepTimes(seek=1.0, read=0.0, look_up=0.0, output=0.0, take=1.0, append=0.0, remove=0.0)
"""The balance of memory does not depend on them."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What is predicted of one operator, all its units together.

    Args:
        stream, relation: as the query calls them.
        memory_bytes: what the operator may take.
        rows_per_tuple: rows of the relation that are read for each of the stream; 0 where all is cached.
        cached_share: of the stream's rows, those that are joined from the cache.
        refusal: why it cannot run in that memory; the figures are 0 then.
    """

    operator: str
    stream: str
    relation: str
    memory_bytes: int
    rows_per_tuple: float = 0.0
    cached_share: float = 0.0
    refusal: str = ""

    @property
    def words(self) -> str:
        """The prediction in words."""
        if self.refusal:
            return self.refusal
        cached = f"{self.cached_share:.0%} of {self.stream} from the cache, " if self.cached_share else ""
        read = f"{figure(self.rows_per_tuple)} rows of {self.relation} read for each row of {self.stream}"
        if not self.rows_per_tuple:
            read = f"nothing of {self.relation} read once it is cached"
        return f"{cached}{read}, in {bytes_text(self.memory_bytes)}"

    def __str__(self) -> str:
        return f"{self.operator}: {self.words}"

    def to_json(self) -> dict[str, Any]:
        """For the API; without figures where it cannot run."""
        figures = {
            "memory_bytes": self.memory_bytes,
            "rows_read_per_tuple": round(self.rows_per_tuple, 4),
            "cached_share": round(self.cached_share, 4),
        }
        return {"text": self.words, **({} if self.refusal else figures)}


def readings(bound: Bound, looked: Look, offered: Sequence[str]) -> tuple[Reading, ...]:
    """What is predicted of each operator that reads in parts; nothing where too little is known.

    That is so in a plan of several joins, before the stream has rows, for a relation that does not tell its number of
    rows, and for an operator that takes the memory that a rate needs.
    """
    joins = [stage for stage in stages_of(bound.plan) if isinstance(stage.plan, JoinPlan)]
    if len(joins) != 1 or not joins_relation(joins[0]):
        return ()
    join = joins[0].plan
    assert isinstance(join, JoinPlan)
    rows = looked.rows[0]
    if rows is None or not join.predicate.equalities:
        return ()
    try:
        relation = bound.relations[join.streams[S].name]
        count = relation.row_count()
        there, _ = relation.first_rows(SAMPLE_ROWS) if count else (rows, [])
    except (InputError, StreamJoinError):
        return ()  # the start says what is wrong with it
    if not count or not there.num_rows or (found := _keys(join, rows, there, count)) is None:
        return ()
    tuples = rows.select(list(routed_columns(join, R)))
    sizes = Bytes(
        tuples.nbytes / rows.num_rows + INDEX_BYTES,
        there.select(read_of(join)).nbytes / there.num_rows + INDEX_BYTES,
        entry=ENTRY_BYTES,
    )
    model = Join(sizes, _ANY_TIMES, count, found)
    readings = (_reading(bound, name, join, model) for name in offered if not registry.refusal(name, bound.plan))
    return tuple(reading for reading in readings if reading is not None)


def _reading(bound: Bound, name: str, join: JoinPlan, model: Join) -> Reading | None:
    if name not in registry.OF_RELATIONS or name == registry.CANDIDATES.sorts.name:
        return None
    operator = cast(MeshJoin, with_operator(bound, name).job().operators[0])  # whose kind says so
    if (memory := operator.scan.memory_bytes) is None:
        return None
    stream, relation = join.names[R], join.names[S]
    rows, size = model.relation_rows, model.relation_rows * model.sizes.row
    parts = operator.scan.parts(round(rows / operator.count), round(size / operator.count), operator.count)
    # All units together: each has its share of the memory, of the relation and of the join values.
    buffer_rows, caches = rows / parts, name == registry.CANDIDATES.reads_in_parts.name
    kept = (memory - buffer_rows * model.sizes.row) / COLLECTED_SHARE if caches else 0.0
    try:
        each = (round(rows / operator.count), round(size / operator.count))
        operator.check_relation([Part("", *each, 0, 0, unit) for unit in range(operator.count)])
        found: Balance = model.given_memory(memory - kept, buffer_rows, caches=caches)
    except InputError as refused:
        return Reading(name, stream, relation, memory, refusal=refused.message)
    return Reading(name, stream, relation, memory, rows / found.round_tuples, found.cached_share)


def _keys(join: JoinPlan, rows: pa.RecordBatch, there: pa.RecordBatch, count: int) -> Keys | None:
    """How often values come, by the rows that were looked at.

    Values that were seen once are as frequent as those that were not seen: together they have what is left. Each value
    is taken to have as many rows as one has on average.
    """
    cells, relations = _cells(join, R, rows), _cells(join, S, there)
    if not cells.size or not relations.size:
        return None
    each = relations.size / np.unique(relations).size
    counts = np.unique(cells, return_counts=True)[1]
    repeated = counts[counts > 1].astype(np.float64)
    left = 1 - repeated.sum() / cells.size
    others = max(count / each - repeated.size, 1.0)
    values = np.append(np.ones(repeated.size), others)
    shares = np.append(repeated / cells.size, left / others)
    return Keys(values, shares, np.full(values.size, each))


def _cells(join: JoinPlan, side: int, rows: pa.RecordBatch) -> np.ndarray:
    """The join values of the rows that have one."""
    rows = rows.filter(pa.array(select(join, side, rows).joinable))
    columns = {(join.names[side], name): rows.column(name) for name in rows.schema.names}
    return equality_cells([evaluate(key, columns, rows.num_rows) for key in join.equality_keys(side)])
