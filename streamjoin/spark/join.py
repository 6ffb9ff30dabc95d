"""`stream_join`: a join as a streaming DataFrame, for any sink or further transformation of Spark's.

    intake -> repartitionById(slot) -> units

One Spark job a batch: the source (or `mapInArrow` over a DataFrame) routes, a shuffle moves blocks, and a second stage
runs the units.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (its usual name)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from streamjoin.engine.operator import Operator
from streamjoin.errors import UnsupportedError
from streamjoin.intake.shedding import Shedding, ShedRule
from streamjoin.operators import registry
from streamjoin.operators.aggregate import Aggregate
from streamjoin.plan.aggregate import AggregatePlan
from streamjoin.plan.hearing import hearing
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.reordering import ordered
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Plan, Stage, entries_of
from streamjoin.query import RegisteredPredicate, plan_query
from streamjoin.results.parts import PartWriter
from streamjoin.sources.columns import conform, stream_schema
from streamjoin.sources.relation import AnyRelation
from streamjoin.spark.offsetlog import logged_topics
from streamjoin.spark.source import NAME, StreamJoinSource, pack
from streamjoin.spark.staying import Staying, without_key
from streamjoin.spark.tasks import Decode, SourceRows, feeding_rows, gathered_rows, intake_rows, unit_rows, unit_runs
from streamjoin.spark.wire import ROUTED_SCHEMA
from streamjoin.spec.inputs import open_relation
from streamjoin.spec.job import Job, state_folder
from streamjoin.spec.joinfile import of_relations
from streamjoin.spec.relations import read_relations
from streamjoin.state.store import StateStore


@dataclass(frozen=True, slots=True)
class Stream:
    """A streaming DataFrame as one side of a join.

    Args:
        rows: the DataFrame. Reading it again must give the same rows in the same partitions, as Spark's file and
            Kafka sources do; then results are exactly-once.
        time: its event-time column: a timestamp, a date, or an integer with `time_unit`; or `arrival`.
        delay_us: D, the disorder inside which results are exact.
        idle_us: after a silence of so much logged time the stream holds back the others no longer; None for never.
            Batches log the time, so another stream must go on meanwhile.
        key: a row with nothing but these and its time ends the key that it has, for ASOF JOIN; none unless given.
        shed: drops tuples under overload; None never does. Change it only while no batch waits to be repeated.
    """

    rows: DataFrame
    time: str
    delay_us: int = 0
    time_unit: str = "us"
    shed: ShedRule | None = None
    idle_us: int | None = None
    key: tuple[str, ...] = ()


def stream_join(
    streams: Mapping[str, Stream],
    query: str,
    *,
    operator: Operator,
    checkpoint: str | Path,
    slots: int,
    relations: Mapping[str, Mapping[str, Any]] | None = None,
    predicates: Mapping[str, RegisteredPredicate] | None = None,
    ordering: Ordering = Ordering.NONE,
) -> DataFrame:
    """Join streams, and relations with them, which are read now if they have changed since the checkpoint read them.

    Args:
        streams: name -> stream, as the query names them.
        query: a SELECT ONLINE.
        operator: such as `Biclique(2, 2, Routing.HASH)`, of every stage that it can run; others have as many units.
        checkpoint: where the join keeps its state. Give the query that you start on the result a checkpoint of its
            own, and keep or drop the two together.
        slots: partitions of the unit stage; may differ from run to run.
        relations: name -> what an entry of `relations:` of a join file says, all but `refresh`: a running query joins
            what the next call with its checkpoint has read.
        ordering: what is promised of the order of a batch's rows, from the first partition's to the last one's.
    Returns:
        A streaming DataFrame of the query's output columns.
    Raises:
        InputError: the query, the streams, the relations or the operator do not fit together.
        RunError: a relation cannot be read.

    Example:
        >>> pairs = stream_join(
        ...     {"orders": Stream(orders, "ts"), "payments": Stream(payments, "ts", delay_us=2_000_000)},
        ...     "SELECT ONLINE orders.id, payments.amount FROM orders, payments "
        ...     "WHERE orders.id = payments.order_id WITHIN 10 SECONDS",
        ...     operator=Biclique(2, 2, Routing.HASH), checkpoint="state/", slots=2,
        ... )  # doctest: +SKIP
    """
    tables = _opened(relations or {}, streams)
    schemas = {name: _schema(name, stream) for name, stream in streams.items()}
    schemas |= {name: StreamSchema.of_relation(name, table.columns) for name, table in tables.items()}
    plan: Plan = plan_query(query, schemas, predicates=predicates or {})
    if plan.pair is not None:
        plan = ordered(plan, ordering)
    elif ordering is not Ordering.NONE:
        what = "groups" if plan.groups else f"results of {len(plan.streams)} streams"
        raise UnsupportedError(f"{what} leave in no order; leave ordering out")
    registry.check(operator.name, plan)
    ready = operator.planned(plan)
    job = _job(ready, operator, slots, Path(checkpoint).absolute(), streams, tables)
    read_relations(job)
    frames = {
        number: routed_dataframe(job, number, streams[stream.name].rows, _decode_dataframe(stream))
        for number, stream in enumerate(ready.streams)
    }
    routed = fed(job, [], frames)
    output = output_schema(ready.queries[0].output)
    if ready.gathered:
        return gather(job, routed, functools.partial(gathered_rows, job), output)
    return units(job, routed, functools.partial(unit_rows, job), output)


def _opened(relations: Mapping[str, Mapping[str, Any]], streams: Mapping[str, Stream]) -> dict[str, AnyRelation]:
    """Relations as a join file would have them."""
    file = of_relations(relations, streams)
    for name, relation in file.relations.items():
        if relation.refresh is not None:
            raise UnsupportedError(
                "stream_join looks at relations when it is called, as it does not know when a query on its rows ends; "
                "leave this out, and call stream_join again with the same checkpoint while the query runs, or run a "
                "join file",
                field=f"relations.{name}.refresh",
            )
    return {name: open_relation(file, name) for name in file.relations}


def _job(
    plan: Plan,
    operator: Operator,
    slots: int,
    checkpoint: Path,
    streams: Mapping[str, Stream],
    tables: Mapping[str, AnyRelation],
) -> Job:
    rules = {number: streams[stream.name].shed for number, stream in enumerate(plan.streams)}
    shedding = Shedding({number: rule for number, rule in rules.items() if rule is not None})
    joined = {one.name: tables[one.name] for one in plan.relations}
    operators = stage_operators(operator, plan, state_folder(checkpoint))
    return Job(plan, operators, slots, checkpoint, shedding=shedding, relations=joined, notes_versions=True)


def _schema(name: str, stream: Stream) -> StreamSchema:
    columns, key = dataframe_schema(stream.rows), tuple(stream.key)
    return StreamSchema(name, columns, stream.time, stream.time_unit, stream.delay_us, stream.idle_us, key=key)


def stage_operators(operator: Operator, plan: Plan, state: Path) -> tuple[Operator, ...]:
    """The operator of each stage; one that is not the caller's has as many units, as these stay and slots may not.

    A checkpoint from before that was so has as many as there were slots, and goes on with these.
    """
    own = {stage.number: operator.at(stage.plan) for stage in plan.stages if _is_own(stage, operator)}
    units = len(next(iter(own.values()), operator).units)

    def other(stage: Stage, units: int) -> Operator:
        if isinstance(stage.plan, AggregatePlan):
            return Aggregate(stage.plan, units)
        return registry.build(registry.operator_of(stage, operator.name), {}, stage.plan, units)

    def of(stage: Stage) -> Operator:
        if stage.number in own:
            return own[stage.number]
        there = _units_there(state, stage.number)
        found = (other(stage, count) for count in (units, *range(1, there + 1)))
        return next((one for one in found if len(one.units) == there), other(stage, units))

    return tuple(map(of, plan.stages))


def _is_own(stage: Stage, operator: Operator) -> bool:
    return not isinstance(stage.plan, AggregatePlan) and registry.operator_of(stage, operator.name) == operator.name


def _units_there(state: Path, stage: int) -> int:
    """How many units of a stage a checkpoint has state of; 0 where its first batch may be repeated, by any number."""
    store = StateStore(state, stage)
    units = store.units()
    return len(units) if any(max(store.versions(unit), default=0) > 1 for unit in units) else 0


def dataframe_schema(rows: DataFrame) -> pa.Schema:
    """The columns of a DataFrame that a stream can have."""
    return stream_schema(to_arrow_schema(rows.schema, timezone="UTC"))


def output_schema(schema: pa.Schema) -> StructType:
    """An Arrow schema as Spark's."""

    return from_arrow_schema(schema, prefer_timestamp_ntz=False)


