"""The command that simulates SSBJ's figures, and the page that it writes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import evaluation, provenance, semistream
from benchmarks.provenance import DirtyError
from benchmarks.semistream_page import PICTURES, page
from simulate.ssbj.beside import Case
from streamjoin.operators.ssbj.moving import Rule


def results(ssbj: tuple[float, float], x: str = "skew", shows: str = "rate") -> dict[str, Any]:
    point = {"x": "1", "ssbj": list(ssbj), "meshjoin": [50.0, 50.0]}
    figure = {"name": "5(c)", "x": x, "shows": shows, "points": [point]}
    return {"begun": "2026-01-02T03:04:05+00:00", "commit": "abc", "rows": 7_000, "figures": [figure]}


def test_the_page_has_both_the_ratio_and_how_far_the_model_is_off() -> None:
    text = page(results((110.0, 100.0)))
    assert "| 1 | 110 | 100 | 50 | 50 | 2.20 | 2.00 |" in text
    assert "differs from the model by at most 10% of it in rate" in text and "the largest has 7,000" in text
    assert "Measured 2026-01-02 03:04 UTC at commit abc." in text


def test_the_page_in_docs_is_what_its_figures_give_and_says_at_which_commit() -> None:
    found = json.loads((evaluation.DOCS / "ssbj.json").read_text())
    assert page(found) == (evaluation.DOCS / "ssbj.md").read_text(), "run python -m benchmarks.semistream --page"
    assert found["rows"] == semistream.ROWS and found["commit"] and "dirty" not in found["commit"]


def test_a_factor_has_no_model_and_memory_is_better_if_less() -> None:
    text = page(results((110.0, 1.0), x="s_f"))
    assert "| 1 | 110 | 50 | 50 | 2.20 |" in text and "at most 0%" in text
    assert "| 1 | 10 | 10 | 0 | 0 | 0.00 | 0.00 |" in page(results((10_240.0, 10_240.0), shows="memory"))
    assert "| 1 | 50.0% | 40.0% |" in page(results((0.5, 0.4), shows="share"))


def test_a_setting_is_run_with_a_cache_and_without() -> None:
    found = semistream.run_case(Case(1_000, 1.0, 0.2, 20, Rule()))
    assert found["ssbj"]["rate"][0] > found["meshjoin"]["rate"][0]
    assert found["ssbj"]["share"][0] > 0.3 and found["meshjoin"]["share"] == [0, 0]
    assert found["meshjoin"]["step"] == pytest.approx([found["meshjoin"]["step"][1]] * 2, rel=0.01)


def test_all_figures_have_settings_that_the_model_can_be_asked_about() -> None:
    for rows in (semistream.ROWS, semistream.QUICK_ROWS):
        for figure in semistream.figures(rows):
            assert all(case.rows <= rows and case.parts > 1 for _, case in figure.cases), figure.name
            figure.cases[0][1].without_cache().predicted()


def test_figures_of_changed_code_do_not_go_into_docs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def dirty() -> str:
        raise DirtyError("the tree is not commit abc")

    monkeypatch.setattr(provenance, "require_clean", dirty)
    monkeypatch.setattr(evaluation, "DOCS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["semistream"])
    with pytest.raises(SystemExit, match="1"):
        semistream.main()
    monkeypatch.setattr(sys, "argv", ["semistream", "--quick", "--docs", str(tmp_path)])
    with pytest.raises(SystemExit, match="2"):
        semistream.main()
    assert not list(tmp_path.iterdir())


@pytest.mark.soak
@pytest.mark.slow
def test_a_toy_run_writes_figures_and_a_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", ["semistream", "--quick", "--docs", str(tmp_path)])
    assert semistream.main() == 0
    found = json.loads((tmp_path / "ssbj.json").read_text())
    assert [figure["name"] for figure in found["figures"]] == [one.name for one in semistream.figures(5_000)]
    assert page(found) == (tmp_path / "ssbj.md").read_text()
    for picture in PICTURES:
        assert f"]({picture}.png)" in page(found) and (tmp_path / f"{picture}.png").stat().st_size < 60_000
    known = {figure["name"]: figure for figure in found["figures"]}
    best = {one["x"]: one["ssbj"][0] for one in known["6(a)"]["points"]}
    assert max(best, key=lambda factor: best[factor]) == "1"
