"""Which combinations `make test` leaves to the soak: never one of a mutation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def names(chosen: str) -> list[str]:
    """The tests of this folder that a choice of markers selects."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", chosen, str(Path(__file__).parent)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
    return [line for line in done.stdout.splitlines() if "::" in line]


@pytest.mark.slow
def test_the_soak_has_most_combinations_and_no_mutation() -> None:
    left, kept = names("soak"), names("not soak")
    assert 2 * len(left) > len(kept) > 500
    mutations = ("caught", "mistake_shows", "without_a_sync")
    assert not [name for name in left if any(word in name for word in mutations)]
    assert sum(any(word in name for word in mutations) for name in kept) > 80
    # The first combination of each test is there, whatever the hash says.
    of_soak = {name.partition("[")[0] for name in left if "[" in name}
    without = of_soak - {name.partition("[")[0] for name in kept}
    assert len(without) < 20, without