def own_sources(session: SparkSession, job: Job) -> DataFrame:
    """Routed blocks of the streams that StreamJoin reads itself, and the job's heartbeat."""
    session.dataSource.register(StreamJoinSource)
    return session.readStream.format(NAME).option("job", pack(job)).load()


def routed_dataframe(job: Job, side: int, rows: DataFrame, decode: Decode) -> DataFrame:
    """Routed blocks of a side that Spark reads. `decode` sees the frame's columns, then Spark's time of the batch."""
    # current_timestamp() is the time in the offset log: the same in every attempt of a batch.
    stamped = rows.select("*", F.current_timestamp().alias("__clock"))
    return stamped.mapInArrow(_iterate(functools.partial(intake_rows, job, side, decode)), ROUTED_SCHEMA)


def units(job: Job, routed: DataFrame, run: Any, schema: StructType | str, staying: Staying | None = None) -> DataFrame:
    """The unit stage behind routed blocks: one partition a slot."""
    if staying is None:
        return routed.repartitionById(job.slots, F.col("slot")).mapInArrow(_iterate(run), schema)
    return staying.partitioned(routed).mapInArrow(_iterate(lambda batches: run(without_key(batches))), schema)


def fed(
    job: Job,
    frames: Sequence[DataFrame],
    of_streams: Mapping[int, DataFrame],
    results: Sequence[PartWriter] = (),
    staying: Staying | None = None,
) -> DataFrame:
    """What comes to the last floor of stages: routed blocks of streams, and of what the floors before have found.

    Args:
        frames: routed blocks of any streams. Those for a later stage pass the ones before as they are.
        of_streams: by the number of the stream, routed blocks of that one, which enter at its first stage.
        results: where the results of each query go, of those that are answered before the last floor.
    """
    entered = _entered(job, of_streams)
    coming = list(frames)
    for floor in range(len(job.plan.floors)):
        if floor:
            run = functools.partial(feeding_rows, job, floor - 1, results)
            coming = [units(job, functools.reduce(DataFrame.unionAll, coming), run, ROUTED_SCHEMA, staying)]
        coming += [of_streams[number] for number, enters in entered.items() if enters == floor]
    return functools.reduce(DataFrame.unionAll, coming)


