"""The join file: one YAML file that says everything about one join.

The models are the schema; every error names the field, what is wrong with it and what would be right.
"""

from __future__ import annotations

import difflib
import os
import re
import reprlib
from collections.abc import Hashable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from streamjoin.errors import InputError, UnsupportedError
from streamjoin.intake.dialect import Dialect
from streamjoin.intake.shedding import ShedRule
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.schema import parse_schema
from streamjoin.plan.window import format_us

FILE_BYTES_MAX = 1 << 20
_NODES_MAX = 50_000
SLOTS_MAX = 4096
_COUNT_MAX = 2**53
_SPAN = re.compile(r"(-?[0-9]{1,30}(?:\.[0-9]{1,30})?)\s*(us|ms|s|sec|min|m|h|d)")
_SPAN_US = {
    "us": 1, "ms": 1_000, "s": 1_000_000, "sec": 1_000_000, "min": 60_000_000, "m": 60_000_000,
    "h": 3_600_000_000, "d": 86_400_000_000,
}  # fmt: skip
_SPAN_US_MAX = 100 * 366 * 86_400_000_000
_RATE = re.compile(r"([0-9]{1,30}(?:\.[0-9]{1,30})?)\s*/\s*(s|min|h)")
_RATE_S = {"s": 1, "min": 60, "h": 3600}
RATE_MAX = 1e12


def parse_span(value: object) -> int:
    """A span such as `2s`, `1.5 min` or `0s`, in us."""
    shown = _shown(value)
    match = _SPAN.fullmatch(str(value).strip())
    if match is None:
        raise ValueError(f"{shown} is no span of time; write a number and us, ms, s, min, h or d, such as 2s")
    exact = Decimal(match[1]) * _SPAN_US[match[2]]
    if exact < 0:
        raise ValueError(f"{shown} is negative; a span is 0s or longer")
    if exact != int(exact) or exact > _SPAN_US_MAX:
        raise ValueError(f"{shown} is not a whole number of microseconds below 100 years")
    return int(exact)


def parse_rate(value: object) -> float:
    """A rate such as `1000/s` or 1000, a second."""
    shown = _shown(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        rate = float(value) if abs(value) <= RATE_MAX else RATE_MAX * 2
    elif match := _RATE.fullmatch(str(value).strip()):
        rate = float(match[1]) / _RATE_S[match[2]]
    else:
        raise ValueError(f"{shown} is no rate; write 1000/s")
    if not 0 < rate <= RATE_MAX:
        raise ValueError(f"{shown} is no rate; it must be above 0 and at most {RATE_MAX:g}/s, such as 1000/s")
    return rate


def _setting(value: object) -> object:
    """Spark's settings are texts; numbers and truth values mean the text that Spark reads."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _of_files(source: object) -> object:
    """A relation's source; those that never end are refused with the way out."""
    if isinstance(source, str) and (way_out := _ENDLESS.get(source)):
        raise ValueError(f"a relation is a finite table of files; {way_out}")
    return source


_ENDLESS = {
    "kafka": "a topic never ends, so write it under streams",
    "generator": "write the rows to files first, with streamjoin generate",
    "push": "rows are pushed into streams only",
}


def _knob(value: Any) -> Any:
    is_list = isinstance(value, list)
    if is_list and not all(isinstance(item, int) and not isinstance(item, bool) for item in value):
        raise ValueError(f"{_shown(value)} is no list of whole numbers")
    if not is_list and not isinstance(value, str | int | float):
        raise ValueError(f"{_shown(value)} is neither a text nor a number nor a list of numbers")
    return value


Span = Annotated[
    int, BeforeValidator(parse_span), WithJsonSchema({"type": "string", "description": "A span of time, such as 2s."})
]
Rate = Annotated[
    float, BeforeValidator(parse_rate), WithJsonSchema({"type": ["number", "string"], "description": "Such as 1000/s."})
]
Count = Annotated[int, Field(ge=1, le=_COUNT_MAX, strict=True)]
Slots = Annotated[int, Field(ge=1, le=SLOTS_MAX, strict=True)]
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63, strict=True)]
Flag = Annotated[bool, Field(strict=True)]
Setting = Annotated[str, BeforeValidator(_setting)]


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
    __pydantic_extra__: dict[str, Annotated[Any, BeforeValidator(_knob)]] = Field(init=False)
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


