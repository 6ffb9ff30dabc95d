"""A lookup below a limit of memory: what its processes say, and what is said of those that die."""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from benchmarks import lookup, lookup_limited
from benchmarks.limited import Cgroup

SIZES = ("--rows", "20000", "--batch-rows", "10000", "--batches", "2")


@pytest.fixture
def limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The limits that were asked for, of groups that are folders as any others."""
    asked = []
    (tmp_path / "memory.stat").write_text(f"anon {100 << 20}\nfile 0\n")

    @contextmanager
    def limited(parent: Path, limit_bytes: int) -> Iterator[Cgroup]:
        asked.append(limit_bytes)
        yield Cgroup(parent, 2)

    monkeypatch.setattr(lookup_limited, "limited", limited)
    monkeypatch.setattr(sys, "argv", ["lookup", "--cgroup", str(tmp_path), *SIZES])
    return asked


def test_processes_have_a_tenth_of_the_relation_beside_their_own_memory(
    limits: list[int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup_limited, "_disk_bytes", itertools.count(0, 1 << 30).__next__)  # as if all came from it
    assert lookup.main() == 0
    said = capsys.readouterr().out
    size = re.search(r"relation (\d+) MiB; processes' own memory 100 MiB", said)
    assert size, said
    assert limits[0] == lookup_limited.NO_LIMIT_BYTES
    assert (limits[1] - (100 << 20)) / (1 << 20) == pytest.approx(0.1 * int(size[1]), abs=0.1)
    assert re.search(r"with \d+ MiB: [\d,]+ stream rows/s, \d+% of that and \d+% of all in memory", said), said


def test_files_that_the_kernel_still_has_are_no_measurement(limits: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup_limited, "_disk_bytes", lambda: 0)
    with pytest.raises(RuntimeError, match="0 came from the disk: the kernel has the others"):
        lookup.main()


def test_a_process_that_is_killed_ends_the_run(limits: list[int], tmp_path: Path) -> None:
    def dies(number: int, together: Barrier) -> tuple[list[float], int]:
        if number == 1:
            os._exit(9)
        together.wait()
        return [1.0], 0

    with pytest.raises(RuntimeError, match="a process ended without an answer"):
        lookup_limited.run_in(Cgroup(tmp_path, 2), dies, [(0,), (1,)], 10)
