"""An equi join of three streams, beside one query of Spark's and of Flink's with both joins, and beside our own two.

    r.key = s.key and s.key = t.key, the times of any two within W

Ours runs in turns of one session, results counted and dropped in the units; Spark's rows go to its `noop` sink, Flink's
to its `blackhole`. The two joins of two that run one after the other are those of `python -m benchmarks.three_way`,
over its own input.
"""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import systems, three_way
from benchmarks.baselines.duckdb_join import count_three
from benchmarks.data import make_equi
from benchmarks.rates import rate_after, ratio
from benchmarks.scale import OutOfTimeError, Scale
from benchmarks.systems import Report
from benchmarks.turns import complain, take_turns

EXPECTED_S = 960
SPARK_TARGET = 15.0
TWO_JOINS_TARGET = 1.3
"""Times that the join of three may take of what its two joins of two take one after the other."""
OURS, SPARK, FLINK = "streamjoin-driver", "spark-two-joins", "flink-two-joins-heap-60s"
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
    """`runs` by system with `rate_measured`, tuples of all streams a second after the first batch.

    Ours is the median of the turns. `spark` and `flink`: our rate over theirs; `no_flink`: why it was not measured.
    `two_joins`: times that the join of three takes of two joins of two, the median and each pair's.
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
    skipped, no_flink = [], None if scale.quick else systems.no_flink()
    peers = {SPARK: _spark} if scale.quick or no_flink else {SPARK: _spark, FLINK: _flink}
    for name, peer in peers.items():
        try:
            runs[name] = peer(scale, work, data, size)
            _rate(runs[name], size, count)
        except OutOfTimeError as spent:
            skipped.append(f"{name}: {spent}")
    ratios = {name: ratio(runs[OURS]["rate_measured"], runs[name]["rate_measured"]) for name in peers if name in runs}
    return {
        "workload": asdict(size), "rows_in": _rows(size) * size.files, "results": count, "runs": runs,
        "spark": ratios.get(SPARK), "flink": ratios.get(FLINK), "no_flink": no_flink,
        "two_joins": _two_joins(scale, work), **complain(runs, skipped),
    }  # fmt: skip


def _rows(size: Size) -> int:
    """Of a batch."""
    return len(STREAMS) * size.rows_per_file


def _spark(scale: Scale, work: Path, data: Path, size: Size) -> Report:
    return systems.spark(
        scale, work, SPARK, data, state="default", window_s=size.window_s, limit_s=size.limit_s,
        memory_mb=size.memory_mb, query="three",
    )  # fmt: skip


def _flink(scale: Scale, work: Path, data: Path, size: Size) -> Report:
    report = systems.flink(
        scale, work, FLINK, data, checkpoint_s=60, window_s=size.window_s, limit_s=size.limit_s,
        memory_mb=size.memory_mb, query="three", is_counted=True,
    )  # fmt: skip
    report["rate_measured"] = rate_after(report, _rows(size))
    report["batch_rows"] = report["batch_ms"] = []  # Polls, twice a second.
    return report


def _rate(report: Report, size: Size, count: int) -> None:
    report.setdefault("rate_measured", rate_after(report, _rows(size)))
    report["rate_all"] = report.get("rows_per_second")
    whole = report["rows_in"] == _rows(size) * size.files and report["results"] is not None
    report["right"] = report["results"] == count if whole else None


def _two_joins(scale: Scale, work: Path) -> dict[str, Any]:
    """Against our own two joins of two; a run that differs in its results fails the part."""
    size = scale.pick(three_way.FULL, three_way.QUICK)
    folder = work / "two-joins"
    folder.mkdir()
    three_way.write_all(folder, size)
    pairs = three_way.measured(folder, size, size.pairs, lambda line: scale.show(f"    {line}"))
    ratios = [three / two for three, two in pairs]
    return {"rows": len(three_way.STREAMS) * size.rows, "median": statistics.median(ratios), "pairs": ratios}
