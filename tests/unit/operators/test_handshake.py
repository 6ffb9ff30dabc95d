"""The handshake chain's rules, each by itself: the line, blocks, what is sent on, what a handed-over file is called."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from streamjoin.engine.routing import PROBE, STORE, Tuples
from streamjoin.errors import InputError, UnsupportedError
from streamjoin.flow.punctuation import IDLE_TIMEOUT_US, StreamClock
from streamjoin.index.kernels import mix
from streamjoin.index.segment import SegmentInfo
from streamjoin.operators import registry
from streamjoin.operators.costs.handshake import imbalance
from streamjoin.operators.handshake import Handshake
from streamjoin.operators.handshake.blocks import automatic_block
from streamjoin.operators.handshake.forwarding import balancing, idle
from streamjoin.plan.window import R, S
from tests.conformance.check import plan
from tests.conformance.histories import history


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_streams_enter_at_opposite_ends_and_pass_every_worker(workers: int) -> None:
    chain = Handshake(workers)
    for side, line in ((R, range(workers)), (S, range(workers - 1, -1, -1))):
        (route,) = chain.route(side, Tuples(mix(np.arange(7))))
        assert route.rows.tolist() == list(range(7))
        assert route.targets == ((line[0], STORE | PROBE),)
        for before, after in pairwise(line):
            assert chain.successor(side, before) == after and chain.predecessor(side, after) == before
        assert chain.predecessor(side, line[0]) is None and chain.successor(side, line[-1]) is None
    assert [side for unit in chain.units for side in unit.counts].count(R) == 1
    assert chain.drain_batches == (workers if workers > 1 else 0)


@pytest.mark.parametrize(
    ("blocks", "own", "successor", "threshold", "sent"),
    [
        ([1] * 10, 10, 0, 0, 5),
        ([1] * 11, 11, 0, 0, 6),  # the last one goes though it only swaps the two loads
        ([1] * 10, 5, 5, 0, 0),
        ([1] * 10, 5, 6, 0, 0),
        ([4, 4], 8, 4, 0, 1),
        ([4, 4], 8, 5, 0, 0),  # less than a block
        ([100, 1], 50, 0, 0, 0),  # the oldest goes first, or none
        ([1] * 10, 10, 0, 4, 3),  # 10:0, 9:1, 8:2, and 7:3 is not above 4
        ([], 50, 0, 0, 0),
    ],
)
def test_blocks_go_while_the_difference_is_as_large_as_one(
    blocks: list[int], own: int, successor: int, threshold: int, sent: int
) -> None:
    assert balancing(blocks, own, successor, threshold) == sent


@pytest.mark.parametrize("workers", [3, 6, 10])
@pytest.mark.parametrize("block", [1, 10])
def test_a_burst_at_the_head_evens_out(workers: int, block: int) -> None:
    loads = [100 * block] + [0] * (workers - 1)
    for _ in range(40 * workers):
        sent = [
            balancing([block] * (loads[place] // block), loads[place], loads[place + 1], 0) * block
            for place in range(workers - 1)
        ]
        for place, rows in enumerate(sent):
            loads[place] -= rows
            loads[place + 1] += rows
    average = sum(loads) / workers
    assert sum(loads) == 100 * block
    assert max(loads) - average <= (workers / 2 + 1) * block
    assert imbalance(loads) <= (workers / 2 + 1) * block / average


def test_the_automatic_block_is_half_of_a_fair_share() -> None:
    # The text's example: 200 a second for 10 s in 4 workers. Its own figure, 1000, leaves one of four workers empty.
    assert automatic_block(2000, 4) == 250
    assert automatic_block(0, 4) == automatic_block(9, 4) == 1
    assert automatic_block(10**9, 2) == 1 << 22  # a block is merged in memory


@pytest.mark.parametrize(
    ("file", "giver", "taker", "named"),
    [
        ("12-0.arrow", 0, 1, "../0/12-0.arrow"),
        ("../0/12-0.arrow", 3, 4, "../0/12-0.arrow"),
        ("../2/12-0.arrow", 3, 2, "12-0.arrow"),
    ],
)
def test_a_block_stays_in_the_folder_of_who_wrote_it(file: str, giver: int, taker: int, named: str) -> None:
    info = SegmentInfo(file, 4, 100, 0, 9, 9)
    taken = info.taken_over(giver, taker)
    assert taken.file == named
    assert taken.taken_over(taker, giver).file == file


def test_streams_are_idle_when_both_have_been_silent_for_the_time_out() -> None:
    def clock(seen_us: int) -> StreamClock:
        return StreamClock(5, 0, {"all": (0, seen_us)})

    assert not idle((StreamClock(), StreamClock()), IDLE_TIMEOUT_US)
    assert idle((clock(0), clock(1)), IDLE_TIMEOUT_US + 1)
    assert not idle((clock(0), clock(2)), IDLE_TIMEOUT_US + 1)


@pytest.mark.parametrize(
    ("knobs", "field"),
    [
        ({"workers": 0}, "workers"),
        ({"workers": 4097}, "workers"),
        ({"block": 0}, "block"),
        ({"block": "large"}, "block"),
        ({"block": True}, "block"),
        ({"balance": "yes"}, "balance"),
        ({"threshold": -1}, "threshold"),
        ({"cores": 3}, "cores"),
    ],
)
def test_wrong_knobs_are_named(knobs: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as raised:
        registry.build("handshake", knobs, plan(history(0), "equality", "20 us"), 2)
    assert raised.value.field == f"operator.{field}"


def test_knobs_have_defaults_by_slots() -> None:
    found = plan(history(0), "equality", "20 us")
    assert registry.build("handshake", {}, found, 3) == Handshake(3)
    knobs = {"workers": 5, "block": 9, "balance": False, "threshold": 2}
    assert registry.build("handshake", knobs, found, 3) == Handshake(5, 9, False, 2)


def test_fixed_shares_need_a_window() -> None:
    with pytest.raises(UnsupportedError, match="leave balance on, or add WITHIN"):
        registry.build("handshake", {"balance": False}, plan(history(0), "equality", "full history"), 2)
