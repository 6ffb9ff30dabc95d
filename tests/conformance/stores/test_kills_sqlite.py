"""Thirty drivers killed over one SQLite file and its readers: no torn, repeated or backwards snapshot."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from .job import CASES
from .play import POINTS, play, sqlite

KILLS = {"epochs, immediate": 12, "epochs, delayed": 9, "punctuations": 9}

pytestmark = pytest.mark.slow


def test_there_are_thirty_kills_over_all_policies() -> None:
    assert set(KILLS) == set(CASES) and sum(KILLS.values()) == 30


@pytest.mark.parametrize("case", KILLS)
def test_readers_see_whole_snapshots_in_order_while_drivers_are_killed(case: str, tmp_path: Path) -> None:
    with sqlite(tmp_path) as spec:
        report = play(spec, case, KILLS[case], list(KILLS).index(case), tmp_path)
    assert report.kills.total() == KILLS[case] and report.fenced == KILLS[case] // 3
    assert Counter(report.kills.keys()) >= Counter(POINTS if KILLS[case] >= 12 else POINTS[:3])
    assert report.snapshots_checked == 2 * report.snapshots > 0
