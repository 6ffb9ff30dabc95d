"""From a join file to a job: open the sources, bind the query, build the operator.

The parser of queries is imported where it is called: it is a tenth of what the API loads before it answers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamjoin.engine.coverage import all_stored, check_starts
from streamjoin.errors import InputError, QueryError, UnsupportedError
from streamjoin.generate import generator
from streamjoin.index.layout import layout_of
from streamjoin.intake.shedding import Rules, Shedding
from streamjoin.operators import registry
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.schema import StreamSchema, check_schema
from streamjoin.plan.sharing import Plan, SharedPlan
from streamjoin.results.block import key_code
from streamjoin.results.ledger import Description
from streamjoin.results.parts import Discard, JsonLinesSink, ParquetSink, Sink
from streamjoin.results.patience import RETRY_S
from streamjoin.results.policy import (
    DELAYS,
    EPOCH_US,
    THRESHOLD_ROWS,
    EpochPolicy,
    Policy,
    PunctuationPolicy,
)
from streamjoin.results.sink import RESULTS, Post, StoreSink
from streamjoin.results.stores.spec import StoreSpec
from streamjoin.sources.filelog import list_files, root_of, would_read
from streamjoin.sources.files import first_schema
from streamjoin.sources.relation import Relation
from streamjoin.spec.job import (
    Job,
    Recorded,
    RecordedQuery,
    SourceSpec,
    recorded,
    recorded_columns,
    recorded_query,
    recorded_slots,
    state_folder,
)
from streamjoin.spec.joinfile import JoinFile, RelationFile, StreamFile
from streamjoin.state.store import read_manifests

if TYPE_CHECKING:
    from streamjoin.query import RegisteredPredicate


@dataclass(frozen=True, slots=True)
class Bound:
    """A join file whose query, or queries, are bound to its streams.

    Args:
        operator: the operator's name, `auto` resolved.
        single: each query for itself, in a file of several.
        name: what people call the query, in a file of several.
        stopped: the queries that are stopped, each for itself.
        earlier: the queries that the checkpoint's state is of, where those of the file are others.
    """

    file: JoinFile
    plan: Plan
    operator: str
    single: tuple[Bound, ...] = ()
    name: str = ""
    stopped: tuple[Bound, ...] = ()
    earlier: SharedPlan | None = None

    @property
    def query(self) -> JoinPlan:
        """The plan of the only query."""
        (query,) = self.plan.queries
        return query

    @property
    def queries(self) -> tuple[Bound, ...]:
        """Each query for itself."""
        return self.single or (self,)

    def job(self, checkpoint: Path | None = None, *, heartbeat: bool = True) -> Job:
        """The job for an operator with units."""
        file = self.file
        checkpoint = checkpoint or file.checkpoint
        # Knobs that were not set follow the slots of the first start: later ones may have other slots, not other units.
        first_slots = recorded_slots(checkpoint) or file.slots
        return Job(
            self.plan,
            registry.build(self.operator, file.operator.knobs, self.plan, first_slots),
            file.slots,
            checkpoint,
            {
                side: source_spec(file, file.streams[self.plan.streams[side].name], self.plan.streams[side])
                for side in (0, 1)
                if file.streams[self.plan.streams[side].name].source != "kafka"
            },
            file.run.strict,
            file.run.heartbeat if heartbeat else 0,
            shedding=Shedding(shed_rules(file, self.plan)),
            earlier=self.earlier if checkpoint == file.checkpoint else None,
        )

    def ending(self) -> dict[str, Sink]:
        """Where the results of queries go that are being stopped, by name."""
        earlier = self.earlier.names_of_queries if self.earlier else ()
        return {query.name: query.sink() for query in self.stopped if query.name in earlier}

    def sinks(self, checkpoint: Path | None = None) -> list[Sink]:
        """Where the results of each query go."""
        return [query.sink(checkpoint) for query in self.queries]

    def sink(self, checkpoint: Path | None = None) -> Sink:
        """Where the results of one query go."""
        results = self.file.results
        if results.parquet is not None:
            return ParquetSink(self.file.resolve(results.parquet))
        if results.store is not None:
            return store_sink(self)
        if results.jsonl is not None:
            target = results.jsonl if results.jsonl == "-" else str(self.file.resolve(results.jsonl))
            return JsonLinesSink(target, (checkpoint or self.file.checkpoint) / "staged-results" / self.name)
        return Discard()


CASSANDRA_BUCKETS = 8
"""Parts that the rows of one batch are spread over, by join key, so that they lie on several nodes."""


def store_spec(file: JoinFile) -> StoreSpec:
    """How to open the store that a join file names."""
    results = file.results
    match results.store:
        case "sqlite":
            assert results.path is not None
            settings: dict[str, Any] = {"path": str(file.resolve(results.path))}
        case "cassandra":
            settings = {"hosts": ",".join(results.hosts or ()), "port": results.port, "keyspace": results.keyspace,
                        "username": results.username, "password": results.password}  # fmt: skip
        case "hbase":
            settings = {"host": (results.hosts or [""])[0], "port": results.port, "table": results.table}
        case _:
            raise InputError("names no store; write results: {store: sqlite, path: results.db}", field="results")
    return StoreSpec(results.store, tuple((name, value) for name, value in settings.items() if value is not None))


def store_job(file: JoinFile) -> str:
    """What a join file's results are called in its store."""
    name = file.results.job or re.sub(r"[^A-Za-z0-9._-]", "_", file.name)[:100]
    return name if name[0].isalnum() else f"join{name}"[:100]


