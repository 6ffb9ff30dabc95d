"""The parts of a join file: models whose fields are the fields of the file.

What a model cannot say, such as that two fields exclude each other, is in `checks.py`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from streamjoin.intake.dialect import Dialect
from streamjoin.intake.shedding import ShedRule
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.schema import parse_schema
from streamjoin.spec.values import Count, Flag, Rate, Seed, Setting, Slots, Span, knob

_ENDLESS = {
    "kafka": "a topic never ends, so write it under streams",
    "generator": "write the rows to files first, with streamjoin generate",
    "push": "rows are pushed into streams only",
}


def _of_files(source: object) -> object:
    """A relation's source; those that never end are refused with the way out."""
    if isinstance(source, str) and (way_out := _ENDLESS.get(source)):
        raise ValueError(f"a relation is a finite table of files; {way_out}")
    return source


class Model(BaseModel):
    """What all parts of a join file share: unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PunctuateFile(Model):
    """`punctuate:` of a stream."""

    every: Span | None = None
    column: str | None = None
    value: Any = None
    per: Literal["file"] | None = None


class ShedFile(Model):
    """`shed:` of a stream: load shedding, see `ShedRule`."""

    threshold: Count
    capacity: Count
    base: Annotated[float, Field(strict=True)] = 0.0
    shape: str = "linear"

    def rule(self) -> ShedRule:
        """The rule.

        Raises:
            InputError: it is wrong; with the name of the field.
        """
        return ShedRule(self.threshold, self.capacity, self.base, self.shape)


class CsvFile(Model):
    """`csv:` of a stream or relation: see `Dialect`."""

    delimiter: str = ","
    header: Flag = True
    names: list[str] | None = None
    null: str = ""
    quote: str = '"'

    def dialect(self) -> Dialect:
        """The dialect."""
        names = None if self.names is None else tuple(self.names)
        return Dialect(self.delimiter, self.quote, self.null, self.header, names)


class StreamFile(Model):
    """One entry of `streams:`."""

    source: Literal["parquet", "csv", "jsonl", "arrow", "kafka", "generator"]
    path: str | None = None
    csv: CsvFile = CsvFile()
    servers: str | None = None
    topic: str | None = None
    format: Literal["json", "csv", "avro", "arrow"] | None = None
    avro_schema: str | dict[str, Any] | None = None
    starting: Literal["earliest", "latest"] = "earliest"
    client: dict[str, Setting] = Field(default_factory=dict)
    kind: str | None = None
    rate: Rate = 10_000.0
    rows: Count | None = None
    seed: Seed = 1
    begin: Literal["now"] | None = None
    options: dict[str, float] = Field(default_factory=dict)
    schema_: dict[str, str] | None = Field(default=None, alias="schema")
    time: str
    time_unit: Literal["s", "ms", "us"] = "us"
    delay: Span = Field(default=0, json_schema_extra={"default": "0s"})
    punctuate: PunctuateFile | None = None
    shed: ShedFile | None = None

    def arrow_schema(self) -> pa.Schema | None:
        """The given columns; None where the source carries them."""
        return None if self.schema_ is None else parse_schema(self.schema_)


class RelationFile(Model):
    """One entry of `relations:`: a finite table of files; see `streamjoin.sources.relation`."""

    source: Annotated[Literal["parquet", "csv", "jsonl", "arrow"], BeforeValidator(_of_files)]
    path: str
    csv: CsvFile = CsvFile()
    schema_: dict[str, str] | None = Field(default=None, alias="schema")

    def arrow_schema(self) -> pa.Schema | None:
        """The given columns; None where the files carry them."""
        return None if self.schema_ is None else parse_schema(self.schema_, "relation")


class OperatorFile(BaseModel):
    """`operator:`; knobs are checked by the operator itself."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, Annotated[Any, BeforeValidator(knob)]] = Field(init=False)
    name: str = "auto"
    archive_period: Span | None = None
    index: str = "auto"
    ordering: str = Ordering.NONE
    main: str | None = None

    @property
    def knobs(self) -> dict[str, Any]:
        """What is for the operator itself."""
        return dict(self.model_extra or {})


class SnapshotFile(Model):
    """`results.snapshot:`; epochs of 1 s and 100,000 rows unless it says otherwise."""

    epoch: Span | None = None
    batches: Count | None = None
    punctuation: Flag | None = None
    threshold_rows: Count | None = None
    threshold_bytes: Count | None = None
    immediate: Flag | None = None
    delayed: Annotated[float, Field(gt=0, le=1, strict=True)] | None = None
    delays: Count | None = None


class ResultsFile(Model):
    """`results:`: exactly one of parquet, jsonl, discard and store; the others belong to stores.

    Args:
        job: what the results are called in the store; the join file's name unless set.
        where, select: which results and which of their columns are kept.
        retain: snapshots closed longer ago are removed.
        retry: so long a store may be down before the job fails.
    """

    parquet: str | None = None
    jsonl: str | None = None
    discard: Flag | None = None
    store: Literal["sqlite", "cassandra", "hbase"] | None = None
    path: str | None = None
    hosts: list[str] | None = None
    port: Annotated[int, Field(ge=1, le=65_535, strict=True)] | None = None
    keyspace: str | None = None
    table: str | None = None
    username: str | None = None
    password: str | None = None
    job: str | None = None
    where: str | None = None
    select: list[str] | None = None
    retain: Span | None = None
    retry: Span | None = None
    snapshot: SnapshotFile | None = None


class RunFile(Model):
    """`run:`."""

    slots: Slots | None = None
    files_per_batch: Count | None = None
    offsets_per_batch: Count = 100_000
    checkpoint: str | None = None
    driver_memory: Annotated[int, Field(ge=480, le=2**20, strict=True)] = 1024  # MiB; Spark needs 450
    heartbeat: Span = 1_000_000
    strict: Flag = False
    spark: dict[str, Setting] = Field(default_factory=dict)


class QueryFile(Model):
    """One entry of `queries:`."""

    query: str
    results: ResultsFile = ResultsFile(discard=True)
    stopped: bool = False
