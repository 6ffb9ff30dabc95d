"""What joins of a stream with a relation are predicted to do: how many rows a second, from how much reading and memory.

Source: SSBJ (DAPD 2019), section 3: the cache inequality and equation 1 say how many tuples a round through the
relation has, and equations 2 and 3 with this machine's unit costs how many are joined a second. That is the time of
units alone; a report has the same measured (`operators/reading.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from streamjoin.errors import InputError, StreamJoinError
from streamjoin.explain.figures import bytes_text, figure
from streamjoin.explain.parts import parts_of
from streamjoin.explain.sampling import SAMPLE_ROWS, Look, look
from streamjoin.index.columns import routed_columns
from streamjoin.index.layout import equality_cells
from streamjoin.index.table import Part
from streamjoin.intake.selection import select
from streamjoin.machine import free_bytes
from streamjoin.operators import registry
from streamjoin.operators.costs.keys import Keys
from streamjoin.operators.costs.reading import BATCH_S, CACHE_TIMES, SCAN_TIMES, SORTED_TIMES, rate_of
from streamjoin.operators.costs.ssbj import Balance, Bytes, Join
from streamjoin.operators.meshjoin.operator import MeshJoin
from streamjoin.operators.meshjoin.scan import Scan
from streamjoin.operators.ssbj.cache import ENTRY_BYTES
from streamjoin.operators.ssbj.step import COLLECTED_SHARE
from streamjoin.plan.evaluation import evaluate
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.stages import joins_relation
from streamjoin.plan.window import R, S
from streamjoin.spec.changed import with_operator
from streamjoin.spec.prepare import Bound
from streamjoin.spec.room import INDEX_BYTES, read_of


@dataclass(frozen=True, slots=True)
class Reading:
    """What is predicted of one operator, all its units together.

    Args:
        stream, relation: as the query calls them.
        memory_bytes: what the operator may take, or with `asked_per_s` what that takes; None of one without a bound.
        rate_per_s: tuples a second that units join in it, if as many come.
        rows_per_tuple: rows of the relation that are read for each of the stream; 0 where all is cached.
        cached_share: of the stream's rows, those that are joined from the cache.
        asked_per_s: the rate that the join file gives, if it does.
        free_bytes: the memory that this machine has free, where it matters.
        refusal: why it cannot run so; the figures are 0 then.
        about_rows: how many rows the relation may have, where they are not counted.
    """

    operator: str
    stream: str
    relation: str
    memory_bytes: int | None
    rate_per_s: float = 0.0
    rows_per_tuple: float = 0.0
    cached_share: float = 0.0
    asked_per_s: float | None = None
    free_bytes: int | None = None
    refusal: str = ""
    about_rows: int | None = None

    @property
    def words(self) -> str:
        """The prediction in words."""
        about = "" if self.about_rows is None else f", with about {figure(self.about_rows)} rows of {self.relation}"
        return self.refusal or f"{self._words}{about}"

    @property
    def _words(self) -> str:
        rate = f"units join up to {figure(self.rate_per_s)} tuples/s"
        if self.memory_bytes is None:
            return rate
        cached = f"{self.cached_share:.0%} of {self.stream} from the cache, " if self.cached_share else ""
        read = f"{figure(self.rows_per_tuple)} rows of {self.relation} read for each row of {self.stream}"
        if not self.rows_per_tuple:
            read = f"nothing of {self.relation} read once it is cached"
        if self.asked_per_s is None:
            return f"{cached}{read}, in {bytes_text(self.memory_bytes)}; {rate}"
        return f"{cached}{read}; {self.need}"

    @property
    def need(self) -> str:
        """What a given rate takes, and whether it is there."""
        assert self.asked_per_s is not None and self.memory_bytes is not None
        takes = f"{figure(self.asked_per_s)} tuples/s take {bytes_text(self.memory_bytes)}"
        if self.free_bytes is None:
            return takes
        has = f"this machine has {bytes_text(self.free_bytes)} free"
        return f"{takes}, and {has}" if not self.problem else f"{takes}, but {has}"

    @property
    def problem(self) -> str:
        """What a start warns of: a rate that no memory is enough for, or none that is there."""
        if self.asked_per_s is None:
            return ""
        if self.refusal:
            return f"{self.refusal}; rows that come faster wait"
        assert self.memory_bytes is not None
        if self.free_bytes is None or self.memory_bytes <= self.free_bytes:
            return ""
        return (
            f"{figure(self.asked_per_s)} tuples/s take {bytes_text(self.memory_bytes)}, but this machine has "
            f"{bytes_text(self.free_bytes)} free; give a lower operator.rate, or operator.memory as the bound"
        )

    def __str__(self) -> str:
        return f"{self.operator}: {self.words}"

    def to_json(self) -> dict[str, Any]:
        """For the API; without figures where it cannot run."""
        if self.refusal:
            return {"text": self.words}
        figures = {
            "memory_bytes": self.memory_bytes,
            "rate_per_s": round(self.rate_per_s, 1),
            "rows_read_per_tuple": round(self.rows_per_tuple, 4),
            "cached_share": round(self.cached_share, 4),
        }
        asked = {"asked_per_s": self.asked_per_s, "free_bytes": self.free_bytes, "problem": self.problem or None}
        return {"text": self.words, **figures, **(asked if self.asked_per_s is not None else {})}


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is known of a join before it runs.

    Args:
        model: of one core that does the work of all units.
        slots: how many cores there are.
        is_here: units run on this machine.
        is_counted: how many rows the relation has is known, and not taken from its bytes.
    """

    join: JoinPlan
    model: Join
    slots: int
    is_here: bool
    is_counted: bool


