"""`compare` in Spark: the same results by all, figures that fit together, and what comes of a failure and a stop."""

from __future__ import annotations

import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streamjoin.explain.compare.table import comparison_text
from streamjoin.spark import compare
from streamjoin.spec.joinfile import parse
from tests.conformance.histories import History, history

from .jobs import join_text, query, write_history

pytestmark = pytest.mark.spark

BATCHES = 3
NAMES = ("biclique", "matrix", "splitjoin", "handshake", "spark")


@pytest.fixture
def given(tmp_path: Path, session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> History:
    """A history in the folder, and the session of all tests in place of one of its own."""
    monkeypatch.setattr(compare, "open_session", lambda file: session)
    monkeypatch.setattr(session, "stop", lambda: None)
    made = history(5, r=300, s=250, time_shape="in order")
    write_history(made, tmp_path, BATCHES)
    return made


def rows_of(text: str, folder: Path, *names: str, stop: threading.Event | None = None) -> list[dict[str, Any]]:
    return list(compare.compare_file(parse(text, base=folder), names, stop=stop))


@pytest.mark.soak
def test_operators_side_by_side_agree_and_their_figures_fit_together(given: History, tmp_path: Path) -> None:
    rows = rows_of(join_text(query("equality", "20 us"), "name: biclique"), tmp_path, *NAMES)
    assert [row["operator"] for row in rows] == list(NAMES)
    assert not [row["error"] for row in rows if "error" in row]
    *ours, spark = [row["results"] for row in rows]
    assert 0 < min(ours) == max(ours)
    # Spark's watermark is in whole milliseconds, and what it takes for late it drops.
    assert spark <= ours[0] and (spark == ours[0]) == (rows[-1]["late"]["both"] == 0)
    for row in rows:
        for figure in ("p50", "p95", "max"):
            # Spark counts the listing of new files and its commit log, too; clocks differ by a rounding.
            assert 0 < row["latency_ms"][figure] <= row["batch_ms"]["max"] + 5
        assert row["state_rows_max"] > 0
    for row in rows[:-1]:
        found = row["predicted"]
        if row["operator"] == "handshake":
            assert 1 <= row["replication"] <= found["replication"], "at most all workers"
        else:
            assert row["replication"] == pytest.approx(found["replication"], rel=0.1)
        assert 0 < row["visiting_ms"]["p50"] <= row["latency_ms"]["p50"]
        for name in ("latency_ms", "visiting_ms"):
            assert all(low <= high for low, high in pairwise(row[name][part] for part in ("p50", "p95", "max")))
        assert row["comparisons_per_tuple"] == row["comparisons"] / sum(row["tuples_in"].values())
        assert row["search_steps_per_tuple"] == row["search_steps"] / sum(row["tuples_in"].values()) > 0
        assert row["rho"] == row["results"] / (row["comparisons"] + row["search_steps"])
        assert row["comparisons"] < found["comparisons"], "an index compares less than a nested loop"
        assert row["order_delay_ms"] is None
        assert row["dead_letter_folder"] is None
    _, matrix, splitjoin, handshake, _ = rows
    for found in handshake["imbalance"].values():
        assert 0 < found["mean"] <= found["max"] and 0 <= found["last"] <= found["max"]
    assert handshake["forwarded"]["tuples"] > 0 and set(handshake["predicted"]["block_tuples"]) == {"r", "s"}
    assert matrix["state_rows_max"] >= splitjoin["state_rows_max"]
    assert matrix["sent_bytes"].keys() == {"r", "s"} and all(matrix["sent_bytes"].values())
    latency = splitjoin["predicted"]["latency_us"]
    assert 0 < latency["visiting"] < latency["processing"]
    assert "failed" not in comparison_text(rows) and "differ" not in comparison_text(rows[:-1])
    assert not (tmp_path / "checkpoint").exists(), "checkpoints of a comparison are temporary"


@pytest.mark.soak
def test_results_that_are_ordered_have_waited_for_it(given: History, tmp_path: Path) -> None:
    text = join_text(query("equality", "20 us"), "name: splitjoin, ordering: total")
    splitjoin, spark = rows_of(text, tmp_path, "splitjoin", "spark")
    assert 0 <= splitjoin["order_delay_ms"]["p50"] <= splitjoin["latency_ms"]["p95"]
    assert (spark["failed"], spark["error"]) == (False, "Spark's stream-stream join gives its results in no order")


def test_a_failure_is_shown_with_its_first_cause_and_the_others_run(given: History, tmp_path: Path) -> None:
    (tmp_path / "r" / "000001.parquet").write_bytes(b"this is no Parquet")
    # Where columns are guessed, it shows before anything runs.
    text = join_text(query("between", "20 us"), "name: matrix")
    text = text.replace("path: r,", "path: r, schema: {id: int64, ts: timestamp, x: int64},")
    failed, cannot = rows_of(text, tmp_path, "matrix", "spark")
    assert (failed["operator"], failed["failed"]) == ("matrix", True)
    assert "000001.parquet" in failed["error"] and "\n" not in failed["error"]
    assert (cannot["failed"], "needs an equality" in cannot["error"]) == (False, True)


@pytest.mark.soak
def test_a_stop_shows_what_there_is_so_far(given: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()
    ran: list[str] = []
    begin = compare._run

    def run(session: Any, bound: Any, sample: Any, show: Any, stop: threading.Event) -> dict[str, Any]:
        if stop is asked:
            ran.append(bound.operator)
            stop.set()
        return begin(session, bound, sample, show, stop)

    monkeypatch.setattr(compare, "_run", run)
    text = join_text(query("equality", "20 us"), "name: biclique")
    rows = rows_of(text, tmp_path, "biclique", "matrix", stop=asked)
    assert ran == ["biclique"]
    assert [(row["operator"], row["stopped"]) for row in rows] == [("biclique", True)]
    assert rows[0]["batches"] < BATCHES
    assert "so far" in comparison_text(rows)
