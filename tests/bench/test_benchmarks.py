"""The benchmarks run at toy scale, keep what is done, and say what failed."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import group_questions, index, machine
from benchmarks.footprint import tree_sums
from benchmarks.limited import Cgroup, limited
from benchmarks.page import page
from benchmarks.parts import PARTS
from benchmarks.processes import run
from benchmarks.rates import rate_after
from benchmarks.scale import OutOfTimeError, Scale
from benchmarks.summary import write_summary
from streamjoin.results.stores.spec import StoreSpec

ROOT = Path(__file__).parents[2]


def scale(folder: Path, seconds: float = 300.0) -> Scale:
    return Scale(quick=True, ends_s=time.monotonic() + seconds, data=folder / "data", work=folder / "work")


def result(part: str, **found: Any) -> dict[str, Any]:
    described = {"part": part, "quick": True, "begun": "2026-01-01T00:00:00+00:00", "busy_before": 0.01, "quiet": True}
    return {**described, "machine": machine.describe(), "seconds": 1.0, **found}


def test_rate_leaves_out_the_batches_that_begin_within_the_warm_up() -> None:
    report = {"batch_rows": [100, 100, 100], "batch_ms": [9000, 1000, 500]}
    assert rate_after(report, 0) == pytest.approx(300 / 10.5)
    assert rate_after(report, 100) == pytest.approx(200 / 1.5)
    assert rate_after(report, 101) == pytest.approx(100 / 0.5)
    assert rate_after(report, 300) is None


@pytest.mark.slow
def test_a_program_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    child = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"
    ended = run([sys.executable, "-c", f"{child}; time.sleep(60)"], limit_s=6.0, log=tmp_path / "log")
    assert ended.cut_off
    assert ended.seconds < 30
    assert ended.memory["pss_bytes"] > 0


def test_a_program_in_a_group_enters_it_first(tmp_path: Path) -> None:
    group = Cgroup(tmp_path, 2)
    ended = run([sys.executable, "-c", "import os; print(os.getpid())"], limit_s=30, log=tmp_path / "log", cgroup=group)
    assert group.processes.read_text() == ended.tail


def test_a_folder_that_is_no_memory_cgroup_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="does not delegate memory"), limited(tmp_path, 1 << 30):
        pass
    assert list(tmp_path.iterdir()) == []


def test_no_run_begins_when_the_budget_is_spent(tmp_path: Path) -> None:
    assert scale(tmp_path).seconds(10) == 10
    with pytest.raises(OutOfTimeError):
        scale(tmp_path, seconds=1).seconds(10)


def test_memory_of_a_tree_is_told_apart() -> None:
    sums = tree_sums(1 << 30)  # no such process
    assert sums == {}


@pytest.mark.slow
def test_a_page_is_written_whatever_is_missing(tmp_path: Path) -> None:
    assert "Nothing has been measured yet" in page({}, {})
    out = tmp_path / "out"
    out.mkdir()
    for part in PARTS:
        (out / f"{part}.json").write_text(json.dumps(result(part, error="it | broke")))
    (out / "index.json").write_text(json.dumps(result("index", **index.run(scale(tmp_path)))))
    write_summary(out, tmp_path / "docs")
    text = (tmp_path / "docs" / "benchmarks.md").read_text()
    assert text.count("Incomplete: it | broke") == len(PARTS) - 1
    assert "## The index alone" in text
    assert (tmp_path / "docs" / "benchmarks" / "index.png").stat().st_size < 50_000


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.soak
def test_quick_run_leaves_results_and_a_page_and_keeps_what_is_done(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "--quick", "--only", "operators", "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [*command, "--data", str(tmp_path / "data")], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out" / "operators.json").read_text())
    assert "error" not in found
    for row in found["rows"]:
        assert row["replication"] == pytest.approx(row["replication_predicted"])
    for figures in found["bytes"].values():
        assert figures["measured"] == pytest.approx(figures["predicted"], rel=0.1)
    assert "Operators side by side" in (tmp_path / "out" / "docs" / "benchmarks.md").read_text()


@pytest.mark.spark
@pytest.mark.soak
def test_three_streams_against_two_joins_give_the_same_rows_and_a_ratio() -> None:
    command = [sys.executable, "-m", "benchmarks.three_way", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert re.search(r"^pair 1: three streams .* [1-9][\d,]* results", done.stdout, re.MULTILINE), done.stdout
    assert re.search(r"^ratio: median \d+\.\d\d, .* 1 pairs$", done.stdout, re.MULTILINE), done.stdout


def test_groups_that_change_are_measured() -> None:
    command = [sys.executable, "-m", "benchmarks.changing_groups", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(re.findall(r" [1-9][\d,]* +[1-9][\d,]* +\d+$", done.stdout, re.MULTILINE)) == 5, done.stdout


def test_questions_about_groups_that_change_are_measured(tmp_path: Path) -> None:
    """With as many changes as bring several bases; each answer has all groups, or one, or a page."""
    arguments = argparse.Namespace(changes=60_000, groups=200, times=3, retain_s=None)
    spec = StoreSpec("sqlite", (("path", str(tmp_path / "results.db")),))
    written, *asked = group_questions.measured(spec, arguments)
    assert isinstance(written, group_questions.Written) and written.changes == 60_000
    there = [found for found in asked if isinstance(found, group_questions.Asked)]
    assert [found.rows for found in there] == [200, 200, 1, 1, 100, 200]
    # There are 300 snapshots of one block each.
    now, *_, first = there
    assert 1 < now.blocks == first.blocks < 160
    assert re.search(r"^60,000 changes in 300 snapshots, [1-9]", group_questions.line(written))
    assert re.search(r"^all groups now +\d+\.\d +\d+\.\d +\d+ +200$", group_questions.line(now))


@pytest.mark.soak
def test_groups_over_a_join_are_right_and_have_a_ratio() -> None:
    command = [sys.executable, "-m", "benchmarks.groups", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert re.search(r"^ratio: median \d+\.\d\d, .* 1 pairs$", done.stdout, re.MULTILINE), done.stdout
    assert re.search(r"^between the phases: [1-9][\d,]* pairs of .* views of", done.stdout, re.MULTILINE), done.stdout
