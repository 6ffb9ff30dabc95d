"""Units that store several times their capacity and may not become more (BiStream, section 6.3)."""

from __future__ import annotations

from streamjoin.operators.biclique.adaptive import AdaptiveBiclique
from streamjoin.operators.biclique.router import Routing
from streamjoin.operators.biclique.scaling import Limits

from . import check as suite
from .histories import history

CAPACITY_BYTES = 512


def test_units_go_on_beyond_three_times_their_capacity_and_say_so() -> None:
    limits = Limits(CAPACITY_BYTES, least=2, most=2, every_us=0, shrinks=False)
    operator = AdaptiveBiclique(2, 2, Routing.HASH, limits=limits)
    job = suite.check(
        operator,
        history(0, r=400, s=400, time_shape="disordered", delay_us=15),
        "equality",
        "full history",
        run=suite.restored,
        batches=6,
    )
    kept = [report.stored_bytes for report in job.reports[-1]]
    assert len(kept) == 4 and min(kept) > 3 * CAPACITY_BYTES
    [told] = [report.adapting for report in job.reports[-1] if report.adapting]
    assert told["units"] == {"R": 2, "S": 2} and told["decisions"] == []
    # By what they stored when the batch began.
    loads = {name: one["load"] for name, one in told["round"].items()}
    before = {report.unit: report.stored_bytes for report in job.reports[-2]}
    assert list(loads.values()) == [before[unit] / CAPACITY_BYTES for unit in range(4)]
    assert min(loads.values()) > 3 and all(one["wish"] > 0 for one in told["round"].values())
