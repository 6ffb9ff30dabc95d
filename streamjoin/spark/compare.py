"""`streamjoin compare`: the same input through several operators, one after the other, in one session."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from streamjoin.errors import StreamJoinError, UnsupportedError
from streamjoin.explain.compare.prediction import Sample, predicted
from streamjoin.explain.sampling import look
from streamjoin.operators import registry
from streamjoin.operators.costs import UnitCosts
from streamjoin.plan.stages import is_divided, joins_nothing
from streamjoin.spark.baseline import run_baseline
from streamjoin.spark.memory import MemorySampler
from streamjoin.spark.progress import Progress
from streamjoin.spark.run import report, run_job
from streamjoin.spark.session import open_session
from streamjoin.spec.changed import with_operator
from streamjoin.spec.joinfile import JoinFile
from streamjoin.spec.prepare import Bound, bind
from streamjoin.spec.sections import ResultsFile


def compare_file(
    file: JoinFile,
    operators: Sequence[str],
    *,
    stop: threading.Event | None = None,
    show: Callable[[str], None] | None = None,
) -> Iterator[dict[str, Any]]:
    """Reports of a join by each operator, each as soon as it is there; by `registry.compared` if none is named.

    Where an operator cannot run the query, or failed while running, there is `error` in place of figures, and `failed`
    tells the two apart. The one that `stop` cut short has `stopped`, and is the last.

    Results are computed in full and dropped; checkpoints are temporary, so nothing of the join file's is touched.

    Raises:
        InputError: the join file or an operator's name is wrong.
    """
    bound = bind(_discarding(file), anew=True)
    if joins_nothing(bound.plan):
        raise UnsupportedError("this query reads one stream and joins nothing, so there are no operators to compare")
    if is_divided(bound.plan):
        raise UnsupportedError(
            "operators are compared by one query, or by queries of pairs over the same two streams; compare each of "
            "these in a join file of its own"
        )
    operators = operators or registry.compared(bound.plan)
    for name in operators:
        registry.entry(name)
    stop = stop or threading.Event()
    sample = _whole_windows(bound)
    session = open_session(file)
    try:
        for name in operators:
            row = _row(session, with_operator(bound, name), sample, stop, show)
            if row is not None:
                yield row
            if stop.is_set():
                break
    finally:
        session.stop()


def _discarding(file: JoinFile) -> JoinFile:
    """The same with its results dropped, and its state beside its checkpoint, as comparisons have theirs."""
    nothing = ResultsFile(discard=True)
    own: dict[str, Any] = {"run": file.run.model_copy(update={"state": None})}
    if file.queries is None:
        return file.model_copy(update={**own, "results": nothing})
    queries = {name: query.model_copy(update={"results": nothing}) for name, query in file.queries.items()}
    return file.model_copy(update={**own, "queries": queries})


def _whole_windows(bound: Bound) -> Sample | None:
    """The streams' statistics; what is kept for ever has no full window."""
    found = look(bound).statistics()
    if found is None or bound.plan.pair is None:  # formulas are of one join of two streams
        return None
    if registry.keeps_everything(bound.plan):
        found = tuple(replace(stream, stored=float("inf")) for stream in found)
    r, s = found
    return r, s


def _row(
    session: SparkSession,
    bound: Bound,
    sample: Sample | None,
    stop: threading.Event,
    show: Callable[[str], None] | None,
) -> dict[str, Any] | None:
    """One operator's row; None where it was stopped before it began."""

    def show_name(line: str) -> None:
        if show:
            show(f"{bound.operator}: {line}")

    try:
        # The first batch alone warms everything up: the first operator to run would pay for all.
        warm = threading.Event()
        _run(session, bound, sample, lambda line: warm.set(), warm)
        if stop.is_set():
            return None
        figures = _run(session, bound, sample, show_name, stop)
    except UnsupportedError as refused:
        return {"operator": bound.operator, "error": refused.message, "failed": False}
    except StreamJoinError as failure:
        return {"operator": bound.operator, "error": str(failure), "failed": True}
    return {**figures, "stopped": stop.is_set()}


def _run(
    session: SparkSession, bound: Bound, sample: Sample | None, show: Callable[[str], None], stop: threading.Event
) -> dict[str, Any]:
    """One operator's report, and what the formulas say."""
    beside = None  # of what executors reach, where they are elsewhere
    if bound.file.cluster is not None:
        beside = bound.file.checkpoint.parent
        beside.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="streamjoin-compare-", dir=beside) as folder, MemorySampler() as memory:
        begun = time.monotonic()
        if registry.is_sparks(bound.operator):
            return run_baseline(bound, until_end=True, stop=stop, show=show, session=session, checkpoint=Path(folder))
        job = bound.job(Path(folder), heartbeat=False)
        progress = run_job(session, bound, job, bound.sinks(), until_end=True, stop=stop, show=show)
        figures = report(bound, job, progress, time.monotonic() - begun, memory.peak_bytes)
        figures["dead_letter_folder"] = None  # it was temporary
        if bound.plan.pair is None:
            return {**figures, "predicted": None}
        return {**figures, "predicted": predicted(job.operator, sample, figures, _unit_costs(progress))}


def _unit_costs(progress: Progress) -> UnitCosts | None:
    """What a tuple cost: to hand it to a slot, and to probe it in one unit."""
    routed = sum(counts.get("routed", 0) for counts in progress.counts)
    if not routed or not progress.units:
        return None
    receiving_s = sum(batch.seconds["receive"] for batch in progress.times)
    probing_s = [unit["seconds"]["probe"] for unit in progress.units.values()]
    return UnitCosts(1e6 * receiving_s / routed, 1e6 * sum(probing_s) / len(probing_s) / routed)
