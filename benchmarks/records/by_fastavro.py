"""Avro records read by fastavro, to the same rows and bad records as ours as far as it can.

One stream over all records of a block, which has to stand at the end of each one after it. Times are read as their
numbers and converted a column at a time. Where few of many fields are wanted, a reader schema has the others skipped.

Left as it is: a negative branch or symbol counts from the end, an int may have 64 bits, any byte but 0 is true, and an
array of nulls may claim to have 2**62 of them, which takes as long as that.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Mapping
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa

from streamjoin.intake.records.assemble import Column, assemble
from streamjoin.intake.records.contract import Decoded
from streamjoin.intake.records.record_bytes import RecordBytes

_PREFIX_BYTES = 5

Objects = list[Any]


class FastavroDecoder:
    """See `Decoder`; columns of the types that the inputs have, times in microseconds."""

    def __init__(self, schema: pa.Schema, avro: Mapping[str, Any]) -> None:
        self._schema = schema
        self._prefix = b""
        if "confluent" in avro:
            self._prefix = b"\0" + int(avro["schema_id"]).to_bytes(4, "big")
            avro = avro["schema"]
        writer = _without_times(avro)
        self._writer = fastavro.parse_schema(writer)
        wanted = [field for field in writer["fields"] if field["name"] in schema.names]
        is_narrow = len(wanted) < len(writer["fields"])
        self._reader: Any = fastavro.parse_schema({**writer, "fields": wanted}) if is_narrow else None
        self._empty = dict.fromkeys(schema.names)

    def objects(self, records: RecordBytes) -> tuple[Objects, dict[int, str]]:
        """A dict for each record, one of nulls where it is bad, and why it is."""
        rows: Objects = []
        reasons: dict[int, str] = {}
        stream = io.BytesIO(records.data.tobytes())
        read, tell, seek, append = fastavro.schemaless_reader, stream.tell, stream.seek, rows.append
        writer, reader, prefix = self._writer, self._reader, self._prefix
        places = zip(records.starts.tolist(), records.ends.tolist(), records.valid.tolist(), strict=True)
        for start, end, valid in places:
            row: Any = self._empty
            problem = ""
            if valid:
                seek(start)
                if prefix and stream.read(_PREFIX_BYTES) != prefix:
                    problem = "another schema"
                else:
                    try:
                        row = read(stream, writer, reader)
                        if tell() != end:
                            row, problem = self._empty, "of another length"
                    except Exception as error:  # whatever its readers come upon in what is no Avro
                        problem = str(error) or type(error).__name__
            if problem:
                reasons[len(rows)] = problem
            append(row)
        return rows, reasons

    def decode(self, values: pa.Array) -> Decoded:
        """See `Decoder.decode`."""
        records = RecordBytes.of(values)
        rows, reasons = self.objects(records)
        columns = [
            Column(pa.array([row[name] for row in rows], kind), np.zeros(len(rows), np.uint8), lambda row: "")
            for name, kind in zip(self._schema.names, self._schema.types, strict=True)
        ]
        return assemble(self._schema, records, columns, reasons)


def _without_times(avro: Mapping[str, Any]) -> dict[str, Any]:
    plain = copy.deepcopy(dict(avro))
    for field in plain["fields"]:
        if isinstance(field["type"], dict) and field["type"].get("logicalType") in ("timestamp-micros", "date"):
            field["type"] = field["type"]["type"]
    return plain
