"""Outer, semi and anti joins beside the inner join of the same rows, and Spark's own left outer join beside ours.

    r.key = s.key and r.ts within W of s.ts; half of the rows of either stream find partners

Ours run in turn in one session, results counted and dropped in the units. Spark's rows go to its `noop` sink. At the
end of its input Spark keeps back the rows without partners that its watermark has not passed; ours gives them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import systems
from benchmarks.baselines.duckdb_join import count_and_hash, last_us, lone
from benchmarks.data import make_equi
from benchmarks.rates import median, rate_after, ratio
from benchmarks.scale import OutOfTimeError, Scale
from benchmarks.systems import Report
from benchmarks.turns import complain, take_turns

EXPECTED_S = 480
OF_INNER_TARGET = 0.6
SPARK_TARGET = 10.0
INNER, LEFT, SPARK = "streamjoin-inner", "streamjoin-left", "spark-left"
KINDS = {
    INNER: "INNER", LEFT: "LEFT", "streamjoin-full": "FULL", "streamjoin-left-semi": "LEFT SEMI",
    "streamjoin-left-anti": "LEFT ANTI",
}  # fmt: skip
"""Row -> how it is written."""
R_ROW, S_ROW = "r.ts AS r_ts, r.key AS r_key, r.val AS r_val", "s.ts AS s_ts, s.key AS s_key, s.val AS s_val"
OPERATOR = {"name": "biclique", "routing": "hash"}
DELAY_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Size:
    """A stream has a row each millisecond, a file is a batch, and the first one is the warm-up.

    Args:
        keys: so many that each second row has a partner, with the ends of the input, where windows are half empty.
    """

    files: int
    rows_per_file: int
    keys: int
    window_s: int
    turns: int
    memory_mb: int
    limit_s: float


FULL = Size(
    files=8, rows_per_file=524_288, keys=2_600_000, window_s=1048, turns=3, memory_mb=10_240, limit_s=420,
)  # fmt: skip
QUICK = Size(files=4, rows_per_file=8192, keys=40_000, window_s=16, turns=1, memory_mb=1024, limit_s=180)


def run(scale: Scale) -> dict[str, Any]:
    """`runs` by row with `rate_measured`, tuples of both streams a second after the first batch, and `right`.

    `of_inner`: by kind, its rate / the inner join's, turn by turn. `spark`: LEFT / Spark's.
    """
    size = scale.pick(FULL, QUICK)
    work = systems.folder(scale, "outer")
    data = scale.data / f"outer-{size.rows_per_file}x{size.files}"
    make_equi(
        data, files=size.files, rows_per_file=size.rows_per_file, keys=size.keys, span_ms_per_file=size.rows_per_file,
        seed=1,
    )  # fmt: skip
    joins = {name: _join(work, data, name, size) for name in KINDS}
    warmup_rows = 2 * size.rows_per_file
    turns = take_turns(scale, work, "outer", joins, size.turns, warmup_rows, size.limit_s)
    expected = _expected(data, size)
    runs: dict[str, Report] = {name: turns.whole(name, expected[name]) for name in KINDS}
    skipped = []
    try:
        runs[SPARK] = _spark(scale, work, data, size, expected[SPARK])
    except OutOfTimeError as spent:
        skipped.append(f"{SPARK}: {spent}")
    of_inner = {name: turns.ratios(name, INNER) for name in KINDS if name != INNER}
    return {
        "workload": asdict(size), "rows_in": 2 * size.rows_per_file * size.files, "runs": runs,
        "partners": expected["streamjoin-left-semi"] / (size.rows_per_file * size.files),
        "of_inner": {name: {"median": median(found), "turns": found} for name, found in of_inner.items()},
        "spark": ratio(runs[LEFT]["rate_measured"], runs[SPARK]["rate_measured"]) if SPARK in runs else None,
        **complain(runs, skipped),
    }  # fmt: skip


def _join(work: Path, data: Path, name: str, size: Size) -> dict[str, Any]:
    items = R_ROW if KINDS[name] in ("LEFT SEMI", "LEFT ANTI") else f"{R_ROW}, {S_ROW}"
    query = f"SELECT ONLINE {items} FROM r {KINDS[name]} JOIN s ON r.key = s.key WITHIN {size.window_s} SECONDS"
    return systems.join_file(work, name, systems.parquet_streams(data), query, OPERATOR)


def _spark(scale: Scale, work: Path, data: Path, size: Size, expected: int) -> Report:
    report = systems.spark(
        scale, work, SPARK, data, state="default", window_s=size.window_s, limit_s=size.limit_s,
        memory_mb=size.memory_mb, query="left",
    )  # fmt: skip
    report["rate_all"] = report.get("rows_per_second")
    report["rate_measured"] = rate_after(report, 2 * size.rows_per_file)
    is_whole = report["rows_in"] == 2 * size.rows_per_file * size.files
    report["right"] = report["results"] == expected if is_whole else None
    return report


def _expected(data: Path, size: Size) -> dict[str, int]:
    """By row, how many results DuckDB gives."""
    window_us = size.window_s * 1_000_000
    inner, _ = count_and_hash(data, window_us)
    lone_r, lone_s = (lone(data, stream, window_us) for stream in ("r", "s"))
    return {
        INNER: inner,
        LEFT: inner + lone_r,
        "streamjoin-full": inner + lone_r + lone_s,
        "streamjoin-left-semi": size.rows_per_file * size.files - lone_r,
        "streamjoin-left-anti": lone_r,
        SPARK: inner + lone(data, "r", window_us, given_before_us(data, window_us)),
    }


def given_before_us(data: Path, window_us: int) -> int:
    """The time before which Spark has given the rows of r without partners, when its input ends."""
    return last_us(data) - DELAY_US - window_us
