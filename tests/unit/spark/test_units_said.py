"""What a run says at its end of units that came and went."""

from __future__ import annotations

from streamjoin.cli.running import _adaptive_text
from streamjoin.spark.adapting import Adapting


def said(*counts: dict[str, int], stages: int = 1) -> list[str]:
    found = Adapting()
    for batch, units in enumerate(counts):
        for stage in range(stages):
            draining = dict.fromkeys(units, 0)
            told = {"plan": batch, "at_us": 0, "units": units, "draining": draining, "decisions": []}
            found.add(batch, [{"stage": stage, "unit": 0, "adapting": told}])
    return _adaptive_text({"adaptive": {"units": found.units}})


def test_units_of_a_biclique_are_said_by_stream_and_nodes_of_a_ring_as_such() -> None:
    assert said({"R": 2, "S": 3}, {"R": 4, "S": 3}, {"R": 1, "S": 3}) == [
        "units: 2 of R at first, 4 at most, 1 at the end; 3 of S at first, 3 at most, 3 at the end"
    ]
    assert said({"ring": 2}, {"ring": 6}, {"ring": 3}) == ["nodes: 2 at first, 6 at most, 3 at the end"]
    assert said({"R": 1, "S": 1}, stages=2)[1].startswith("units of stage ")
    assert said() == []
