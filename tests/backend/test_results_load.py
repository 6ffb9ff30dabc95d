"""Load: healthy clients are not delayed by slow and dead ones, and what the server holds is bounded."""

from __future__ import annotations

import resource

import pytest

from tests.backend import load_live, load_reads

pytestmark = [pytest.mark.services, pytest.mark.slow]


@pytest.mark.parametrize(
    ("clients", "snapshots", "pause_s"),
    [(100, 12, 0.5), *(pytest.param(*case, marks=pytest.mark.soak) for case in ((400, 24, 0.5), (1000, 40, 1.0)))],
)
def test_many_clients_with_slow_and_dead_ones_among_them(clients: int, snapshots: int, pause_s: float) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8192)), hard))
    found = load_live.main(["--clients", str(clients), "--snapshots", str(snapshots), "--pause", str(pause_s)])
    assert found["healthy"] == clients * 0.95 and found["received_min"] == snapshots
    assert found["dropped_of_healthy"] == 0
    # On a machine that runs all the clients as well.
    assert found["late_ms_p50"] < 20_000 and found["late_ms_max"] < 100_000
    assert found["held_mib_max"] < 64 and found["rss_mib_max"] < 1024


@pytest.mark.soak
def test_reads_at_a_steady_rate_are_all_answered() -> None:
    found = load_reads.main(["--rate", "50", "--seconds", "5"])
    assert found["not_200"] == 0 and found["p99_ms"] < 20_000
