"""Systems that look a stream up in a relation count the same; one that is not there is left out, and it is said why."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import lookup, systems
from benchmarks.baselines import flink_env
from benchmarks.scale import Scale


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.spark
def test_all_count_the_same_and_flink_is_left_out_where_it_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not flink_env.is_ready():
        monkeypatch.setattr(systems, "no_flink", lambda: "it is not here")
    sizes = ["--rows", "3000", "--batch-rows", "5000", "--batches", "2", "--memory-mb", "1024"]
    monkeypatch.setattr(sys, "argv", ["lookup", "--systems", *sizes])
    assert lookup.main() == 0
    said = capsys.readouterr().out
    counts = re.findall(r"^(\S+): [\d,]+ stream rows/s, .* ([\d,]+) results", said, re.MULTILINE)
    expected = [lookup.OURS, *lookup.SPARKS, *([lookup.FLINK] if flink_env.is_ready() else [])]
    assert [name for name, _ in counts] == expected, said
    (count,) = {int(count.replace(",", "")) for _, count in counts}
    assert 0.8 * 15_000 < count < 15_000
    assert flink_env.is_ready() or f"{lookup.FLINK}: left out: it is not here" in said


def test_systems_that_count_differently_or_fail_are_told_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = {
        "rows_per_second_after_warmup": 2.0,
        "rows_per_second": 1.0,
        "results": 7,
        "error": None,
        "memory": {"pss_bytes": 1 << 20},
    }
    found: dict[str, Any] = {}
    monkeypatch.setattr(lookup, "_own", lambda scale, work, data, name, memory_mb, limit_s: found[name])
    monkeypatch.setattr(systems, "no_flink", lambda: "it is not here")
    for changed, words in (
        ({"results": 6}, "the numbers of results differ"),
        ({"error": "no memory"}, "spark-shuffled: failed: no memory"),
    ):
        found = {lookup.OURS: report, "spark-broadcast": report, "spark-shuffled": {**report, **changed}}
        assert lookup._systems(100, 100, 1, 512, 60) == 1
        assert words in capsys.readouterr().out


@pytest.mark.parametrize("name", [lookup.OURS, *lookup.SPARKS])
def test_each_may_take_what_was_asked_for_and_sparks_results_may_have_any_size(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def own(scale: Scale, work: Path, system: str, contents: list[dict[str, Any]], **how: Any) -> list[dict[str, Any]]:
        asked.update(how, run=contents[0]["run"], relations=contents[0]["relations"])
        return [{}]

    monkeypatch.setattr(systems, "own", own)
    scale = Scale(quick=True, ends_s=time.monotonic() + 60, data=tmp_path, work=tmp_path)
    lookup._own(scale, tmp_path, tmp_path, name, 512, 77.0)
    assert asked["limit_s"] == 77.0 and asked["relations"]["c"]["path"] == str(tmp_path / "c")
    spark = asked["run"].get("spark", {})
    assert (asked["via"], spark.get("spark.driver.maxResultSize")) == (
        ("driver", None) if name == lookup.OURS else ("spark", "0")
    )
