"""What must hold between the fields of one entry or section of a join file."""

from __future__ import annotations

import re

from streamjoin.errors import InputError, UnsupportedError
from streamjoin.results.stores.registry import STORES
from streamjoin.settings.values import cut, shown
from streamjoin.spec.sections import ONE_OF, PunctuateFile, RelationFile, ResultsFile, SnapshotFile, StreamFile

_NEEDED = {
    "parquet": ("path",), "csv": ("path",), "jsonl": ("path",), "arrow": ("path",),
    "kafka": ("servers", "topic", "format"), "generator": ("kind",),
}  # fmt: skip
_FOR_FILES = frozenset({"path", "schema_"})
_OF_SOURCE = {
    "parquet": _FOR_FILES, "csv": _FOR_FILES | {"csv"}, "jsonl": _FOR_FILES, "arrow": _FOR_FILES,
    "kafka": frozenset({"servers", "topic", "format", "avro_schema", "starting", "client", "schema_"}),
    "generator": frozenset({"kind", "rate", "rows", "seed", "begin", "options"}),
}  # fmt: skip
"""The fields of a stream that mean something to one kind of source only."""
STREAMS_ONLY = {
    **dict.fromkeys(("time", "time_unit", "delay", "punctuate"),
                    "a relation has no time; leave it out, or write the table under streams"),
    "shed": "a relation has no time, and nothing of it is shed; leave it out",
    **{field: f"a relation is a finite table of files; this is for {source} streams"
       for source in ("kafka", "generator") for field in _OF_SOURCE[source] - _FOR_FILES},
}  # fmt: skip
"""Why a relation takes no such field."""
NAMED = {"streams": "stream", "relations": "relation"}
"""Sections whose entries have names that a query uses."""


def check_name(name: str, section: str) -> str:
    """Where the entry of that name is."""
    place = f"{section}.{cut(name)}"
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,62}", name):
        raise InputError(f"a {NAMED[section]}'s name is a letter or _, then letters, digits and _, 63 at most",
                         field=place)  # fmt: skip
    return place


def _check_columns(entry: StreamFile | RelationFile, place: str) -> None:
    try:
        entry.arrow_schema()
    except InputError as wrong:
        raise InputError(wrong.message, field=f"{place}.schema") from None


def check_relation(name: str, relation: RelationFile) -> None:
    place = check_name(name, "relations")
    check_path(relation.path, f"{place}.path")
    if relation.source == "csv":
        _check_csv(relation, f"{place}.csv")
    elif "csv" in relation.model_fields_set:
        raise InputError(f"a {relation.source} relation takes no such field; it is for csv", field=f"{place}.csv")
    _check_columns(relation, place)


def _check_csv(entry: StreamFile | RelationFile, place: str) -> None:
    csv = entry.csv
    for field, mark in (("delimiter", csv.delimiter), ("quote", csv.quote)):
        if (mark or field == "delimiter") and (len(mark) != 1 or not mark.isascii() or mark in "\r\n\0"):
            raise InputError(f"{shown(mark)} is not one ASCII character, such as {_MARKS[field]}",
                             field=f"{place}.{field}")  # fmt: skip
    if csv.delimiter == csv.quote:
        raise InputError("is the delimiter, too; the two differ", field=f"{place}.quote")
    if any(mark and mark in csv.null for mark in (csv.delimiter, csv.quote, "\r", "\n")):
        raise InputError(f"{shown(csv.null)} has a delimiter, a quote or a line break in it", field=f"{place}.null")
    if csv.names is not None and (not csv.names or len(set(csv.names)) < len(csv.names)):
        raise InputError("needs a name for each column, each once", field=f"{place}.names")
    if not csv.header and csv.names is None and entry.schema_ is None:
        raise InputError("is missing; without a line of column names give names or a schema", field=f"{place}.names")


_MARKS = {"delimiter": '";"', "quote": '"\'", or "" for none'}


