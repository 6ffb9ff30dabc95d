"""The parts of a join file: models whose fields are the fields of the file.

What a model cannot say, such as that two fields exclude each other, is in `checks.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import ConfigDict, Field, ModelWrapValidatorHandler, create_model, model_validator

from streamjoin.intake.shedding import ShedRule
from streamjoin.operators.kind import CommonSettings
from streamjoin.plan.schema import parse_schema
from streamjoin.results.stores.registry import STORES
from streamjoin.settings.setting import Settings, setting
from streamjoin.settings.values import Count, Flag, Names, Size, Slots, Span
from streamjoin.settings.variants import as_kind, chosen, refusal
from streamjoin.sources.kind import Columns
from streamjoin.sources.registry import INPUTS, SOURCES, relation_kinds
from streamjoin.spec.cluster import ClusterFile


class PunctuateFile(Settings):
    """`punctuate:` of a stream."""

    every: Annotated[Span | None, setting("a punctuation for each such span of event time", unset="none")] = None
    column: Annotated[str | None, setting("with value: rows that hold it there end a period", unset="none")] = None
    value: Annotated[Any, setting("what the column holds in those rows", unset="none")] = None
    per: Annotated[Literal["file"] | None, setting("the end of each file ends a period", unset="none")] = None


class ShedFile(Settings):
    """`shed:` of a stream: load shedding, see `ShedRule`."""

    threshold: Annotated[Count, setting("live tuples per unit at which shedding starts")]
    capacity: Annotated[Count, setting("live tuples per unit at which all tuples are shed")]
    base: Annotated[float, Field(strict=True), setting("the share that is shed from the threshold on, below 1")] = 0.0
    shape: Annotated[str, setting("how the share grows from there: linear or quadratic")] = "linear"

    def rule(self) -> ShedRule:
        """The rule.

        Raises:
            InputError: it is wrong; with the name of the field.
        """
        return ShedRule(self.threshold, self.capacity, self.base, self.shape)


class EntryFile(Settings):
    """What streams and relations share."""

    source: str
    schema_: Annotated[dict[str, str] | None, setting("the columns: name -> type", unset="as the source has them")] = (
        Field(default=None, alias="schema")
    )

    def arrow_schema(self) -> pa.Schema | None:
        """The given columns; None where the source carries them."""
        return None if self.schema_ is None else parse_schema(self.schema_, self._what())

    @classmethod
    def _what(cls) -> str:
        return "stream"


class StreamFile(EntryFile):
    """One entry of `streams:`; with the fields of its source, see `sources/registry.py`."""

    source: Annotated[str, setting("where its rows come from")]
    time: Annotated[str, setting("the column of the event time, or arrival for data without one")]
    time_unit: Annotated[Literal["s", "ms", "us"], setting("unit of a time column of integers")] = "us"
    delay: Annotated[
        Span, setting("disorder inside which results are exact"), Field(json_schema_extra={"default": "0s"})
    ] = 0
    idle: Annotated[
        Span | None,
        setting(
            "a silence after which the stream holds back the others no longer, such as 30s",
            unset="never; a Kafka partition beside others after 60s", keeps_state=True,
        ),
    ] = None  # fmt: skip
    key: Annotated[
        Names | None, setting("the columns of a key that a row may end, such as [sym]; with deletes", unset="none")
    ] = None
    deletes: Annotated[
        Flag,
        setting("a row with nothing but its key and its time ends that key, for ASOF JOIN"),
    ] = False
    punctuate: Annotated[
        PunctuateFile | None, setting("where snapshots close by punctuation", unset="none", keeps_state=True)
    ] = None
    shed: Annotated[ShedFile | None, setting("drops tuples under overload", unset="off")] = None

    @model_validator(mode="wrap")
    @classmethod
    def _of_its_kind(cls, value: Any, handler: ModelWrapValidatorHandler[StreamFile]) -> StreamFile:
        """With the fields of its source."""
        if cls is not StreamFile or not isinstance(value, Mapping):
            return handler(value)
        source = value.get("source")
        if isinstance(source, str) and source in INPUTS and source not in SOURCES:
            raise refusal(cls, [(("source",), "a table of a database ends, so write it under relations")])
        kinds = {kind.name: kind.settings for kind in SOURCES.values()}
        name = chosen(value, "source", kinds)
        if SOURCES[name].columns is Columns.OWN and "schema" in value:
            takers = [kind.name for kind in SOURCES.values() if kind.columns is not Columns.OWN]
            says = f"a {name} stream takes no such field; it is for {' and '.join(takers)}"
            raise refusal(cls, [(("schema",), says)])
        return as_kind(stream_model(name), value, f"a {name} stream", kinds)


class RelationFile(EntryFile):
    """One entry of `relations:`: a finite table; with the fields of its source, see `sources.relation`."""

    source: Annotated[str, setting("where its rows are")]
    refresh: Annotated[
        Span | None,
        setting(
            "how often it is looked at while the job runs, and read anew if it has changed, such as 10min",
            unset="at a start, and when it is asked for", keeps_state=True,
        ),
    ] = None  # fmt: skip

    @classmethod
    def _what(cls) -> str:
        return "relation"

    @model_validator(mode="wrap")
    @classmethod
    def _of_its_kind(cls, value: Any, handler: ModelWrapValidatorHandler[RelationFile]) -> RelationFile:
        """With the fields of its source."""
        if cls is not RelationFile or not isinstance(value, Mapping):
            return handler(value)
        if wrong := [((field,), reason) for field in value if (reason := _streams_only(str(field)))]:
            raise refusal(cls, wrong)
        if reason := _no_relation(value.get("source")):
            raise refusal(cls, [(("source",), reason)])
        kinds = relation_kinds()
        name = chosen(value, "source", kinds)
        return as_kind(relation_model(name), value, f"a {name} relation", kinds)


_PUSH = "push"
_NO_KEY = "a relation has no key: rows are found by what the query compares; leave it out"
_NO_TIME = "a relation has no time; leave it out, or write the table under streams"


def _no_relation(source: object) -> str | None:
    """Why a relation cannot be of a source that streams may have."""
    kind = SOURCES.get(source) if isinstance(source, str) else None
    reason = "rows are pushed into streams only" if source == _PUSH else kind and kind.no_relation
    return f"a relation is a finite table; {reason}" if reason else None


def _streams_only(field: str) -> str | None:
    """Why a relation has no such field, where a stream has it."""
    if field == "shed":
        return "a relation has no time, and nothing of it is shed; leave it out"
    if field == "key":
        return _NO_KEY
    if field in StreamFile.model_fields and field not in RelationFile.model_fields and field != "schema":
        return _NO_TIME
    takers = [
        kind.name for kind in SOURCES.values() if kind.no_relation is not None and field in kind.settings.model_fields
    ]
    return f"a relation is a finite table; this is for {' and '.join(takers)} streams" if takers else None


class OperatorFile(CommonSettings):
    """`operator:`; its knobs are those of the operator, see `operators/registry.py`."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: Annotated[str, setting("which operator runs the join")] = "auto"

    @property
    def knobs(self) -> dict[str, Any]:
        """What is for the operator itself."""
        return dict(self.model_extra or {})


