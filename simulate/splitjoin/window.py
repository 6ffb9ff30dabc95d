"""The sub-windows: how a region's stored tuples expire, without any message that says so."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from simulate.splitjoin.messages import Arrival


class Stored(NamedTuple):
    """A tuple and its rank: how many of its stream the region had seen before it."""

    rank: int
    tuple: Arrival


class SubWindow(Protocol):
    """The part of one stream's window that one region holds."""

    expired: int

    def __len__(self) -> int:
        """Stored tuples."""

    def store(self, stored: Stored) -> None:
        """Put in the newest."""

    def pass_by(self, tuple_: Arrival) -> None:
        """A tuple of the stored stream was seen; another region may have stored it."""

    def live(self, seen: int, tuple_: Arrival) -> list[Stored]:
        """What a tuple of the other stream is compared with, oldest first, when `seen` of this one were seen."""


class Window(Protocol):
    """What the join asks for."""

    by_time: bool

    def sub_window(self, cores: int, run: int) -> SubWindow:
        """An empty one for one of `cores` regions that store in runs of `run` tuples."""


class Ring:
    """The newest tuple overwrites the oldest when the ring is full: the passive way.

    A ring must hold as many tuples as a region can have among any W in a row. Where k does not divide W, or with runs,
    all rings together then hold more than W, so that a stored tuple's rank is looked at before it is compared.
    """

    def __init__(self, rows: int, cores: int, run: int) -> None:
        self.expired = 0
        self._rows = rows
        self._capacity = rows // (cores * run) * run + min(run, rows % (cores * run))
        self._stored: deque[Stored] = deque()

    def __len__(self) -> int:
        return len(self._stored)

    def store(self, stored: Stored) -> None:
        """See `SubWindow`."""
        if len(self._stored) == self._capacity:
            self._stored.popleft()
            self.expired += 1
        self._stored.append(stored)

    def pass_by(self, tuple_: Arrival) -> None:
        """See `SubWindow`."""

    def live(self, seen: int, tuple_: Arrival) -> list[Stored]:
        """See `SubWindow`."""
        return [stored for stored in self._stored if stored.rank >= seen - self._rows]


class Aged:
    """Just before a tuple with time t is compared, stored ones with t - t_i > length go: the active way (Algorithm 4).

    From the oldest on, up to the first that stays. The paper prints the difference with the opposite sign.
    """

    def __init__(self, length_us: int, expire_on_own: bool) -> None:
        self.expired = 0
        self._length_us = length_us
        self._expire_on_own = expire_on_own
        self._stored: deque[Stored] = deque()

    def __len__(self) -> int:
        return len(self._stored)

    def store(self, stored: Stored) -> None:
        """See `SubWindow`."""
        self._stored.append(stored)

    def pass_by(self, tuple_: Arrival) -> None:
        """See `SubWindow`."""
        if self._expire_on_own:
            self._expire(tuple_)

    def live(self, seen: int, tuple_: Arrival) -> list[Stored]:
        """See `SubWindow`."""
        self._expire(tuple_)
        return list(self._stored)

    def _expire(self, tuple_: Arrival) -> None:
        while self._stored and self._age_us(self._stored[0].tuple, tuple_) > self._length_us:
            self._stored.popleft()
            self.expired += 1

    @staticmethod
    def _age_us(stored: Arrival, new: Arrival) -> int:
        assert stored.time_us is not None and new.time_us is not None
        return new.time_us - stored.time_us


@dataclass(frozen=True, slots=True)
class CountWindow:
    """The last `rows` tuples of each stream."""

    rows: int
    by_time = False

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise ValueError("a window of no rows joins nothing")

    def sub_window(self, cores: int, run: int) -> SubWindow:
        """See `Window`."""
        return Ring(self.rows, cores, run)


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """Tuples at most `length_us` older than the new one.

    Args:
        expire_on_own: tuples of the stored stream are a clock too. Times never fall over both streams, so no later
            tuple can want what they expire. The paper does not do so: there a silent opposite stream stops expiry.
    """

    length_us: int
    expire_on_own: bool = False
    by_time = True

    def sub_window(self, cores: int, run: int) -> SubWindow:
        """See `Window`."""
        return Aged(self.length_us, self.expire_on_own)
