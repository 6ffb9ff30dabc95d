"""The streams and relations of a join file, opened: their columns, and how a task reads them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.errors import InputError, QueryError, RunError
from streamjoin.plan.ending import Ending, EndsByFile, EndsByRow, as_typed
from streamjoin.plan.schema import ARRIVAL, StreamSchema, check_schema, no_column, no_time, type_name
from streamjoin.plan.stages import Plan, running
from streamjoin.settings.values import shown
from streamjoin.sources.asked import may_read_rows
from streamjoin.sources.file_kinds import FileSettings
from streamjoin.sources.filelog import list_files, root_of
from streamjoin.sources.guess import first_schema, holds_rows
from streamjoin.sources.kind import Columns, Limits
from streamjoin.sources.registry import INPUTS, SOURCES
from streamjoin.sources.relation import AnyRelation, Relation
from streamjoin.sources.source import first_rows
from streamjoin.sources.spec import SourceSpec
from streamjoin.sources.texts import TEXT_FORMATS
from streamjoin.spec.job import as_recorded, ended_columns, recorded_columns
from streamjoin.spec.joinfile import JoinFile
from streamjoin.spec.sections import PunctuateFile, StreamFile


def open_inputs(file: JoinFile, *, anew: bool) -> dict[str, StreamSchema]:
    """The schema of every stream and relation of a join file, once all were looked at.

    Raises:
        InputError: one of them cannot be opened, or its columns are none that it can have.
    """
    schemas = {name: open_schema(file, name, stream) for name, stream in file.streams.items()}
    for name, stream in file.streams.items() if not anew else ():
        if SOURCES[stream.source].files(stream) and stream.schema_ is None:
            found = recorded_columns(file.checkpoint, name, stream.time, schemas[name].columns)
            schemas[name] = replace(schemas[name], columns=found or schemas[name].columns)
    ended = {} if anew else relations_ended(file)
    for name, entry in file.relations.items():
        if name in ended:
            schemas[name] = StreamSchema.of_relation(name, ended[name])
            continue
        relation = open_relation(file, name)
        is_pinned = relation.guesses_types and entry.schema_ is None and not anew
        columns = as_recorded(file.checkpoint, name, relation.columns) if is_pinned else relation.columns
        schemas[name] = StreamSchema.of_relation(name, columns)
    return schemas


def open_schema(file: JoinFile, name: str, stream: StreamFile) -> StreamSchema:
    """A stream's columns, time and delay; looks at its first file where the columns are not given.

    Raises:
        InputError: it cannot be opened, or its columns are none that a stream can have.
    """
    with _at(f"streams.{name}"):
        columns = SOURCES[stream.source].look(stream, stream.arrow_schema(), file.resolve)
        check_schema(columns)
    try:
        schema = StreamSchema(name, columns, stream.time, stream.time_unit, stream.delay, stream.idle)
    except InputError as wrong:
        if wrong.field == f"streams.{name}.time" and stream.time in columns.names and _has_headers_only(file, stream):
            raise InputError(
                f'column "{stream.time}" has no type yet: the file has a header and no rows; give a schema, such as '
                f"{{{stream.time}: timestamp}} with all columns, or start once there is a row",
                field=wrong.field,
            ) from None
        if wrong.field == f"streams.{name}.time" and (example := _text_in(file, stream, columns)) is not None:
            raise InputError(no_time(stream.time, pa.string(), example), field=wrong.field) from None
        raise
    return replace(schema, ending=_ending(name, columns, stream.punctuate), key=tuple(stream.key or ()))


def _has_headers_only(file: JoinFile, stream: StreamFile) -> bool:
    if stream.source != "csv" or not isinstance(stream, FileSettings) or stream.arrow_schema() is not None:
        return False
    return not holds_rows(file.resolve(stream.path), stream.dialect)


def _text_in(file: JoinFile, stream: StreamFile, columns: pa.Schema) -> str | None:
    """A text of a stream's time column, one that is no date or time if there is one.

    None where it has no texts, or where they are not to be read here.
    """
    if not isinstance(stream, FileSettings) or stream.time not in columns.names:
        return None
    column = columns.field(stream.time)
    if not pa.types.is_string(column.type) or not (stream.source in TEXT_FORMATS or may_read_rows()):
        return None
    with tempfile.TemporaryDirectory() as folder, suppress(RunError):
        schema = StreamSchema("any", columns, ARRIVAL)
        source = source_spec(file, stream, schema).open("any", Path(folder) / "log.jsonl")
        texts = first_rows(source, pa.schema([column]), _TEXTS)[0].column(0).drop_null()
        others = texts.filter(pc.invert(pc.match_substring_regex(texts, r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?$")))
        return next((shown(text) for text in (*others.to_pylist(), *texts.to_pylist())), None)
    return None


_TEXTS = 1_000
"""So many values of a column are looked at."""


def _ending(name: str, columns: pa.Schema, punctuate: PunctuateFile | None) -> Ending | None:
    """Which rows or files end periods; None where none does."""
    if punctuate is None or punctuate.column is None:
        return EndsByFile() if punctuate is not None and punctuate.per is not None else None
    place, column = f"streams.{name}.punctuate", punctuate.column
    if column not in columns.names:
        raise InputError(no_column(column, columns.names), field=f"{place}.column")
    kind = columns.field(column).type
    value = as_typed(punctuate.value, kind)
    if value is None:
        raise InputError(
            f'{shown(punctuate.value)} is no value that column "{column}" can hold, which is {type_name(kind)}; write '
            "the one that marks the rows that end a period",
            field=f"{place}.value",
        )
    return EndsByRow(column, value)


def relations_ended(file: JoinFile) -> dict[str, pa.Schema]:
    """The columns of relations that only queries join which have ended: nobody looks at these any more."""
    if not file.queries or not (ended := ended_columns(file.checkpoint)):
        return {}
    from streamjoin.query import parse

    texts = [query.query for query in file.queries.values() if not query.stopped]
    try:
        named = {name.lower() for text in texts for name in parse(text).streams}
    except QueryError:
        return {}  # whoever binds the query says what is wrong with it
    return {name: columns for name, columns in ended.items() if name.lower() not in named}


def joined_relations(file: JoinFile, plan: Plan) -> dict[str, AnyRelation]:
    """The relations of a plan, by name; those that only queries join which have ended are not opened."""
    joined = {plan.relations[stage.table].name for stage in running(plan) if stage.table is not None}
    # A guess may have other types than those that the query was bound to.
    return {
        one.name: replace(open_relation(file, one.name), columns=one.own_columns)
        if one.name in joined
        else _unopened(file, one.name, one.own_columns)
        for one in plan.relations
    }


def _unopened(file: JoinFile, name: str, columns: pa.Schema) -> AnyRelation:
    """A relation that nobody reads, whatever has become of it."""
    relation = file.relations[name]
    kind = INPUTS[relation.source]
    if kind.table is not None:
        table: AnyRelation = kind.table(name, relation, columns, relation.refresh, file.resolve)
        return table
    assert isinstance(relation, FileSettings)
    path = file.resolve(relation.path)
    return Relation(name, relation.source, (), columns, path, relation.dialect, path, relation.refresh)


def open_relation(file: JoinFile, name: str) -> AnyRelation:
    """A relation and its columns; looks at its first file, or asks its database.

    Raises:
        InputError: it cannot be opened, or its columns are none that a relation can have.
    """
    relation = file.relations[name]
    kind = INPUTS[relation.source]
    if kind.table is not None:
        with _at(f"relations.{name}", "table"):
            columns = kind.look(relation, relation.arrow_schema(), file.resolve)
            check_schema(columns, "relation")
            table: AnyRelation = kind.table(name, relation, columns, relation.refresh, file.resolve)
            return table
    assert isinstance(relation, FileSettings)
    with _at(f"relations.{name}"):
        path = file.resolve(relation.path)
        columns = kind.look(relation, relation.arrow_schema(), file.resolve)
        files = list_files(path)
        check_schema(columns, "relation")
        holds_rows = any(file.stat().st_size for file in files)
        if holds_rows and relation.source != "jsonl":  # whose records need not have every column
            carried = first_schema(relation.source, path, relation.dialect).names
            known = set(carried)
            if missing := [name for name in columns.names if name not in known]:
                raise InputError(f'{path} has no column "{missing[0]}"; it has {", ".join(carried[:20])}')
    return Relation(
        name, relation.source, tuple(files), columns, root_of(path), relation.dialect, path, relation.refresh
    )


@contextmanager
def _at(place: str, otherwise: str = "path") -> Iterator[None]:
    """Errors of an entry's source are about where it is, unless they name another of its fields."""
    try:
        yield
    except InputError as wrong:
        raise InputError(wrong.message, field=f"{place}.{wrong.field or otherwise}") from None