class JoinFile(Model):
    """A whole join file.

    Args:
        queries: several queries over the same streams, in place of `query` and `results`.
        base: the folder that relative paths start from: the file's own.
    """

    streams: dict[str, StreamFile]
    relations: dict[str, RelationFile] = Field(default_factory=dict)
    query: str | None = None
    queries: dict[str, QueryFile] | None = None
    operator: OperatorFile = OperatorFile()
    results: ResultsFile = ResultsFile(discard=True)
    run: RunFile = RunFile()
    base: Path = Path()
    name: str = "join"

    def resolve(self, path: str) -> Path:
        """A path of the file, absolute."""
        return (self.base / os.path.expanduser(path)).absolute()

    @property
    def slots(self) -> int:
        """Spark partitions of the unit stage; one a core unless set."""
        return self.run.slots or len(os.sched_getaffinity(0))

    @property
    def checkpoint(self) -> Path:
        """The job's directory."""
        return self.resolve(self.run.checkpoint or f".streamjoin/{self.name}")

    def of(self, query: str) -> JoinFile:
        """One of the queries as a file of its own, with the checkpoint of all.

        Raises:
            InputError: there is no such query.
        """
        if query not in (self.queries or {}):
            known = ", ".join(self.queries or {})
            raise InputError(f'there is no query "{_cut(query)}"; '
                             + (f"queries are {known}" if known else "this file has one, without a name"))  # fmt: skip
        assert self.queries is not None
        own = {
            "name": f"{self.name}.{query}",
            "query": self.queries[query].query,
            "queries": None,
            "results": self.queries[query].results,
            "run": self.run.model_copy(update={"checkpoint": str(self.checkpoint)}),
        }
        return self.model_copy(update=own)


def load(path: Path, overrides: Mapping[str, str] | None = None) -> JoinFile:
    """Read a join file.

    Args:
        overrides: dotted field -> YAML text, as `--set operator.name=matrix` gives them.
    Raises:
        InputError: it cannot be read or is wrong.
    """
    try:
        # Before it is opened: opening a pipe waits, and a device has no end.
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is {'a folder' if path.is_dir() else 'no file'}; a join file is a short text")
        with open(path, "rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except (OSError, ValueError) as cause:
        raise InputError(f"{_shown(str(path))} cannot be read: {_reason(cause)}") from None
    if len(content) > FILE_BYTES_MAX:
        raise InputError(f"{path} is larger than 1 MiB; a join file is a short text")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        raise InputError(f"{path} is no text: byte {cause.start} is not UTF-8") from None
    return parse(text, base=path.absolute().parent, name=path.stem, overrides=overrides)


def parse(
    text: str, *, base: Path = Path(), name: str = "join", overrides: Mapping[str, str] | None = None
) -> JoinFile:
    """A join file from its text.

    Raises:
        InputError: it is wrong; YAML errors carry line and column.
    """
    content = _yaml(text)
    if content is None:
        raise InputError(f"the join file is empty; it needs {_SECTIONS}")
    if not isinstance(content, dict):
        raise InputError(f"a join file is a mapping with {_SECTIONS}, not {_shown(content)}")
    for field, value in (overrides or {}).items():
        _override(content, field, value)
    return of_content(content, base=base, name=name)


def of_content(content: Mapping[str, Any], *, base: Path = Path(), name: str = "join") -> JoinFile:
    """A join file from what its text says, such as a program has it that need not write YAML first.

    Raises:
        InputError: it is wrong; the message names the field.
    """
    for own in ("base", "name"):  # where the file is, and what it is called: not for the file to say
        if own in content:
            raise InputError(f"there is no such field; fields here are {', '.join(_fields_at([]))}", field=own)
    try:
        file = JoinFile.model_validate({**content, "base": base, "name": name})
    except ValidationError as wrong:
        raise _first_error(wrong) from None
    _check(file)
    return file


_SECTIONS = "streams and query or queries, and may have relations, operator, results and run"


def _yaml(text: str) -> Any:
    try:
        return yaml.load(text, Loader=_StrictLoader)
    except yaml.MarkedYAMLError as wrong:
        mark = wrong.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InputError(f"{where}{wrong.problem or 'this is not YAML'}") from None
    except yaml.reader.ReaderError as wrong:
        before = text[: wrong.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        code = wrong.character if isinstance(wrong.character, int) else ord(wrong.character)
        raise InputError(f"line {line}, column {column}: a text file has no character U+{code:04X}") from None
    except RecursionError:
        raise InputError("this is nested too deeply for a join file") from None
    except yaml.YAMLError as wrong:
        raise InputError(f"this is not YAML: {wrong}") from None


class _StrictLoader(yaml.SafeLoader):
    """YAML in which a key cannot stand twice, aliases cannot multiply and the number of values is bounded."""

    nodes = 0

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = key_node.value
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a name is a plain text", problem_mark=key_node.start_mark)
            if key in seen:
                raise yaml.MarkedYAMLError(problem=f'"{key}" stands here twice', problem_mark=key_node.start_mark)
            seen.add(key)
            # A name stays the text that it is, also where YAML has another meaning for it: null, on, no, 2026-01-01.
            key_node.tag = "tag:yaml.org,2002:str"
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, OverflowError) as wrong:  # such as the date 2026-02-30
            raise yaml.MarkedYAMLError(
                problem=f"{_shown(node.value)} cannot be read: {wrong}; put a text into quotes",
                problem_mark=node.start_mark,
            ) from None

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.nodes += 1
        if self.nodes > _NODES_MAX:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(
                problem=f"more than {_NODES_MAX} names and values are too many for a join file", problem_mark=mark
            )
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="a join file has no aliases", problem_mark=event.start_mark)
        return super().compose_node(parent, index)


