"""As-of joins among three streams of which one falls silent: rows come out even so, and all are right once it wakes.

Who wakes brings what is new, so nothing is late, and nested loops over whole streams say what there must be.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.engine import clocks
from streamjoin.engine.loop import Brought
from streamjoin.flow.punctuation import HEARTBEAT, Punctuation
from streamjoin.plan.stages import decided_stages
from streamjoin.plan.window import R

from .loops import loop_of
from .test_asof import COLUMNS, DISORDER_US
from .test_asof_stages import NAMES, QUERIES, SELECT, STREAMS, WITHIN, by, of, planned

IDLE_US = 5_000_000
BATCH_US = 12
FALLS_SILENT, WAKES, BATCHES = 6, 24, 34
WAITS_FOR = {
    "as-of first": "q", "pairs enriched": "q", "by the other's time": "q", "outer after it": "tqc", "twice": "qc",
}  # fmt: skip
"""Without which streams no row can be known: those that are looked up, and those of which rows may be unmatched."""


def histories(seed: int, silent: str) -> dict[str, list[pa.RecordBatch | None]]:
    """By stream, what each batch brings; None of a stream that has nothing."""
    chosen = random.Random(seed)
    found: dict[str, list[pa.RecordBatch | None]] = {name: [] for name in NAMES}
    for number in range(BATCHES):
        for name in NAMES:
            if name == silent and FALLS_SILENT <= number < WAKES:
                found[name].append(None)
                continue
            made = [
                {
                    "ts": BATCH_US * number + chosen.randrange(BATCH_US) - chosen.randrange(DISORDER_US),
                    "id": 100 * number + place, "k": chosen.choice([None, 0, 1, 2]), "sym": chosen.choice("abc"),
                    "x": Decimal(chosen.randrange(9)),
                }
                for place in range(3)
            ]  # fmt: skip
            found[name].append(pa.RecordBatch.from_pylist(made, COLUMNS))
    return found


def run(
    query: str, silent: str, folder: Path, *, idle: bool = True, operator: str = "matrix", repeated: bool = False
) -> tuple[list[Counter[Any]], Counter[Any]]:
    """The results of each batch, those of the end last; and what there must be of all."""
    asked, oracle = QUERIES[query]
    span, reaches_us = WITHIN["one each"]
    streams = {name: replace(stream, idle_us=IDLE_US if idle else None) for name, stream in STREAMS.items()}
    plan = planned(f"{SELECT} {asked} {span}", streams)
    brought = histories(sum(map(ord, query + silent)), silent)
    o = of(
        [
            pa.Table.from_batches([part for part in brought[name] if part is not None]).combine_chunks()
            for name in NAMES
        ],
        reaches_us,
    )
    loop = loop_of(plan, by(plan, operator), folder, units=3)
    drains = sum(one.drain_batches for one in loop.operators)
    drains += decided_stages(plan) + any(one.capabilities.waits for one in loop.operators)
    out = []
    for number in range(BATCHES + drains):
        clock_us = 1_000_000 * number
        parts = [brought[name][number] if number < BATCHES else None for name in plan.names]
        beat = Punctuation(R, HEARTBEAT, HEARTBEAT, 0, None, clock_us)
        pieces = [[] if part is None else [part] for part in parts]
        now = Brought(pieces, clock_us, drains=number >= BATCHES, begins=number == 0, passing=(beat,))
        if repeated:
            loop.slots = 1 + number % 3
            list(loop.batch(now))
            loop.slots = 2
        given: Counter[Any] = Counter()
        for _, part in loop.batch(now):
            given.update(zip(*(column.to_pylist() for column in part.columns), strict=True))
        out.append(given)
        loop.commit(now)
    return out, o.given(oracle(o))


@pytest.mark.parametrize("silent", NAMES)
@pytest.mark.parametrize("query", WAITS_FOR)
def test_rows_come_out_while_a_stream_is_silent_and_all_are_right(query: str, silent: str, tmp_path: Path) -> None:
    given, wanted = run(query, silent, tmp_path / "idle", repeated=silent == "q")
    assert sum(given, Counter()) == wanted and wanted.total() > 20
    waiting, same = run(query, silent, tmp_path / "waits", idle=False)
    assert sum(waiting, Counter()) == same == wanted
    if silent not in WAITS_FOR[query]:
        return
    # Nothing is left to come of what was there before, and its watermark is taken over five seconds later.
    early, meanwhile = (sum(sum(some[FALLS_SILENT + 4 : WAKES], Counter()).values()) for some in (given, waiting))
    assert early > 10
    assert early > 2 * meanwhile  # a row with a NULL key has no partner to wait for


def test_a_stream_that_is_never_idle_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "with_idle", lambda clocks, idle_us: tuple(clocks))
    with pytest.raises(AssertionError):
        test_rows_come_out_while_a_stream_is_silent_and_all_are_right("twice", "c", tmp_path)
