"""The streams and relations of a join file, opened: their columns, and how a task reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa

from streamjoin.errors import InputError
from streamjoin.generate import generator
from streamjoin.plan.schema import StreamSchema, check_schema
from streamjoin.sources.filelog import list_files, root_of
from streamjoin.sources.guess import first_schema
from streamjoin.sources.relation import Relation
from streamjoin.spec.job import SourceSpec, recorded_columns
from streamjoin.spec.joinfile import JoinFile
from streamjoin.spec.sections import RelationFile, StreamFile


def open_inputs(file: JoinFile, *, anew: bool) -> dict[str, StreamSchema]:
    """The schema of every stream, once all streams and relations of a join file were looked at.

    Raises:
        InputError: one of them cannot be opened, or its columns are none that it can have.
    """
    schemas = {name: open_schema(file, name, stream) for name, stream in file.streams.items()}
    for name, stream in file.streams.items() if not anew else ():
        if stream.path is not None and stream.schema_ is None:
            found = recorded_columns(file.checkpoint, name, stream.time, schemas[name].columns)
            schemas[name] = replace(schemas[name], columns=found or schemas[name].columns)
    for name in file.relations:  # although no query may name it: what is not there can never be joined
        open_relation(file, name)
    return schemas


def open_schema(file: JoinFile, name: str, stream: StreamFile) -> StreamSchema:
    """A stream's columns, time and delay; looks at its first file where the columns are not given.

    Raises:
        InputError: it cannot be opened, or its columns are none that a stream can have.
    """
    place = f"streams.{name}"
    if stream.source == "generator":
        columns = _generated(stream, place)
    else:
        with _at(f"{place}.path"):
            if stream.path is not None:  # although the schema may be given: what is not there cannot be read
                list_files(file.resolve(stream.path))
            columns = _columns(file, stream)
            check_schema(columns)
    return StreamSchema(name, columns, stream.time, stream.time_unit, stream.delay)


def open_relation(file: JoinFile, name: str) -> Relation:
    """A relation's files and columns; looks at its first file where the columns are not given.

    Raises:
        InputError: it cannot be opened, or its columns are none that a relation can have.
    """
    relation = file.relations[name]
    with _at(f"relations.{name}.path"):
        path = file.resolve(relation.path)
        files = list_files(path)
        columns = _columns(file, relation)
        check_schema(columns, "relation")
        if files and relation.source != "jsonl":  # whose records need not have every column
            carried = first_schema(relation.source, path, relation.csv.dialect()).names
            if missing := [name for name in columns.names if name not in carried]:
                raise InputError(f'{path} has no column "{missing[0]}"; it has {", ".join(carried[:20])}')
    return Relation(name, relation.source, tuple(files), columns, root_of(path), relation.csv.dialect())


def _columns(file: JoinFile, entry: StreamFile | RelationFile) -> pa.Schema:
    """As the entry gives them, or else as its first file has them."""
    if (given := entry.arrow_schema()) is not None:
        return given
    assert entry.path is not None
    return first_schema(entry.source, file.resolve(entry.path), entry.csv.dialect())


@contextmanager
def _at(field: str) -> Iterator[None]:
    """Errors that name no field are about this one."""
    try:
        yield
    except InputError as wrong:
        raise wrong if wrong.field else InputError(wrong.message, field=field) from None


def _generated(stream: StreamFile, place: str) -> pa.Schema:
    assert stream.kind is not None
    try:
        made = generator(stream.kind)
    except InputError as wrong:
        raise InputError(wrong.message, field=f"{place}.kind") from None
    try:
        made.check_options(stream.options)
    except InputError as wrong:
        raise InputError(wrong.message, field=f"{place}.options") from None
    return made.schema


def require_ends(file: JoinFile) -> None:
    """Refuse streams that never end, where the join is to run until their end.

    Raises:
        InputError: one of them is a generator without `rows`.
    """
    for name, stream in file.streams.items():
        if stream.source == "generator" and stream.rows is None and stream.kind is not None:
            _generated(stream, f"streams.{name}")
            if generator(stream.kind).length(stream.options) is None:
                raise InputError(
                    f"is missing; {stream.kind} never ends, so without it there is no end to run until",
                    field=f"streams.{name}.rows",
                )


def is_bounded(file: JoinFile, stream: StreamFile) -> bool:
    if stream.source == "generator" and stream.kind is not None:
        return stream.rows is not None or generator(stream.kind).length(stream.options) is not None
    return stream.path is not None and file.resolve(stream.path).is_file()


def source_spec(file: JoinFile, stream: StreamFile, schema: StreamSchema) -> SourceSpec:
    """How a task opens a stream that StreamJoin reads itself."""
    if stream.source == "generator":
        return SourceSpec(
            "generator",
            {
                "kind": stream.kind,
                "rate_per_s": stream.rate,
                "rows": stream.rows,
                "seed": stream.seed,
                "begins_now": stream.begin == "now",
                "rows_per_batch": file.run.offsets_per_batch,
                "options": stream.options,
            },
        )
    assert stream.path is not None
    settings = {
        "path": file.resolve(stream.path), "files_per_batch": file.run.files_per_batch, "csv": stream.csv.dialect()
    }  # fmt: skip
    return SourceSpec(stream.source, settings, schema.columns)