_NAMED = {"streams": "stream", "relations": "relation"}
"""Sections whose entries have names that a query uses."""


def _override(content: dict[str, Any], field: str, value: str) -> None:
    # Spark's settings have dots of their own.
    path = field.split(".", 2 if field.startswith("run.spark.") else -1)
    if not all(path):
        raise InputError(f"--set takes FIELD=VALUE with a field such as operator.name, not {_shown(field)}")
    place: Any = content
    for depth, parent in enumerate(path[:-1]):
        if depth == 1 and path[0] in _NAMED and isinstance(place, dict) and parent not in place:
            there = f"{path[0]} are {', '.join(map(str, place))}" if place else "there are none"
            raise InputError(f"there is no such {_NAMED[path[0]]}; {there}", field=_cut(field))
        if isinstance(place, dict) and place.get(parent) is None:  # also where a section is there, but empty
            place[parent] = {}
        place = place[parent] if isinstance(place, dict) else None
    if not isinstance(place, dict):
        raise InputError("there is no such field to set", field=_cut(field))
    try:
        place[path[-1]] = value if path[-1] == "query" else _yaml(value)
    except InputError:  # a text that is no YAML
        place[path[-1]] = value


def _first_error(wrong: ValidationError) -> InputError:
    # A misspelt field is also a missing one; what stands there tells more than what does not.
    error = min(wrong.errors(), key=lambda error: error["type"] != "extra_forbidden")
    place = [str(part) for part in error["loc"]]
    if place[-1] == "[key]":
        return InputError(f"{_shown(error['input'])} is no name; names are texts, so put it into quotes",
                          field=_cut(".".join(place[:-2])))  # fmt: skip
    field = _cut(".".join(place))
    match error["type"]:
        case "extra_forbidden" if place[0] == "relations" and (refusal := _STREAMS_ONLY.get(place[-1])):
            return InputError(refusal, field=field)
        case "extra_forbidden":
            known = _fields_at(place[:-1])
            near = difflib.get_close_matches(place[-1], known, 1)
            hint = f'did you mean "{near[0]}"?' if near else f"fields here are {', '.join(known)}"
            return InputError(f"there is no such field; {hint}", field=field)
        case "missing":
            return InputError(f"is missing{_meant(place)}", field=field)
        case "value_error":
            return InputError(_not_empty(error["input"]) or str(error["ctx"]["error"]), field=field)
        case "model_type" | "dict_type":
            needed = f"needs a mapping{_meant(place)}"
        case "string_type":
            needed = "needs a text"
        case "int_type" | "int_parsing" | "int_from_float" | "int_parsing_size":
            needed = "needs a whole number"
        case "float_type" | "float_parsing":
            needed = "needs a number"
        case "bool_type" | "bool_parsing":
            needed = "needs true or false"
        case "greater_than_equal":
            needed = f"must be at least {error['ctx']['ge']}"
        case "less_than_equal" | "less_than":
            needed = f"must be at most {error['ctx'].get('le', error['ctx'].get('lt'))}"
        case "literal_error":
            needed = f"must be {error['ctx']['expected']}"
        case _:
            needed = error["msg"]
    got = error["input"]
    return InputError(_not_empty(got) or f"{needed}, not {_shown(got)}", field=field)