def require_ends(file: JoinFile) -> None:
    """Refuse streams that never end, where the join is to run until their end.

    Raises:
        InputError: one of them has no end of its own, and no `rows`.
    """
    for name, stream in file.streams.items():
        kind = SOURCES[stream.source]
        if kind.columns is Columns.OWN:
            open_schema(file, name, stream)
        if reason := kind.never_ends(stream):
            raise InputError(reason, field=f"streams.{name}.rows")


def is_bounded(file: JoinFile, stream: StreamFile) -> bool:
    """Whether nothing can be added to a stream: one file, or so many generated rows."""
    return SOURCES[stream.source].is_bounded(stream, file.resolve)


def is_sparks(stream: StreamFile) -> bool:
    """Whether Spark reads a stream by a source of its own."""
    return SOURCES[stream.source].opens is None


def source_spec(file: JoinFile, stream: StreamFile, schema: StreamSchema) -> SourceSpec:
    """How a task opens a stream that StreamJoin reads itself."""
    kind = SOURCES[stream.source]
    assert kind.opens is not None
    alone = isinstance(schema.ending, EndsByFile)
    limits = Limits(file.run.files_per_batch, file.run.offsets_per_batch, alone)
    return SourceSpec(kind.opens, kind.arguments(stream, file.resolve, limits), schema.columns)
