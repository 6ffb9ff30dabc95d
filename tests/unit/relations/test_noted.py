"""What a batch over DataFrames joins: what its first task took, in every other task and attempt."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from streamjoin.errors import StateError
from streamjoin.relations.noted import Noted
from streamjoin.relations.versions import Versions

KEPT = 3


@pytest.fixture
def noted(tmp_path: Path) -> Noted:
    read(tmp_path, 1)
    return Noted(tmp_path / "joined", tmp_path / "relations", KEPT, sync=False)


def read(folder: Path, version: int) -> None:
    """What a read leaves, as far as it is looked at here."""
    (folder / "relations" / "c" / str(version)).mkdir(parents=True)


def test_what_the_first_task_took_holds_for_all_and_for_every_attempt(noted: Noted, tmp_path: Path) -> None:
    assert noted.versions(0, ["c"]) == {"c": 1}
    read(tmp_path, 2)
    assert noted.versions(0, ["c"]) == {"c": 1}
    assert noted.versions(1, ["c"]) == {"c": 2} and noted.versions(0, ["c"]) == {"c": 1}


def test_tasks_that_ask_at_once_agree(noted: Noted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = iter(range(1, 1_000))
    monkeypatch.setattr(Versions, "newest", lambda self: next(seen))
    with ThreadPoolExecutor(8) as tasks:
        for batch in range(20):
            asked = [tasks.submit(noted.versions, batch, ["c"]) for _ in range(8)]
            assert len({task.result()["c"] for task in asked}) == 1
    assert not [path for path in noted.folder.iterdir() if path.name.startswith(".")]


def test_what_no_batch_needs_is_removed(noted: Noted, tmp_path: Path) -> None:
    noted.versions(0, ["c"])
    (noted.folder / ".0.died").mkdir()
    read(tmp_path, 2)
    there = Versions(noted.tables, "c")
    for batch in range(1, KEPT + 1):
        assert there.numbers() == [1, 2] and noted.versions(batch, ["c"]) == {"c": 2}
    assert there.numbers() == [2]
    assert sorted(path.name for path in noted.folder.iterdir()) == ["1", "2", "3"]


def test_damage_is_said(noted: Noted) -> None:
    noted.versions(0, ["c"])
    (noted.folder / "0" / "versions.json").write_text("{")
    with pytest.raises(StateError, match=r"versions\.json is damaged; restore the checkpoint"):
        noted.versions(0, ["c"])
