"""The join file: one YAML file that says everything about one join.

The models are the schema; every error names the field, what is wrong with it and what would be right.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from streamjoin.errors import InputError, UnsupportedError
from streamjoin.schema import parse_schema
from streamjoin.window import format_us

FILE_BYTES_MAX = 1 << 20
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|sec|min|m|h|d)")
_SPAN_US = {
    "us": 1, "ms": 1_000, "s": 1_000_000, "sec": 1_000_000, "min": 60_000_000, "m": 60_000_000,
    "h": 3_600_000_000, "d": 86_400_000_000,
}  # fmt: skip
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*(s|min|h)")


def parse_span(value: object) -> int:
    """A span such as `2s`, `1.5 min` or `0s`, in us."""
    match = _SPAN.fullmatch(str(value).strip())
    if match is None:
        raise ValueError(f'"{value}" is no span of time; write a number and us, ms, s, min, h or d, such as 2s')
    exact = float(match[1]) * _SPAN_US[match[2]]
    if exact != int(exact) or exact > 100 * 366 * 86_400_000_000:
        raise ValueError(f'"{value}" is not a whole number of microseconds below 100 years')
    return int(exact)


def parse_rate(value: object) -> float:
    """A rate such as `1000/s` or 1000, a second."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return float(value)
    match = _RATE.fullmatch(str(value).strip())
    if match is None or float(match[1]) <= 0:
        raise ValueError(f'"{value}" is no rate; write 1000/s')
    return float(match[1]) / {"s": 1, "min": 60, "h": 3600}[match[2]]


Span = Annotated[int, BeforeValidator(parse_span)]
Rate = Annotated[float, BeforeValidator(parse_rate)]
Count = Annotated[int, Field(ge=1, strict=True)]


class Model(BaseModel):
    """What all parts of a join file share: unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class StreamFile(Model):
    """One entry of `streams:`."""

    source: Literal["parquet", "csv", "jsonl", "arrow", "kafka", "generator"]
    path: str | None = None
    servers: str | None = None
    topic: str | None = None
    format: Literal["json", "csv", "avro", "arrow"] | None = None
    avro_schema: str | dict[str, Any] | None = None
    starting: Literal["earliest", "latest"] = "earliest"
    kind: str | None = None
    rate: Rate = 10_000.0
    rows: Count | None = None
    seed: int = 1
    options: dict[str, float] = Field(default_factory=dict)
    schema_: dict[str, str] | None = Field(default=None, alias="schema")
    time: str
    time_unit: Literal["s", "ms", "us"] = "us"
    delay: Span = 0
    punctuate: dict[str, Any] | None = None
    shed: dict[str, Any] | None = None

    def arrow_schema(self) -> pa.Schema | None:
        """The given columns; None where the source carries them."""
        return None if self.schema_ is None else parse_schema(self.schema_)


class OperatorFile(BaseModel):
    """`operator:`; knobs are checked by the operator itself."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str = "auto"
    archive_period: Span | None = None
    index: str = "auto"

    @property
    def knobs(self) -> dict[str, Any]:
        """What is for the operator itself."""
        return dict(self.model_extra or {})


class ResultsFile(Model):
    """`results:`: exactly one of its fields."""

    parquet: str | None = None
    jsonl: str | None = None
    discard: bool | None = None
    store: str | None = None
    path: str | None = None
    snapshot: dict[str, Any] | None = None


class RunFile(Model):
    """`run:`."""

    slots: Count | None = None
    files_per_batch: Count = 1
    offsets_per_batch: Count = 100_000
    checkpoint: str | None = None
    driver_memory: Annotated[int, Field(ge=256, strict=True)] = 1024
    heartbeat: Span = 1_000_000
    strict: bool = False
    spark: dict[str, str] = Field(default_factory=dict)


class JoinFile(Model):
    """A whole join file.

    Args:
        base: the folder that relative paths start from: the file's own.
    """

    streams: dict[str, StreamFile]
    relations: dict[str, Any] | None = None
    query: str | None = None
    queries: dict[str, Any] | None = None
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


def load(path: Path, overrides: Mapping[str, str] | None = None) -> JoinFile:
    """Read a join file.

    Args:
        overrides: dotted field -> YAML text, as `--set operator.name=matrix` gives them.
    Raises:
        InputError: it cannot be read or is wrong.
    """
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise InputError(f"{path} is larger than 1 MiB; a join file is a short text")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError) as cause:
        raise InputError(f"{path} cannot be read: {cause}") from None
    return parse(text, base=path.absolute().parent, name=path.stem, overrides=overrides)


