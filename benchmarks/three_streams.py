"""An equi join of three streams, beside one query of Spark's with both joins.

    r.key = s.key and s.key = t.key, the times of any two within W

Ours runs in turns of one session, results counted and dropped in the units; Spark's rows go to its `noop` sink. How our
own ways of joining three streams compare, `python -m benchmarks.three_way` tells.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import systems
from benchmarks.baselines.duckdb_join import count_three
from benchmarks.data import make_equi
from benchmarks.rates import rate_after, ratio
from benchmarks.scale import OutOfTimeError, Scale
from benchmarks.systems import Report
from benchmarks.turns import complain, take_turns

EXPECTED_S = 480
SPARK_TARGET = 15.0
OURS, SPARK = "streamjoin-driver", "spark-two-joins"
STREAMS = ("r", "s", "t")
QUERY = (
    "SELECT ONLINE r.val AS r_val, s.ts AS s_ts, s.key AS s_key, s.val AS s_val, t.ts AS t_ts, t.val AS t_val "
    "FROM r, s, t WHERE r.key = s.key AND s.key = t.key WITHIN {window_s} SECONDS"
)


@dataclass(frozen=True, slots=True)
class Size:
    """A stream has a row each millisecond, a file is a batch, and the first one is the warm-up.

    Args:
        keys: 2 for each second of the window, so that a row has a partner in each other stream.
    """

    files: int
    rows_per_file: int
    keys: int
    window_s: int
    turns: int
    memory_mb: int
    limit_s: float


FULL = Size(
    files=8, rows_per_file=349_525, keys=1_400_000, window_s=700, turns=3, memory_mb=10_240, limit_s=420,
)  # fmt: skip
QUICK = Size(files=4, rows_per_file=8192, keys=32_000, window_s=16, turns=1, memory_mb=1024, limit_s=180)


def run(scale: Scale) -> dict[str, Any]:
    """`runs` by system with `rate_measured`, tuples of all streams a second after the first batch; `spark`: the ratio.

    Ours is the median of the turns.
    """
    size = scale.pick(FULL, QUICK)
    work = systems.folder(scale, "three_streams")
    data = scale.data / f"three-{size.rows_per_file}x{size.files}"
    make_equi(
        data, files=size.files, rows_per_file=size.rows_per_file, keys=size.keys, span_ms_per_file=size.rows_per_file,
        seed=1, streams=STREAMS,
    )  # fmt: skip
    count = count_three(data, size.window_s * 1_000_000)
    query, streams = QUERY.format(window_s=size.window_s), systems.parquet_streams(data, streams=STREAMS)
    joins = {OURS: systems.join_file(work, OURS, streams, query, {"name": "auto"})}
    turns = take_turns(scale, work, "three_streams", joins, size.turns, _rows(size), size.limit_s)
    runs: dict[str, Report] = {OURS: turns.whole(OURS, count)}
    skipped = []
    try:
        runs[SPARK] = _spark(scale, work, data, size, count)
    except OutOfTimeError as spent:
        skipped.append(f"{SPARK}: {spent}")
    return {
        "workload": asdict(size), "rows_in": _rows(size) * size.files, "results": count, "runs": runs,
        "spark": ratio(runs[OURS]["rate_measured"], runs[SPARK]["rate_measured"]) if SPARK in runs else None,
        **complain(runs, skipped),
    }  # fmt: skip


def _rows(size: Size) -> int:
    """Of a batch."""
    return len(STREAMS) * size.rows_per_file


def _spark(scale: Scale, work: Path, data: Path, size: Size, count: int) -> Report:
    report = systems.spark(
        scale, work, SPARK, data, state="default", window_s=size.window_s, limit_s=size.limit_s,
        memory_mb=size.memory_mb, query="three",
    )  # fmt: skip
    report["rate_all"] = report.get("rows_per_second")
    report["rate_measured"] = rate_after(report, _rows(size))
    report["right"] = report["results"] == count if report["rows_in"] == _rows(size) * size.files else None
    return report