def store_sink(bound: Bound) -> StoreSink:
    """The sink into the store that a join file names.

    Raises:
        InputError: what is to be kept is wrong.
    """
    results, plan = bound.file.results, bound.query
    where = select = None
    if results.where is not None:
        from streamjoin.query import bind_condition

        try:
            where = bind_condition(results.where, plan.output, RESULTS)
        except InputError as wrong:
            raise InputError(wrong.message, field="results.where") from None
    schema = plan.emitted
    if results.select is not None:
        select = tuple(results.select)
        for name in select:
            if name not in plan.output.names:
                raise InputError(f'there is no result column "{name}"; there are {", ".join(plan.output.names)}',
                                 field="results.select")  # fmt: skip
            if select.count(name) > 1:
                raise InputError(f'"{name}" stands here twice', field="results.select")
        engine = [field for field in schema if field.name not in plan.output.names]
        schema = pa.schema([*(schema.field(name) for name in select), *engine])
    key = plan.result_key
    code = key_code(
        None if key is None else key.type,
        equality=bool(plan.predicate.equalities),
        buckets=CASSANDRA_BUCKETS if results.store == "cassandra" else 1,
    )
    policy = snapshot_policy(bound.file, plan)
    return StoreSink(
        store_spec(bound.file),
        store_job(bound.file),
        Description(schema, code, plan.text, None if key is None else str(key), policy.period_us, results.where),
        policy,
        Post(where, select),
        results.retain,
        retry_s=RETRY_S if results.retry is None else results.retry / 1e6,
    )


