"""Results that go elsewhere while periods are open: those end where they would have, and no row is in both places."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from streamjoin.results.head import Head
from streamjoin.spec.joinfile import JoinFile, parse
from streamjoin.spec.outputs import store_job, store_spec
from streamjoin.spec.prepare import bind

from .alone import run_alone
from .test_going_on import arrive
from .test_moved_results import TEXT, kept, wanted

RULES = {"by time": "every: 3s", "by file": "per: file"}


def file_of(folder: Path, place: str, rule: str) -> JoinFile:
    text = TEXT.format(results=f"store: sqlite, path: {place}.db, job: pairs, snapshot: {{punctuation: true}}")
    return parse(text.replace("delay: 2s", f"delay: 2s, punctuate: {{{RULES[rule]}}}"), base=folder)


def come(folder: Path, **files: range) -> None:
    """Some of the files of each stream."""
    for stream, numbers in files.items():
        (folder / stream).mkdir(exist_ok=True)
        for number in numbers:
            (folder / "coming" / stream / f"{number}.parquet").rename(folder / stream / f"{number}.parquet")


def closed(file: JoinFile) -> int | None:
    """Up to where periods are closed."""
    stored = store_spec(file).open().head(store_job(file))
    assert stored is not None
    state = Head.from_bytes(stored).state
    return state.ended_us or state.epoch


@pytest.mark.parametrize("way", ["AB", "ABA", "ABC"])
@pytest.mark.parametrize("rule", RULES)
def test_periods_end_where_they_would_have(rule: str, way: str, tmp_path: Path) -> None:
    """One stream has ended more of them than the other when its results go elsewhere."""
    stays, moves = tmp_path / "stays", tmp_path / "moves"
    for folder in (stays, moves):
        (folder / "coming").mkdir(parents=True)
        for number in range(8):
            arrive(folder / "coming", number)
    come_to = [(4, 2), *((5 + turn, 3 + turn) for turn in range(len(way) - 1)), (8, 8)]
    r = s = 0
    for place, (r_now, s_now) in zip([*way, way[-1]], come_to, strict=True):
        for folder, to in ((stays, "A"), (moves, place)):
            come(folder, r=range(r, r_now), s=range(s, s_now))
            run_alone(bind(file_of(folder, to, rule)))
        r, s = r_now, s_now
        assert closed(file_of(moves, place, rule)) == closed(file_of(stays, "A", rule)) is not None
    run_alone(bind(file_of(moves, "end", rule)))  # which completes what waits
    rows: Counter[Any] = Counter()
    for place in set(way):
        rows += Counter(kept(file_of(moves, place, rule)))
    assert rows == wanted(moves)
