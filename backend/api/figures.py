"""What drivers report of a job, as clients see it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class StageInput(BaseModel):
    """What a stage reads on one side: a stream or a relation by its name in the query, or what another stage finds.

    Where queries have stages of their own, streams go by the names that they are registered by.
    """

    stream: str | None = None
    stage: int | None = None
    relation: str | None = None


class StageFigures(BaseModel):
    """A stage of the plan; stages are numbered from 1, and those whose rows no other one reads give results.

    Args:
        results: rows that its units found in the span: they went on to the next stage, or are results.
        inputs: what it joins.
        kind: of its join, such as INNER, LEFT or LEFT ANTI; None where it makes groups, and in older reports.
        queries: the names of those that it answers, of a job whose queries have stages of their own.
        open_rows: rows that wait, at the end of the span, until it is known whether they are matched.
        unmatched_rows: rows that left as unmatched.
        late_after_final: pairs that were none, as a row of theirs had left as unmatched before.
    """

    stage: int
    results: int
    inputs: list[StageInput] = Field(default_factory=list)
    kind: str | None = None
    queries: list[str] = Field(default_factory=list)
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
    search_steps: int = 0
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


class StepTime(BaseModel):
    """What a single step of a ring's nodes takes.

    Args:
        name: `join`, to compare a pair; `send`, to send and receive a row; `hop`, from a node to the next; `insert` and
            `purge`, of one row.
        symbol: what the paper calls it, such as T_j.
        origin: `set` in the join file, `measured` while the job ran, or `assumed` until enough is.
    """

    name: str
    symbol: str
    us: float
    origin: Literal["set", "measured", "assumed"]


class RingModel(BaseModel):
    """What PSP's formulas say of a ring, by the rates and times that were known.

    Args:
        best: N*, and `bounds` are N1 and N2, near the lower of which it is.
        lengths: by stream, how many nodes it needs by section 5.4.
        latency_s: mean time until all results of a row are there, with N* nodes.
        bandwidth_bytes_per_s: what a link must carry so that no node waits for rows.
        times: what the formulas were given of single steps.
    """

    best: int
    bounds: tuple[float, float]
    lengths: dict[str, int]
    latency_s: float
    bandwidth_bytes_per_s: float
    times: list[StepTime]


class AdaptiveFigures(BaseModel):
    """The units of a join whose units come and go, as they were when the span ended; `stage` counts from 1.

    Args:
        plan: how many times units had come, begun to drain, or left.
        units: units of R and of S that store, or nodes of a `ring`.
        draining: units that store nothing new and leave once they are empty.
        loads: of each subgroup, such as `R 0`, the share of its capacity that it stored when it was last asked in the
            span; of a `ring`, the share of their time that its nodes worked.
        best: N* of a ring, when it was last looked at in the span.
        model: what else was found then.
    """

    stage: int
    plan: int
    units: dict[str, int]
    draining: dict[str, int]
    loads: dict[str, float] = Field(default_factory=dict)
    best: int | None = None
    model: RingModel | None = None


class Decision(BaseModel):
    """Units came, begin to drain, or left, from batch `batch` on.

    Args:
        side: R or S, and `group` is a subgroup of it; or ring.
        units: how many stored before.
        bytes: what the subgroup stored, and `load` the share of its capacity that this was; of a ring, the share of
            their time that nodes worked.
        wish: how many units more or fewer that asked for, before bounds.
        added, drained, left: numbers of units.
        way: of a ring, `passive` where what is stored moves by its age, `aggressive` where it moved at once.
    """

    stage: int
    plan: int
    batch: int
    at_us: int
    side: str
    group: int
    units: int
    bytes: int
    load: float
    wish: int
    added: list[int]
    drained: list[int]
    left: list[int]
    way: str = ""


class BetterOrder(BaseModel):
    """A way to join the streams that has clearly less work now; `operator` is what a change of the job says."""

    plan: str
    setting: str
    operator: dict[str, Any]
    times: float


class OrderFigures(BaseModel):
    """The order of joins that `auto` chose, and what rates have come to since; all by prediction.

    Args:
        chosen_for, rates: rows a second of event time, by stream: when it was chosen, and lately.
        better: None where no other order is clearly better.
        text: all of it in a sentence.
    """

    plan: str
    chosen_for: dict[str, float]
    rates: dict[str, float]
    better: BetterOrder | None = None
    text: str


class PredictedReading(BaseModel):
    """What was predicted of a join with a relation before its start; `text` alone says why nothing was.

    Args:
        rate_per_s: what units join in a second of their own work, if as many rows come as they have memory for.
        memory_bytes: what they may take, or what a given rate, `asked_per_s`, takes.
        problem: what the start warned of.
    """

    model_config = ConfigDict(extra="allow")

    text: str
    rate_per_s: float | None = None
    rows_read_per_tuple: float | None = None
    cached_share: float | None = None
    memory_bytes: int | None = None
    asked_per_s: float | None = None
    free_bytes: int | None = None
    problem: str | None = None


class ReadingFigures(BaseModel):
    """How units joined a relation; see `reading` of a report (docs/join-file.md).

    Args:
        counts: of the span, added up over units.
        holding: what they have in memory, and what waits, as the span ended.
        units, at_once: how many there are, and how many of them work at the same time.
        rate_per_s: tuples in a second of their own work, without intake and what Spark takes for a batch.
        rows_read_per_tuple, cached_share: None of a relation that is sorted and looked up.
    """

    counts: dict[str, int]
    holding: dict[str, int]
    units: int
    at_once: int = 1
    rate_per_s: float | None = None
    rows_read_per_tuple: float | None = None
    cached_share: float | None = None
    predicted: PredictedReading | None = None


class RelationFigures(BaseModel):
    """A relation of the job: its newest version, and looks at it since the checkpoint began.

    Args:
        reading_rows: how many rows of the next version were read; null unless one is being read.
    """

    version: int | None = None
    reading_rows: int | None = None
    refreshes: int | None = None
    refresh_failures: int | None = None
    problem: str | None = None


class StateTraffic(BaseModel):
    """What went to the store of the job's state in the span, and came from it.

    Args:
        served, fetched: openings of segments that the machine's cache had, and had not.
        fetched_bytes: of these and of manifests.
        retries: how often something was asked again, because the store failed or what it gave was damaged.
    """

    served: int = 0
    fetched: int = 0
    fetched_bytes: int = 0
    put: int = 0
    put_bytes: int = 0
    retries: int = 0


class Forwarded(BaseModel):
    """What units of a chain or a ring, or hosts of segments, handed on to one another in the span."""

    blocks: int = 0
    tuples: int = 0
    bytes: int = 0


class Figures(BaseModel):
    """Rates, counts and times of a span, by stream where they are of one.

    Reports of older versions tell of no stages. What becomes of rows that joins decide on is that of all stages.
    `order` is there where `auto` chose the order of three streams and more from known rates, and rates are known now;
    `late_files` says of streams with late rows that files were read in another order than that of the numbers in their
    names; `reading` and `relations` are there where relations are joined, `state_traffic` where a store has the state.
    `reconnects` are starts of the query, inside its driver, after a Python worker did not connect to Spark in time.
    `forwarded` is there where units hand tuples on to one another, and `imbalance` then has IF by stream as the span
    ended: by what share of the mean the unit with the most stored rows is above it.
    """

    model_config = ConfigDict(extra="allow")

    open_rows: int = 0
    unmatched_rows: int = 0
    late_after_final: int = 0
    reconnects: int = 0
    stages: list[StageFigures] = Field(default_factory=list)
    units: list[UnitFigures] = Field(default_factory=list)
    adaptive: list[AdaptiveFigures] = Field(default_factory=list)
    decisions: list[Decision] = Field(default_factory=list)
    order: OrderFigures | None = None
    late_files: dict[str, str] = Field(default_factory=dict)
    reading: ReadingFigures | None = None
    relations: dict[str, RelationFigures] = Field(default_factory=dict)
    state_traffic: StateTraffic | None = None
    forwarded: Forwarded | None = None
    imbalance: dict[str, float] = Field(default_factory=dict)


class Point(BaseModel):
    """What a driver reported for a span of time."""

    at: str | None
    span_s: int
    generation: int
    figures: Figures


class Metrics(BaseModel):
    """Reports of a job, oldest first; thinned out with age."""

    points: list[Point]
