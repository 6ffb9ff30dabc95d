"""Raw records to typed columns, and for every bad record why it is bad.

    decoder("json", schema).decode(values) -> Decoded(rows, positions, bad)

The formats:
    json   one object per record (RFC 8259). A field may be missing; it must not stand twice.
    csv    one line per record without header, columns in schema order (RFC 4180).
    avro   one record body without header, or with the Confluent prefix.
    arrow  one IPC stream or file per record, of any number of rows.

Invariants:
    1. Whether and how a record is read depends on that record alone, not on its neighbours in the block.
    2. Every record is in the rows or among the bad ones, once; of Arrow records, every row.
    3. Nothing is rounded but text to floats, and times to whole microseconds, downwards: anything else that a column
       cannot hold exactly makes the record bad.
"""

from streamjoin.intake.records.contract import BadRecord, Decoded, Decoder
from streamjoin.intake.records.formats import FORMATS, decoder, text_decoder

__all__ = ["FORMATS", "BadRecord", "Decoded", "Decoder", "decoder", "text_decoder"]