def snapshot_policy(file: JoinFile, plan: JoinPlan) -> Policy:
    """When snapshots close, as `results.snapshot` says."""
    wanted = file.results.snapshot
    ordered = plan.ordering is not Ordering.NONE
    if wanted is None:
        return EpochPolicy(whole_batches=ordered)
    if wanted.punctuation:
        if ordered:
            raise UnsupportedError("a punctuation closes a snapshot by event time, and results are ordered by arrival; "
                                   "leave operator.ordering out, or commit by epoch",
                                   field="results.snapshot.punctuation")  # fmt: skip
        spans = set()
        for stream in plan.streams:
            punctuate = file.streams[stream.name].punctuate
            if punctuate is None or punctuate.every is None:
                raise InputError("is missing; commits by punctuation need it, such as {every: 1s}",
                                 field=f"streams.{stream.name}.punctuate")  # fmt: skip
            spans.add(punctuate.every)
        if len(spans) > 1:
            raise InputError("both streams need punctuations of one span, so that they come in pairs",
                             field=f"streams.{plan.streams[1].name}.punctuate.every")  # fmt: skip
        return PunctuationPolicy(spans.pop())
    rows = wanted.threshold_rows
    if rows is None and wanted.threshold_bytes is None:
        rows = THRESHOLD_ROWS
    return EpochPolicy(
        span_us=None if wanted.batches is not None else wanted.epoch or EPOCH_US,
        batches=wanted.batches or 1,
        threshold_rows=rows,
        threshold_bytes=wanted.threshold_bytes,
        immediate=True if wanted.immediate is None else wanted.immediate,
        delayed=wanted.delayed,
        delays=wanted.delays or DELAYS,
        whole_batches=ordered,
    )


def bind(file: JoinFile, predicates: Mapping[str, RegisteredPredicate] | None = None, *, anew: bool = False) -> Bound:
    """Look at the streams, and bind the query, or queries, to them.

    Args:
        anew: whatever the join file's checkpoint has been used for.
    Raises:
        InputError: a stream or a query is wrong, or queries cannot share one job.
    """
    schemas = _open_inputs(file, anew=anew)
    if file.queries is None:
        return _bind_one(file, schemas, predicates)
    every = tuple(_bind_named(file, name, schemas, predicates) for name in file.queries)
    single = tuple(one for one in every if not file.queries[one.name].stopped)
    plan = SharedPlan(tuple(one.name for one in single), tuple(one.query for one in single))
    name, earlier = file.operator.name, None
    if (found := None if anew else recorded(file.checkpoint)) is not None:
        single, plan, earlier = _continued(single, {one.name: one.query for one in every}, found)
        name = found.operator if name == registry.AUTO else name
    name = registry.choose(plan) if name == registry.AUTO else name
    if earlier is not None and found is not None:
        # The operator stays, so it is that of the queries so far: what does not fit it is the new query's.
        operator = registry.build(name, file.operator.knobs, earlier, file.slots)
        clocks = next((state.clocks for _, state in read_manifests(state_folder(file.checkpoint))), None)
        check_starts(plan, earlier, operator, all_stored(found.kept, clocks))
    registry.build(name, file.operator.knobs, plan, file.slots)
    stopped = tuple(one for one in every if file.queries[one.name].stopped)
    return Bound(file, plan, registry.entry(name).name, single, stopped=stopped, earlier=earlier)


def _continued(
    single: tuple[Bound, ...], queries: Mapping[str, JoinPlan], found: Recorded
) -> tuple[tuple[Bound, ...], SharedPlan, SharedPlan | None]:
    """The queries of a job that has run before, in its order; their plan, and its state's if that is of other queries.

    Args:
        single: those that are not stopped.
        queries: all of the join file.
    """
    recorded_now = {name: recorded_query(name, query) for name, query in queries.items()}
    if not found.queries[0].name:
        found = _adopted(recorded_now.values(), found)
    known = {query.name: query for query in found.queries}
    for name, query in recorded_now.items():
        if any(other.name == name and not query.is_same(other) for other in (*found.queries, *found.ended)):
            raise InputError(
                f"{name} is the name of another query in this checkpoint; give the new one another name, and results "
                "in another place",
                field=f"queries.{name}.query",
            )
    if missing := [name for name in known if name not in queries]:
        raise InputError(
            f"the checkpoint's state is of {' and '.join(missing)} too; keep the query here with stopped: true, which "
            "ends it and completes its results, or use another run.checkpoint",
            field="queries",
        )
    # In the checkpoint's order, so that another order in the file is no change.
    single = tuple(sorted(single, key=lambda one: list(known).index(one.name) if one.name in known else len(known)))
    names = tuple(one.name for one in single)
    started = (frozenset(names) - known.keys()) | found.started
    plan = SharedPlan(names, tuple(one.query for one in single), found.lasting, started & frozenset(names))
    if names == tuple(known):
        return single, plan, None
    return single, plan, SharedPlan(tuple(known), tuple(queries[name] for name in known), found.lasting, found.started)


