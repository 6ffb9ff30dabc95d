"""Drivers killed over a real Cassandra and a real HBase, with readers that look: the promises are the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from .play import play
from .soak import STORES

KILLS = 5
CASES = {"cassandra": "epochs, immediate", "hbase": "punctuations"}
LIBRARIES = {"cassandra": "cassandra", "hbase": "happybase"}

pytestmark = pytest.mark.services


@pytest.mark.parametrize("store", CASES)
def test_readers_see_whole_snapshots_in_order_while_drivers_are_killed(store: str, tmp_path: Path) -> None:
    pytest.importorskip(LIBRARIES[store])
    with STORES[store](tmp_path) as spec:
        report = play(spec, CASES[store], KILLS, 5, tmp_path)
    assert report.kills.total() == KILLS and report.fenced == 1
    assert report.snapshots_checked == 2 * report.snapshots > 0
