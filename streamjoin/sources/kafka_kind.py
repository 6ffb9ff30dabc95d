"""A Kafka topic as a source, as the registry has it. Spark reads it; `spark/kafka.py` decodes its records."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import Field

from streamjoin.errors import InputError
from streamjoin.intake.records import Decoder, decoder
from streamjoin.settings.setting import Settings, setting
from streamjoin.settings.values import Setting
from streamjoin.sources.kind import Columns, Resolve, SourceKind

_RATE_MAX = 1e9


class KafkaSettings(Settings):
    """One topic, and how its records are written."""

    servers: Annotated[str, setting("bootstrap servers, host:port, with commas between them")]
    topic: Annotated[str, setting("one topic")]
    format: Annotated[Literal["json", "csv", "avro", "arrow"], setting("how its records are written")]
    avro_schema: Annotated[
        str | dict[str, Any] | None,
        setting("for avro: the writer's schema, as JSON, as a mapping, or the path of a file", unset="none"),
    ] = None
    starting: Annotated[Literal["earliest", "latest"], setting("where the first batch ever begins")] = "earliest"
    rows_per_s: Annotated[
        Annotated[float, Field(gt=0, le=_RATE_MAX, strict=True)] | None,
        setting(
            "about how many records come in a second, by which the order of joins is chosen and costs are predicted",
            unset="as the topic's newest records tell", keeps_state=True,
        ),
    ] = None  # fmt: skip
    client: Annotated[
        dict[str, Setting],
        setting("settings of the Kafka client, such as {security.protocol: SSL}", unset="none", keeps_state=True),
    ] = Field(default_factory=dict)


def schema_file(avro_schema: str | dict[str, Any] | None) -> str | None:
    """The path of the file that a schema is in; None where it is the schema itself, or there is none."""
    return avro_schema if isinstance(avro_schema, str) and not avro_schema.lstrip().startswith("{") else None


def avro_schema_of(settings: KafkaSettings, resolve: Resolve) -> str | dict[str, Any] | None:
    """The writer's schema, which may be in a file; None where there is none.

    Raises:
        InputError: the file cannot be read.
    """
    path = schema_file(settings.avro_schema)
    if path is None:
        return settings.avro_schema
    try:
        return resolve(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as cause:
        raise InputError(f"{path} cannot be read: {cause}", field="avro_schema") from None


def topic_decoder(settings: KafkaSettings, columns: pa.Schema, resolve: Resolve) -> Decoder:
    """The decoder of a topic's records, for a look at them.

    Raises:
        InputError: see `avro_schema_of` and `decoder`.
    """
    return decoder(settings.format, columns, avro_schema=avro_schema_of(settings, resolve))


def _beside(settings: KafkaSettings) -> dict[str, str]:
    path = schema_file(settings.avro_schema)
    return {} if path is None else {"avro_schema": path}


def _check(settings: KafkaSettings, has_columns: bool) -> None:
    if not has_columns:
        raise InputError("is missing; Kafka records do not carry one", field="schema")
    if settings.format == "avro" and settings.avro_schema is None:
        raise InputError(
            "is missing; Avro records are read with the schema they were written with", field="avro_schema"
        )


def _look(settings: KafkaSettings, columns: pa.Schema | None, resolve: Resolve) -> pa.Schema:
    assert columns is not None
    return columns


KAFKA = SourceKind(
    "kafka",
    "a Kafka topic",
    KafkaSettings,
    Columns.GIVEN,
    _look,
    check=_check,
    beside=_beside,
    hosts=lambda settings: settings.servers,
    no_relation="a topic never ends, so write it under streams",
)
