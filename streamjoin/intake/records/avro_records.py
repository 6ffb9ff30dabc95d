"""The decoder of single-record Avro bodies: no container file, the writer schema is known beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from streamjoin.errors import InputError
from streamjoin.intake.records.assemble import Column, assemble, decode_in_parts
from streamjoin.intake.records.avro_columns import avro_column, check_column
from streamjoin.intake.records.avro_machine import (
    ANY_SCHEMA,
    BAD_BOOLEAN,
    BAD_BRANCH,
    BAD_INT,
    BAD_SYMBOL,
    LONG_VARINT,
    NEGATIVE_LENGTH,
    NO_CONFLUENT,
    NO_PREFIX,
    OTHER_SCHEMA,
    TRAILING,
    TRUNCATED,
    run,
)
from streamjoin.intake.records.avro_program import Leaf, compile_program
from streamjoin.intake.records.cells import Cells
from streamjoin.intake.records.contract import Decoded
from streamjoin.intake.records.record_bytes import RecordBytes

_PROBLEMS: Final = {
    TRUNCATED: "the record ends inside it",
    LONG_VARINT: "a number of more than 64 bits",
    NEGATIVE_LENGTH: "a negative length",
    BAD_BRANCH: "no such branch of the union",
    BAD_SYMBOL: "no such symbol of the enum",
    BAD_BOOLEAN: "a boolean that is neither 0 nor 1",
    BAD_INT: "an int of more than 32 bits",
}
_NULL: Final = Leaf("null")


class AvroDecoder:
    """See `Decoder`. A column the writer schema does not have is null in every row.

    Args:
        avro_schema: the writer schema as JSON text or parsed; or, for records with the Confluent prefix (a zero byte
            and a schema id of four), `{"confluent": true, "schema": <writer schema>}`, where "schema_id" may name the
            one id that is right: any other record was written with another schema and would be misread.
    """

    def __init__(self, schema: pa.Schema, avro_schema: str | Mapping[str, Any]) -> None:
        self._schema = schema
        self._schema_id = NO_CONFLUENT
        if isinstance(avro_schema, Mapping) and "confluent" in avro_schema:
            avro_schema, self._schema_id = _unwrapped(avro_schema)
        self._program = compile_program(avro_schema, schema)
        for name, leaf in self._program.leaves.items():
            check_column(name, leaf, schema.field(name).type)

    def decode(self, values: pa.Array) -> Decoded:
        """See `Decoder.decode`."""
        return decode_in_parts(len(self._schema.names), values, self._decode_part)

    def _decode_part(self, records: RecordBytes) -> Decoded:
        cells = Cells.absent(records.data, len(self._schema.names), len(records))
        fault = np.zeros(len(records), np.uint8)
        fault_at = np.zeros(len(records), np.int64)
        stack = np.zeros(self._program.stack_size + 1, np.int64)
        run(
            records.data, records.starts, records.ends, records.valid, self._schema_id, self._program.rows, stack,
            cells.kind, cells.start, cells.length, fault, fault_at,
        )  # fmt: skip
        reasons = {int(row): self._reason(int(fault[row]), int(fault_at[row])) for row in np.flatnonzero(fault)}
        return assemble(self._schema, records, self._columns(cells), reasons)

    def _columns(self, cells: Cells) -> list[Column]:
        leaves = self._program.leaves
        return [
            avro_column(cells.of_field(index), leaves.get(column.name, _NULL), column.type)
            for index, column in enumerate(self._schema)
        ]

    def _reason(self, fault: int, at: int) -> str:
        if fault == NO_PREFIX:
            return "the Confluent prefix, a zero byte and a schema id, is missing"
        if fault == OTHER_SCHEMA:
            return f"written with schema id {at}, not {self._schema_id}"
        if fault == TRAILING:
            return "not Avro of this schema: bytes are left over after the last field"
        return f'not Avro of this schema: field "{self._program.fields[at]}": {_PROBLEMS[fault]}'


def _unwrapped(wrapped: Mapping[str, Any]) -> tuple[Any, int]:
    """The writer schema and the Confluent schema id of a wrapped one."""
    if "schema" not in wrapped:
        raise InputError('an Avro schema with "confluent" has the writer schema in "schema"')
    if not wrapped["confluent"]:
        return wrapped["schema"], NO_CONFLUENT
    schema_id = wrapped.get("schema_id", ANY_SCHEMA)
    if not isinstance(schema_id, int) or (schema_id < 0 and schema_id != ANY_SCHEMA):
        raise InputError('"schema_id" of a Confluent Avro schema is a whole number from 0')
    return wrapped["schema"], schema_id
