"""The words of PSP's figure 7 in docs are those that `compare` prints."""

from __future__ import annotations

from pathlib import Path

from streamjoin.explain.compare.distribution import FIGURE_7, SYSTEMS

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_docs_have_the_words_that_compare_prints() -> None:
    lines = (DOCS / "comparing-operators.md").read_text().splitlines()
    head = f"| | {' | '.join(f'`{name}` ({paper})' for name, paper in SYSTEMS.items())} |"
    begin = lines.index(head) + 2
    wanted = [f"| {trait.name} | {' | '.join(trait.words[name] for name in SYSTEMS)} |" for trait in FIGURE_7]
    assert lines[begin : begin + len(wanted)] == wanted and not lines[begin + len(wanted)]
