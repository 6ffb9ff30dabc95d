"""The suite notices a wrong engine: each mutation makes at least one conformance case fail.

A check that cannot fail proves nothing. Two mutations more, about manifests of result snapshots, come with the stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from streamjoin.engine.router import Router
from streamjoin.engine.routing import PROBE, STORE, Route
from streamjoin.errors import StateError
from streamjoin.flow.punctuation import StreamClock
from streamjoin.index.chain import Chain
from streamjoin.index.segment import Segment
from streamjoin.operators.biclique import Biclique, Routing
from streamjoin.operators.handshake import Handshake
from streamjoin.operators.handshake.counted import CountedSegment
from streamjoin.operators.handshake.forwarding import outlived
from streamjoin.operators.handshake.step import ChainStep, Flow
from streamjoin.plan.window import R, S, TimeWindow

from . import check as suite
from .histories import history


def cases() -> Iterator[tuple[Any, ...]]:
    """A few of the cases that the conformance tests run."""
    for seed in range(4):
        for operator in (Biclique(2, 3), Biclique(3, 2, Routing.HASH)):
            shaped = history(seed, r=80, s=80, time_shape="gaps of w" if seed % 2 else "disordered", delay_us=40)
            yield operator, shaped, "equality", "20 us"


def chain_cases() -> Iterator[tuple[Any, ...]]:
    """The same for tuples that move: short chains and long ones, full blocks and short ones."""
    for seed, window in enumerate(("20 us", "full history", "7 rows")):
        for operator in (Handshake(3, 2), Handshake(5)):
            yield operator, history(seed, r=60, s=60), "equality", window


def caught(cases: Callable[[], Iterator[tuple[Any, ...]]] = cases) -> bool:
    """Whether any case fails."""
    for case in cases():
        try:
            suite.check(*case, batches=8, pieces=2, period_us=1 if case[3] == "20 us" else None)
        except (AssertionError, StateError):
            return True
    return False


@pytest.mark.slow
def test_the_engine_as_it_is_passes() -> None:
    assert not caught()
    assert not caught(chain_cases)


def test_a_dropped_pair_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Segment.probe
    dropped = []

    def probe(self: Segment, *args: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for rows, stored in real(self, *args):
            keep = slice(0 if dropped else 1, None)
            dropped.append(True)
            yield rows[keep], stored[keep]

    monkeypatch.setattr(Segment, "probe", probe)
    assert caught()


def test_a_pair_that_comes_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Segment.probe
    doubled = []

    def probe(self: Segment, *args: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for rows, stored in real(self, *args):
            yield rows, stored
            if not doubled:
                doubled.append(True)
                yield rows[:1], stored[:1]

    monkeypatch.setattr(Segment, "probe", probe)
    assert caught()


@pytest.mark.parametrize("end", [0, 1])
def test_a_window_wider_by_a_microsecond_is_caught(monkeypatch: pytest.MonkeyPatch, end: int) -> None:
    real = TimeWindow.bounds

    def bounds(self: TimeWindow, stored: int) -> tuple[int, int]:
        low, high = real(self, stored)
        return (low - 1, high) if end == 0 else (low, high + 1)

    monkeypatch.setattr(TimeWindow, "bounds", bounds)
    assert caught()


def test_a_swapped_punctuation_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Router.punctuate
    swapped = []

    def punctuate(self: Router, piece: Any) -> Iterator[Any]:
        for slot, sent, punctuation in real(self, piece):
            if len(swapped) < 20 and punctuation.ts_max_us is not None:
                # One router's news under the other stream's name.
                swapped.append(True)
                yield slot, sent, replace(punctuation, side=1 - punctuation.side, ts_max_us=punctuation.ts_max_us + 200)
            else:
                yield slot, sent, punctuation

    monkeypatch.setattr(Router, "punctuate", punctuate)
    assert caught()


def test_expiring_one_microsecond_early_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = StreamClock.advance

    def advance(self: StreamClock, punctuations: Any, delay_us: int, *given: Any, **more: Any) -> StreamClock:
        # The mark moves ahead of the allowed delay.
        return real(self, punctuations, delay_us - 41, *given, **more)

    monkeypatch.setattr(StreamClock, "advance", advance)
    assert caught()


def test_probing_one_unit_too_few_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Biclique.route

    def route(self: Biclique, side: int, tuples: Any) -> list[Route]:
        routes = real(self, side, tuples)
        return [replace(found, targets=found.targets[:-1]) if len(found.targets) > 2 else found for found in routes]

    monkeypatch.setattr(Biclique, "route", route)
    assert caught()


def test_storing_a_probe_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Biclique.route

    def route(self: Biclique, side: int, tuples: Any) -> list[Route]:
        def both(targets: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
            return tuple((unit, STORE | PROBE if role == STORE else role) for unit, role in targets) + (
                tuple(t for t in targets[:1])
            )

        return [replace(found, targets=both(found.targets)) for found in real(self, side, tuples)]

    monkeypatch.setattr(Biclique, "route", route)
    assert caught()


def test_a_block_lost_on_the_way_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Router.take
    lost = []

    def take(self: Router, *args: Any) -> Iterator[Any]:
        for routed in real(self, *args):
            if lost:
                yield routed
            lost.append(True)

    monkeypatch.setattr(Router, "take", take)
    assert caught()


def test_tuples_that_leave_the_chain_half_way_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ChainStep._send_on

    def send_on(self: ChainStep, side: int, flow: Flow, clocks: Any) -> None:
        past = outlived(self.plan, side, clocks, 1, 1)
        flow.closed = [segment for segment in flow.closed if not past(segment.info)]
        flow.open = [segment for segment in flow.open if not past(segment.info)]
        real(self, side, flow, clocks)

    monkeypatch.setattr(ChainStep, "_send_on", send_on)
    assert caught(chain_cases)


@pytest.mark.parametrize("visible", [{R, S}, set()], ids=["both", "none"])
def test_a_wrong_rule_for_tuples_that_cross_is_caught(monkeypatch: pytest.MonkeyPatch, visible: set[int]) -> None:
    real = ChainStep._probe

    def probe(self: ChainStep, chain: Chain, stored: int, *args: Any) -> Iterator[Any]:
        on_their_way = self.flows[stored].outgoing
        segments = [segment for segment in chain.segments if not any(segment is other for other in on_their_way)]
        return real(
            self, replace(chain, segments=segments + (on_their_way if stored in visible else [])), stored, *args
        )

    monkeypatch.setattr(ChainStep, "_probe", probe)
    assert caught(chain_cases)


def test_a_chain_that_is_not_drained_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Handshake, "drain_batches", 1)
    assert caught(chain_cases)


def test_a_count_window_by_one_sides_counts_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CountedSegment, "probe", Segment.probe)
    assert caught(chain_cases)
