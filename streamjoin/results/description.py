"""What a job's results are: a record that is written at its first start and never changes."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from streamjoin.errors import StateError
from streamjoin.results.block import KeyCode
from streamjoin.results.snapshot import read_meta, with_meta

FORMAT = 1
DESCRIPTION = "job"


@dataclass(frozen=True, slots=True)
class Description:
    """What a job's results are; written at its first start.

    Args:
        schema: of the stored rows, engine columns included.
        query: as written.
        key_name: what the key is, for people; None for a join without one.
        period_us: blocks hold results of one period of event time; None where snapshots close by epoch.
        where: which results are kept, as written; None for all.
        identity: of groups that change, the columns that tell them apart; none where a result is final.
    """

    schema: pa.Schema
    code: KeyCode
    query: str = ""
    key_name: str | None = None
    period_us: int | None = None
    where: str | None = None
    identity: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        """A record; `from_bytes` reads it back."""
        empty = pa.RecordBatch.from_pylist([], schema=self.schema)
        meta = {
            "format": FORMAT, "ordered": self.code.ordered, "buckets": self.code.buckets, "query": self.query,
            "key_name": self.key_name, "period_us": self.period_us, "where": self.where,
            "identity": list(self.identity),
        }  # fmt: skip
        return with_meta(empty, meta)

    @staticmethod
    def from_bytes(content: bytes) -> Description:
        """The inverse of `to_bytes`."""
        empty, meta = read_meta(content)
        if meta["format"] != FORMAT:
            raise StateError(f"results have format {meta['format']}, and this version reads format {FORMAT}")
        schema = empty.schema.remove_metadata()
        return Description(
            schema, KeyCode(meta["ordered"], meta["buckets"]), meta["query"], meta["key_name"], meta["period_us"],
            meta["where"], tuple(meta.get("identity", ())),
        )  # fmt: skip


def differs(name: str, there: Description, here: Description) -> bool:
    """Whether a field means something else; a query may be written with other white space."""
    one, other = getattr(there, name), getattr(here, name)
    if isinstance(one, str) and isinstance(other, str):
        return one.split() != other.split()
    return bool(one != other)
