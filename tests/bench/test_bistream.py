"""The command that counts and times BiStream's units, and the page that it writes."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest

from benchmarks import evaluation
from benchmarks.bistream import figures
from benchmarks.bistream.__main__ import FILE, PAGE, run
from benchmarks.bistream.feeds import FEEDS, Feed
from benchmarks.bistream.figures import FULL, QUICK
from benchmarks.bistream.page import page
from benchmarks.bistream.runs import Input, Setting
from benchmarks.bistream.runs import run as run_join

SETTINGS = tuple(Setting(*one) for one in (("JM", 16), ("JB", 8), ("JB", 8, 2), ("JB", 8, 4)))


@pytest.mark.parametrize("feed", FEEDS, ids=lambda feed: feed.name)
def test_every_system_finds_the_same_and_stores_and_sends_what_the_equations_say(feed: Feed) -> None:
    given = Input(3, 4_000, keys=2_000)
    last = {setting.name: list(run_join(feed, setting, given)) for setting in SETTINGS}
    pairs = {name: sum(batch.results for batch in batches) for name, batches in last.items()}
    assert len(set(pairs.values())) == 1 and pairs["JM16"] > 1_000
    assert sum(last["JM16"][-1].stored) == pytest.approx(4 * sum(last["JB8"][-1].stored), rel=0.02)
    sent = {name: sum(batch.sent for batch in batches) for name, batches in last.items()}
    # Blocks are smaller the more units there are, and each has its head: equations 5 and 6 come out for large ones.
    assert sent["JB8"] / sent["JM16"] == pytest.approx(10 / 8, rel=0.02)
    assert sent["JB8-CR2"] / sent["JM16"] == pytest.approx(6 / 8, rel=0.1)
    assert sent["JB8-CR4"] / sent["JM16"] == pytest.approx(4 / 8, rel=0.1)


def test_groups_are_of_the_pairs_and_their_views_are_counted() -> None:
    given = Input(3, 400, 400.0, 5.0, 50)
    alone, grouped = (list(run_join(FEEDS[2], SETTINGS[1], given, grouped=which)) for which in (False, True))
    assert sum(one.folded["tuples"] for one in grouped) == sum(one.results for one in alone) > 1_000
    assert not alone[0].folded


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return json.loads(json.dumps(evaluation.rounded(run(QUICK))))


def test_the_shapes_are_the_papers(found: dict[str, Any]) -> None:
    fed = {(one["feed"], one["setting"]): one["fed"] for one in found["figures"]["volumes"]}
    for feed in ("Q5", "Q7", "Band"):
        assert 3 < fed[feed, "JB16"] / fed[feed, "JB4"] < 4.5 and 1.5 < fed[feed, "JM16"] / fed[feed, "JM4"] < 2.5
    windows = {(one["feed"], one["setting"]): one["window_s"] for one in found["figures"]["windows"]}
    assert windows["Q5", "JB36"] > windows["Q5", "JB16"] > windows["Q5", "JM36"] > windows["Q5", "JM16"]


def test_every_figure_has_a_place_on_the_page(found: dict[str, Any]) -> None:
    text = page({"begun": "2026-01-02T03:04:05+00:00", "commit": "abc", **found})
    assert text.count("\n## ") == 2 + len(figures.FIGURES) and "at commit abc" in text
    assert "nan" not in text.replace("finance", "") or "JB64" not in str(found)
    for name in ("JB16-CR8", "bistream_volume.png", "equations 5 and 6"):
        assert name in text


def test_the_page_in_docs_is_what_its_figures_give_and_says_at_which_commit() -> None:
    known = json.loads((evaluation.DOCS / FILE).read_text())
    assert page(known) == (evaluation.DOCS / PAGE).read_text(), "run python -m benchmarks.bistream --page"
    assert known["size"] == json.loads(json.dumps(asdict(FULL))) and "dirty" not in known["commit"]
