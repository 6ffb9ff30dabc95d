"""What a job in a store of objects lets go: removed side by side, soon given up, and found again later."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from streamjoin.errors import StateError
from streamjoin.state import objects
from streamjoin.state.root import ObjectRoot
from tests.servers.objects import MOODS, Moods, folder_root

ROOT = Path(__file__).resolve().parents[3]
LINES = ((("g1-a", 1),),)
DOWN = "Could not connect to server"


@pytest.fixture
def place(tmp_path: Path) -> ObjectRoot:
    return folder_root(tmp_path / "store", tmp_path / "cache", lines=LINES)


def test_one_object_that_may_not_be_removed_keeps_no_other(place: ObjectRoot, tmp_path: Path) -> None:
    found, _ = place.opened()
    names = [f"x/{number}" for number in range(100)]
    for name in names:
        found.put(name, b"x")

    def refuses(kind: str, path: str) -> None:
        if kind == "remove" and path.endswith("/0"):
            raise OSError("AWS Error ACCESS_DENIED")

    MOODS[place.uri].before = refuses
    found.remove(names)
    assert list(found.listed("")) == ["x/0"]


def test_litter_is_not_worth_the_patience_of_a_state(place: ObjectRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(objects, "time", SimpleNamespace(monotonic=lambda: sum(slept), sleep=slept.append))

    def down(kind: str, path: str) -> None:
        raise OSError(DOWN)

    MOODS[place.uri] = Moods(down)
    found, _ = replace(place, retry_s=60.0).opened()
    found.remove(["x"])
    assert 0 < sum(slept) <= objects.LITTER_RETRY_S
    slept.clear()
    with pytest.raises(StateError, match="has failed for 60 s"):
        found.put("x", b"")
    assert sum(slept) > 30


_ENDS = """
import atexit, sys, threading, time
from pathlib import Path
from tests.servers.objects import MOODS, Moods, folder_root

begun = threading.Event()

def slow(kind, path):
    begun.set()
    time.sleep(0.05)

place = folder_root(Path(sys.argv[1]))
moods = MOODS[place.uri] = Moods(slow)
atexit.register(lambda: print(moods.calls["remove"]))
names = [str(number) for number in range(3_200)]
threading.Thread(target=place.opened()[0].remove, args=(names,), daemon=True).start()
begun.wait()
"""


def test_a_process_that_ends_removes_no_more_than_it_has_begun(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", _ENDS, str(tmp_path / "store")],
        env=environment, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert 0 < int(done.stdout) < 1_600 and not done.stderr