def predicted(bound: Bound) -> Reading | str | None:
    """What is predicted of the operator a job is about to run, or why nothing is; None of a job without relations."""
    parts = [part for part in parts_of(bound) if any(map(joins_relation, part.plan.stages))]
    if not parts:
        return None
    if len(parts) > 1:
        return f"{len(parts)} parts of the job join relations, and what they do together is not predicted"
    (part,) = parts
    if registry.is_sparks(part.operator):
        return None
    found, unknown = readings(part, look(part), [part.operator])
    return found[0] if found else unknown or None


def readings(bound: Bound, looked: Look, offered: Sequence[str]) -> tuple[tuple[Reading, ...], str]:
    """What is predicted of each operator that joins relations; where too little is known nothing, and why.

    That is so in a plan of several joins, before the stream has rows, without an equality, and for a relation that does
    not tell its number of rows.
    """
    if isinstance(seen := _seen(bound, looked), str):
        return (), seen
    names = [name for name in offered if name in registry.OF_RELATIONS and not registry.refusal(name, bound.plan)]
    return tuple(_reading(with_operator(bound, name), name, seen) for name in names), ""


def _seen(bound: Bound, looked: Look) -> _Seen | str:
    """What is known, or why that is too little."""
    joins = [stage for stage in bound.plan.stages if isinstance(stage.plan, JoinPlan)]
    if len(joins) != 1 or not joins_relation(joins[0]):
        return "its rate beside other joins is not predicted"
    join = joins[0].plan
    assert isinstance(join, JoinPlan)
    rows, name = looked.rows[0], join.names[S]
    if not join.predicate.equalities:
        return "its rate without an equality is not predicted"
    if rows is None:
        return f"its rate needs rows of {join.names[R]}, not known yet"
    try:
        relation = bound.relations[join.streams[S].name]
        count, is_counted = relation.row_count(), True
        if count is None:
            count, is_counted = relation.about_rows(), False
        there, _ = relation.first_rows(SAMPLE_ROWS) if count else (rows, [])
    except (InputError, StreamJoinError):
        return f"{name} could not be looked at"  # the start says what is wrong with it
    if count is None:
        return f"the rows of {name} are not counted before it is read"
    if not count or not there.num_rows or (found := _keys(join, rows, there, count)) is None:
        return f"its rate is not predicted, as no row of {join.names[R]} or of {name} that was looked at can be joined"
    tuples = rows.select(list(routed_columns(join, R)))
    sizes = Bytes(
        tuples.nbytes / rows.num_rows + INDEX_BYTES,
        there.select(read_of(join)).nbytes / there.num_rows + INDEX_BYTES,
        entry=ENTRY_BYTES,
    )
    model = Join(sizes, SCAN_TIMES, count, found)
    return _Seen(join, model, bound.file.slots, bound.file.cluster is None, is_counted)


def _reading(bound: Bound, name: str, seen: _Seen) -> Reading:
    join, operator = seen.join, bound.job().operators[0]
    stream, relation = join.names[R], join.names[S]
    at_once = min(len(operator.units), seen.slots)
    about = None if seen.is_counted else round(seen.model.relation_rows)
    if name == registry.CANDIDATES.sorts.name:
        rate_per_s = at_once * rate_of(SORTED_TIMES, seen.model.keys.matches)
        return Reading(name, stream, relation, None, rate_per_s, about_rows=about)
    scan, units = cast(MeshJoin, operator).scan, len(operator.units)  # whose kind says so
    # All units together: each has its share of the memory, of the relation and of the join values.
    caches = name == registry.CANDIDATES.reads_in_parts.name
    model = replace(seen.model, times=(CACHE_TIMES if caches else SCAN_TIMES).of_units(units))
    rows, size = model.relation_rows, model.relation_rows * model.sizes.row
    each = (round(rows / units), round(size / units))
    parts = scan.parts(*each, units)
    buffer_rows = rows / parts
    if scan.rate_per_s is not None:  # what comes during a batch waits for the next, however soon units are done
        a_step = 1e9 * BATCH_S * at_once / scan.steps_of(parts, each[1])
        model = replace(model, times=replace(model.times, seek=model.times.seek + a_step))
    free = free_bytes() if scan.rate_per_s is not None and seen.is_here else None
    reading = Reading(
        name, stream, relation, scan.memory_bytes, asked_per_s=scan.rate_per_s, free_bytes=free, about_rows=about
    )
    try:
        operator.check_relation([Part("", *each, 0, 0, unit) for unit in range(units)])
        found = _balance(model, scan, buffer_rows, at_once, caches=caches)
    except InputError as refused:
        return replace(reading, refusal=refused.message)
    return replace(
        reading, memory_bytes=scan.memory_bytes or round(found.memory_bytes), rate_per_s=at_once * found.rate_per_s,
        rows_per_tuple=rows / found.round_tuples, cached_share=found.cached_share,
    )  # fmt: skip


def _balance(model: Join, scan: Scan, buffer_rows: float, at_once: int, *, caches: bool) -> Balance:
    if (asked := scan.rate_per_s) is not None:
        if asked >= (most := at_once * model.highest_rate_per_s(buffer_rows, caches=caches)):
            raise InputError(f"no memory lets {figure(asked)} tuples/s through; units join up to {figure(most)}")
        return model.given_rate(asked / at_once, buffer_rows, caches=caches)
    assert scan.memory_bytes is not None
    memory = scan.memory_bytes
    kept = (memory - buffer_rows * model.sizes.row) / COLLECTED_SHARE if caches else 0.0
    return model.given_memory(memory - kept, buffer_rows, caches=caches)


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
