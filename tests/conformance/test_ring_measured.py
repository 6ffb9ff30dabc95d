"""A ring that measures what its steps take, by a clock that the test moves: more of it, and N* is another one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.operators.costs.watched import Watched
from streamjoin.spec.measured import MeasuredLog
from streamjoin.state.store import StateStore

from .test_ring import CHAIN, Run, record_batch, text_of

BATCHES, ROWS, TUPLES = 14, 8, 24


class Ticking:
    """A clock of which each look takes so long, in seconds."""

    def __init__(self, tick_s: float) -> None:
        self.now_s, self.tick_s = 0.0, tick_s

    def __call__(self) -> float:
        self.now_s += self.tick_s
        return self.now_s


class Measured(Run):
    """A job that measures and logs as a driver does."""

    def __init__(self, folder: Path, clock: Any, **knobs: Any) -> None:
        given = {"nodes": 2, "adaptive": True, "check_every": "0s", "confirmations": 1, "smoothing": 1.0,
                 "max_nodes": 6, **knobs}  # fmt: skip
        super().__init__(text_of(3, CHAIN, (30, 30, 30)), folder, **given)
        self.log, self.watched = MeasuredLog(), Watched()
        watching = self.loop.operators[0].watching
        assert watching is not None
        self.watching = watching
        self.loop.processor_s, self.loop.measured = clock, lambda batch: self.log.before(batch)

    def measured_batch(self, pieces: list[list[pa.RecordBatch]]) -> None:
        self.log = self.log.with_batch(self.loop.version, self.watched.known)
        self.batch(pieces)
        rounds = [[one.spent for one in self.loop.reports if len(one.late) == sides] for sides in (3, 1)]
        self.watched.add(self.watching.observed(rounds, [0.024], TUPLES))

    @property
    def told(self) -> dict[str, Any]:
        """What node 0 told in the last batch."""
        (told,) = [report.adapting for report in self.loop.reports if report.adapting]
        return told

    def manifest(self, unit: int = 0) -> bytes:
        """Of the next version, which the last attempt has left."""
        return (StateStore(self.folder, 0, sync=False).directory(unit) / f"{self.loop.version}.json").read_bytes()


def batches(count: int = BATCHES) -> Iterator[list[list[pa.RecordBatch]]]:
    """Rows of three streams that all have one key."""
    for batch in range(count):
        ids = range(batch * ROWS, (batch + 1) * ROWS)
        rows = [{"ts": 10 * batch + at, "id": number, "k": 1, "x": 0} for at, number in enumerate(ids)]
        yield [[record_batch(rows)]] * 3


def origins(told: dict[str, Any]) -> dict[str, str]:
    return {one["symbol"]: one["origin"] for one in told["model"]["times"]}


def test_slower_units_lead_to_another_number_of_nodes_than_what_is_assumed(tmp_path: Path) -> None:
    best, pair_us = {}, {}
    for name, tick_s, knobs in (("fast", 0.0, {}), ("slow", 0.2, {}), ("set", 0.2, {"pair_us": 0.016})):
        run = Measured(tmp_path / name, Ticking(tick_s), add_above=1.0, **knobs)
        for pieces in batches():
            run.measured_batch(pieces)
        best[name] = run.told["best"], run.told["model"]["times"][0]["origin"], run.found.total()
        pair_us[name] = run.told["model"]["times"][0]["us"]
        assert origins(run.told)["T_n"] == "measured"  # 24 ms for 24 rows, as is assumed
        (hop,) = [one["us"] for one in run.told["model"]["times"] if one["symbol"] == "T_n"]
        assert hop == pytest.approx(1000)
    # What a node found was handed on meanwhile, which is part of sending.
    assert any(report.spent["handed"][0] > 0 for report in run.loop.reports if len(report.late) == 3)
    assert best["fast"][:2] == (1, "assumed") and best["slow"][1] == "measured" and best["slow"][0] > 1
    assert best["set"][1] == "set" and pair_us["set"] == pytest.approx(0.016) and pair_us["slow"] > 100
    assert len({found for *_, found in best.values()}) == 1 and best["slow"][2] > 1000


def test_no_attempt_of_a_batch_writes_another_state_whatever_its_clock_says(tmp_path: Path) -> None:
    chosen, clock = random.Random(5), Ticking(0.2)
    run = Measured(tmp_path, clock)
    nodes = set()
    for pieces in batches():
        run.log = run.log.with_batch(run.loop.version, run.watched.known)
        left = []
        for tick_s in (3.0, 1e-9, chosen.uniform(0.01, 50.0)):
            clock.tick_s = tick_s
            run.loop.slots = chosen.randrange(1, 4)
            run.batch(pieces, commit=False)
            run.loop.version += 1
            left.append([run.manifest(unit) for unit in sorted({one.unit for one in run.loop.reports})])
            run.loop.version -= 1
            # What this attempt measured reached the driver, which asks again before the next one.
            rounds = [[one.spent for one in run.loop.reports if len(one.late) == sides] for sides in (3, 1)]
            run.watched.add(run.watching.observed(rounds, [chosen.random()], TUPLES))
        assert left[0] == left[1] == left[2]
        nodes.add(len(left[0]))
        clock.tick_s = 0.2
        run.batch(pieces)
    assert len(nodes) > 1, "the ring changed meanwhile"


def test_outliers_of_some_batches_change_nothing(tmp_path: Path) -> None:
    decided: dict[str, list[Any]] = {"calm": [], "wild": []}
    for name, wild in (("calm", {}), ("wild", {7: 50.0, 8: 5e6, 9: 0.0, 10: -1e3})):
        clock = Ticking(0.002)
        run = Measured(tmp_path / name, clock)
        for number, pieces in enumerate(batches()):
            clock.tick_s = wild.get(number, 0.002)
            run.measured_batch(pieces)
            decided[name].append((run.told["units"], run.told["best"]))
        assert origins(run.told)["T_j"] == "measured"
    assert decided["calm"] == decided["wild"]


def test_a_later_start_goes_on_with_what_was_measured(tmp_path: Path) -> None:
    run = Measured(tmp_path, Ticking(0.2))
    every = list(batches())
    for pieces in every[:10]:
        run.measured_batch(pieces)
    before, known = run.loop, MeasuredLog.from_text(run.log.to_text())
    again = Measured(tmp_path, Ticking(1e-9))
    again.loop.version, again.loop.positions = before.version, before.positions
    again.log, again.watched = known, Watched(dict(known.entries[-1][1]))
    again.measured_batch(every[10])
    assert again.told["model"]["times"][0] == run.told["model"]["times"][0]
    assert origins(again.told)["T_j"] == "measured"
