"""`compare`: the table, the picture, and what is shown where an operator cannot run, fails, or is stopped."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.cli import commands as cli
from streamjoin.errors import InputError, RunError, UnsupportedError
from streamjoin.explain.compare.plot import check_plot, draw
from streamjoin.explain.compare.table import comparison_text, ratio
from streamjoin.spark import compare
from streamjoin.spark.batchreport import BatchReport, BatchTimes
from streamjoin.spark.figures import rho, weighted
from streamjoin.spark.progress import Progress
from streamjoin.spec.joinfile import JoinFile, load, parse
from streamjoin.spec.prepare import bind

Row = dict[str, Any]


def row(operator: str, **changed: Any) -> Row:
    figures = {
        "operator": operator, "tuples_per_second": 12_345.6, "results": 700, "comparisons": 1_400, "rho": 0.5,
        "comparisons_per_tuple": 0.7, "search_steps_per_tuple": 3.25, "replication": 2.0,
        "latency_ms": {"p50": 40, "p95": 1_000, "max": 1_001},
        "order_delay_ms": None, "state_bytes_max": 3 << 20, "state_rows_max": 65_432, "stopped": False,
        "predicted": {"replication": 2.5, "memory_bytes": 2 << 20, "comparisons": 140_000},
    }  # fmt: skip
    return {**figures, **changed}


CANNOT: Row = {"operator": "spark", "error": "it needs an equality", "failed": False}
FAILED: Row = {"operator": "matrix", "error": "1.parquet is damaged", "failed": True}


# ---- the table --------------------------------------------------------------------------------------------------


def test_every_measure_stands_under_its_title() -> None:
    measured, predicted, note = comparison_text([row("biclique"), row("matrix", results=700)]).split("\n\n")
    head, first, second = measured.splitlines()
    assert head.split() == [
        "operator", "tuples/s", "results", "latency", "p50", "p95", "order", "p50", "p95", "compared", "a", "tuple",
        "searched", "a", "tuple", "rho", "live", "tuples",
    ]  # fmt: skip
    assert first.split() == ["biclique", "12,346", "700", "40", "ms", "1,000", "ms", "-", "-", "0.70", "3.25", "0.50",
                             "65,432"]  # fmt: skip
    assert len(head) == len(first) == len(second)
    head, first, _ = predicted.splitlines()
    assert head.split() == ["operator", "replication", "predicted", "ratio", "state", "predicted", "ratio",
                            "comparisons", "predicted", "ratio"]  # fmt: skip
    assert first.split() == ["biclique", "2.00", "2.50", "0.80", "3.0", "MiB", "2.0", "MiB", "1.50", "1,400", "140,000",
                             "0.01"]  # fmt: skip
    assert len(head) == len(first)
    assert "predicted comparisons are those of a nested loop" in note


def test_an_ordered_run_shows_how_long_results_wait_for_their_order() -> None:
    text = comparison_text([row("splitjoin", order_delay_ms={"p50": 7, "p95": 9, "max": 9})])
    assert "7 ms  9 ms" in text.splitlines()[1]


def test_an_operator_without_figures_shows_the_reason_in_its_row() -> None:
    lines = comparison_text([row("biclique"), CANNOT, FAILED]).splitlines()
    assert lines[2] == "spark     cannot: it needs an equality"
    assert lines[3] == "matrix    failed: 1.parquet is damaged"
    assert not any(line.startswith(("spark", "matrix")) for line in lines[4:]), "nothing is predicted of a failure"
    assert comparison_text([CANNOT]).splitlines()[1:] == ["spark     cannot: it needs an equality"]


def test_what_is_not_known_is_a_dash_and_has_no_ratio() -> None:
    unknown = {"replication": 2.0, "memory_bytes": None, "comparisons": None}
    measured, predicted, *_ = comparison_text(
        [row("biclique", predicted=unknown), row("spark", comparisons=None, rho=None, replication=None, predicted=None)]
    ).split("\n\n")
    assert predicted.splitlines()[1].split()[4:] == ["3.0", "MiB", "-", "-", "1,400", "-", "-"]
    assert predicted.splitlines()[2].split() == ["spark", "-", "-", "-", "3.0", "MiB", "-", "-", "-", "-", "-"]
    assert measured.splitlines()[2].split()[-2] == "-", "no comparisons, no rho"
    assert ratio(1.0, 0.0) is None and ratio(None, 1.0) is None and ratio(0, 4.0) == 0


def test_models_and_blocks_show_only_where_a_paper_has_them() -> None:
    plain = comparison_text([row("biclique")])
    assert "PL" not in plain and "blocks" not in plain
    told = row("splitjoin")["predicted"] | {"latency_us": {"processing": 12.0, "visiting": 6.5}}
    chain = row("handshake")["predicted"] | {"block_tuples": {"r": 1_250, "s": 62}}
    text = comparison_text([row("biclique"), row("splitjoin", predicted=told), row("handshake", predicted=chain)])
    _, predicted, notes = text.split("\n\n")
    assert [line.split()[-2:] for line in predicted.splitlines()] == [["PL", "VL"], ["-", "-"], ["6.5", "us"],
                                                                     ["-", "-"]]  # fmt: skip
    assert "12.0 us  6.5 us" in predicted
    assert "handshake: blocks of 1,250 r and 62 s" in notes
    assert "for one tuple that waits for no other" in notes


def test_operators_that_disagree_are_told_of() -> None:
    assert "the numbers of results differ" in comparison_text([row("biclique"), row("matrix", results=699)])
    stopped = comparison_text([row("biclique"), row("matrix", results=12, stopped=True)])
    assert "differ" not in stopped and "12 so far" in stopped


def test_ways_to_spread_several_streams_stand_beside_the_words_of_their_paper() -> None:
    assert "PSP, figure 7" not in comparison_text([row("ring"), row("biclique")])
    *_, words = comparison_text([row("ring"), row("biclique"), row("aligned")]).split("\n\n")
    assert words.splitlines()[0].split("  ")[-1] == "ring (PSP)" and "aligned (ATR)" in words
    assert [line.split()[-2:] for line in words.splitlines() if line.startswith("network")] == [["low", "high"]]
    # One that cannot run is told of, too.
    assert "coordinated (CTR)" in comparison_text([row("ring"), {**CANNOT, "operator": "coordinated"}])


# ---- the picture ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_picture_has_a_panel_a_measure_and_both_bars(tmp_path: Path) -> None:
    path = tmp_path / "new" / "compare.svg"
    draw([row("biclique"), row("matrix", replication=7.25), CANNOT], path, "a title")
    text = "\n".join(ElementTree.parse(path).getroot().itertext())
    for words in ("a title", "biclique", "matrix", "replication", "measured", "predicted", "7.25", "2.50", "140.0 K",
                  "spark cannot: it needs an equality"):  # fmt: skip
        assert words in text
    assert "order delay" not in text, "nobody measured it"
    again = tmp_path / "again.svg"
    draw([row("biclique"), row("matrix", replication=7.25), CANNOT], again, "a title")
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("rows", [[row("biclique")], [CANNOT], [row("biclique", results=0, comparisons=0, rho=None)]])
def test_a_picture_can_be_drawn_of_anything(rows: list[Row], tmp_path: Path) -> None:
    draw(rows, tmp_path / "plot.png", "title")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_of_no_known_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"plot.pdf is neither .svg nor .png"):
        check_plot(tmp_path / "plot.pdf")
    (tmp_path / "plot.svg").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        check_plot(tmp_path / "plot.svg")


def test_without_matplotlib_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match="pip install matplotlib, or leave --plot out"):
        check_plot(tmp_path / "plot.svg")


# ---- figures ----------------------------------------------------------------------------------------------------


def times(*batches: tuple[int, int, float]) -> list[BatchTimes]:
    return [BatchTimes(results, tuples, {"committed": seconds}) for results, tuples, seconds in batches]


def committed(batches: list[BatchTimes]) -> dict[str, int]:
    return weighted(batches, lambda seconds: seconds["committed"])


def test_a_batch_weighs_as_many_results_as_it_brought() -> None:
    assert committed(times((1, 9, 5.0), (98, 1, 0.1), (1, 9, 7.0))) == {"p50": 100, "p95": 100, "max": 7_000}
    assert committed(times((50, 1, 0.3), (50, 1, 0.1))) == {"p50": 100, "p95": 300, "max": 300}
    assert committed(times((0, 9_999, 60.0), (5, 1, 0.2))) == {"p50": 200, "p95": 200, "max": 200}


def test_tuples_stand_in_where_there_are_no_results() -> None:
    assert committed(times((0, 1, 5.0), (0, 99, 0.1))) == {"p50": 100, "p95": 100, "max": 5_000}
    assert committed([]) == committed(times((0, 0, 5.0))) == {"p50": 0, "p95": 0, "max": 0}


def test_rho_needs_a_comparison() -> None:
    assert (rho(5, 10), rho(5, 10, 10), rho(0, 10), rho(0, 0), rho(5, None)) == (0.5, 0.25, 0.0, None, None)


def test_the_largest_state_is_remembered_in_tuples_too() -> None:
    progress = Progress()
    for stored in ([30, 5], [80, 0], [10, 10]):
        unit = {
            "unit": 0, "label": "R0", "comparisons": 0, "search_steps": 0, "results": 0,
            "expired_rows": 0, "stored_rows": stored,
            "stored_bytes": sum(stored), "segments": 1, "late": [0, 0], "received": {}, "received_bytes": {},
            "queries": [], "seconds": {}, "waiting_results": stored[1], "open_rows": stored[0],
            "unmatched_rows": 2, "late_after_final": 1,
        }  # fmt: skip
        progress.add(BatchReport(0, 3, [unit], {0: {"rows": 4}, 1: {"rows": 5}}, {"committed": 0.5}))
    assert (progress.stored_rows_max, progress.stored_rows) == (80, (10, 10))
    assert progress.waiting_results_max == 10
    assert (progress.open_rows, progress.unmatched_rows, progress.late_after_final) == (10, 6, 3)
    assert list(progress.times) == [BatchTimes(3, 9, {"committed": 0.5})] * 3


def test_the_imbalance_of_a_stream_is_that_of_the_stage_which_stores_it() -> None:
    progress = Progress()
    for loads in ([(0, 3, 9), (0, 1, 0), (1, 0, 5)], [(0, 2, 0), (0, 2, 0), (1, 0, 5)]):
        units = [
            {
                "unit": number, "label": "C0", "stage": stage, "comparisons": 0, "search_steps": 0, "results": 0,
                "expired_rows": 0,
                "stored_rows": [first, 0 if stage == 0 else second], "stored_bytes": 0, "segments": 1, "late": [0, 0],
                "received": {}, "received_bytes": {}, "queries": [], "seconds": {}, "waiting_results": 0,
                "open_rows": 0, "unmatched_rows": 0, "late_after_final": 0,
            }
            for number, (stage, first, second) in enumerate(loads)
        ]  # fmt: skip
        progress.add(BatchReport(0, 0, units, {}, {"committed": 0.5}))
    # 3 and 1 of the first stream: the mean is 2; then 2 and 2. The second has one worker only.
    assert progress.imbalances == [(0.5, 0.5, 0.0), (0.0, 0.0, 0.0)]


# ---- the run ----------------------------------------------------------------------------------------------------


class Session:
    """Stands for Spark."""

    stopped = False

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A join file, which is also the working directory."""
    for name in "rs":
        (tmp_path / name).mkdir()
        rows = pa.table({"ts": pa.array([1, 2], pa.timestamp("us", "UTC")), "k": [1, 2]})
        pq.write_table(rows, tmp_path / name / "1.parquet")
    (tmp_path / "join.yaml").write_text(
        "streams:\n  r: {source: parquet, path: r, time: ts}\n  s: {source: parquet, path: s, time: ts}\n"
        "query: SELECT ONLINE r.k FROM r, s WHERE r.k < s.k\nresults: {discard: true}\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


Behaviour = Callable[[str, threading.Event], Row]


def compared(monkeypatch: pytest.MonkeyPatch, behaviour: Behaviour, stop: threading.Event | None = None) -> list[Row]:
    """Rows of a comparison in which each operator does what `behaviour` says."""
    session = Session()
    monkeypatch.setattr(compare, "open_session", lambda file: session)
    monkeypatch.setattr(compare, "_run", lambda session, bound, sample, show, stop: behaviour(bound.operator, stop))
    rows = list(compare.compare_file(load(Path("join.yaml")), ["biclique", "matrix", "splitjoin"], stop=stop))
    assert session.stopped
    return rows


def test_a_failure_is_a_row_and_the_others_still_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def behave(operator: str, stop: threading.Event) -> Row:
        if operator == "biclique":
            raise UnsupportedError("it needs an equality", field="operator.name")
        if operator == "matrix":
            raise RunError("1.parquet is damaged")
        return row(operator)

    cannot, failed, done = compared(monkeypatch, behave)
    assert cannot == {"operator": "biclique", "error": "it needs an equality", "failed": False}
    assert failed == {"operator": "matrix", "error": "1.parquet is damaged", "failed": True}
    assert (done["operator"], done["stopped"]) == ("splitjoin", False)


def test_a_stop_ends_with_the_operator_that_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()

    def behave(operator: str, stop: threading.Event) -> Row:
        if operator == "matrix" and stop is asked:
            asked.set()
        return row(operator)

    rows = compared(monkeypatch, behave, asked)
    assert [(found["operator"], found["stopped"]) for found in rows] == [("biclique", False), ("matrix", True)]


def test_a_stop_while_an_operator_warms_up_leaves_it_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()

    def behave(operator: str, stop: threading.Event) -> Row:
        if operator == "matrix":
            assert stop is not asked, "it must not run"
            asked.set()
        return row(operator)

    assert [found["operator"] for found in compared(monkeypatch, behave, asked)] == ["biclique"]


# ---- the command ------------------------------------------------------------------------------------------------


@pytest.fixture
def streamjoin(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """The command, in this process: exit status, what it wrote, and what it said."""
    monkeypatch.setattr("streamjoin.cli.running._stop_on_signals", lambda stop: None)

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["streamjoin", "compare", "join.yaml", *arguments])
        status = 0
        try:
            cli.main()
        except SystemExit as ended:
            status = int(ended.code or 0)
        return (status, *capsys.readouterr())

    return call


def then(monkeypatch: pytest.MonkeyPatch, *given: Row | BaseException) -> None:
    """What the comparison brings."""

    def rows(*_: object, **__: object) -> Iterator[Row]:
        for each in given:
            if isinstance(each, BaseException):
                raise each
            yield each

    monkeypatch.setattr(compare, "compare_file", rows)


def test_rows_are_shown_written_and_drawn(
    folder: Path, monkeypatch: pytest.MonkeyPatch, streamjoin: Callable[..., tuple[int, str, str]]
) -> None:
    then(monkeypatch, row("biclique"), CANNOT)
    status, out, _ = streamjoin("--report", "report.json", "--plot", "plot.svg")
    assert status == 0
    assert out == comparison_text([row("biclique"), CANNOT]) + "\n"
    assert json.loads((folder / "report.json").read_text()) == [row("biclique"), CANNOT]
    assert "join: biclique, spark" in (folder / "plot.svg").read_text()


@pytest.mark.parametrize(("failure", "status"), [(KeyboardInterrupt(), 130), (RunError("Spark is gone"), 1)])
def test_what_has_run_is_shown_though_the_rest_is_lost(
    failure: BaseException, status: int, folder: Path, monkeypatch: pytest.MonkeyPatch,
    streamjoin: Callable[..., tuple[int, str, str]],
) -> None:  # fmt: skip
    then(monkeypatch, row("biclique"), failure)
    ended, out, _ = streamjoin("--report", "report.json")
    assert (ended, out) == (status, comparison_text([row("biclique")]) + "\n")
    assert len(json.loads((folder / "report.json").read_text())) == 1


def test_a_wrong_plot_is_refused_before_anything_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, streamjoin: Callable[..., tuple[int, str, str]]
) -> None:
    then(monkeypatch, AssertionError("it ran"))
    status, out, err = streamjoin("--plot", "plot.txt")
    assert (status, out) == (2, "")
    assert err == "streamjoin: plot.txt is neither .svg nor .png; --plot takes the name of such a file\n"


