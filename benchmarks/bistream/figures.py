"""The figures of BiStream's evaluation: what is run for each, and what of it is kept."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.bistream.feeds import FEEDS, Feed
from benchmarks.bistream.runs import Batch, Input, Setting, run

Q5, Q7, BAND = FEEDS
JM16, JM36, JB8, JB16, JB36 = (
    Setting(system, units) for system, units in (("JM", 16), ("JM", 36), ("JB", 8), ("JB", 16), ("JB", 36))
)
JB16_CR4, JB16_CR8 = Setting("JB", 16, 4), Setting("JB", 16, 8)
DISK_BYTES_PER_S = 100_000_000
"""What a unit beyond its memory reads of the rest in each batch; assumed, as of the paper's disks."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is run.

    Args:
        capacity: C, bytes that a unit may store.
        rows: of each stream in a batch.
        shapes: numbers of units, of matrices and of bicliques.
        seconds: the paper's windows of 3, 5 and 8 minutes, in these seconds.
        batches: of a run whose units are timed.
        steps: batches of a window.
    """

    capacity: int
    rows: int
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    seconds: tuple[float, ...]
    batches: int
    steps: int


FULL = Size(1 << 20, 10_000, ((4, 16, 36, 64), (4, 8, 16, 36, 64)), (3.0, 5.0, 8.0), 40, 25)
QUICK = Size(1 << 15, 500, ((4, 16), (4, 16)), (0.3,), 6, 5)

Point = dict[str, Any]


def volumes(size: Size) -> Iterator[Point]:
    """Tuples that are fed until the fullest unit has no room, full history; and what a unit stores of each tuple."""
    matrices, bicliques = size.shapes
    settings = [*(Setting("JM", units) for units in matrices), *(Setting("JB", units) for units in bicliques)]
    for feed in FEEDS:
        for setting in settings:
            yield {"feed": feed.name, "setting": setting.name, "units": setting.units, **_volume(feed, setting, size)}


def _volume(feed: Feed, setting: Setting, size: Size) -> Point:
    before = Batch(0, [0], 0, [], 0.0, 0)
    for batch in run(feed, setting, Input(1_000_000, size.rows)):
        if max(batch.stored) > size.capacity:
            share = (size.capacity - max(before.stored)) / (max(batch.stored) - max(before.stored))
            fed = before.fed + share * (batch.fed - before.fed)
            return {"fed": fed, "bytes": sum(batch.stored) / batch.fed}
        before = batch
    raise AssertionError("it never fills")


def over_time(size: Size) -> Iterator[Point]:
    """What a unit of JB16 stores on average, Q5, in windows, over three of them."""
    rate_per_s = 1.5 * size.rows
    for window_s in size.seconds:
        step_s = window_s / size.steps
        given = Input(3 * size.steps, round(rate_per_s * step_s), rate_per_s, window_s)
        stored = [statistics.mean(batch.stored) for batch in run(Q5, JB16, given)]
        yield {"window_s": window_s, "step_s": step_s, "stored": stored}


def windows(size: Size) -> Iterator[Point]:
    """The largest window with which no unit stores more than C: guessed, and run again with the guess corrected."""
    for feed, rate_per_s in ((Q5, 5_000.0), (Q7, 3_000.0)):
        for setting in (JB8, JB16, JB36, JM16, JM36):
            # JBx holds x half units of a tuple in each stream, JMx the root of that.
            alike = setting.units / 4 if setting.system == "JB" else setting.units**0.5 / 2
            window_s = alike * size.capacity / (40 * rate_per_s)
            for _ in range(2):
                fullest = _fullest(feed, setting, rate_per_s, window_s, size.steps)
                share, found_s = fullest / size.capacity, window_s
                window_s /= share
            yield {"feed": feed.name, "rate": rate_per_s, "setting": setting.name, "window_s": found_s, "share": share}


def _fullest(feed: Feed, setting: Setting, rate_per_s: float, window_s: float, steps: int) -> int:
    """What the fullest unit stores at most, over the second window."""
    given = Input(2 * steps, max(round(rate_per_s * window_s / steps), 1), rate_per_s, window_s)
    return max(max(batch.stored) for batch in list(run(feed, setting, given))[steps:])


def traffic(size: Size) -> Iterator[Point]:
    """Bytes that are routed for each tuple."""
    for feed in FEEDS:
        for setting in (JM16, JB8, Setting("JB", 8, 2), Setting("JB", 8, 4)):
            sent = [batch.sent for batch in run(feed, setting, Input(4, size.rows))]
            yield {"feed": feed.name, "setting": setting.name, "bytes": sum(sent) / (len(sent) * 2 * size.rows)}


def throughput(size: Size) -> Iterator[Point]:
    """Tuples a second while more and more is stored, all of it in memory, and with a disk behind a memory of C each."""
    for feed in FEEDS:
        for setting in (JM16, JB8, JB16, JB16_CR4, JB16_CR8):
            batches = list(run(feed, setting, Input(size.batches, 2 * size.rows)))
            yield {
                "feed": feed.name, "setting": setting.name,
                "fed": [batch.fed for batch in _thirds(batches)],
                "rate": [_rate(batches, at, None) for at in range(3)],
                "rate_by_disk": [_rate(batches, at, size.capacity) for at in range(3)],
            }  # fmt: skip


def _thirds(batches: Sequence[Batch]) -> list[Batch]:
    """The last batches of the first, second and last third."""
    return [batches[len(batches) * part // 3 - 1] for part in (1, 2, 3)]


def _rate(batches: Sequence[Batch], third: int, capacity: int | None) -> float:
    """Tuples a second of a batch in a third, by its slowest unit; the first batch compiles and does not count."""
    mine = batches[max(len(batches) * third // 3, 1) : len(batches) * (third + 1) // 3]
    tuples = batches[0].fed
    return tuples / statistics.median(max(_taken_s(batch, capacity)) for batch in mine)


def _taken_s(batch: Batch, capacity: int | None) -> list[float]:
    if capacity is None:
        return batch.seconds
    beyond = [max(stored - capacity, 0) / DISK_BYTES_PER_S for stored in batch.stored]
    return [seconds + more for seconds, more in zip(batch.seconds, beyond, strict=True)]


def latency(size: Size) -> Iterator[Point]:
    """Milliseconds until the slowest unit is done with a small batch: best, quartiles, worst."""
    for setting in (JM16, JB8, JB16, JB16_CR4, JB16_CR8):
        given = Input(5 * size.batches, max(size.rows // 10, 1))
        taken_ms = [1e3 * max(batch.seconds) for batch in list(run(Q5, setting, given))[size.batches :]]
        yield {
            "setting": setting.name,
            "ms": [min(taken_ms), *statistics.quantiles(taken_ms, n=4), max(taken_ms)],
        }


def aggregates(size: Size) -> Iterator[Point]:
    """Processor time with groups beside that without, and what travels between the phases; windows of five batches."""
    for feed in FEEDS:
        for setting in (JB16, JB16_CR4):
            given = Input(size.batches // 2, 2 * size.rows, 2.0 * size.rows, 5.0, 10 * size.rows)
            alone, grouped = (list(run(feed, setting, given, grouped=which))[1:] for which in (False, True))
            folded = {name: sum(one.folded[name] for one in grouped) for name in grouped[0].folded}
            yield {
                "feed": feed.name, "setting": setting.name, "pairs": sum(one.results for one in alone),
                "alone_s": sum(one.spent_s for one in alone), "grouped_s": sum(one.spent_s for one in grouped),
                "pair_bytes": folded["tuple_bytes"], "view_bytes": folded["view_bytes"],
            }  # fmt: skip


FIGURES: dict[str, Callable[[Size], Iterator[Point]]] = {
    "volumes": volumes, "over_time": over_time, "windows": windows, "traffic": traffic, "throughput": throughput,
    "latency": latency, "aggregates": aggregates,
}  # fmt: skip
