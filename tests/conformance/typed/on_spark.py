"""Cases on a real Spark: their streams as files, and a join file over them."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tests.spark.jobs import result_rows, run_text, write_file

from .case import STREAMS, Case
from .shrinking import join_file, script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def found(case: Case, session: SparkSession, folder: Path) -> Counter[tuple[int, int]]:
    """The pairs of a case, by Spark; `folder` is empty."""
    for stream in STREAMS:
        for number, rows in enumerate(case.pieces(stream)):
            write_file(folder / stream, number, rows)
    run_text(session, join_file(case), folder)
    return result_rows(folder / "results")


def differences(cases: Iterable[Case]) -> Iterator[str | None]:
    """What differs from oracle 1, or None, of each case; in a Spark of their own."""
    from streamjoin.spark.session import create_session

    with tempfile.TemporaryDirectory(prefix="streamjoin-typed-") as name:
        session = create_session(2, name="soak", log=Path(name) / "spark.log")
        try:
            for number, case in enumerate(cases):
                folder = Path(name) / str(number)
                folder.mkdir()
                want = case.wanted()
                try:
                    got = found(case, session, folder)
                    wrong = f"missing {sorted(want - got)}, too many {sorted(got - want)}" if got != want else None
                except Exception as error:
                    wrong = f"{type(error).__name__}: {str(error)[:500]}"
                yield wrong and f"seed {case.seed}: {wrong}\n{case.query}\n{script(case)}"
        finally:
            session.stop()
