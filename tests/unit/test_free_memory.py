"""What memory is free in a container is what its processes can still get."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from streamjoin import machine

GIB = 1 << 30


@pytest.fixture
def cgroup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files in which the kernel tells of a container, of both versions; the machine has 64 GiB."""
    monkeypatch.setattr(machine, "_LIMITS", (f"{tmp_path}/memory.max", f"{tmp_path}/limit"))
    monkeypatch.setattr(machine, "_TAKEN", (f"{tmp_path}/memory.current", f"{tmp_path}/usage"))
    stats = ((f"{tmp_path}/memory.stat", "inactive_file"), (f"{tmp_path}/stat", "total_inactive_file"))
    monkeypatch.setattr(machine, "_STATS", stats)
    monkeypatch.setattr(machine.psutil, "virtual_memory", lambda: SimpleNamespace(available=64 * GIB))
    return tmp_path


@pytest.mark.parametrize(
    ("limit", "taken", "stat", "name"),
    [("memory.max", "memory.current", "memory.stat", "inactive_file"),
     ("limit", "usage", "stat", "total_inactive_file")],
    ids=["version 2", "version 1"],
)  # fmt: skip
def test_what_the_kernel_keeps_of_files_is_free(cgroup: Path, limit: str, taken: str, stat: str, name: str) -> None:
    (cgroup / limit).write_text(f"{5 * GIB}\n")
    (cgroup / taken).write_text(f"{4 * GIB}\n")
    assert machine.free_bytes() == GIB  # of a kernel that does not tell what it keeps
    (cgroup / stat).write_text(f"anon {GIB}\nfile {3 * GIB}\n{name} {2 * GIB}\nactive_file {GIB}\n")
    assert machine.free_bytes() == 3 * GIB
    (cgroup / stat).write_text(f"{name} {9 * GIB}\n")
    assert machine.free_bytes() == 5 * GIB  # the two were read one after the other


def test_without_a_limit_it_is_the_machines(cgroup: Path) -> None:
    assert machine.free_bytes() == 64 * GIB
    (cgroup / "memory.max").write_text("max\n")
    (cgroup / "memory.current").write_text(f"{4 * GIB}\n")
    assert machine.free_bytes() == 64 * GIB
