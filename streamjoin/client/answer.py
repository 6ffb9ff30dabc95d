"""Answers to one-time queries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamjoin.client.errors import AnswerError
from streamjoin.client.steps import Reply

if TYPE_CHECKING:
    import pandas

END = b"streamjoin"
"""Where the last record batch, which is empty, says how the answer ended."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows, and how far they go.

    Args:
        last: the newest snapshot that it covers; a tail after it goes on without gap or overlap.
        cursor: given to the same question it goes on; None where nothing is left.
        stopped_by: why it ended before everything was found: `limit` is the question's own; `rows`, `bytes` and `time`
            are the platform's. None where it is complete.
        figures: of the platform's work, such as `blocks_read`.
        results: which results it is of, for a tail after `last`; None where the platform does not say.
    """

    table: pa.Table
    last: str | None
    cursor: str | None
    stopped_by: str | None
    figures: dict[str, Any]
    results: str | None = None

    @property
    def schema(self) -> pa.Schema:
        """Of the rows."""
        return self.table.schema

    @property
    def is_complete(self) -> bool:
        """Whether these are all rows that answer the question."""
        return self.stopped_by is None

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.table.to_batches():
            yield from batch.to_pylist()

    def to_arrow(self) -> pa.Table:
        """As an Arrow table."""
        return self.table

    def to_pandas(self) -> pandas.DataFrame:
        """As a pandas data frame."""
        return self.table.to_pandas()


def read_answer(reply: Reply, host: str) -> Answer:
    """The answer in a reply.

    Raises:
        AnswerError: it is not an Arrow stream, or it broke off.
    """
    end: Any = None
    batches: list[pa.RecordBatch] = []
    try:
        with pa.ipc.open_stream(reply.body) as stream:
            schema = stream.schema
            while True:
                try:
                    batch, metadata = stream.read_next_batch_with_custom_metadata()
                except StopIteration:
                    break
                if batch.num_rows:
                    batches.append(batch)
                if metadata is not None and END in metadata:
                    end = json.loads(metadata[END])
    except (pa.ArrowException, OSError, ValueError, RecursionError) as cause:
        raise AnswerError(
            f"{host} gave an answer that is no Arrow stream: {cause}", status=reply.status, code="not_arrow"
        ) from None
    if not isinstance(end, dict):
        raise AnswerError(f"the answer of {host} broke off; ask again", status=reply.status, code="broke_off")
    last = reply.headers.get("streamjoin-last-snapshot")
    results = reply.headers.get("streamjoin-results")
    return Answer(pa.Table.from_batches(batches, schema), last, end.get("cursor"), end.get("stopped_by"), end, results)


def joined(parts: Sequence[Answer]) -> Answer:
    """The pages of one answer as one."""
    if len(parts) == 1:
        return parts[0]
    last = parts[-1]
    table = pa.concat_tables([part.table for part in parts])
    figures = {**last.figures, "rows_given": table.num_rows}
    for name in ("blocks_read", "rows_read"):
        figures[name] = sum(int(part.figures.get(name) or 0) for part in parts)
    return Answer(table, last.last, last.cursor, last.stopped_by, figures, last.results)