class SnapshotFile(Settings):
    """`results.snapshot:`; epochs of 1 s and 100,000 rows unless it says otherwise."""

    epoch: Annotated[Span | None, setting("a span of the clock", unset="1s", label="Epoch")] = None
    batches: Annotated[
        Count | None,
        setting("batches per epoch, in place of a span", unset="none", label="Batches per epoch"),
    ] = None
    punctuation: Annotated[
        Flag | None,
        setting("close by event time, in place of all others", unset="false", label="Punctuation", keeps_state=False),
    ] = None
    threshold_rows: Annotated[
        Count | None,
        setting("a snapshot closes with this many rows", unset="100000", label="Threshold in rows"),
    ] = None
    threshold_bytes: Annotated[
        Count | None, setting("or with this many bytes", unset="none", label="Threshold in bytes")
    ] = None
    immediate: Annotated[
        Flag | None, setting("close at the threshold, before the epoch ends", unset="true", label="Immediate")
    ] = None
    delayed: Annotated[
        Annotated[float, Field(gt=0, le=1, strict=True)] | None,
        setting("with less than this part of the threshold, wait on", unset="do not wait", label="Delayed"),
    ] = None
    delays: Annotated[Count | None, setting("at most this many epochs", unset="3", label="Delays")] = None


ONE_OF = "name exactly one of parquet, jsonl, discard and store"


