"""`streamjoin compare`: the same input through several operators, one after the other, in one session."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from streamjoin.errors import UnsupportedError
from streamjoin.joinfile import JoinFile
from streamjoin.operators import registry
from streamjoin.prepare import Bound, bind, with_operator
from streamjoin.results.parts import Discard
from streamjoin.spark.baseline import run_baseline
from streamjoin.spark.memory import MemorySampler
from streamjoin.spark.run import open_session, report, run_job


def compare_file(
    file: JoinFile,
    operators: Sequence[str],
    *,
    stop: threading.Event | None = None,
    show: Callable[[str], None] | None = None,
) -> list[dict[str, Any]]:
    """Reports of a join by each operator; an operator that cannot run it has `error` in place of figures.

    Results are computed in full and dropped; checkpoints are temporary, so nothing of the join file's is touched.

    Raises:
        InputError: the join file or an operator's name is wrong.
    """
    discarding = file.model_copy(update={"results": type(file.results)(discard=True)})
    bound = bind(discarding)
    for name in operators:
        registry.entry(name)
    rows: list[dict[str, Any]] = []
    session = open_session(file)
    try:
        for name in operators:
            if stop and stop.is_set():
                break
            chosen = with_operator(bound, name)

            def show_name(line: str, name: str = name) -> None:
                if show:
                    show(f"{name}: {line}")

            try:
                _run(session, chosen, show_name, only_first_batch=True)
                row = _run(session, chosen, show_name, stop=stop)
            except UnsupportedError as refused:
                row = {"operator": name, "error": refused.message}
            rows.append(row)
    finally:
        session.stop()
    return rows


def _run(
    session: SparkSession,
    bound: Bound,
    show: Callable[[str], None],
    *,
    stop: threading.Event | None = None,
    only_first_batch: bool = False,
) -> dict[str, Any]:
    """One operator's report. Its first batch alone warms everything up: the first to run would pay for all."""
    stop = stop or threading.Event()
    show_or_stop = (lambda line: stop.set()) if only_first_batch else show
    with tempfile.TemporaryDirectory(prefix="streamjoin-compare-") as folder, MemorySampler() as memory:
        begun = time.monotonic()
        if bound.operator == registry.SPARK:
            return run_baseline(
                bound, until_end=True, stop=stop, show=show_or_stop, session=session, checkpoint=Path(folder)
            )
        job = bound.job(Path(folder), heartbeat=False)
        progress = run_job(session, bound, job, Discard(), until_end=True, stop=stop, show=show_or_stop)
        return report(bound, job, progress, time.monotonic() - begun, memory.peak_bytes)