def check_stream(name: str, stream: StreamFile) -> None:
    place = check_name(name, "streams")
    for field in _NEEDED[stream.source]:
        if getattr(stream, field) is None:
            raise InputError(f"is missing; a {stream.source} stream needs it", field=f"{place}.{field}")
    if stream.shed is not None:
        try:
            stream.shed.rule()
        except InputError as wrong:
            raise InputError(wrong.message, field=f"{place}.shed.{wrong.field}") from None
    if stream.punctuate is not None:
        _check_punctuate(stream.punctuate, f"{place}.punctuate")
    special = frozenset().union(*_OF_SOURCE.values())
    for field in stream.model_fields_set & special - _OF_SOURCE[stream.source]:
        takers = " and ".join(source for source, fields in _OF_SOURCE.items() if field in fields)
        raise InputError(
            f"a {stream.source} stream takes no such field; it is for {takers}",
            field=f"{place}.{field.rstrip('_')}",
        )
    if stream.path is not None:
        check_path(stream.path, f"{place}.path")
    if stream.source == "csv":
        _check_csv(stream, f"{place}.csv")
    if stream.source == "kafka" and stream.schema_ is None:
        raise InputError("is missing; Kafka records do not carry one", field=f"{place}.schema")
    if stream.format == "avro" and stream.avro_schema is None:
        raise InputError("is missing; Avro records are read with the schema they were written with",
                         field=f"{place}.avro_schema")  # fmt: skip
    _check_columns(stream, place)


def _check_punctuate(punctuate: PunctuateFile, place: str) -> None:
    for field, what in (("column", "punctuations by a column"), ("per", "punctuations per file")):
        if getattr(punctuate, field) is not None:
            raise UnsupportedError(f"{what} are not supported by this version; write {{every: 1s}}", field=place)
    if punctuate.every is None:
        raise InputError("is empty; write {every: 1s}", field=place)
    if punctuate.every == 0:
        raise InputError("is 0s; give a span such as 1s", field=f"{place}.every")


def check_results(results: ResultsFile, place: str) -> None:
    chosen = [name for name in ("parquet", "jsonl", "discard", "store") if getattr(results, name) is not None]
    if len(chosen) != 1:
        raise InputError(ONE_OF, field=place)
    if chosen == ["store"]:
        _check_store(results, place)
        return
    for field in results.model_fields_set - {"parquet", "jsonl", "discard"}:
        raise InputError("is for result stores only", field=f"{place}.{field}")
    if results.discard is False:
        raise InputError("is true or left out; to keep results, name parquet or jsonl", field=f"{place}.discard")
    for field in ("parquet", "jsonl"):
        if (target := getattr(results, field)) is not None:
            check_path(target, f"{place}.{field}")


_JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def _check_store(results: ResultsFile, place: str) -> None:
    assert results.store is not None
    for field, path in STORES[results.store].files(results).items():
        check_path(path, f"{place}.{field}")
    if results.job is not None and not _JOB.fullmatch(results.job):
        raise InputError(f"{shown(results.job)} is no name for results; use letters, digits, ., _ and -, 100 at most",
                         field=f"{place}.job")  # fmt: skip
    if results.select is not None and not results.select:
        raise InputError("is empty; name result columns, or leave it out to keep all", field=f"{place}.select")
    if results.retain == 0:
        raise InputError("is 0s; give a span such as 30d, or leave it out to keep all", field=f"{place}.retain")
    if results.snapshot is not None:
        _check_snapshot(results.snapshot, f"{place}.snapshot")


def _check_snapshot(snapshot: SnapshotFile, place: str) -> None:
    if snapshot.epoch == 0:
        raise InputError("is 0s; an epoch lasts longer, such as 1s", field=f"{place}.epoch")
    if snapshot.epoch is not None and snapshot.batches is not None:
        raise InputError("an epoch is a span or a number of batches, not both; leave one out", field=f"{place}.batches")
    if snapshot.punctuation:
        for field in sorted(snapshot.model_fields_set - {"punctuation"}):
            raise InputError("belongs to commits by epoch; a punctuation closes a snapshot whatever its size",
                             field=f"{place}.{field}")  # fmt: skip
    if snapshot.delays is not None and snapshot.delayed is None:
        raise InputError("means nothing without delayed, such as delayed: 0.5", field=f"{place}.delays")


def check_path(path: str, field: str) -> None:
    if not path.strip():
        raise InputError("is empty; name a file or folder", field=field)
    if not path.isprintable():
        raise InputError(f"{shown(path)} has characters that no path should have", field=field)