_MEANT = {
    "streams": ": a name and a description for each stream",
    "relations": ": a name and a description for each relation",
    "relations.source": "; it is parquet, csv, jsonl or arrow",
    "relations.path": "; it names a file or a folder",
    "queries": ": a name, a query and results for each",
    "time": '; it names the column of the event time, or is "arrival" for data without one',
    "source": "; it is parquet, csv, jsonl, arrow, kafka or generator",
    "operator": " such as {name: matrix}",
    "results": " such as {parquet: out/pairs}",
    "run": " such as {slots: 2}",
    "schema": " such as {ts: timestamp, k: int64}",
    "shed": " such as {threshold: 2000000, capacity: 4000000}",
    "threshold": "; it is the number of live tuples a unit from which on tuples are shed",
    "capacity": "; it is the number of live tuples a unit at which all tuples are shed",
}


def _meant(place: list[str]) -> str:
    return _MEANT.get(f"{place[0]}.{place[-1]}") or _MEANT.get(place[-1], "")


def _not_empty(value: object) -> str | None:
    return "is empty; give it a value or leave the field out" if value is None else None


def _shown(value: object) -> str:
    """A value of the file in a message: short, and as YAML has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{_cut(value)}"' if isinstance(value, str) else _cut(reprlib.repr(value))


def _cut(text: str) -> str:
    printable = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text[:101])
    return printable if len(text) <= 100 else f"{printable[:97]}..."


def _reason(cause: Exception) -> str:
    return str(getattr(cause, "strerror", None) or cause)


def _fields_at(place: list[str]) -> list[str]:
    models: dict[str, type[BaseModel]] = {
        "streams": StreamFile, "relations": RelationFile, "operator": OperatorFile, "results": ResultsFile,
        "run": RunFile,
    }  # fmt: skip
    of_streams: dict[str, type[BaseModel]] = {"punctuate": PunctuateFile, "shed": ShedFile, "csv": CsvFile}
    model = models.get(place[0], JoinFile) if place else JoinFile
    if len(place) > 2 and place[0] in _NAMED:
        model = of_streams.get(place[2], model)
    if place[:1] == ["queries"]:
        model = ResultsFile if place[2:3] == ["results"] else QueryFile
    names = [field.alias or name for name, field in model.model_fields.items()]
    return [name for name in names if name not in ("base", "name") or model is not JoinFile]


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

_STREAMS_ONLY = {
    **dict.fromkeys(("time", "time_unit", "delay", "punctuate"),
                    "a relation has no time; leave it out, or write the table under streams"),
    "shed": "a relation has no time, and nothing of it is shed; leave it out",
    **{field: f"a relation is a finite table of files; this is for {source} streams"
       for source in ("kafka", "generator") for field in _OF_SOURCE[source] - _FOR_FILES},
}  # fmt: skip
"""Why a relation takes no such field."""

_KNOBS_TO_COME = ("unit_capacity",)


def _check(file: JoinFile) -> None:
    if file.queries is not None:
        _check_queries(file)
    elif not file.query:
        raise InputError("is missing; write a SELECT ONLINE", field="query")
    if not file.streams:
        raise InputError("is empty; name the streams of the query", field="streams")
    for name, stream in file.streams.items():
        _check_stream(name, stream)
    for name, relation in file.relations.items():
        _check_relation(name, relation)
    _check_names(file)
    for knob in _KNOBS_TO_COME:
        if knob in file.operator.knobs:
            raise UnsupportedError(f"{knob} is not supported by this version", field=f"operator.{knob}")
    if file.operator.ordering not in list(Ordering):
        raise InputError(f"{_shown(file.operator.ordering)} is no ordering; use {', '.join(Ordering)}",
                         field="operator.ordering")  # fmt: skip
    _check_results(file.results, "results")
    if file.run.checkpoint is not None:
        _check_path(file.run.checkpoint, "run.checkpoint")


_QUERY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


def _check_queries(file: JoinFile) -> None:
    assert file.queries is not None
    for field in sorted(file.model_fields_set & {"query", "results"}):
        raise InputError(f"belongs to each of the queries, as queries.NAME.{field}", field=field)
    if not file.queries:
        raise InputError("is empty; name the queries, such as {pairs: {query: ..., results: ...}}", field="queries")
    if file.operator.main is not None:
        raise InputError("names a conjunct of one query, and this file has several; leave it out",
                         field="operator.main")  # fmt: skip
    if all(query.stopped for query in file.queries.values()):
        raise InputError("are all stopped; leave one, or stop the job", field="queries")
    targets: dict[tuple[Any, ...], str] = {}
    for name, query in file.queries.items():
        place = f"queries.{_cut(name)}"
        if not _QUERY.fullmatch(name):
            raise InputError("a query's name is letters, digits, _ and -, 63 at most", field=place)
        if not query.query.strip():
            raise InputError("is empty; write a SELECT ONLINE", field=f"{place}.query")
        _check_results(query.results, f"{place}.results")
        if (target := _target(file, name, query.results)) is None:
            continue
        if twin := targets.get(target):
            raise InputError(f"is where the results of {twin} go; give each query a place of its own",
                             field=f"{place}.results")  # fmt: skip
        targets[target] = name


def _target(file: JoinFile, name: str, results: ResultsFile) -> tuple[Any, ...] | None:
    """Where results go, so that two queries do not write into each other's."""
    if results.parquet is not None:
        return ("file", os.path.realpath(file.resolve(results.parquet)))
    if results.jsonl is not None:
        return ("file", results.jsonl if results.jsonl == "-" else os.path.realpath(file.resolve(results.jsonl)))
    if results.store is None:
        return None
    place = str(file.resolve(results.path)) if results.path else (results.keyspace, results.table)
    return (results.store, tuple(results.hosts or ()), place, results.job or f"{file.name}.{name}")


