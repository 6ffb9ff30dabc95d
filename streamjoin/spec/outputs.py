"""Where the results of a join file go: the sink, its store, and when snapshots close."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa

from streamjoin.errors import InputError, UnsupportedError
from streamjoin.plan.aggregate import AggregatePlan
from streamjoin.plan.changing import EMIT_TIME, OPERATION
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.stages import Plan
from streamjoin.results.block import key_code
from streamjoin.results.description import Description
from streamjoin.results.parts import Discard, JsonLinesSink, ParquetSink, Sink
from streamjoin.results.patience import RETRY_S
from streamjoin.results.policy import (
    DELAYS,
    EPOCH_US,
    THRESHOLD_ROWS,
    EpochPolicy,
    PairPolicy,
    Policy,
    PunctuationPolicy,
)
from streamjoin.results.rows import no_column_text
from streamjoin.results.sink import RESULTS, Post, StoreSink
from streamjoin.results.stores.registry import STORES
from streamjoin.results.stores.spec import StoreSpec
from streamjoin.spec.checks import RULES
from streamjoin.spec.joinfile import JoinFile
from streamjoin.spec.sections import ResultsFile


def store_spec(file: JoinFile) -> StoreSpec:
    """How to open the store that a join file names."""
    if file.results.store is None:
        raise InputError("no store is configured; set results: {store: sqlite, path: results.db}", field="results")
    return STORES[file.results.store].spec(file.results, file.resolve)


def store_job(file: JoinFile) -> str:
    """What a join file's results are called in its store."""
    name = file.results.job or re.sub(r"[^A-Za-z0-9._-]", "_", file.name)[:100]
    return name if name[0].isalnum() else f"join{name}"[:100]


def open_sink(file: JoinFile, plan: Plan, staged: Path) -> Sink:
    """Where the results of a query go.

    Args:
        staged: a folder for what is not committed yet, where the sink has none of its own.
    """
    results = file.results
    if results.parquet is not None:
        return ParquetSink(file.resolve(results.parquet))
    if results.store is not None:
        return store_sink(file, plan)
    if results.jsonl is not None:
        return JsonLinesSink(results.jsonl if results.jsonl == "-" else str(file.resolve(results.jsonl)), staged)
    return Discard()


def store_sink(file: JoinFile, plan: Plan) -> StoreSink:
    """The sink into the store that a join file names.

    Args:
        plan: of one query.
    Raises:
        InputError: what is to be kept is wrong.
    """
    results = file.results
    assert results.store is not None
    (query,) = plan.queries
    identity = query.identity if isinstance(query, AggregatePlan) else ()
    _check_identity(results, identity)
    where = select = None
    if results.where is not None:
        from streamjoin.query import bind_condition

        try:
            where = bind_condition(results.where, query.output, RESULTS)
        except InputError as wrong:
            raise InputError(wrong.message, field="results.where") from None
    schema = query.emitted
    if results.select is not None:
        select = tuple(results.select)
        for name in select:
            if name not in query.output.names:
                raise InputError(no_column_text(name, query.output.names), field="results.select")
            if select.count(name) > 1:
                raise InputError(f'"{name}" is given twice', field="results.select")
        engine = [field for field in schema if field.name not in query.output.names]
        schema = pa.schema([*(schema.field(name) for name in select), *engine])
    key = query.result_key
    code = key_code(
        None if key is None else key.type,
        equality=query.has_equal_keys,
        buckets=STORES[results.store].buckets,
    )
    policy = snapshot_policy(file, plan)
    return StoreSink(
        store_spec(file),
        store_job(file),
        Description(schema, code, query.text, query.key_name, policy.period_us, results.where, identity),
        policy,
        Post(where, select),
        results.retain,
        retry_s=RETRY_S if results.retry is None else results.retry / 1e6,
    )


def _check_identity(results: ResultsFile, identity: tuple[str, ...]) -> None:
    """Refuse what would keep some changes of groups only."""
    if not identity:
        return
    if results.where is not None:
        raise InputError(
            "would keep some of the values of groups that change, so that their last one would be unknown; write "
            "HAVING in the query",
            field="results.where",
        )
    needed = (*identity, OPERATION, EMIT_TIME)
    if results.select is not None and (missing := [name for name in needed if name not in results.select]):
        raise InputError(
            f"groups that change need {', '.join(needed)}; add {', '.join(missing)}", field="results.select"
        )


def snapshot_policy(file: JoinFile, plan: Plan) -> Policy:
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
        return _by_punctuation(file, plan)
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


def _by_punctuation(file: JoinFile, plan: Plan) -> Policy:
    """By the periods that `punctuate` says of the streams which the query reads."""
    spans: list[int | None] = []
    for name in (stream.name for stream in plan.streams):
        punctuate = file.streams[name].punctuate
        if punctuate is None:
            raise InputError(
                f"is missing; commits by punctuation need it, such as {RULES}", field=f"streams.{name}.punctuate"
            )
        spans.append(punctuate.every)
        if (punctuate.every is None) != (spans[0] is None):
            raise InputError(
                "does not come in pairs with those of the other streams: periods end either by event time or with rows "
                "and files; write every for all streams, or for none",
                field=f"streams.{name}.punctuate",
            )
        if punctuate.every != spans[0]:
            raise InputError(
                "all streams need punctuations of one span, so that they come in pairs",
                field=f"streams.{name}.punctuate.every",
            )
    return PairPolicy() if spans[0] is None else PunctuationPolicy(spans[0])
