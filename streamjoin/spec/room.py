"""What `auto` is told beside the plan: how large relations are, and how much room the disk has for them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from streamjoin.errors import InputError, StreamJoinError
from streamjoin.operators.choosing import Given
from streamjoin.operators.registry import OF_RELATIONS
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import VERSION
from streamjoin.plan.stages import Plan, joins_relation
from streamjoin.plan.window import S
from streamjoin.sources.asked import may_read_rows
from streamjoin.sources.relation import Relation
from streamjoin.spec.inputs import open_relation
from streamjoin.spec.job import read_columns, recorded_operators
from streamjoin.spec.joinfile import JoinFile

SAMPLE_ROWS = 1_000
INDEX_BYTES = 16
"""Of each row that is kept, beside its columns."""


def given(file: JoinFile, plan: Plan, *, anew: bool = False) -> Given:
    """What is known of the relations of a plan.

    Args:
        anew: whatever the join file's checkpoint has been used for.
    Cost: opens a relation's files for their number of rows, and reads its first rows where rows may be read.
    """
    joins = [stage.plan for stage in plan.stages if joins_relation(stage)]
    if not joins:
        return Given(file.operator.knobs)
    before = () if anew else recorded_operators(file.checkpoint)
    earlier = next((name for name in before if name in OF_RELATIONS), None)
    sizes = [kept_bytes(file, join) for join in joins if isinstance(join, JoinPlan)]
    known = [size for size in sizes if size is not None]
    return Given(file.operator.knobs, sum(known) if known else None, free_bytes(file.checkpoint), earlier)


def kept_bytes(file: JoinFile, join: JoinPlan) -> int | None:
    """What is kept of a stage's relation; None of a table of a database.

    Conditions on the relation alone may let fewer rows through. Files that do not say how many rows they have count as
    large as they are. How large a row is the first ones tell, and footers where this process may read no rows: of
    columns whose values have one width that is the same.
    """
    try:
        # A checkpoint may say otherwise what its columns are.
        relation = replace(open_relation(file, join.streams[S].name), columns=join.streams[S].own_columns)
        if not isinstance(relation, Relation):
            return None
        rows = relation.row_count()
        if rows is None:
            return relation.bytes()
        if not may_read_rows():
            return rows * INDEX_BYTES + relation.unpacked_bytes(read_of(join))
        first, _ = relation.first_rows(SAMPLE_ROWS)
    except (InputError, StreamJoinError):
        return None  # the start says what is wrong with it
    if not first.num_rows:
        return 0
    size = first.select(read_of(join)).nbytes / first.num_rows
    return round(rows * (size + INDEX_BYTES))


def read_of(join: JoinPlan) -> list[str]:
    """The columns of a stage's relation that results and conditions read."""
    return [name for name in read_columns(join, S) if name != VERSION]


def free_bytes(folder: Path) -> int:
    """The room on the disk of a folder, which need not be there yet."""
    folder = folder.absolute()
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free
