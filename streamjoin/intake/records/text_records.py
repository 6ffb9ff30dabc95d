"""The decoder of JSON and CSV records: scan to cells, convert every field, put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from streamjoin.intake.records.assemble import assemble, decode_in_parts
from streamjoin.intake.records.cells import Cells
from streamjoin.intake.records.columns import column_of
from streamjoin.intake.records.contract import Decoded
from streamjoin.intake.records.record_bytes import RecordBytes


class Scanner(Protocol):
    """Finds the fields of a schema in records of one text format."""

    def scan(self, records: RecordBytes) -> tuple[Cells, dict[int, str]]:
        """The cells of every record; record index -> why it has none."""
        ...


@dataclass(frozen=True, slots=True)
class TextDecoder:
    """See `Decoder`."""

    schema: pa.Schema
    scanner: Scanner

    def decode(self, values: pa.Array) -> Decoded:
        """See `Decoder.decode`."""
        return decode_in_parts(self.schema, values, self._decode_part)

    def _decode_part(self, records: RecordBytes) -> Decoded:
        cells, reasons = self.scanner.scan(records)
        columns = [column_of(cells.of_field(index), field.type) for index, field in enumerate(self.schema)]
        return assemble(self.schema, records, columns, reasons)
