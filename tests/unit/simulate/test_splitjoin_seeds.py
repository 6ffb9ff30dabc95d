"""Any settings, any history, any interleaving: all checks of SplitJoin at once."""

from __future__ import annotations

import pytest

from tests.unit.simulate.seeds import told
from tests.unit.simulate.splitjoin_runs import complaints, drawn

pytestmark = pytest.mark.slow


def holds(seed: int) -> None:
    """All checks of one seed."""
    run, inputs, window, match = drawn(seed)
    with told(seed, run.network):
        run.join(inputs)
        assert complaints(run, inputs, window, match) == []


@pytest.mark.parametrize("seed", range(50))
def test_a_seed(seed: int) -> None:
    holds(seed)


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.soak) for part in range(1, 8))])
def test_2000_seeds(part: int) -> None:
    for seed in range(part, 2_000, 8):
        holds(seed)
