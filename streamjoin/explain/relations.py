"""What people are told of relations before a job runs: their size, and what is kept of them. Samples for a preview."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.engine.operator import Operator
from streamjoin.errors import InputError, RunError
from streamjoin.explain.overlap import ROW_BYTES_MAX, Sample, row_sizes
from streamjoin.index.table import Table
from streamjoin.plan.expression import TRUE
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import VERSION, type_name
from streamjoin.plan.stages import Plan
from streamjoin.plan.stages import Table as TableInput
from streamjoin.plan.window import S
from streamjoin.relations.sorting import table_of
from streamjoin.sources.relation import AnyRelation, Relation
from streamjoin.spec.job import read_columns
from streamjoin.spec.prepare import Bound

SAMPLE_ROWS = 500_000
SAMPLE_BYTES = 64 << 20
SAMPLE_S = 1.5
"""A preview looks rows up in the first ones of a relation: as many as this, and as are read in so many seconds."""
SAMPLE_VERSION = 1
"""The version that they are of, as a job's first one would be."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a relation is.

    Args:
        name: what the query calls it.
        relation: what the join file calls it.
        rows: None where only reading them all would tell; `about` is then what they may be, if files tell that.
        files, bytes: None of a table of a database.
        place: where it is.
        keeps: the columns that results and conditions read of it, as text.
        is_sorted: it is kept sorted, and not as it comes.
    """

    name: str
    relation: str
    rows: int | None
    files: int | None
    bytes: int | None
    keeps: str
    place: str = ""
    is_sorted: bool = True
    about: int | None = None

    def __str__(self) -> str:
        size = self.place
        if self.files is not None and self.bytes is not None:
            size = f"{self.files:,} file{'' if self.files == 1 else 's'}, {self.bytes:,} bytes"
        if self.rows is not None:
            size = f"{_rows(self.rows)} in {size}"
        elif self.about is not None:
            size = f"about {_rows(self.about)} in {size}"
        return (
            f"{self.name}: {size}; {'read once and sorted' if self.is_sorted else 'copied as it comes'}, {self.keeps}"
        )

    def to_json(self) -> dict[str, Any]:
        """For the API."""
        return {"relation": self.relation, "rows": self.rows, "files": self.files, "bytes": self.bytes}


def sizes(bound: Bound, operators: Sequence[Operator | None]) -> tuple[Size, ...]:
    """How large each relation of a query is, as far as looking at its files tells.

    Args:
        operators: of each stage.
    """
    plan = bound.plan
    relations, found = bound.relations, []
    for stage in plan.stages:
        if stage.table is None or not isinstance(stage.plan, JoinPlan):
            continue
        relation = relations[plan.relations[stage.table].name]
        try:
            rows, size = relation.row_count(), relation.bytes()
            about = relation.about_rows() if rows is None else None
        except (InputError, RunError):
            rows, size, about = None, 0, None  # it goes while it is looked at: the start says so
        name = plan.relation_names[stage.table]
        operator, keeps = operators[stage.number], _keeps(stage.plan)
        is_sorted = operator is None or not operator.capabilities.reads_parts
        found.append(
            Size(name, relation.name, rows, relation.file_count, size, keeps, relation.place, is_sorted, about)
        )
    return tuple(found)


def _keeps(query: JoinPlan) -> str:
    columns = _read(query)
    selection = query.predicate.selections[S]
    words = f"with {', '.join(columns)}" if columns else "without its columns"
    return words if selection == TRUE else f"{words}, where {selection}"


def _read(query: JoinPlan) -> list[str]:
    """The columns that are read of a stage's relation."""
    return [name for name in read_columns(query, S) if name != VERSION]


def streams_words(plan: Plan, between: str) -> str:
    """What is joined, as `explain` and `validate` say it: streams within a window, and relations."""
    words = between.join(plan.names)
    if len(plan.names) > 1:
        words += f", {plan.window}"
    return words + relations_words(plan, ", with ")


def relations_words(plan: Plan, before: str) -> str:
    """The relations of a plan, in words."""
    what = "relation" if len(plan.relations) == 1 else "relations"
    return f"{before}{what} {', '.join(plan.relation_names)}" if plan.relations else ""


def relation_summary(relation: AnyRelation) -> str:
    """One line for `validate`."""
    columns = ", ".join(f"{field.name} {type_name(field.type)}" for field in relation.columns)
    if not isinstance(relation, Relation):
        return f"relation {relation.name}: {columns}; {relation.place}"
    rows, files = relation.row_count(), len(relation.files)
    size = f"{files:,} file{'' if files == 1 else 's'}"
    if rows is not None:
        size = f"{_rows(rows)} in {size}"
    return f"relation {relation.name}: {columns}; {size}"


def _rows(rows: int) -> str:
    return f"{rows:,} row{'' if rows == 1 else 's'}"


def relation_samples(bound: Bound) -> tuple[Sample, ...]:
    """The first rows of each relation of a query.

    Raises:
        RunError: a file is gone or damaged.
    """
    plan = bound.plan
    if not plan.relations:
        return ()
    relations = bound.relations
    queries = {stage.table: stage.plan for stage in plan.stages if isinstance(stage.plan, JoinPlan)}
    return tuple(_sample(relations[one.name], queries[number]) for number, one in enumerate(plan.relations))


def _sample(relation: AnyRelation, query: JoinPlan) -> Sample:
    names = _read(query) or [relation.columns.names[0]]
    parts = [pa.RecordBatch.from_pylist([], schema=pa.schema([relation.columns.field(name) for name in names]))]
    bad = large = rows_there = bytes_there = row_bytes = 0
    until = time.monotonic() + SAMPLE_S
    for rows, letters in relation.blocks(names):
        bad += letters
        found = row_sizes(rows)
        fits = found <= ROW_BYTES_MAX
        large += int(np.count_nonzero(~fits))
        rows, found = rows.filter(pa.array(fits)), found[fits]
        rows = rows.slice(0, SAMPLE_ROWS - rows_there)
        parts.append(pa.RecordBatch.from_arrays(rows.columns, schema=parts[0].schema))
        rows_there, bytes_there = rows_there + rows.num_rows, bytes_there + int(found.sum())
        row_bytes = max(row_bytes, int(found.max(initial=0)))
        if rows_there >= SAMPLE_ROWS or bytes_there >= SAMPLE_BYTES or time.monotonic() > until:
            break
    return Sample(pa.concat_batches(parts), np.zeros(0, np.int64), bad, large, row_bytes)


class SampledTables:
    """Relations of which only a sample is there, for units of a preview; see `engine.slot.Tables`.

    Args:
        plan: whose relations they are, and `rows` their rows.
    """

    def __init__(self, plan: Plan, rows: list[pa.RecordBatch]) -> None:
        self._rows = {
            stage.number: rows[read.number]
            for stage in plan.stages
            for read in stage.inputs
            if isinstance(read, TableInput)
        }
        self._open: dict[int, Table] = {}

    def open(self, relation: str, stage: int, version: int, plan: JoinPlan) -> Table:
        """See `Tables`."""
        if stage not in self._open:
            self._open[stage] = table_of(plan, self._rows[stage], version)
        return self._open[stage]