def _adopted(queries: Iterable[RecordedQuery], found: Recorded) -> Recorded:
    """The checkpoint of a job that had one query, without a name; that of the file which is the same gives it one."""
    (only,) = found.queries
    for query in queries:
        if query.is_same(only):
            return found.called(query.name)
    raise InputError(
        "the checkpoint is of one query, and none of these is the same; keep it among them, with stopped: true to end "
        f"it, or use another run.checkpoint: {only.text[:200]}",
        field="queries",
    )


def _bind_named(
    file: JoinFile,
    name: str,
    schemas: Mapping[str, StreamSchema],
    predicates: Mapping[str, RegisteredPredicate] | None,
) -> Bound:
    """One of several queries; what is wrong with it is said with its name."""
    place = f"queries.{name}"
    try:
        return replace(_bind_one(file.of(name), schemas, predicates), name=name)
    except QueryError as wrong:
        wrong.place = f"{place}.query"
        raise
    except InputError as wrong:
        if wrong.field and wrong.field.split(".")[0] in ("query", "results"):
            wrong.field = f"{place}.{wrong.field}"
        raise


def _bind_one(
    file: JoinFile,
    schemas: Mapping[str, StreamSchema],
    predicates: Mapping[str, RegisteredPredicate] | None,
) -> Bound:
    _check_places(file)
    assert file.query is not None
    from streamjoin.query import plan_query

    plan = plan_query(
        file.query,
        schemas,
        relations=file.relations,
        predicates=predicates or {},
        index=file.operator.index,
        archive_period_us=file.operator.archive_period,
        main=file.operator.main,
    )
    plan = replace(plan, ordering=Ordering(file.operator.ordering))
    if file.results.store is not None:
        plan = replace(plan, keyed=True)
        store_sink(Bound(file, plan, ""))  # so that what is wrong with it shows before anything starts
    name = registry.choose(plan) if file.operator.name == registry.AUTO else file.operator.name
    found = registry.entry(name)
    if found.build is not None:  # so that wrong knobs show before anything starts
        registry.build(name, file.operator.knobs, plan, file.slots)
    else:
        _check_without_units(found, file, plan)
    layout_of(plan, 0)
    return Bound(file, plan, found.name)


SHEDS_NOTHING = "Spark's own join drops no tuples under overload; leave shed out, or choose another operator"


def shed_rules(file: JoinFile, plan: Plan) -> Rules:
    """What the streams of a join shed by; a stream that says nothing sheds nothing."""
    given = {side: file.streams[plan.streams[side].name].shed for side in (0, 1)}
    return {side: shed.rule() for side, shed in given.items() if shed is not None}


def _check_without_units(found: registry.Entry, file: JoinFile, plan: JoinPlan) -> None:
    for knob in file.operator.knobs:
        raise InputError(f"{found.name} has no knobs", field=f"operator.{knob}")
    registry.check(found.name, plan)
    for side in shed_rules(file, plan):
        raise UnsupportedError(SHEDS_NOTHING, field=f"streams.{plan.streams[side].name}.shed")


