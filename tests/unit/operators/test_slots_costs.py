"""The model of scale counts what the operators' own routers do."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from streamjoin.engine.operator import Operator
from streamjoin.engine.routing import PROBE, STORE, Tuples
from streamjoin.operators import registry
from streamjoin.operators.biclique.router import Biclique, Routing
from streamjoin.operators.costs.growth import MEASURED, MEASURED_AROUND, SLOT_TUPLES, SLOTS_MAX, growth
from streamjoin.operators.costs.slots import (
    LAYOUTS,
    NEAR_TUPLES,
    Around,
    Layout,
    StepCosts,
    contrand_layout,
    hash_layout,
    is_far,
    matrix_layout,
    predicted,
    random_layout,
    sides,
    splitjoin_layout,
)
from streamjoin.operators.handshake import Handshake
from streamjoin.operators.matrix import Matrix
from streamjoin.operators.splitjoin import SplitJoin

ROOT = Path(__file__).parents[3]
ROWS = 20_000
COSTS = StepCosts(route_ns=100, send_ns=10, store_ns=40, far_store_ns=0, probe_ns=50, far_probe_ns=0, unit_us=200)
AROUND = Around(batch_ms=150, tuple_ns=300, copy_ns=20)


def operator(name: str, slots: int) -> Operator:
    """As a job of so many slots has it, with a cell a slot for a matrix."""
    if name == "matrix":
        return Matrix(*sides(slots))
    if name == "splitjoin":
        return SplitJoin(slots)
    groups = int(slots**0.5) if name == "contrand" else 1
    return Biclique(slots, slots, Routing(name), groups, groups)


def routed(of: Operator, slots: int) -> tuple[float, float, float]:
    """Slots that a tuple is sent to, units that store it, units that it probes: means of both sides."""
    rng = np.random.default_rng(3)
    sent = stored = probes = 0
    for side in range(2):
        tuples = Tuples(*(rng.integers(-(1 << 62), 1 << 62, ROWS) for _ in range(2)))
        for route in of.route(side, tuples):
            sent += route.rows.size * len({unit % slots for unit, _ in route.targets})
            stored += route.rows.size * sum(bool(role & STORE) for _, role in route.targets)
            probes += route.rows.size * sum(bool(role & PROBE) for _, role in route.targets)
    return sent / ROWS / 2, stored / ROWS / 2, probes / ROWS / 2


@pytest.mark.parametrize("slots", [1, 2, 4, 8, 12, 16, 64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_counts_what_its_router_does(layout: Callable[[int], Layout], slots: int) -> None:
    told = layout(slots)
    of = operator(told.name, slots)
    sent, stored, probes = routed(of, slots)
    assert len(of.units) == told.units
    if told.name == "splitjoin":  # its cores take turns, of which routes know nothing
        assert (sent, stored, probes) == (told.sent, slots, told.probes)
        return
    assert stored == pytest.approx(told.stored)
    assert (sent, probes) == pytest.approx((told.sent, told.probes), rel=0.05)


def test_one_slot_is_the_same_for_all_but_for_its_units() -> None:
    for layout in LAYOUTS:
        seconds = COSTS.seconds(layout(1), 1000, 4000)
        assert seconds.pop("units") == pytest.approx(layout(1).units * 200e-6)
        assert seconds == pytest.approx({"routing": 1e-4, "sending": 1e-5, "storing": 4e-5, "probing": 5e-5})


def test_work_is_shared_and_the_batch_itself_is_not() -> None:
    one, four = (predicted(COSTS, AROUND, hash_layout(slots), 1e6, 4e6) for slots in (1, 4))
    assert sum(one.seconds.values()) == pytest.approx(0.150 + 0.300 + 0.200 + 0.0004)
    assert four.seconds["the batch itself"] == one.seconds["the batch itself"]
    assert four.seconds["probing"] == pytest.approx(one.seconds["probing"] / 4)
    assert one.rate_per_s == pytest.approx(1e6 / 0.6504)


def test_where_every_tuple_probes_every_unit_more_slots_take_nothing_off_it() -> None:
    few, many = (predicted(COSTS, AROUND, random_layout(slots), 1e6, 4e6, sent_bytes=40) for slots in (4, 256))
    assert many.seconds["probing"] == pytest.approx(few.seconds["probing"])
    # Four copies, of which three are more than the one that each tuple has.
    assert few.seconds["sending"] == pytest.approx((4 * 10 + 3 * 20) * 1e6 * 1e-9 / 4)
    # Each slot gets every tuple, so its bytes follow the rate alone.
    assert many.sent_bytes_per_s == pytest.approx(40 * many.rate_per_s)
    assert predicted(COSTS, AROUND, random_layout(256), 256e5, 1e8).most == "probing"


def test_what_fits_a_core_is_stored_and_probed_faster() -> None:
    costs = replace(COSTS, far_store_ns=60, far_probe_ns=100)
    for layout, stored in ((hash_layout(1), 4), (splitjoin_layout(1), 4), (matrix_layout(4), 2), (hash_layout(16), 0)):
        # A unit's part of either stream, in caches.
        assert layout.of_unit(8 * NEAR_TUPLES) == pytest.approx(max(stored, 0.25) * NEAR_TUPLES)
        seconds = costs.seconds(layout, 8 * NEAR_TUPLES, 8 * NEAR_TUPLES)
        share = 1.0 if stored else 0.0
        all_s = 8 * NEAR_TUPLES * 1e-9
        assert seconds["storing"] == pytest.approx(all_s * layout.stored * (40 + 60 * share))
        assert seconds["probing"] == pytest.approx(all_s * layout.probes * (50 + 100 * share))
    assert not is_far(NEAR_TUPLES) and is_far(NEAR_TUPLES + 1)


def test_memory_of_a_slot_shrinks_with_copies_counted() -> None:
    stored = {layout(64).name: predicted(COSTS, AROUND, layout(64), 1e6, 4e6, live_bytes=64e6).stored_bytes
              for layout in LAYOUTS}  # fmt: skip
    assert stored == {"hash": 1e6, "contrand": 1e6, "random": 1e6, "matrix": 8e6, "splitjoin": 1e6}


def test_a_layout_ends_at_the_last_doubling_of_which_each_slot_brings_half() -> None:
    for layout in LAYOUTS:
        found = growth(layout, COSTS, AROUND, 1_000_000)
        each = [
            predicted(COSTS, AROUND, layout(slots), 1e6 * slots, 4e6 * slots).rate_per_s / slots for slots in powers()
        ]
        enough = [slots for slots, rate in zip(powers(), each, strict=True) if rate >= each[0] / 2]
        assert enough == powers()[: len(enough)], "what is not worth having at some slots is not with more"
        assert found.slots == (None if enough[-1] == SLOTS_MAX else enough[-1])
    assert growth(hash_layout, COSTS, Around(0, 300, 20), 1e6).slots is None


def powers() -> list[int]:
    return [1 << power for power in range(SLOTS_MAX.bit_length())]


def test_the_ends_that_are_told_are_those_that_were_measured() -> None:
    part = json.loads((ROOT / "docs" / "benchmarks.json").read_text())["scale"]
    assert asdict(MEASURED) == pytest.approx(part["costs"], rel=0.005)
    assert asdict(MEASURED_AROUND) == pytest.approx(part["around"], rel=0.005)
    assert part["slot_tuples"] == SLOT_TUPLES
    assert {layout(1).name: asdict(growth(layout)) for layout in LAYOUTS} == part["ends"]


@pytest.mark.parametrize(
    ("operator", "layout"),
    [
        (Biclique(2, 2, Routing.HASH), hash_layout),
        (Biclique(2, 2, Routing.RANDOM), random_layout),
        (Biclique(4, 4, Routing.CONTRAND, 2, 2), contrand_layout),
        (Matrix(2, 3), matrix_layout),
        (SplitJoin(2), splitjoin_layout),
        (Handshake(2), None),
    ],
    ids=lambda given: getattr(given, "name", ""),
)
def test_an_operator_is_told_by_its_own_layout(operator: Operator, layout: Callable[[int], Layout] | None) -> None:
    assert registry.grows(operator) == (growth(layout) if layout else None)