def in_order(job: Job, numbers: Iterable[int]) -> list[int]:
    """Streams that Spark reads in the order in which `fed` takes them: Spark logs their offsets without a name."""
    return list(_entered(job, numbers))


def topics_in_order(job: Job, topics: Mapping[int, str]) -> dict[int, str]:
    """The topics that a job reads, by stream, in the order in which Spark has logged their offsets until now.

    It follows from how the job began; but which streams others have to hear of, as one that has `idle`, may change.
    """
    computed = in_order(job, topics)
    left, found = list(computed), []
    for topic in logged_topics(job.offsets):
        number = next((number for number in left if topics[number] == topic), None)
        if number is None:
            return {number: topics[number] for number in computed}
        left.remove(number)
        found.append(number)
    return {number: topics[number] for number in (*found, *left)}


def _entered(job: Job, numbers: Iterable[int]) -> dict[int, int]:
    """By stream, the floor before which its blocks come, in the order in which they do.

    The order is that of the job's topics once it is known; before, that of the floors at which they entered when the
    job began, whatever queries have come and gone since.
    A stream that has to come before one that is ahead of it takes that one along; it passes the stages between.
    """
    begun, numbers = job.plan.begun, list(numbers)
    if all(number in job.topics for number in numbers):
        ordered = [number for number in job.topics if number in numbers]
    else:
        ordered = sorted(numbers, key=lambda number: _entry(begun, number))
    entered: dict[int, int] = {}
    last = len(job.plan.floors) - 1
    for number in reversed(ordered):
        floor, *_ = _entry(job.plan, number) if entries_of(job.plan, number) else (last,)
        entered[number] = last = min(floor, last)
    return dict(reversed(entered.items()))


def _entry(plan: Plan, number: int) -> tuple[int, int, int, int]:
    """Before which floor a stream's blocks come, and its place among those that do.

    That is the floor of the stage that takes them first. Whoever else must hear of the stream is told by the blocks'
    task, so where somebody must before that stage, they come before the first floor and pass all stages between.
    """
    floor_of = {stage.number: floor for floor, stages in enumerate(plan.floors) for stage in stages}
    stage, side = min(entries_of(plan, number), key=lambda entry: (floor_of[entry[0].number], entry[0].number))
    floor = floor_of[stage.number]
    if any(floor_of[heard] < floor for heard in hearing(plan, number)):
        return 0, 0, number, number
    return floor, 1 + stage.number, side, number


def gather(
    job: Job, routed: DataFrame, run: Any, schema: StructType | str, staying: Staying | None = None
) -> DataFrame:
    """The unit stage and the gather stage, where results are to leave in order: as many partitions as slots."""
    runs = units(job, routed, functools.partial(unit_runs, job), ROUTED_SCHEMA, staying)
    return runs.repartitionById(job.slots, F.col("slot")).mapInArrow(_iterate(run), schema)


def _iterate(run: Any) -> Any:
    # Spark wants a plain function of one iterator.
    def function(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run(batches)

    return function


def _decode_dataframe(stream: StreamSchema) -> Decode:
    def decode(batch: pa.RecordBatch) -> Iterator[SourceRows]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        number = int(context.getLocalProperty("streaming.sql.batchId") or 0)
        piece = f"{number:09d}-{context.partitionId():06d}"
        rows = conform(batch, stream.columns, stream.columns.names, f"stream {stream.name}")
        yield SourceRows("all", piece, piece, rows, None, [])

    return decode
