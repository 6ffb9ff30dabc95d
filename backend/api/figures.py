"""What drivers report of a job, as clients see it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class StageInput(BaseModel):
    """What a stage reads on one side: a stream by its name in the query, or what another stage finds."""

    stream: str | None = None
    stage: int | None = None


class StageFigures(BaseModel):
    """A stage of the plan; stages are numbered from 1, and the last one gives the results.

    Args:
        results: rows that its units found in the span: they went on to the next stage, or are results.
        inputs: what it joins.
        kind: of its join, such as INNER, LEFT or LEFT ANTI; None where it makes groups, and in older reports.
        open_rows: rows that wait, at the end of the span, until it is known whether they are matched.
        unmatched_rows: rows that left as unmatched.
        late_after_final: pairs that were none, as a row of theirs had left as unmatched before.
    """

    stage: int
    results: int
    inputs: list[StageInput] = Field(default_factory=list)
    kind: str | None = None
    open_rows: int = 0
    unmatched_rows: int = 0
    late_after_final: int = 0


class UnitFigures(BaseModel):
    """A unit. `stage` is its stage, from 1; counts cover the span; what is stored is as it was when the span ended."""

    model_config = ConfigDict(extra="allow")

    unit: int
    label: str = ""
    stage: int = 1
    comparisons: int = 0
    results: int = 0
    received: int = 0
    received_bytes: int = 0
    late: int = 0
    expired_rows: int = 0
    stored_rows: int = 0
    stored_bytes: int = 0
    segments: int = 0
    open_rows: int = 0
    unmatched_rows: int = 0
    late_after_final: int = 0


class Figures(BaseModel):
    """Rates, counts and times of a span, by stream where they are of one.

    Reports of older versions tell of no stages. What becomes of rows that joins decide on is that of all stages.
    """

    model_config = ConfigDict(extra="allow")

    open_rows: int = 0
    unmatched_rows: int = 0
    late_after_final: int = 0
    stages: list[StageFigures] = Field(default_factory=list)
    units: list[UnitFigures] = Field(default_factory=list)


class Point(BaseModel):
    """What a driver reported for a span of time."""

    at: str | None
    span_s: int
    generation: int
    figures: Figures


class Metrics(BaseModel):
    """Reports of a job, oldest first; thinned out with age."""

    points: list[Point]