class ResultsFile(Settings):
    """`results:`: exactly one of parquet, jsonl, discard and store; the others belong to stores."""

    parquet: Annotated[str | None, setting("a folder of Parquet files")] = None
    jsonl: Annotated[str | None, setting("a file of JSON lines, or - for standard output")] = None
    discard: Annotated[Flag | None, setting("true: results are computed in full, counted and dropped")] = None
    store: Annotated[str | None, setting("a store that keeps results in snapshots")] = None
    job: Annotated[str | None, setting("what the results are called in the store", unset="the join file's name")] = None
    where: Annotated[
        str | None, setting("a condition over the result columns", unset="all of them", label="Only results where")
    ] = None
    select: Annotated[
        list[str] | None, setting("the result columns that are kept", unset="all of them", label="Only the columns")
    ] = None
    retain: Annotated[
        Span | None,
        setting(
            "a span, such as 30d: snapshots closed longer ago are removed",
            unset="forever", label="Kept for", keeps_state=True,
        ),
    ] = None  # fmt: skip
    retry: Annotated[Span | None, setting("how long the store may be down before the job fails", unset="60s")] = None
    snapshot: Annotated[SnapshotFile | None, setting("when snapshots close", keeps_state=True)] = None

    @model_validator(mode="wrap")
    @classmethod
    def _of_its_kind(cls, value: Any, handler: ModelWrapValidatorHandler[ResultsFile]) -> ResultsFile:
        """With the fields of its store, where it has one."""
        if cls is not ResultsFile or not isinstance(value, Mapping):
            return handler(value)
        kinds = {name: kind.settings for name, kind in STORES.items()}
        if value.get("store") is None:
            of_stores = sorted(set().union(*(kind.model_fields for kind in kinds.values())) & value.keys())
            if of_stores and value.keys() & {"parquet", "jsonl", "discard"}:
                raise refusal(cls, [((field,), "is for result stores only") for field in of_stores])
            if of_stores:
                raise refusal(cls, [((), ONE_OF)])
            return handler(value)
        store = chosen(value, "store", kinds)
        return as_kind(results_model(store), value, store, kinds)


@cache
def _joined(base: type[Any], own: type[Settings]) -> type[Any]:
    """The fields of every such section, and those of one kind."""
    return create_model(f"{base.__name__} of {own.__name__}", __base__=(own, base))


def stream_model(source: str) -> type[StreamFile]:
    """An entry of `streams:` with the fields of a source."""
    return _joined(StreamFile, SOURCES[source].settings)


def relation_model(source: str) -> type[RelationFile]:
    """An entry of `relations:` with the fields of a source."""
    return _joined(RelationFile, INPUTS[source].settings)


def results_model(store: str) -> type[ResultsFile]:
    """`results:` with the fields of a store."""
    return _joined(ResultsFile, STORES[store].settings)


class CacheFile(Settings):
    """`run.cache:`; only where `run.state` is a store."""

    path: Annotated[str | None, setting("a folder of each machine", unset="a folder for temporary files")] = None
    size: Annotated[
        Size | None, setting("how much of it may be used, by all jobs of the machine", unset="20g", label="Size")
    ] = None


class BatchesFile(Settings):
    """What `run:` says of batches and of the driver, wherever tasks run."""

    slots: Annotated[
        Slots | None,
        setting("Spark partitions of the unit stage", unset="the cores of the process", label="Slots"),
    ] = None
    files_per_batch: Annotated[
        Count | None,
        setting("files of each file stream per batch, at most", unset="files of about 16 MiB", label="Files per batch"),
    ] = None
    offsets_per_batch: Annotated[
        Count, setting("Kafka records, or generator rows, of each stream per batch, at most", label="Rows per batch")
    ] = 100_000
    checkpoint: Annotated[str | None, setting("the job's directory", unset=".streamjoin/ and the name of the file")] = (
        None
    )
    state: Annotated[
        str | None,
        setting("where state is, a folder or a URI such as s3://bucket/job", unset="state in the checkpoint"),
    ] = None
    cache: Annotated[CacheFile, setting("what each machine keeps of a state in a store")] = CacheFile()
    driver_memory: Annotated[
        Annotated[int, Field(ge=480, le=2**20, strict=True)],  # Spark needs 450
        setting("MiB of Java heap, 480 or more", label="Driver memory"),
    ] = 1024
    heartbeat: Annotated[
        Span,
        setting("while nothing arrives, a batch runs this often; 0s for never", label="Heartbeat"),
        Field(json_schema_extra={"default": "1s"}),
    ] = 1_000_000
    every: Annotated[
        Span,
        setting("batches begin this often at most; 0s for at once", label="Batches at most every"),
        Field(json_schema_extra={"default": "0s"}),
    ] = 0
    strict: Annotated[Flag, setting("a row that cannot be joined stops the job", label="Strict")] = False


class RunFile(ClusterFile, BatchesFile):
    """`run:`."""


class QueryFile(Settings):
    """One entry of `queries:`."""

    query: Annotated[str, setting("a SELECT ONLINE")]
    results: Annotated[ResultsFile, setting("where its results go")] = ResultsFile(discard=True)
    stopped: Annotated[bool, setting("it ends: its results are completed and stay", keeps_state=True)] = False
