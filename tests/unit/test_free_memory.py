"""How much memory there is for more processes: the machine's, or the container's where that is less."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from streamjoin import machine

MIB = 1 << 20


def limited(monkeypatch: pytest.MonkeyPatch, folder: Path, limit: str, taken: str) -> None:
    for name, text in (("_LIMITS", limit), ("_TAKEN", taken)):
        (folder / name).write_text(text)
        monkeypatch.setattr(machine, name, (str(folder / "missing"), str(folder / name)))


def test_a_container_has_what_is_left_of_its_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    limited(monkeypatch, tmp_path, f"{30 * MIB}\n", f"{20 * MIB}\n")
    assert machine.memory_limit_bytes() == 30 * MIB
    assert machine.free_bytes() == 10 * MIB


@pytest.mark.parametrize("limit", ["max\n", "9223372036854771712\n"])
def test_without_a_limit_it_is_the_machines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: str) -> None:
    limited(monkeypatch, tmp_path, limit, f"{20 * MIB}\n")
    assert machine.free_bytes() == pytest.approx(psutil.virtual_memory().available, rel=0.2)
