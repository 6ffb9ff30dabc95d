"""The question model of the API, for HTTP and the websocket alike."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from backend.given import Given
from streamjoin.plan.expression import Expression
from streamjoin.results.question import LIMIT_MAX, Question
from streamjoin.results.snapshot import is_id

TEXT_MAX = 16_384
JOB_MAX = 164
"""Of `job:query`, as long as the names of jobs and of queries may be."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Format = Literal["json", "ndjson", "csv", "arrow", "parquet"]


def _time_us(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    text = given.strip()
    if text.lstrip("-").isdigit() and len(text) <= 20:
        return int(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f'"{text[:40]}" is not a timestamp; write 2026-01-31T12:00:00Z, or microseconds since 1970'
        ) from None
    return ((found if found.tzinfo else found.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)


TimeUs = Annotated[
    int,
    BeforeValidator(_time_us, json_schema_input_type=int | str),
    Field(ge=-(2**62), le=2**62, description="ISO 8601 (UTC without a zone), or integer microseconds since 1970."),
]
Key = Annotated[
    bool | int | float | str,
    Field(description="Integers beyond 2^53 and decimals may be texts."),
]
SnapshotText = Annotated[str, Field(max_length=40, description="A snapshot id, such as 41.0.")]


def _moment(given: Any) -> Any:
    return given if isinstance(given, str) and is_id(given) else _time_us(given)


Moment = Annotated[
    Annotated[int, Field(ge=-(2**62), le=2**62)] | str,
    BeforeValidator(_moment, json_schema_input_type=int | str),
    Field(description="A snapshot id, such as 41.0, or a time: ISO 8601, or integer microseconds since 1970."),
]
Names = Annotated[list[Annotated[str, Field(max_length=255)]], Field(min_length=1, max_length=1000, fail_fast=True)]
Condition = Annotated[str, Field(max_length=TEXT_MAX, description='Over result columns, such as "price > 100".')]


class QueryIn(Given):
    """A one-time question. Ranges include both ends.

    A result's time is the latest event time among its tuples; its key is what the join's main predicate compares on the
    side of the first stream.
    """

    model_config = ConfigDict(
        populate_by_name=True,
        json_schema_extra={"examples": [{"job": "matches", "from": "2026-01-31T12:00:00Z", "where": "price > 100"}]},
    )

    job: str = Field(min_length=1, max_length=JOB_MAX, description="Its id or name.")
    from_: TimeUs | None = Field(None, alias="from")
    to: TimeUs | None = None
    key: Key | None = None
    key_from: Key | None = None
    key_to: Key | None = None
    where: Condition | None = None
    select: Names | None = None
    limit: int | None = Field(None, ge=1, le=LIMIT_MAX)
    cursor: str | None = Field(None, max_length=1000, description="Where an answer to the same question ended.")
    after: SnapshotText | None = Field(None, description="Only snapshots after this one.")
    upto: SnapshotText | None = Field(None, description="Only snapshots up to this one.")
    as_of: Moment | None = Field(None, description="Of groups that change: what they were at a snapshot or a time.")
    history: bool = Field(False, description="Of groups that change: every change, and not each group's last value.")
    aggregate: str | None = Field(None, max_length=TEXT_MAX, description='In place of rows, "count, sum(price)".')
    by: Names | None = Field(None, description="One row of aggregates for each value of these columns.")
    format: Format = "json"
    timeout_s: float | None = Field(None, gt=0, description="Time for the answer; what is there by then is given.")

    def question(
        self, limit: int | None = None, cursor: str | None = None, bound: Expression | None = None
    ) -> Question:
        """As the engine asks, with a limit and a cursor of the caller's, and what its condition means."""
        return Question(
            self.from_,
            self.to,
            self.key,
            self.key_from,
            self.key_to,
            None if self.select is None else tuple(self.select),
            self.where,
            limit,
            cursor,
            self.after,
            self.upto,
            self.as_of,
            self.history,
            bound,
        )