def parse(
    text: str, *, base: Path = Path(), name: str = "join", overrides: Mapping[str, str] | None = None
) -> JoinFile:
    """A join file from its text.

    Raises:
        InputError: it is wrong; YAML errors carry line and column.
    """
    try:
        content = yaml.load(text, Loader=_StrictLoader)
    except yaml.MarkedYAMLError as wrong:
        mark = wrong.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InputError(f"{where}{wrong.problem or 'this is not YAML'}") from None
    except (yaml.YAMLError, RecursionError) as wrong:
        raise InputError(f"this is not YAML: {wrong}") from None
    if not isinstance(content, dict):
        raise InputError("a join file is a mapping with streams, query, operator, results and run")
    for field, value in (overrides or {}).items():
        _override(content, field, value)
    try:
        file = JoinFile.model_validate({**content, "base": base, "name": name})
    except ValidationError as wrong:
        raise _first_error(wrong) from None
    _check(file)
    return file


class _StrictLoader(yaml.SafeLoader):
    """YAML in which a key cannot stand twice and aliases cannot multiply."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = key_node.value
            if key in seen:
                raise yaml.MarkedYAMLError(problem=f'"{key}" stands here twice', problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="a join file has no aliases", problem_mark=event.start_mark)
        return super().compose_node(parent, index)


def _override(content: dict[str, Any], field: str, value: str) -> None:
    *parents, last = field.split(".")
    place: Any = content
    for parent in parents:
        place = place.setdefault(parent, {}) if isinstance(place, dict) else None
    if not isinstance(place, dict):
        raise InputError("there is no such field to set", field=field)
    try:
        place[last] = yaml.safe_load(value)
    except yaml.YAMLError:
        place[last] = value


def _first_error(wrong: ValidationError) -> InputError:
    # A misspelt field is also a missing one; what stands there tells more than what does not.
    error = min(wrong.errors(), key=lambda error: error["type"] != "extra_forbidden")
    place = [str(part) for part in error["loc"]]
    field = ".".join(place)
    if error["type"] == "extra_forbidden":
        known = _fields_at(place[:-1])
        near = difflib.get_close_matches(place[-1], known, 1)
        hint = f'did you mean "{near[0]}"?' if near else f"fields here are {', '.join(known)}"
        return InputError(f"there is no such field; {hint}", field=field)
    if error["type"] == "missing":
        return InputError("is missing", field=field)
    if error["type"] == "value_error":
        return InputError(str(error["ctx"]["error"]), field=field)
    got = error.get("input")
    return InputError(f"{error['msg'].lower()}, not {got!r}", field=field)


def _fields_at(place: list[str]) -> list[str]:
    models: dict[str, type[BaseModel]] = {
        "streams": StreamFile, "operator": OperatorFile, "results": ResultsFile, "run": RunFile,
    }  # fmt: skip
    model = models.get(place[0], JoinFile) if place else JoinFile
    names = [field.alias or name for name, field in model.model_fields.items()]
    return [name for name in names if name not in ("base", "name") or model is not JoinFile]


_NEEDED = {
    "parquet": ("path",), "csv": ("path",), "jsonl": ("path",), "arrow": ("path",),
    "kafka": ("servers", "topic", "format"), "generator": ("kind",),
}  # fmt: skip


def _check(file: JoinFile) -> None:
    for section, what in (("relations", "joins with relations"), ("queries", "several queries in one job")):
        if getattr(file, section) is not None:
            raise UnsupportedError(f"{what} are not supported by this version", field=section)
    if not file.query:
        raise InputError("is missing; write a SELECT ONLINE", field="query")
    for name, stream in file.streams.items():
        place = f"streams.{name}"
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,62}", name):
            raise InputError("a stream's name is a letter or _, then letters, digits and _, 63 at most", field=place)
        for field in _NEEDED[stream.source]:
            if getattr(stream, field) is None:
                raise InputError(f"is missing; a {stream.source} stream needs it", field=f"{place}.{field}")
        for field in ("punctuate", "shed"):
            if getattr(stream, field) is not None:
                raise UnsupportedError(f"{field} is not supported by this version", field=f"{place}.{field}")
        if stream.source == "kafka" and stream.schema_ is None:
            raise InputError("is missing; Kafka records do not carry one", field=f"{place}.schema")
        if stream.format == "avro" and stream.avro_schema is None:
            raise InputError("is missing; Avro records are read with the schema they were written with",
                             field=f"{place}.avro_schema")  # fmt: skip
        try:
            stream.arrow_schema()
        except InputError as wrong:
            raise InputError(wrong.message, field=f"{place}.schema") from None
    results = file.results
    chosen = [name for name in ("parquet", "jsonl", "discard", "store") if getattr(results, name) is not None]
    if len(chosen) != 1:
        raise InputError("name exactly one of parquet, jsonl, discard and store", field="results")
    if chosen == ["store"]:
        raise UnsupportedError("result stores are not supported by this version; use parquet or jsonl",
                               field="results.store")  # fmt: skip


def describe(file: JoinFile) -> str:
    """A line a stream, for people."""
    return "\n".join(
        f"{name}: {stream.source}, time {stream.time}, delay {format_us(stream.delay)}"
        for name, stream in file.streams.items()
    )
