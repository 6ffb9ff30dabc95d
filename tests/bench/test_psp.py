"""The command that counts what the ring, ATR and CTR send, and the page that it writes."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from benchmarks import evaluation, psp
from benchmarks.psp_page import page
from simulate.ring.messages import nested_loop


def test_all_three_find_the_same_and_send_what_they_must() -> None:
    rows, query = psp.history(3, 2, 1.0)
    wanted = len(nested_loop(rows, query))
    found = {name: psp.run_case(psp.Case(name, 3, 4, 1.0, 1.0), 2) for name in ("ring", "aligned", "coordinated")}
    assert {one["results"] for one in found.values()} == {wanted} and wanted > 50
    # A row visits all nodes of a ring, and no more than half of it again with what it found (section 4.3).
    assert found["ring"]["messages"] > 4 > found["aligned"]["messages"] > 1
    assert found["aligned"]["messages"] == pytest.approx(found["aligned"]["rows"])


def test_the_page_in_docs_is_what_its_figures_give_and_says_at_which_commit() -> None:
    found = json.loads((evaluation.DOCS / "psp.json").read_text())
    assert page(found) == (evaluation.DOCS / "psp.md").read_text(), "run python -m benchmarks.psp --page"
    assert found["windows"] == psp.WINDOWS_RUN and found["commit"] and "dirty" not in found["commit"]


def test_every_run_has_a_place_on_the_page() -> None:
    figures = {
        name: [{**asdict(case), "messages": 7.25, "rows": 2.0, "bytes": 20_480.0, "stored": 1.5, "fullest": 0.5}
               for case in cases]
        for name, cases in psp.figures(psp.QUICK_NODES).items()
    }  # fmt: skip
    text = page({"begun": "2026-01-02T03:04:05+00:00", "commit": "abc", "windows": 5, "figures": figures})
    assert text.count("7.2, 20") == len(figures["traffic"])
    assert text.count("1.50, 0.50, 20") == len(figures["segments"]) + len(figures["copies"])
    assert "### 5 streams, p = 1" in text and "| nodes | c = 1 | c = 2 | c = 4 |" in text
    assert "at commit abc" in text and "for 5 windows" in " ".join(text.split())
