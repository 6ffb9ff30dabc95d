"""What every record decoder takes and gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.intake.deadletter import MALFORMED


@dataclass(frozen=True, slots=True)
class BadRecord:
    """One record that cannot be read.

    Args:
        position: index of the record in the array that was decoded.
        detail: why, in one line without the record's content; it names the field when one field is to blame.
        reason: the same in a word, a key of `deadletter.REASONS`.
    """

    position: int
    detail: str
    reason: str = MALFORMED


@dataclass(frozen=True, slots=True)
class Decoded:
    """Raw records as typed columns. Every record is either in `positions` or in `bad`, never in both.

    Args:
        rows: the good records in input order, with exactly the schema the decoder was made for.
        positions: int64 of shape (rows.num_rows,), ascending: the record each row came from. Only Arrow records
            hold other than one row; one of no rows is in neither list.
        bad: ascending by position, at most one per record.
    """

    rows: pa.RecordBatch
    positions: npt.NDArray[np.int64]
    bad: list[BadRecord]


class Decoder(Protocol):
    """Turns raw records of one format into rows of one schema. It keeps no state between calls."""

    def decode(self, values: pa.Array) -> Decoded:
        """Read every record; what cannot be read is in `bad` and costs no other record.

        Args:
            values: binary, large_binary, string or large_string, of any offset; null is a Kafka tombstone. At most
                2 GiB of records, because the text columns of one batch cannot hold more.
        Raises:
            TypeError: `values` has another type.
            ValueError: `values` holds 2 GiB or more.
        """
        ...