def _check_places(file: JoinFile) -> None:
    """Refuse, before anything runs, places that nothing can be written to, and results that would be read again."""
    results = file.results
    if results.parquet is not None:
        folder = file.resolve(results.parquet)
        _check_folder(folder, "results.parquet", "Parquet results are a folder of files")
        for what, path in _inputs(file):
            if _same(folder, path) or would_read(path, folder / "batch-0-0.parquet"):
                raise InputError(
                    f"{folder} is where {what} comes from; results in it would be read as its tuples",
                    field="results.parquet",
                )
    if results.jsonl is not None and results.jsonl != "-":
        target = file.resolve(results.jsonl)
        if _is(target.is_dir):
            raise InputError(f"{target} is a folder; JSON lines results are one file, or - for standard output",
                             field="results.jsonl")  # fmt: skip
        _check_folder(target.parent, "results.jsonl", "a file lies in a folder")
        for what, path in _inputs(file):
            if would_read(path, target):
                raise InputError(
                    f"{target} is among the files of {what}; results in it would be read as its tuples",
                    field="results.jsonl",
                )
    if results.store == "sqlite":
        assert results.path is not None
        target = file.resolve(results.path)
        if _is(target.is_dir):
            raise InputError(f"{target} is a folder; an SQLite store is one file", field="results.path")
        _check_folder(target.parent, "results.path", "a file lies in a folder")
    _check_folder(file.checkpoint, "run.checkpoint", "a checkpoint is a folder")


def _inputs(file: JoinFile) -> Iterator[tuple[str, Path]]:
    """What is read from files, and where it is."""
    for name, stream in file.streams.items():
        if stream.path is not None:
            yield f"stream {name}", file.resolve(stream.path)
    for name, relation in file.relations.items():
        yield f"relation {name}", file.resolve(relation.path)


def _check_folder(folder: Path, field: str, rule: str) -> None:
    """`folder` is one that can be written to, or can be made."""
    there = next(path for path in (folder, *folder.parents) if _is(path.exists))
    if not _is(there.is_dir):
        raise InputError(f"{there} is a file; {rule}", field=field)
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(f"{there} may not be written to", field=field)


def _is(question: Callable[[], bool]) -> bool:
    try:
        return question()
    except OSError:  # such as a name that is too long
        return False


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def with_operator(bound: Bound, name: str) -> Bound:
    """The same join by another operator, with that operator's own defaults."""
    operator = bound.file.operator
    knobs = operator.knobs if bound.operator == name else {}
    changed = operator.model_copy(update={"name": name})
    if not knobs:
        changed = type(operator)(
            name=name,
            archive_period=_span(operator.archive_period),
            index=operator.index,
            ordering=operator.ordering,
            main=operator.main,
        )
    plan = bound.plan
    if isinstance(plan, SharedPlan) and name != bound.operator:
        plan = replace(plan, lasting=None, started=frozenset())  # what lasts of a job is for its own operator
    return replace(
        bound, file=bound.file.model_copy(update={"operator": changed}), operator=registry.entry(name).name, plan=plan
    )


def _span(us: int | None) -> Any:
    return None if us is None else f"{us}us"


def _open_inputs(file: JoinFile, *, anew: bool) -> dict[str, StreamSchema]:
    """The schema of every stream, once all streams and relations of a join file were looked at.

    Raises:
        InputError: one of them cannot be opened, or its columns are none that it can have.
    """
    schemas = {name: open_schema(file, name, stream) for name, stream in file.streams.items()}
    for name, stream in file.streams.items() if not anew else ():
        if stream.path is not None and stream.schema_ is None:
            found = recorded_columns(file.checkpoint, name, stream.time, schemas[name].columns)
            schemas[name] = replace(schemas[name], columns=found or schemas[name].columns)
    for name in file.relations:  # although no query may name it: what is not there can never be joined
        open_relation(file, name)
    return schemas


def open_schema(file: JoinFile, name: str, stream: StreamFile) -> StreamSchema:
    """A stream's columns, time and delay; looks at its first file where the columns are not given.

    Raises:
        InputError: it cannot be opened, or its columns are none that a stream can have.
    """
    place = f"streams.{name}"
    if stream.source == "generator":
        columns = _generated(stream, place)
    else:
        with _at(f"{place}.path"):
            if stream.path is not None:  # although the schema may be given: what is not there cannot be read
                list_files(file.resolve(stream.path))
            columns = _columns(file, stream)
            check_schema(columns)
    return StreamSchema(name, columns, stream.time, stream.time_unit, stream.delay)


