"""Loading jobs without the entries of what they read, up to a MiB per job, and the names of the entries alone."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import JSON
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import defer
from sqlalchemy.sql.expression import FunctionElement

from backend.catalog.models import Job

WITHOUT_ENTRIES: Final = (defer(Job.streams, raiseload=True), defer(Job.relations, raiseload=True))
"""Options of a SELECT of jobs."""


class names_in(FunctionElement[list[str]]):  # noqa: N801 - reads as a function of SQL
    """The names in a column with a JSON object, as a list; the values are not loaded."""

    type = JSON()
    inherit_cache = True


@compiles(names_in, "sqlite")
def _on_sqlite(element: names_in, compiler: Any, **given: Any) -> str:
    return f"(SELECT json_group_array(key) FROM json_each({compiler.process(element.clauses, **given)}))"


@compiles(names_in, "postgresql")
def _on_postgresql(element: names_in, compiler: Any, **given: Any) -> str:
    column = compiler.process(element.clauses, **given)
    return f"(SELECT coalesce(json_agg(key), '[]') FROM json_object_keys({column}) AS key)"
