"""GROUP BY over a join beside the join alone, and Spark's join followed by its windowed aggregation.

    r.key = s.key and r.ts within W of s.ts; COUNT, SUM, AVG and MAX by a column of r and windows of W

Ours run in turn in one session by the same operator, and drop their results; the groups of the turn before the others,
which is not counted, are written and compared with DuckDB's. What travels between the phases is counted: what pairs
would have been, and what the views were (BiStream, SIGMOD 2015, figure 14).

Our windows are of the later time of a pair. Spark drops the watermark of a time that is computed of two, so its windows
are of r's: it makes as many pairs, and groups that differ a little. It keeps back the last ones, which its watermark
has not passed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import duckdb

from benchmarks import systems
from benchmarks.baselines.duckdb_join import AT_LATER, AT_R, Group, count_and_hash, groups, same_groups
from benchmarks.data import make_equi
from benchmarks.rates import median, rate_after, ratio
from benchmarks.scale import OutOfTimeError, Scale
from benchmarks.systems import Report
from benchmarks.turns import Turns, complain, take_turns

EXPECTED_S = 420
TIMES_TARGET = 1.2
"""Of the time of the join alone."""
SPARK_TARGET = 5.0
JOIN, GROUPS, SPARK = "streamjoin-join", "streamjoin-groups", "spark-groups"
OPERATOR = {"name": "biclique", "routing": "hash"}
QUERIES = {
    JOIN: "SELECT ONLINE r.g, s.x, s.val FROM r, s WHERE r.key = s.key WITHIN {s} SECONDS",
    GROUPS: (
        "SELECT ONLINE r.g, WINDOW_START() AS since, COUNT(*) AS n, SUM(s.x) AS total, AVG(s.val) AS mean, "
        "MAX(s.val) AS top FROM r, s WHERE r.key = s.key WITHIN {s} SECONDS GROUP BY r.g, TUMBLE({s} SECONDS)"
    ),
}
WRITTEN = "groups"
"""Folder of the groups of the first turn."""
WRITTEN_SQL = "SELECT g, epoch_us(since), n, total, mean, top FROM '{folder}/*.parquet' ORDER BY 2, 1"


@dataclass(frozen=True, slots=True)
class Size:
    """A file is a batch and spans a window; the first one is the warm-up."""

    files: int
    rows_per_file: int
    keys: int
    groups: int
    window_s: int
    turns: int
    memory_mb: int
    limit_s: float


FULL = Size(
    files=8, rows_per_file=524_288, keys=524_288, groups=1000, window_s=10, turns=5, memory_mb=10_240, limit_s=420,
)  # fmt: skip
QUICK = Size(
    files=4, rows_per_file=8192, keys=8192, groups=50, window_s=2, turns=1, memory_mb=1024, limit_s=180
)  # fmt: skip


def run(scale: Scale) -> dict[str, Any]:
    """`runs` by row with `rate_measured`, tuples of both streams a second after the first batch, and `right`.

    `times`: how much longer groups take than the join, turn by turn. `sent`: between the phases. `spark`: the ratio.
    """
    size = scale.pick(FULL, QUICK)
    work = systems.folder(scale, "aggregate")
    data = scale.data / f"groups-{size.rows_per_file}x{size.files}"
    make_equi(
        data, files=size.files, rows_per_file=size.rows_per_file, keys=size.keys, groups=size.groups,
        span_ms_per_file=size.window_s * 1000, seed=1,
    )  # fmt: skip
    ours = {name: _join(work, data, name, size) for name in QUERIES}
    written = {GROUPS: {**ours[GROUPS], "results": {"parquet": str(work / WRITTEN)}}}
    turns = take_turns(scale, work, "aggregate", ours, size.turns, 2 * size.rows_per_file, size.limit_s, first=written)
    window_us = size.window_s * 1_000_000
    pairs, _ = count_and_hash(data, window_us)
    wanted = groups(data, window_us, AT_LATER)
    runs: dict[str, Report] = {JOIN: turns.whole(JOIN, pairs), GROUPS: turns.whole(GROUPS, len(wanted))}
    runs[GROUPS]["right"] = runs[GROUPS]["right"] and _is_right(work, turns, wanted)
    skipped = []
    try:
        runs[SPARK] = _spark(scale, work, data, size)
    except OutOfTimeError as spent:
        skipped.append(f"{SPARK}: {spent}")
    times = turns.ratios(JOIN, GROUPS)
    return {
        "workload": asdict(size), "rows_in": 2 * size.rows_per_file * size.files, "pairs": pairs,
        "groups": len(wanted), "runs": runs, "times": {"median": median(times), "turns": times},
        "sent": (runs[GROUPS].get("figures") or {}).get("groups"),
        "spark": ratio(runs[GROUPS]["rate_measured"], runs[SPARK]["rate_measured"]) if SPARK in runs else None,
        **complain(runs, skipped),
    }  # fmt: skip


def _join(work: Path, data: Path, name: str, size: Size) -> dict[str, Any]:
    query = QUERIES[name].format(s=size.window_s)
    return systems.join_file(work, name, systems.parquet_streams(data), query, OPERATOR)


def _spark(scale: Scale, work: Path, data: Path, size: Size) -> Report:
    report = systems.spark(
        scale, work, SPARK, data, state="default", window_s=size.window_s, limit_s=size.limit_s,
        memory_mb=size.memory_mb, query="groups",
    )  # fmt: skip
    report["rate_all"] = report.get("rows_per_second")
    report["rate_measured"] = rate_after(report, 2 * size.rows_per_file)
    is_whole = report["rows_in"] == 2 * size.rows_per_file * size.files
    report["right"] = report["results"] in possible(data, size.window_s * 1_000_000) if is_whole else None
    return report


def possible(data: Path, window_us: int) -> list[int]:
    """How many groups Spark may have given at the end of its input: all of the first window, of the first two, ..."""
    by_window = Counter(since_us for _, since_us, *_ in groups(data, window_us, AT_R))
    return list(accumulate(by_window[since_us] for since_us in sorted(by_window)))


def _is_right(work: Path, turns: Turns, wanted: list[Group]) -> bool:
    """Whether the groups that were written are those that DuckDB gives."""
    if turns.warm[GROUPS].get("error"):
        return False
    with duckdb.connect() as connection:
        ours: list[Group] = connection.execute(WRITTEN_SQL.format(folder=work / WRITTEN)).fetchall()
    return same_groups(ours, wanted)