def open_relation(file: JoinFile, name: str) -> Relation:
    """A relation's files and columns; looks at its first file where the columns are not given.

    Raises:
        InputError: it cannot be opened, or its columns are none that a relation can have.
    """
    relation = file.relations[name]
    with _at(f"relations.{name}.path"):
        path = file.resolve(relation.path)
        files = list_files(path)
        columns = _columns(file, relation)
        check_schema(columns, "relation")
        if files and relation.source != "jsonl":  # whose records need not have every column
            carried = first_schema(relation.source, path, relation.csv.dialect()).names
            if missing := [name for name in columns.names if name not in carried]:
                raise InputError(f'{path} has no column "{missing[0]}"; it has {", ".join(carried[:20])}')
    return Relation(name, relation.source, tuple(files), columns, root_of(path), relation.csv.dialect())


def _columns(file: JoinFile, entry: StreamFile | RelationFile) -> pa.Schema:
    """As the entry gives them, or else as its first file has them."""
    if (given := entry.arrow_schema()) is not None:
        return given
    assert entry.path is not None
    return first_schema(entry.source, file.resolve(entry.path), entry.csv.dialect())


@contextmanager
def _at(field: str) -> Iterator[None]:
    """Errors that name no field are about this one."""
    try:
        yield
    except InputError as wrong:
        raise wrong if wrong.field else InputError(wrong.message, field=field) from None


def _generated(stream: StreamFile, place: str) -> pa.Schema:
    assert stream.kind is not None
    try:
        made = generator(stream.kind)
    except InputError as wrong:
        raise InputError(wrong.message, field=f"{place}.kind") from None
    try:
        made.check_options(stream.options)
    except InputError as wrong:
        raise InputError(wrong.message, field=f"{place}.options") from None
    return made.schema


def require_ends(file: JoinFile) -> None:
    """Refuse streams that never end, where the join is to run until their end.

    Raises:
        InputError: one of them is a generator without `rows`.
    """
    for name, stream in file.streams.items():
        if stream.source == "generator" and stream.rows is None and stream.kind is not None:
            _generated(stream, f"streams.{name}")
            if generator(stream.kind).length(stream.options) is None:
                raise InputError(
                    f"is missing; {stream.kind} never ends, so without it there is no end to run until",
                    field=f"streams.{name}.rows",
                )


def bounded_names(bound: Bound) -> tuple[str, ...]:
    """The streams of a query, as it names them, to which nothing can be added: one file, or so many generated rows."""
    return tuple(
        name
        for name, schema in zip(bound.plan.names, bound.plan.streams, strict=True)
        if _is_bounded(bound.file, bound.file.streams[schema.name])
    )


def _is_bounded(file: JoinFile, stream: StreamFile) -> bool:
    if stream.source == "generator" and stream.kind is not None:
        return stream.rows is not None or generator(stream.kind).length(stream.options) is not None
    return stream.path is not None and file.resolve(stream.path).is_file()


def source_spec(file: JoinFile, stream: StreamFile, schema: StreamSchema) -> SourceSpec:
    """How a task opens a stream that StreamJoin reads itself."""
    if stream.source == "generator":
        return SourceSpec(
            "generator",
            {
                "kind": stream.kind,
                "rate_per_s": stream.rate,
                "rows": stream.rows,
                "seed": stream.seed,
                "begins_now": stream.begin == "now",
                "rows_per_batch": file.run.offsets_per_batch,
                "options": stream.options,
            },
        )
    assert stream.path is not None
    settings = {
        "path": file.resolve(stream.path), "files_per_batch": file.run.files_per_batch, "csv": stream.csv.dialect()
    }  # fmt: skip
    return SourceSpec(stream.source, settings, schema.columns)
