"""SplitJoin's band join over count windows: R(x, y, z), S(a, b, c, d), ABS(x - a) <= 10 AND ABS(y - b) <= 10.

Source: SplitJoin (USENIX ATC 2016), evaluation. The paper compares every stored tuple; an index need not.
SplitJoin runs once with each ordering of its results. All operators must give as many results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import systems
from benchmarks.data import make_band
from benchmarks.rates import rate_after
from benchmarks.scale import Scale
from benchmarks.systems import Rates, Report
from streamjoin.plan.ordering import Ordering

PAPER_TUPLES_A_SECOND = 5200.0
TARGET_TUPLES_A_SECOND = 100_000.0
EXPECTED_S = 900
QUERY = (
    "SELECT ONLINE r.x AS x, r.y AS y, r.z AS z, s.a AS a, s.b AS b, s.c AS c, s.d AS d FROM r, s "
    "WHERE ABS(r.x - s.a) <= 10 AND ABS(r.y - s.b) <= 10 WITHIN {rows} ROWS"
)
OPERATORS = {
    "biclique": {"name": "biclique", "routing": "random", "r_units": 1, "s_units": 1},
    "biclique-2+2": {"name": "biclique", "routing": "random", "r_units": 2, "s_units": 2},
    "matrix": {"name": "matrix", "rows": 1, "columns": 2},
    **{f"splitjoin-{ordering}": {"name": "splitjoin", "cores": 2, "ordering": ordering} for ordering in Ordering},
}


def run(scale: Scale) -> dict[str, Any]:
    """`runs` by operator with `rate_full_window`, tuples of both streams a second once both windows are full."""
    rows_per_file, files, window_rows = _size(scale)
    runs = _runs(scale, _data(scale, rows_per_file, files), window_rows)
    answer: dict[str, Any] = {
        "window_rows": window_rows, "rows_per_batch": 2 * rows_per_file, "runs": runs,
        "paper_tuples_per_second": PAPER_TUPLES_A_SECOND, "target_tuples_per_second": TARGET_TUPLES_A_SECOND,
    }  # fmt: skip
    counts = {report.get("results") for report in runs.values() if report["rows_in"] == 2 * rows_per_file * files}
    answer["results_agree"] = len(counts) == 1
    if failed := [name for name, report in runs.items() if report.get("error")]:
        answer["error"] = f"failed: {', '.join(failed)}"
    elif len(counts) > 1:
        answer["error"] = f"operators disagree on the number of results: {sorted(map(str, counts))}"
    return answer


@contextmanager
def own(scale: Scale) -> Iterator[Callable[[Scale], Rates]]:
    """All operators, as often as wanted: tuples of both streams a second once both windows are full.

    No other program counts this join, so every run has to find as many results as the first one did.
    """
    # Every pair runs all operators twice, so half as many rows, and half as many batches with full windows.
    rows_per_file, files, window_rows = scale.pick((1 << 17, 12, 8 << 17), _size(scale))
    data = _data(scale, rows_per_file, files)
    first: list[int] = []

    def turn(scale: Scale) -> Rates:
        reports = _runs(scale, data, window_rows)
        first.extend(report["results"] for report in reports.values() if report.get("results") is not None)
        systems.check_results(reports, 2 * rows_per_file * files, first[0] if first else 0)
        return systems.rates(reports, "rate_full_window")

    yield turn


def _size(scale: Scale) -> tuple[int, int, int]:
    """Rows a file, files, rows of a window."""
    rows_per_file = scale.pick(1 << 18, 1 << 13)
    return rows_per_file, scale.pick(16, 5), rows_per_file * scale.pick(8, 2)


def _data(scale: Scale, rows_per_file: int, files: int) -> Path:
    data = scale.data / f"band-{rows_per_file}x{files}"
    make_band(data, files=files, rows_per_file=rows_per_file, span_ms_per_file=rows_per_file, seed=1)
    return data


def _runs(scale: Scale, data: Path, window_rows: int) -> dict[str, Report]:
    work = systems.folder(scale, "band")
    runs = {}
    for name in scale.pick(tuple(OPERATORS), ("biclique", "matrix", "splitjoin-total")):
        query = QUERY.format(rows=window_rows)
        join = systems.join_file(work, name, systems.parquet_streams(data, delay="0s"), query, OPERATORS[name])
        report = systems.own(scale, work, name, [join], limit_s=scale.pick(400, 180))[0]
        report["rate_full_window"] = rate_after(report, 2 * window_rows)
        runs[name] = report
    return runs
