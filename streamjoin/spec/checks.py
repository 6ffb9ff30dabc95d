"""What must hold between the fields of one entry or section of a join file."""

from __future__ import annotations

import re

from streamjoin.errors import InputError
from streamjoin.plan.window import format_us
from streamjoin.results.stores.registry import STORES
from streamjoin.settings.values import cut, shown
from streamjoin.sources.registry import INPUTS
from streamjoin.spec.sections import ONE_OF, OperatorFile, RelationFile, ResultsFile, RunFile, SnapshotFile, StreamFile
from streamjoin.state.uris import without_secrets

REFRESH_US_MIN = 1_000_000
NAMED = {"streams": "stream", "relations": "relation"}
"""Sections whose entries have names that a query uses."""


def check_name(name: str, section: str) -> str:
    """Where the entry of that name is."""
    place = f"{section}.{cut(name)}"
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,62}", name):
        raise InputError(f"a {NAMED[section]}'s name is a letter or _, then letters, digits and _, 63 at most",
                         field=place)  # fmt: skip
    return place


def _check_source(entry: StreamFile | RelationFile, place: str) -> None:
    kind = INPUTS[entry.source]
    try:
        files = kind.files(entry)
    except InputError as wrong:
        raise InputError(wrong.message, field=f"{place}.{wrong.field}") from None
    for field, path in files.items():
        check_path(path, f"{place}.{field}", READS)
    for field, path in kind.beside(entry).items():
        check_path(path, f"{place}.{field}", BESIDE)
    try:
        kind.check(entry, entry.schema_ is not None)
    except InputError as wrong:
        raise InputError(wrong.message, field=f"{place}.{wrong.field}") from None
    try:
        entry.arrow_schema()
    except InputError as wrong:
        raise InputError(wrong.message, field=f"{place}.schema") from None


def check_relation(name: str, relation: RelationFile) -> None:
    """Refuse a relation whose fields do not go together."""
    place = check_name(name, "relations")
    if relation.refresh is not None and relation.refresh < REFRESH_US_MIN:
        raise InputError("is no such span; a relation is looked at once a second at most", field=f"{place}.refresh")
    _check_source(relation, place)


def check_stream(name: str, stream: StreamFile, run: RunFile) -> None:
    """Refuse a stream whose fields do not go together, or not with how often there are batches."""
    place = check_name(name, "streams")
    if stream.shed is not None:
        try:
            stream.shed.rule()
        except InputError as wrong:
            raise InputError(wrong.message, field=f"{place}.shed.{wrong.field}") from None
    if stream.idle is not None:
        _check_idle(stream.idle, run, f"{place}.idle")
    if stream.deletes and not stream.key:
        raise InputError(
            "needs key, the columns that say what a row ends, such as key: [sym]", field=f"{place}.deletes"
        )
    if stream.key is not None and not stream.deletes:
        raise InputError("means nothing without deletes: true; add that, or leave it out", field=f"{place}.key")
    if stream.punctuate is not None:
        _check_punctuate(stream, f"{place}.punctuate")
    _check_source(stream, place)


def _check_idle(idle_us: int, run: RunFile, place: str) -> None:
    if idle_us == 0:
        raise InputError("is 0s; give a span such as 30s, or leave it out for a stream that is never idle", field=place)
    for name, cure in (("heartbeat", "a shorter heartbeat"), ("every", "more batches")):
        if idle_us < (often_us := getattr(run, name)):
            raise InputError(
                f"{format_us(idle_us)} is less than run.{name}, {format_us(often_us)}, by which silence is noticed; "
                f"give a longer span, or {cure}",
                field=place,
            )


RULES = "{every: 1s}, {column: kind, value: end} or {per: file}"
"""How streams punctuate."""


def _check_punctuate(stream: StreamFile, place: str) -> None:
    assert stream.punctuate is not None
    every, column, value, per = (getattr(stream.punctuate, name) for name in ("every", "column", "value", "per"))
    rules = [name for name, given in (("every", every), ("column", column), ("per", per)) if given is not None]
    if value is not None and column is None:
        raise InputError(
            "says nothing without a column; write the column whose rows have this value where a period ends",
            field=f"{place}.value",
        )
    if not rules:
        raise InputError(f"is empty; write {RULES}", field=place)
    if len(rules) > 1:
        raise InputError(f"has {' and '.join(rules)}; a stream punctuates by one of them, so keep one", field=place)
    if every == 0:
        raise InputError("is 0s; give a span such as 1s", field=f"{place}.every")
    if column is not None and value is None:
        raise InputError(
            f"is missing; write what column {shown(column)} holds in the rows that end a period", field=f"{place}.value"
        )
    if per is not None and not INPUTS[stream.source].files(stream):
        raise InputError(
            f"is for streams of files, and {stream.source} has none; write {{every: 1s}}, or {{column: kind, value: "
            "end}",
            field=f"{place}.per",
        )


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
            check_path(target, f"{place}.{field}", WRITES)


_JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def _check_store(results: ResultsFile, place: str) -> None:
    assert results.store is not None
    for field, path in STORES[results.store].files(results).items():
        check_path(path, f"{place}.{field}", KEEPS)
    if results.job is not None and not _JOB.fullmatch(results.job):
        raise InputError(f"{shown(results.job)} is not a job name; use letters, digits, ., _ and -, 100 at most",
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


# What stands in place of a URI, by what it was written for.
READS = "files are read from folders of this machine; mount the place and name its folder"
BESIDE = "it is read from a file of this machine; mount the place and name the file there, or write here what it says"
WRITES = (
    "results are written to folders of this machine; mount the place and name its folder, or keep them in a store on "
    "servers, such as results: {store: cassandra, hosts: [10.0.0.5]}"
)
KEEPS = "the store is one file of this machine; name a path, or take store: cassandra or hbase, which are on servers"
CHECKPOINT = "a checkpoint is a folder of this machine; name one, and keep state at such a place with run.state"
CACHE = "a cache is a folder of each machine; name one"
_URI = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*://")


def check_path(path: str, field: str, otherwise: str | None) -> None:
    """Refuse a text that cannot be a path on this machine.

    Args:
        otherwise: what to say of a URI: why it does not work here, and what does; None where a URI is fine.
    """
    if not path.strip():
        raise InputError("is empty; name a file or folder", field=field)
    if not path.isprintable():
        raise InputError(f"{shown(path)} has characters that no path should have", field=field)
    if otherwise is not None and _URI.match(path):
        local = path.strip().removeprefix("file://")
        if local.startswith("/"):  # as a path it would be the folder `file:` of where the join file is
            raise InputError(f"is a URI; write the path alone, {shown(local)}", field=field)
        raise InputError(f"{shown(without_secrets(path.strip()))} is a URI, and {otherwise}", field=field)


def check_joins_nothing(operator: OperatorFile) -> None:
    """Refuse settings of a join where a query reads one stream."""
    given = ["name"] if operator.name != "auto" else [*operator.knobs]
    given += [] if operator.index == "auto" else ["index"]
    given += [] if operator.archive_period is None else ["archive_period"]
    if given:
        raise InputError("this query reads one stream and joins nothing; leave it out", field=f"operator.{given[0]}")