def _check_names(file: JoinFile) -> None:
    """A query's names lead to one thing each, whatever their case."""
    names: dict[str, str] = {}
    for section in _NAMED:
        for name in getattr(file, section):
            if twin := names.get(name.lower()):
                how = "is the name of a stream, too" if twin == name else f'differs from "{twin}" by case only'
                raise InputError(f"{how}; rename one", field=f"{section}.{name}")
            names[name.lower()] = name


def _check_name(name: str, section: str) -> str:
    """Where the entry of that name is."""
    place = f"{section}.{_cut(name)}"
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,62}", name):
        raise InputError(f"a {_NAMED[section]}'s name is a letter or _, then letters, digits and _, 63 at most",
                         field=place)  # fmt: skip
    return place


def _check_columns(entry: StreamFile | RelationFile, place: str) -> None:
    try:
        entry.arrow_schema()
    except InputError as wrong:
        raise InputError(wrong.message, field=f"{place}.schema") from None


def _check_relation(name: str, relation: RelationFile) -> None:
    place = _check_name(name, "relations")
    _check_path(relation.path, f"{place}.path")
    if relation.source == "csv":
        _check_csv(relation, f"{place}.csv")
    elif "csv" in relation.model_fields_set:
        raise InputError(f"a {relation.source} relation takes no such field; it is for csv", field=f"{place}.csv")
    _check_columns(relation, place)


