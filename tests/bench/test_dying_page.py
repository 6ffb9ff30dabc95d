"""The page of two hours in which something dies each minute."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.soak import dying_page
from tests.soak.looks import Kill, Look, Timeline


def two_parts() -> Timeline:
    """Of five minutes each; in the second nobody answers for a while."""
    looks = [
        Look(at_s, round(at_s) * 100, round(at_s) * 10, not 350 < at_s < 400, 500 << 20, 3 << 20)
        for at_s in map(float, range(0, 600, 10))
    ]
    return Timeline(looks, [Kill(60, "API"), Kill(120, "driver"), Kill(350, "API")], [300.0, 600.0], [3_000, 6_000])


def test_the_page_tells_what_was_killed_what_came_out_and_what_each_round_took() -> None:
    text = dying_page.page(two_parts())
    assert "10 minutes, 59,000 rows in, 6,000 results" in text and "each of the 2 parts" in text
    assert "| API | 2 |" in text and "| driver | 1 |" in text and "| Redis | 0 |" in text
    assert "| 1 | 500 | 3.0 |" in text and "| 2 | 500 | 3.0 |" in text
    assert "in 93% of the times that it was asked" in text


def test_rates_are_those_since_the_look_before() -> None:
    looks = two_parts().looks
    rates = dying_page._a_second([*looks, looks[-1]], lambda look: look.results)
    assert rates[1:-1] == pytest.approx([10.0] * (len(looks) - 1))
    assert rates[0] != rates[0] and rates[-1] != rates[-1], "nothing is drawn where nothing is known"


def test_a_folder_is_taken_over_and_the_page_made_anew_is_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (docs := tmp_path / "docs").mkdir()
    monkeypatch.setattr(dying_page, "DOCS", docs)
    monkeypatch.setattr(sys, "argv", ["dying_page"])
    assert dying_page.main() == 1, "there is nothing yet"
    two_parts().write(tmp_path / "timeline.json")
    monkeypatch.setattr(sys, "argv", ["dying_page", "--folder", str(tmp_path)])
    assert dying_page.main() == 0
    made = {path.name: path.read_bytes() for path in docs.iterdir()}
    assert sorted(made) == ["dying.json", "dying.md", "dying.png"] and made["dying.png"][:4] == b"\x89PNG"
    monkeypatch.setattr(sys, "argv", ["dying_page"])
    assert dying_page.main() == 0
    assert {path.name: path.read_bytes() for path in docs.iterdir()} == made


def test_the_page_in_docs_is_what_its_timeline_gives() -> None:
    if (kept := dying_page.DOCS / "dying.json").exists():
        made = dying_page.page(Timeline.read(kept))
        assert (dying_page.DOCS / "dying.md").read_text() == made, "run python -m tests.soak.dying_page"
    else:
        assert not (dying_page.DOCS / "dying.md").exists()