# ---- on a cluster -----------------------------------------------------------------------------------------------

AWAY = """
streams:
  a: {{source: generator, kind: zipf.r, time: ts, rows: 20}}
  b: {{source: generator, kind: zipf.s, time: ts, rows: 20}}
{query}
run: {{master: "spark://there:7077", state: "s3://bucket/job"{shared}}}
"""
PAIRS = "SELECT ONLINE a.k FROM a, b WHERE a.k = b.k WITHIN 5 SECONDS"


@pytest.mark.parametrize(
    "query",
    [
        f"query: {PAIRS}\nresults: {{discard: true}}",
        f'queries: {{near: {{query: "{PAIRS}", results: {{discard: true}}}}}}',
    ],
)
def test_executors_have_to_reach_the_folder_of_a_comparison_though_the_jobs_state_is_in_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    opened: list[JoinFile] = []

    def open_session(file: JoinFile) -> Any:
        opened.append(file)
        raise RunError("no session here")

    monkeypatch.setattr(compare, "open_session", open_session)

    def file(shared: str) -> JoinFile:
        return parse(AWAY.format(query=query, shared=shared), base=tmp_path)

    bind(file(""))  # runs as it is
    with pytest.raises(InputError, match="executors of spark://there:7077 could not reach it") as wrong:
        list(compare.compare_file(file(""), ["biclique"]))
    assert wrong.value.field == "run.checkpoint" and not opened
    with pytest.raises(RunError, match="no session here"):
        list(compare.compare_file(file(", shared: true"), ["biclique"]))