def _check_csv(entry: StreamFile | RelationFile, place: str) -> None:
    csv = entry.csv
    for field, mark in (("delimiter", csv.delimiter), ("quote", csv.quote)):
        if (mark or field == "delimiter") and (len(mark) != 1 or not mark.isascii() or mark in "\r\n\0"):
            raise InputError(f"{_shown(mark)} is not one ASCII character, such as {_MARKS[field]}",
                             field=f"{place}.{field}")  # fmt: skip
    if csv.delimiter == csv.quote:
        raise InputError("is the delimiter, too; the two differ", field=f"{place}.quote")
    if any(mark and mark in csv.null for mark in (csv.delimiter, csv.quote, "\r", "\n")):
        raise InputError(f"{_shown(csv.null)} has a delimiter, a quote or a line break in it", field=f"{place}.null")
    if csv.names is not None and (not csv.names or len(set(csv.names)) < len(csv.names)):
        raise InputError("needs a name for each column, each once", field=f"{place}.names")
    if not csv.header and csv.names is None and entry.schema_ is None:
        raise InputError("is missing; without a line of column names give names or a schema", field=f"{place}.names")


_MARKS = {"delimiter": '";"', "quote": '"\'", or "" for none'}


def _check_stream(name: str, stream: StreamFile) -> None:
    place = _check_name(name, "streams")
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
        _check_path(stream.path, f"{place}.path")
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


def _check_results(results: ResultsFile, place: str) -> None:
    chosen = [name for name in ("parquet", "jsonl", "discard", "store") if getattr(results, name) is not None]
    if len(chosen) != 1:
        raise InputError("name exactly one of parquet, jsonl, discard and store", field=place)
    if chosen == ["store"]:
        _check_store(results, place)
        return
    for field in results.model_fields_set - {"parquet", "jsonl", "discard"}:
        raise InputError("is for result stores only", field=f"{place}.{field}")
    if results.discard is False:
        raise InputError("is true or left out; to keep results, name parquet or jsonl", field=f"{place}.discard")
    for field in ("parquet", "jsonl"):
        if (target := getattr(results, field)) is not None:
            _check_path(target, f"{place}.{field}")


_OF_STORE = {
    "sqlite": frozenset({"path"}),
    "cassandra": frozenset({"hosts", "port", "keyspace", "username", "password"}),
    "hbase": frozenset({"hosts", "port", "table"}),
}
_JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def _check_store(results: ResultsFile, place: str) -> None:
    assert results.store is not None
    for field in results.model_fields_set & frozenset().union(*_OF_STORE.values()) - _OF_STORE[results.store]:
        takers = " and ".join(store for store, fields in _OF_STORE.items() if field in fields)
        raise InputError(f"{results.store} takes no such field; it is for {takers}", field=f"{place}.{field}")
    if results.store == "sqlite":
        if results.path is None:
            raise InputError("is missing; name the file of the store, such as results.db", field=f"{place}.path")
        _check_path(results.path, f"{place}.path")
    elif not results.hosts:
        raise InputError('is missing; name the hosts of the store, such as ["127.0.0.1"]', field=f"{place}.hosts")
    elif results.store == "hbase" and len(results.hosts) > 1:
        raise InputError("is one host: that of the Thrift gateway", field=f"{place}.hosts")
    if results.job is not None and not _JOB.fullmatch(results.job):
        raise InputError(f"{_shown(results.job)} is no name for results; use letters, digits, ., _ and -, 100 at most",
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


def _check_path(path: str, field: str) -> None:
    if not path.strip():
        raise InputError("is empty; name a file or folder", field=field)
    if not path.isprintable():
        raise InputError(f"{_shown(path)} has characters that no path should have", field=field)


def describe(file: JoinFile) -> str:
    """A line a stream, for people."""
    return "\n".join(
        f"{name}: {stream.source}, time {stream.time}, delay {format_us(stream.delay)}"
        for name, stream in file.streams.items()
    )
