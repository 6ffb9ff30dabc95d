"""Why Spark's own join cannot run a join file: the query, or streams and relations that its own readers do not read."""

from __future__ import annotations

from collections.abc import Iterator

from streamjoin.operators import registry
from streamjoin.operators.kind import Joins
from streamjoin.plan.schema import ARRIVAL, StreamSchema
from streamjoin.settings.setting import Settings
from streamjoin.sources.file_kinds import CsvSettings, FileSettings
from streamjoin.sources.kafka_kind import KafkaSettings
from streamjoin.spec.prepare import Bound
from streamjoin.spec.sections import RelationFile, StreamFile
from streamjoin.spec.shed import SHEDS_NOTHING, shed_rules

FORMATS = {"parquet": "parquet", "csv": "csv", "jsonl": "json"}
"""What files may be -> what Spark calls them."""


def refusal(bound: Bound) -> str | None:
    """Why the one of Spark's own joins that is the operator cannot run this join file, or None if it can."""
    if reason := registry.refusal(bound.operator, bound.plan):
        return reason
    if shed_rules(bound.file, bound.plan):
        return SHEDS_NOTHING
    return next(_reasons(bound), None)


def entry_of(bound: Bound, schema: StreamSchema) -> StreamFile | RelationFile:
    """A stream or relation of a plan as the join file has it."""
    return bound.file.relations[schema.name] if schema.is_relation else bound.file.streams[schema.name]


def _reasons(bound: Bound) -> Iterator[str]:
    for schema in (*bound.plan.streams, *bound.plan.relations):
        entry = entry_of(bound, schema)
        what = f"{'relation' if schema.is_relation else 'stream'} {schema.name}"
        if isinstance(entry, KafkaSettings):
            if entry.format != "json":
                yield f"Spark's side of the comparison reads JSON from Kafka, and {what} is {entry.format}"
        elif entry.source not in FORMATS and schema.is_relation:
            yield (
                f"Spark's side of the comparison reads relations of {', '.join(FORMATS)} files, and {what} is "
                f"{entry.source}; write it to Parquet first"
            )
        elif entry.source not in FORMATS:
            yield f"Spark has no source for {what}: it is {entry.source}; write it to Parquet first"
        else:
            yield from _of_files(entry, what)
        if nested := [name for name in schema.columns.names if "." in name]:
            yield f'Spark\'s side of the comparison reads no fields of structs, and {what} has "{nested[0]}"'
        if len(set(map(str.lower, schema.columns.names))) < len(schema.columns.names):
            yield "Spark does not tell columns apart whose names differ by case only"
        if isinstance(entry, RelationFile):
            if entry.refresh is not None:
                yield f"Spark joins the files that there were when it started, and {what} has refresh; leave it out"
        elif entry.time == ARRIVAL and registry.entry(bound.operator).joins is not Joins.RELATION:
            yield f"{what} is stamped on arrival, so two systems would not see the same times"


def _of_files(entry: Settings, what: str) -> Iterator[str]:
    if isinstance(entry, CsvSettings) and (not entry.csv.header or entry.csv.names is not None):
        yield f"Spark's side of the comparison reads CSV with a line of column names, and {what} has csv.names"
    if isinstance(entry, FileSettings) and "**" in entry.path:
        yield f"Spark's patterns have no **, and the path of {what} has; name its folders with *"
