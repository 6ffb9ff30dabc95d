"""The benchmarks run at toy scale, keep what is done, and say what failed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks import asof, group_questions, index, machine, stores, systems
from benchmarks.baselines.duckdb_join import count_asof
from benchmarks.data import make_equi
from benchmarks.footprint import tree_sums
from benchmarks.limited import Cgroup, limited
from benchmarks.page import page
from benchmarks.parts import PARTS
from benchmarks.plots import draw
from benchmarks.processes import run
from benchmarks.rates import median_ms_after, rate_after
from benchmarks.scale import OutOfTimeError, Scale
from benchmarks.summary import write_summary
from benchmarks.turns import Turns, complain, take_turns
from streamjoin.results.answer import ask
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


def test_the_median_of_two_is_between_them() -> None:
    report = {"batch_rows": [100, 100, 100], "batch_ms": [9000, 1000, 500]}
    assert median_ms_after(report, 100) == 750
    assert median_ms_after(report, 0) == 1000
    assert median_ms_after(report, 300) is None


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


@pytest.mark.parametrize("rows", [[], [0, 4]])
def test_a_part_that_failed_half_way_has_no_picture_and_ends_nothing(rows: list[int], tmp_path: Path) -> None:
    found = {"units_at_first": 4, "routings": {"hash": {"batch_rows": rows, "storing": []}}, "error": "it broke"}
    assert draw({"elastic": result("elastic", **found)}, tmp_path) == {}
    assert "Incomplete: it broke" in page({"elastic": result("elastic", **found)}, {})


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
    size = group_questions.Size(changes=60_000, groups=200, times=3)
    spec = StoreSpec("sqlite", (("path", str(tmp_path / "results.db")),))
    written, *asked = group_questions.measured(spec, size)
    assert isinstance(written, group_questions.Written) and written.changes == 60_000
    there = [found for found in asked if isinstance(found, group_questions.Asked)]
    assert [found.rows for found in there] == [200, 200, 1, 1, 100, 200]
    # There are 300 snapshots of one block each.
    now, *_, first = there
    assert 1 < now.blocks == first.blocks < 160
    assert re.search(r"^60,000 changes in 300 snapshots, [1-9]", group_questions.line(written))
    assert re.search(r"^all groups now +\d+\.\d +\d+\.\d +\d+ +200$", group_questions.line(now))


@pytest.mark.spark
@pytest.mark.soak
def test_joins_of_all_kinds_are_right_and_on_the_page(tmp_path: Path) -> None:
    """Toy sizes: ours and Spark's give the results that DuckDB gives, or the part says that they do not."""
    parts = ("outer", "aggregate", "asof", "three_streams")
    command = [sys.executable, "-m", "benchmarks", "--quick", "--only", ",".join(parts), "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [*command, "--data", str(tmp_path / "data")], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    for name in parts:
        found = json.loads((tmp_path / "out" / f"{name}.json").read_text())
        assert "error" not in found
        assert all(run["right"] for run in found["runs"].values())
        assert all(run["rate_measured"] for run in found["runs"].values())
        assert (tmp_path / "out" / "docs" / "benchmarks" / f"{name}.png").exists()
    sent = json.loads((tmp_path / "out" / "aggregate.json").read_text())["sent"]
    assert 0 < sent["view_bytes"] < sent["tuple_bytes"]
    text = (tmp_path / "out" / "docs" / "benchmarks.md").read_text()
    assert "No figures" not in text
    assert text.count("was the aim") == 7


def test_asof_joins_alone_count_what_duckdb_counts(tmp_path: Path) -> None:
    make_equi(tmp_path / "data", files=3, rows_per_file=2000, keys=300, span_ms_per_file=2000, seed=3)
    count = count_asof(tmp_path / "data")
    assert 0 < count < 6000
    for pieces in (1, 4):
        found = asof._alone(scale(tmp_path), tmp_path / "data", pieces)
        assert found["results"] == count
        assert found["rows_per_batch"] == 2000 // pieces
        assert found["kept_rows"] > 0


def report(rate: float, results: int = 5, **found: Any) -> dict[str, Any]:
    return {"rate_measured": rate, "rate_all": rate / 2, "results": results, "error": None, **found}


def test_turns_give_medians_and_ratios_within_a_turn() -> None:
    runs = {"a": [report(10), report(30), report(20)], "b": [report(20), report(20), report(20)]}
    turns = Turns({"a": report(1), "b": report(1)}, runs)
    whole = turns.whole("a", 5)
    assert (whole["rate_measured"], whole["rates"], whole["right"]) == (20, [10, 30, 20], True)
    assert turns.ratios("a", "b") == [0.5, 1.5, 1.0]
    assert turns.whole("a", 6)["right"] is False
    assert complain({"a": turns.whole("a", 6)}, []) == {"error": "wrong counts: a"}
    assert complain({"a": whole}, []) == {}
    broken = Turns({"a": report(1, error="it broke")}, {"a": [report(10)]}).whole("a", 5)
    assert broken["right"] is None
    assert complain({"a": broken}, ["b: late"]) == {"error": "b: late; a failed"}


def test_turns_run_all_joins_then_again_each_with_its_own_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[dict[str, Any]] = []

    def own(
        scale: Scale, work: Path, name: str, joins: list[dict[str, Any]], *, limit_s: float
    ) -> list[dict[str, Any]]:
        given.extend(joins)
        return [
            {"batch_rows": [4, 4], "batch_ms": [1000, 500], "rows_per_second": number} for number in range(len(joins))
        ]

    monkeypatch.setattr(systems, "own", own)
    joins = {name: {"query": name, "run": {"slots": 2}} for name in "ab"}
    first = {"b": {"query": "kept", "run": {"slots": 2}}}
    turns = take_turns(scale(tmp_path), tmp_path, "part", joins, 2, warmup_rows=4, limit_s=1, first=first)
    assert [join["query"] for join in given] == ["a", "kept", "a", "b", "a", "b"]
    assert len({join["run"]["checkpoint"] for join in given}) == 6
    assert [one["rate_all"] for one in turns.runs["b"]] == [3, 5]
    assert turns.warm["b"]["rate_all"] == 1
    assert turns.runs["a"][0]["rate_measured"] == 8.0


def test_the_page_says_where_an_aim_is_missed_and_what_was_not_measured() -> None:
    size = {"window_s": 10, "rows_per_file": 5, "keys": 3, "groups": 2, "turns": 3}
    both = {"median": 0.5, "turns": [0.4, 0.5, 0.7]}
    parts = {
        "outer": {
            "workload": size, "rows_in": 80, "partners": 0.5, "spark": 12.0, "of_inner": {"streamjoin-left": both},
            "runs": {name: report(9, right=True) for name in ("streamjoin-inner", "streamjoin-left", "spark-left")},
        },
        "aggregate": {
            "workload": size, "rows_in": 80, "pairs": 7, "groups": 4, "spark": None, "times": {**both, "median": 1.25},
            "sent": {"tuples": 7, "tuple_bytes": 700, "views": 4, "view_bytes": 70},
            "runs": {"streamjoin-groups": report(9, right=True)},
        },
        "asof": {
            "workload": size, "left_rows": 40, "results": 5, "flink": "no\nnetwork",
            "duckdb": {"left_rows_per_second": 1, "results": 5},
            "alone": [{"rows_per_batch": 5, "left_rows_per_second": 3.0, "kept_rows": 2, "results": 4}],
            "runs": {"streamjoin-driver": report(1_200_000, right=True)},
        },
        "three_streams": {
            "workload": size, "rows_in": 80, "spark": 14.9, "runs": {"streamjoin-driver": report(9, right=False)},
            "flink": None, "no_flink": "no Maven", "two_joins": {"rows": 9, "median": 1.31, "pairs": [1.25, 1.31, 1.5]},
        },
        "group_questions": {
            "changes": 40, "groups": 2, "times": 3,
            "stores": {
                "hbase": {"skipped": "no jars"},
                **{
                    store: {
                        "written": {"changes_per_second": 9.0, "p50_ms": 1.0, "p95_ms": 2.0, "max_ms": 3.0},
                        "asked": {
                            "all groups now": {"p50_ms": 1.0, "p95_ms": ms, "blocks": 2.0, "rows": 2.0},
                            group_questions.FIRST_READ: {"p50_ms": 1.0, "p95_ms": 900.0, "blocks": 2.0, "rows": 2.0},
                        },
                    }
                    for store, ms in (("sqlite", 200.0), ("cassandra", 201.0))
                },
            },
        },
    }  # fmt: skip
    text = " ".join(page({name: result(name, **part) for name, part in parts.items()}, {}).split())
    assert "No figures" not in text
    assert "60% of the inner join's rate was the aim: missed, 50%, from 40% to 70% in 3 turns" in text
    assert "10 times spark-left was the aim: reached, 12.0 x" in text
    assert "1.2 times the time of the join alone was the aim: missed, 1.25 times" in text
    assert "5 times spark-groups was the aim: not measured, -" in text
    assert "views are 1/10 of the bytes" in text
    assert "500,000 rows of r a second was the aim of a job: reached, 600,000. - Flink's temporal join was not" in text
    assert "was not measured: no network." in text
    assert "| the join alone, 5 rows of each stream a batch | 3 | - | 2 | NO |" in text
    assert "15 times spark-two-joins was the aim: missed, 14.9 x" in text
    assert "two joins of two, one after the other on the same input, was the aim: missed, 1.31 times, from 1.25" in text
    assert "Against flink-two-joins-heap-60s: -: no Maven." in text
    assert "sqlite reached (200), cassandra missed (201). - hbase was not measured: no jars." in text


def test_a_wrong_answer_about_groups_ends_their_part() -> None:
    as_of = group_questions.Question(as_of=3 * group_questions.EMIT_US)
    history = group_questions.Question(key=1, history=True, limit=group_questions.PAGE_ROWS)
    now = group_questions.Question(key=1)
    right = [
        (as_of, [{"g": 1, "n": 10}, {"g": 0, "n": 3}]),
        (history, [{"g": 1, "n": 7 + number} for number in range(5)]),
        (now, [{"g": 1, "n": 11}]),
    ]
    for question, rows in right:
        group_questions.check(rows, question, groups=2, last=4)
        for wrong in (rows[1:], [*rows, rows[0]], [{**rows[0], "n": 99}, *rows[1:]], [{**rows[0], "g": 9}, *rows[1:]]):
            with pytest.raises(stores.WrongAnswerError, match="not those that were written"):
                group_questions.check(wrong, question, groups=2, last=4)


@pytest.mark.slow
def test_an_answer_of_a_store_has_the_rows_that_were_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "KEYS", 50)
    spec = StoreSpec("sqlite", (("path", str(tmp_path / "results.db")),))
    sink = stores._sink(spec, 1000)
    writer = sink.begin("benchmark")
    for batch in range(2):
        with writer.part(batch, 0, stores.SCHEMA) as part:
            for unit in range(stores.SLOTS):
                part.write(stores._rows(batch, unit, 1000, 2), unit)
        sink.commit(stores.BatchDone(batch, batch), [part.summary()])
    sink.finish()
    reader = stores.Reader(spec.open(), "benchmark")
    questions = [stores.Question(key=7), stores.Question(from_us=0, to_us=stores.DAY_US // 100)]
    stores.check(reader, questions, 2, 1000)
    for question in questions:  # as if one batch more had been written
        with pytest.raises(stores.WrongAnswerError, match="are right"):
            stores.check(reader, [question], 2, 1001)
    reader.store.close()


@pytest.mark.slow
def test_a_store_that_was_given_other_rows_ends_its_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Those who write are processes of their own, and know nothing of this.
    monkeypatch.setattr(stores, "KEYS", 50)
    with pytest.raises(stores.WrongAnswerError, match=r"key=.* are right"):
        stores._measure(scale(tmp_path), StoreSpec("sqlite", (("path", str(tmp_path / "results.db")),)), 2, 1000)


def test_a_store_that_loses_a_group_ends_its_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_questions, "ask", lambda *asked: [some.slice(1) for some in ask(*asked)])
    spec = StoreSpec("sqlite", (("path", str(tmp_path / "results.db")),))
    with pytest.raises(stores.WrongAnswerError, match="with 99 rows"):
        list(group_questions.measured(spec, group_questions.QUICK))


def test_questions_about_groups_are_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def server(name: str, work: Path) -> Iterator[StoreSpec | None]:
        yield StoreSpec("sqlite", (("path", str(work / "results.db")),)) if name == "sqlite" else None

    monkeypatch.setattr(group_questions, "server", server)
    found = group_questions.run(scale(tmp_path))
    assert "skipped" in found["stores"]["cassandra"] and "skipped" in found["stores"]["hbase"]
    asked = found["stores"]["sqlite"]["asked"]
    assert [one["rows"] for one in asked.values()] == [100, 100, 1, 1, 40, 100]
    json.dumps(found)
    text = page({"group_questions": result("group_questions", **found)}, {})
    assert "| all groups now, first read |" in text
    assert "No figures" not in text
