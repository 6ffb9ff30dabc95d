"""Columns as clients see them."""

from __future__ import annotations

import pyarrow as pa
from pydantic import BaseModel

from streamjoin.plan.schema import type_name


class Column(BaseModel):
    """A column and its type, as join files name types."""

    name: str
    type: str


def columns_of(schema: pa.Schema) -> list[Column]:
    """The columns of a schema, in its order."""
    return [Column(name=field.name, type=type_name(field.type)) for field in schema]
