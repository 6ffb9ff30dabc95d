"""The command that simulates the ring, ATR and CTR, and the page that it writes."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from benchmarks import evaluation, provenance
from benchmarks.psp import adaptation, costs, figures, on_spark, response, response_page, traffic
from benchmarks.psp.page import AGAIN, SECTIONS, _again, _filled, page
from simulate.ring.messages import nested_loop

MEASURED: dict[str, Any] = {
    "comparison": {"5000": 20_000.0, "10000": 40_000.0, "20000": 80_000.0},
    "probe": 200.0, "insert": 20.0, "purge": 20.0, "message": 1_000.0, "byte": 0.1, "hop": 100_000.0, "link_byte": 8.0,
}  # fmt: skip


def test_all_three_find_the_same_and_send_what_they_must() -> None:
    rows, query = traffic.history(3, 2, 1.0)
    wanted = len(nested_loop(rows, query))
    cases = [traffic.Case(name, 3, 4, 1.0, 1.0) for name in ("ring", "aligned", "coordinated")]
    found = {case.system: traffic.run_case(case, 2) for case in cases}
    assert {one["results"] for one in found.values()} == {wanted} and wanted > 50
    # A row visits all nodes of a ring, and no more than half of it again with what it found (section 4.3).
    assert found["ring"]["messages"] > 4 > found["aligned"]["messages"] > 1
    assert found["aligned"]["messages"] == pytest.approx(found["aligned"]["rows"])


def test_similar_images_are_those_of_one_scene() -> None:
    images = costs.images(8, 500)
    assert [costs.similar(images[0], one) for one in images] == [number % 4 == 0 for number in range(8)]
    # Half of the pixels must be near in all three channels, and by how much.
    one = images[0].astype(int)
    near, far = ((one + off).clip(0, 255).astype("uint8") for off in (costs.TOLERANCE, costs.TOLERANCE + 1))
    far[one > 255 - costs.TOLERANCE - 1] = 0
    assert costs.similar(images[0], near) and not costs.similar(images[0], far)
    half = images[0].copy()
    half[:270] = 255 - half[:270] // 2
    assert not costs.similar(images[0], half) and costs.similar(images[0], images[0])


def test_what_steps_take_is_measured_here_and_nothing_is_free() -> None:
    measured = costs.measure(True)
    assert set(measured) == set(MEASURED) and set(measured["comparison"]) == {"5000", "10000", "20000"}
    small, middle, large = measured["comparison"].values()
    assert 100 < small < large and small < middle * 1.5
    assert measured["probe"] > 0 and measured["insert"] > 0 and measured["message"] + 15_016 * measured["byte"] > 100
    times = costs.step_times(costs.unit_costs(MEASURED, 10_000), 30_000)
    assert times.join == 40e-6 and times.send == pytest.approx(1e-6 + 0.1e-9 * 30_016)
    assert times.hop == pytest.approx(100e-6 + 8e-9 * 30_016)


def test_the_ring_answers_later_with_more_matches_and_sooner_with_more_nodes_while_there_is_work() -> None:
    points = list(response.ring_points(MEASURED, (1, 4, 19), 60, 20_000, settings=((3, 0.5), (3, 5.0))))
    by = {(one["matches"], one["nodes"]): one for one in points}
    assert by[5.0, 4]["response"] < by[5.0, 1]["response"] and by[0.5, 19]["response"] > by[0.5, 4]["response"]
    assert all(by[5.0, nodes]["cycle"] > by[0.5, nodes]["cycle"] for nodes in (1, 4, 19))
    assert all(0 < one["busiest"] < 1 for one in points if one["nodes"] > 1)
    # Its last node has them after 18 hops, and a cycle takes 2 rounds of 19.
    assert by[0.5, 19]["response"] > 9 * 0.1 and by[0.5, 19]["cycle"] > 38 * 0.1
    assert by[5.0, 1]["sent"] == pytest.approx(6, rel=0.2)


def test_all_three_systems_give_the_same_results_and_take_the_time_that_they_must() -> None:
    points = list(response.baselines(MEASURED, (4, 8), 20, 2, (1.0, 2.0), (2, 4)))
    assert len({one["results"] for one in points}) == 1 and points[0]["results"] > 30
    # One node does all the work for a row of ATR, whatever their number: two hops less than a row of work, and more.
    alone = [one["response"] for one in points if one["system"] == "aligned"]
    work_ms = 20 * 2 * MEASURED["comparison"]["5000"] / 1e6
    assert all(work_ms / 2 < one < 3 * work_ms for one in alone)
    assert {(one["nodes"], one["copies"]) for one in points if one["system"] == "coordinated"} == {
        (4, 2), (8, 2), (8, 4),
    }  # fmt: skip


def test_the_rate_doubles_and_all_ways_find_the_same() -> None:
    off, smoothing, nodes = adaptation.points(MEASURED, adaptation.Change(3, 30, 2.0, 1, 2))
    assert off["results"] == smoothing["results"] == nodes["results"] > 100
    assert not off["changes"] and not smoothing["changes"] and nodes["changes"]
    before, after = ([ms for at, ms, _ in nodes["response"] if (at < 0) == early] for early in (True, False))
    assert len(before) == 10 and len(after) == 20 and min(after) > min(before) > 0
    assert sum(count for _, _, count in off["response"]) == off["results"]


def test_the_page_in_docs_is_what_its_figures_give_and_says_at_which_commit() -> None:
    found = json.loads((evaluation.DOCS / "psp.json").read_text())
    assert page(found) == (evaluation.DOCS / "psp.md").read_text(), "run python -m benchmarks.psp --page"
    assert found["windows"] == figures.FULL.windows and found["commit"] and "dirty" not in found["commit"]


def test_every_run_has_a_place_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    size = figures.QUICK
    counted = {
        name: [{**asdict(case), "messages": 7.25, "rows": 2.0, "bytes": 20_480.0, "stored": 1.5, "fullest": 0.5}
               for case in cases]
        for name, cases in traffic.figures(size.nodes).items()
    }  # fmt: skip
    monkeypatch.setattr(costs, "measure", lambda quick: MEASURED)
    monkeypatch.setattr(traffic, "counted", lambda nodes, windows: counted)
    jobs = [{"way": way, "rows": 6_000, "results": 7, "seconds": [2.0, took_s, 9.0], "rate": 6_000 / took_s}
            for way, took_s in (("tree", 4.0), ("ring of 2", 5.0))]  # fmt: skip
    monkeypatch.setattr(on_spark, "points", lambda size: iter(jobs))
    results = figures.run(size, quick=True)
    assert set(results["figures"]) == set(SECTIONS)
    text = page({"begun": "2026-01-02T03:04:05+00:00", "commit": "abc", **results})
    assert text.count("7.2, 20") == len(counted["traffic"])
    assert text.count("1.50, 0.50, 20") == len(counted["segments"]) + len(counted["copies"])
    assert "### 5 streams, p = 1" in text and "| nodes | c = 1 | c = 2 | c = 4 |" in text
    assert "at commit abc" in text and "for 4 windows" in " ".join(text.split())
    for setting in ("3 streams, p = 0.5", "3 streams, p = 1", "9 streams, p = 0.5"):
        assert len(re.findall(rf"^\| {setting} \|", text, re.MULTILINE)) == 4
    assert "| ring of 2 | 1,200 | 5.0 | 1.00 |" in text and "a job included.\n\n| way |" in text
    assert "20.0 µs with 5,000 pixels" in text and "T_n = 220 µs" in text
    assert "| N | off | smoothing |" not in text and "| windows after the change | off | smoothing |" in text


def test_lines_that_figures_made_too_long_are_broken_but_not_in_commands_links_and_formulas() -> None:
    words = "word " * 23 + "a "
    for whole in ("`python -m benchmarks.psp`", "[a formula of some words](page.md)", "p = 1"):
        broken = _filled(f"{words}{whole} and {words}")
        assert whole in broken.split("\n")[1] and max(map(len, broken.split("\n"))) <= 120
    table = f"| {words * 2} |"
    assert _filled(table) == table and _filled("short\nlines") == "short\nlines"


def test_windows_are_means_of_results_and_not_of_tenths() -> None:
    tenths = [[-0.1, 5.0, 1], [0.0, 1.0, 3], [0.9, 9.0, 1], [1.0, 4.0, 2]]
    assert response_page._windows(tenths) == {-1: 5.0, 0: 3.0, 1: 4.0}


def test_a_part_is_simulated_anew_with_the_costs_that_are_there_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = json.loads((evaluation.DOCS / "psp.json").read_text())
    old.pop("again", None)
    (tmp_path / "psp.json").write_text(json.dumps(old))
    seen: list[Any] = []

    def ring_points(measured: Any, nodes: Any, stored: int, pairs: int, *, pixels: int, settings: Any) -> Any:
        seen.append(measured)
        streams, matches = settings[-1]
        yield {"streams": streams, "matches": matches, "stored": stored, "pixels": pixels, "nodes": 1, "cycle": 0.5}

    monkeypatch.setattr(response, "ring_points", ring_points)
    monkeypatch.setattr(provenance, "commit", lambda: "abc")
    monkeypatch.setattr("sys.argv", ["psp", "--only", "one-node", "--docs", str(tmp_path)])
    found, _ = evaluation.simulated("psp", "", "psp.json", lambda quick: {}, again=figures.AGAIN)
    assert seen == [old["costs"]] * 5 and found["commit"] == old["commit"]
    assert found["again"]["one-node"]["commit"] == "abc" and set(AGAIN) == set(figures.AGAIN)
    assert "Anew with the same costs: rings of one node in figure 8(a). Measured" in " ".join(
        _again(found["again"]).split()
    )
    for name in ("rings", "few_stored", "pixels"):
        changed = [one for one, was in zip(found["figures"][name], old["figures"][name], strict=True) if one != was]
        assert changed and {one["nodes"] for one in changed} == {1} and changed[-1]["cycle"] == 0.5
    assert found["figures"]["baselines"] == old["figures"]["baselines"]
