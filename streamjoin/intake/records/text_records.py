"""The decoder of JSON and CSV records: scan to cells, convert every field that is wanted, put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from streamjoin.intake.records.assemble import assemble, decode_in_parts
from streamjoin.intake.records.cells import Cells
from streamjoin.intake.records.columns import column_of, nulls
from streamjoin.intake.records.contract import Decoded
from streamjoin.intake.records.record_bytes import RecordBytes


class Scanner(Protocol):
    """Finds the fields of a schema in records of one text format."""

    def scan(self, records: RecordBytes) -> tuple[Cells, dict[int, str]]:
        """The cells of every record; record index -> why it has none."""
        ...


@dataclass(frozen=True, slots=True)
class TextDecoder:
    """See `Decoder`.

    Args:
        scanner: it finds `fields` fields in a record.
        places: which of them each column of `schema` is; None where a record has nothing for it.
    """

    schema: pa.Schema
    scanner: Scanner
    fields: int
    places: Sequence[int | None]

    def decode(self, values: pa.Array) -> Decoded:
        """See `Decoder.decode`."""
        return decode_in_parts(self.fields, values, self._decode_part)

    def _decode_part(self, records: RecordBytes) -> Decoded:
        cells, reasons = self.scanner.scan(records)
        columns = [
            nulls(len(records), field.type) if place is None else column_of(cells.of_field(place), field.type)
            for place, field in zip(self.places, self.schema, strict=True)
        ]
        return assemble(self.schema, records, columns, reasons)
