"""How the rate of a join grows with its slots: what each tuple costs, over as many cores as there are slots.

    a batch takes  fixed + (tuples around + copies between processes + their work) / slots
    their work     tuples route + copies send + stored store + probes probe + units unit

A layout says how many copies, stored tuples and probes there are for each tuple that comes, by BiStream's and
SplitJoin's own counts; the times are measured (`python -m benchmarks --only scale`). To store and to probe takes longer
where a unit has more keys than a core's cache holds, so many small units do the same work faster than few large ones.
It takes work to be even: hot keys make a job slower than this.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

NEAR_TUPLES = 1 << 16
"""So many keys of 8 bytes are in the cache of one core (512 KiB). Where they are more, nearly each look misses it."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What becomes of a tuple, on the mean of both streams, with as many slots as `slots`.

    Args:
        units: of all slots together.
        sent: to how many slots it goes. Units of one slot get it once.
        stored: in how many units it is stored.
        probes: in how many units it looks for partners.
        both: a unit stores tuples of both streams.
    """

    name: str
    slots: int
    units: int
    sent: float
    stored: float
    probes: float
    both: bool = False

    def of_unit(self, tuples: float) -> float:
        """How many tuples of a stream one unit stores, of so many of both."""
        return tuples * self.stored / self.units / (2 if self.both else 1)


def hash_layout(slots: int) -> Layout:
    """Biclique, a unit of each stream a slot: both units of a key are in the same one."""
    return Layout("hash", slots, 2 * slots, 1.0, 1.0, 1.0)


def contrand_layout(slots: int) -> Layout:
    """The same in subgroups, as many of each stream as the root of the slots says."""
    groups = max(math.isqrt(slots), 1)
    # Subgroups differ by one in size, and each gets as many keys.
    return Layout("contrand", slots, 2 * slots, slots / groups, 1.0, slots / groups)


def random_layout(slots: int) -> Layout:
    """The same without subgroups: every tuple probes all units of the other stream."""
    return Layout("random", slots, 2 * slots, float(slots), 1.0, float(slots))


def matrix_layout(slots: int) -> Layout:
    """A matrix with a cell a slot, as near to a square as its rows and columns divide the slots."""
    rows, columns = sides(slots)
    copies = (rows + columns) / 2
    return Layout("matrix", slots, slots, copies, copies, copies, both=True)


def splitjoin_layout(slots: int) -> Layout:
    """A core a slot, of which each gets all tuples."""
    return Layout("splitjoin", slots, slots, float(slots), 1.0, float(slots), both=True)


LAYOUTS = (hash_layout, contrand_layout, random_layout, matrix_layout, splitjoin_layout)


def sides(slots: int) -> tuple[int, int]:
    """Rows and columns of a matrix with so many cells; rows are the fewer."""
    rows = next(rows for rows in range(math.isqrt(slots), 0, -1) if slots % rows == 0)
    return rows, slots // rows


@dataclass(frozen=True, slots=True)
class StepCosts:
    """What steps take on one core.

    Args:
        route_ns: to take a tuple in and give its results, whatever the layout.
        send_ns: a copy of it on its way.
        store_ns, far_store_ns: to store a copy, until it is let go; and how much longer where the unit's part of the
            batch is larger than the cache.
        probe_ns, far_probe_ns: to look for its partners in what one unit stores; and how much longer where that is
            larger than the cache.
        unit_us: a unit's batch, whatever comes to it.
    """

    route_ns: float
    send_ns: float
    store_ns: float
    far_store_ns: float
    probe_ns: float
    far_probe_ns: float
    unit_us: float

    def seconds(self, layout: Layout, tuples: float, live: float) -> dict[str, float]:
        """Processor time of all slots for a batch, by what it goes to.

        Args:
            tuples: of both streams in the batch.
            live: of both streams, that a batch finds.
        """
        store_ns = self.store_ns + self.far_store_ns * is_far(layout.of_unit(tuples))
        probe_ns = self.probe_ns + self.far_probe_ns * is_far(layout.of_unit(live))
        each = {"routing": self.route_ns, "sending": self.send_ns * layout.sent,
                "storing": store_ns * layout.stored, "probing": probe_ns * layout.probes}  # fmt: skip
        return {what: ns * tuples * 1e-9 for what, ns in each.items()} | {"units": self.unit_us * layout.units * 1e-6}


def is_far(tuples: float) -> bool:
    """Whether the keys of so many tuples do not fit the cache."""
    return tuples > NEAR_TUPLES


@dataclass(frozen=True, slots=True)
class Around:
    """What is around the join.

    Args:
        batch_ms: a batch, whatever comes: it is planned, its tasks are started, it is committed.
        tuple_ns: a tuple, read from its file and on its way between processes, in the time of a slot.
        copy_ns: another copy of it on such a way.
    """

    batch_ms: float
    tuple_ns: float
    copy_ns: float


@dataclass(frozen=True, slots=True)
class Predicted:
    """A job of some slots.

    Args:
        seconds: of a batch, by what they go to, once all slots share what can be shared.
        sent_bytes_per_s: what one slot gets.
        stored_bytes: in one slot.
    """

    rate_per_s: float
    seconds: dict[str, float]
    sent_bytes_per_s: float
    stored_bytes: float

    @property
    def most(self) -> str:
        """What most of a batch goes to."""
        return max(self.seconds, key=self.seconds.__getitem__)


def predicted(
    costs: StepCosts, around: Around, layout: Layout, tuples: float, live: float, *, sent_bytes: float = 0.0,
    live_bytes: float = 0.0,
) -> Predicted:  # fmt: skip
    """A job whose batches have so many tuples of both streams.

    Args:
        live: tuples of both streams that a batch finds.
        sent_bytes: of one tuple on its way.
        live_bytes: what all live tuples take where each is stored once.
    """
    work = {"reading": around.tuple_ns * tuples * 1e-9, **costs.seconds(layout, tuples, live)}
    work["sending"] += around.copy_ns * (layout.sent - 1) * tuples * 1e-9
    seconds = {
        "the batch itself": around.batch_ms * 1e-3, **{what: all_s / layout.slots for what, all_s in work.items()}
    }  # fmt: skip
    rate = tuples / sum(seconds.values())
    sent = rate * layout.sent * sent_bytes / layout.slots
    return Predicted(rate, seconds, sent, live_bytes * layout.stored / layout.slots)
