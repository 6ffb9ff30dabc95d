"""A kind of source, as the registry has one: what it is called, its settings, and what opens it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamjoin.settings.setting import Settings

Resolve = Callable[[str], Path]
"""A path of a join file, absolute."""


class Columns(Enum):
    """Who says which columns a stream has."""

    CARRIED = auto()
    """The source shows them, and `schema` may say others."""
    GIVEN = auto()
    """`schema` alone."""
    OWN = auto()
    """The source alone, so there is no `schema`."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a source a batch takes, at most, and whether no two files are read as one."""

    files_per_batch: int | None
    rows_per_batch: int
    alone: bool = False


@dataclass(frozen=True, slots=True)
class SourceKind:
    """A source as the join file knows it.

    Args:
        says: what it is, for people.
        settings: its fields.
        columns: who says which columns there are.
        look: settings, the given columns and how paths are resolved -> its columns; looks whether it is there. Raises
            an InputError, with the field where that is not `path`.
        opens: `module:attribute` of what opens it in a task, see `SourceSpec`; None where Spark reads it itself.
        arguments: settings, how paths are resolved, and limits -> the arguments of `opens`.
        check: settings, and whether columns are given; raises an InputError for what does not go together.
        files: of settings, the files and folders that it reads, by field.
        beside: of settings, the files that say how to read it, by field; whoever starts a join reads them.
        hosts: of settings, what it reaches over the network.
        is_bounded: settings and how paths are resolved -> whether nothing can be added to it.
        never_ends: settings -> why it has no end unless `rows` says one, or None.
        table: name, settings, columns, how often it is read anew, and how paths are resolved -> the relation; None
            where it is one of files.
        no_relation: why it is not a relation; None where it can be one.
    """

    name: str
    says: str
    settings: type[Settings]
    columns: Columns
    look: Callable[[Any, pa.Schema | None, Resolve], pa.Schema]
    opens: str | None = None
    arguments: Callable[[Any, Resolve, Limits], dict[str, Any]] = lambda settings, resolve, limits: {}
    check: Callable[[Any, bool], None] = lambda settings, has_columns: None
    files: Callable[[Any], Mapping[str, str]] = lambda settings: {}
    beside: Callable[[Any], Mapping[str, str]] = lambda settings: {}
    hosts: Callable[[Any], str] = lambda settings: ""
    is_bounded: Callable[[Any, Resolve], bool] = lambda settings, resolve: False
    never_ends: Callable[[Any], str | None] = lambda settings: None
    table: Callable[[str, Any, pa.Schema, int | None, Resolve], Any] | None = None
    no_relation: str | None = "rows of it never end, so write it under streams"
