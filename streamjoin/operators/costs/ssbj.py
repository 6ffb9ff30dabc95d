"""SSBJ's formulas (DAPD 2019, section 3.2), for itself and for MESHJOIN: which rate a memory allows, and the reverse.

Symbols (table 1): M memory in bytes, mu the tuples joined a second, lambda those that come, w_N and w_S tuples a step
through the cache and through the waiting tuples, v_S, v_R and v_P bytes of a tuple, a row and a queue's pointer, b rows
of the disk buffer, h_R rows of the cache, R_t rows of the relation, f the fudge factor of both tables, k = R_t / b.

MESHJOIN is SSBJ without a cache: h_R, w_N and c_B are 0. Equation 6 adds bytes and divides them by seconds where it
means tuples, so it is not here. Equation 2 has one match a tuple and moves every row that is read; here both can be
told. Which values are cached follows from theorem 1, and from that the rate before anything has run: a round takes A
tuples, p_j A of them have value j, and it is cached if its m_j rows take less memory than these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from streamjoin.errors import InputError
from streamjoin.operators.costs.keys import Keys

_HALVINGS = 60
_BUFFERS = 60
_NS = 1e-9
_ENDLESS = 1e18


@dataclass(frozen=True, slots=True)
class Bytes:
    """What things take in memory.

    Args:
        tuple, row, pointer: v_S, v_R and v_P.
        entry: of a cached value beside its rows; the paper calls it negligible, and with small tuples it is not.
        fudge: f, what a hash table takes for a byte that it holds.
    """

    tuple: float
    row: float
    pointer: float = 0.0
    entry: float = 0.0
    fudge: float = 1.0

    @property
    def waiting(self) -> float:
        """Of one tuple that waits, with its pointer."""
        return self.pointer + self.fudge * self.tuple


@dataclass(frozen=True, slots=True)
class StepTimes:
    """What single steps take, in ns (table 1).

    Args:
        seek, read: of c_IO(b) = seek + b read.
        look_up: c_H, of one tuple or row in either table.
        output: c_O, of one result.
        switch: c_B, of one row into the cache.
        remove, take, append: c_E, c_S and c_A, of one tuple.
        meet, search: of a chunk that waits with the part that is read, and of each of its tuples. The paper probes rows
            of the relation in one table of all tuples, so it has none; where chunks are merged with parts they count.
    """

    seek: float
    read: float
    look_up: float
    output: float
    take: float
    append: float
    remove: float
    switch: float = 0.0
    meet: float = 0.0
    search: float = 0.0

    def reading(self, buffer_rows: float) -> float:
        """c_IO(b) and the look-ups of the b rows."""
        return self.seek + buffer_rows * (self.read + self.look_up)

    def hit(self, matches: float) -> float:
        """A tuple that the cache joins."""
        return self.take + self.look_up + matches * self.output

    def miss(self, matches: float) -> float:
        """A tuple that waits."""
        return self.remove + self.take + self.append + matches * self.output

    def of_units(self, units: int) -> StepTimes:
        """The same where so many units do each step, one after the other, with their shares of rows and tuples."""
        return replace(self, seek=units * self.seek, meet=units * self.meet)

    def meeting(self, chunk: float, parts: float) -> float:
        """Chunks of so many tuples, as many as there are parts, with one part."""
        return parts * (self.meet + chunk * self.search)


@dataclass(frozen=True, slots=True)
class Balance:
    """A join in its steady state.

    Args:
        memory_bytes: M.
        rate_per_s: mu.
        buffer_rows: b.
        round_tuples: A, the tuples that come in during a round; infinite where nothing waits and nothing is read.
        hits, misses: w_N and w_S, of a step.
        cached_share: P, the share of tuples that the cache joins.
        cached_rows: h_R.
        cached_values: how many values are cached, with rows or without.
    """

    memory_bytes: float
    rate_per_s: float
    buffer_rows: float
    round_tuples: float
    hits: float = 0.0
    misses: float = 0.0
    cached_share: float = 0.0
    cached_rows: float = 0.0
    cached_values: float = 0.0


def memory_bytes(sizes: Bytes, relation_rows: float, buffer_rows: float, cached_rows: float, misses: float) -> float:
    """(1) M, without the entries of cached values."""
    waiting = misses * (relation_rows / buffer_rows) * sizes.waiting
    return (buffer_rows + cached_rows * sizes.fudge) * sizes.row + waiting


def step_s(
    times: StepTimes, buffer_rows: float, hits: float, misses: float, matches: float = 1.0, moved: float = 1.0
) -> float:
    """(2) c_loop.

    Args:
        matches: results of a tuple.
        moved: the share of the rows read that go to the cache.
    """
    rows = times.reading(buffer_rows) + buffer_rows * times.switch * moved
    return _NS * (rows + hits * times.hit(matches) + misses * times.miss(matches))


def rate_per_s(hits: float, misses: float, step: float) -> float:
    """(3) mu."""
    return (hits + misses) / step


@dataclass(frozen=True, slots=True)
class Join:
    """A stream and a relation to be joined.

    Args:
        relation_rows: R_t.
        keys: of the stream and the relation; `meshjoin` needs only how many rows a tuple meets.
    """

    sizes: Bytes
    times: StepTimes
    relation_rows: float
    keys: Keys

    def cached(self, round_tuples: float) -> np.ndarray:
        """Theorem 1: the classes of values whose rows take less memory than their tuples of a round, bool (n,).

        Without bytes for entries it is the paper's, so values without a row are cached for nothing, and pointers do not
        count; with them it counts all that is there.
        """
        sizes, keys = self.sizes, self.keys
        if not sizes.entry:
            return np.asarray(keys.rows * sizes.row < keys.shares * round_tuples * sizes.tuple)
        kept = sizes.entry + keys.rows * sizes.row * sizes.fudge
        return np.asarray(kept < keys.shares * round_tuples * sizes.waiting)

    def balance(self, round_tuples: float, buffer_rows: float, *, caches: bool) -> Balance:
        """What a round of so many tuples takes, in memory and time.

        Args:
            caches: SSBJ, and not MESHJOIN.
        """
        sizes, keys = self.sizes, self.keys
        which = self.cached(round_tuples) if caches else np.zeros(keys.rows.size, bool)
        values = keys.values[which]
        share = min(float((values * keys.shares[which]).sum()), 1.0)
        rows, entries = float((values * keys.rows[which]).sum()), float(values.sum())
        in_step = round_tuples * buffer_rows / self.relation_rows
        hits, misses = in_step * share, in_step * (1 - share)
        memory = memory_bytes(sizes, self.relation_rows, buffer_rows, rows, misses) + entries * sizes.entry
        step = step_s(self.times, buffer_rows, hits, misses, keys.matches, 0.0)  # at rest no row moves
        step += _NS * self.times.meeting(misses, self.relation_rows / buffer_rows)
        rate = rate_per_s(hits, misses, step)
        return Balance(memory, rate, buffer_rows, round_tuples, hits, misses, share, rows, entries)

    def in_memory(self) -> Balance:
        """Theorem 3: all that the stream asks for is cached, so nothing waits and nothing is read any more."""
        sizes, keys = self.sizes, self.keys
        asked = keys.shares > 0
        rows, entries = float((keys.values * keys.rows)[asked].sum()), float(keys.values[asked].sum())
        memory = rows * sizes.row * sizes.fudge + entries * sizes.entry
        rate = 1 / (_NS * self.times.hit(keys.matches))
        return Balance(memory, rate, 0.0, math.inf, 0.0, 0.0, 1.0, rows, entries)

    def least_memory_bytes(self, buffer_rows: float | None = None) -> float:
        """What it takes to join anything: the buffer, and a tuple a step.

        Args:
            buffer_rows: None for those that need least.
        """
        if buffer_rows is None:
            buffer_rows = math.sqrt(self.relation_rows * self.sizes.waiting / self.sizes.row)
            buffer_rows = min(max(buffer_rows, 1.0), self.relation_rows)
        return memory_bytes(self.sizes, self.relation_rows, buffer_rows, 0.0, 1.0)

    def best_buffer_rows(self, memory: float) -> float:
        """The b with which MESHJOIN is fastest in a memory: w(b) (1) over c_loop (2) has one maximum.

        Its place does not depend on what is done with a tuple.
        """
        seek, each = self.times.seek, self.times.read + self.times.look_up
        most = memory / self.sizes.row
        best = most / 2 if not each else seek / each * (math.sqrt(1 + each * most / seek) - 1) if seek else 1.0
        return min(max(best, 1.0), self.relation_rows)

    def given_memory(self, memory: float, buffer_rows: float | None = None, *, caches: bool) -> Balance:
        """The highest rate in a memory.

        Args:
            buffer_rows: b; None for the best.
        Raises:
            InputError: the memory is too small; says the least.
        """
        if memory < (least := self.least_memory_bytes(buffer_rows)):
            raise InputError(
                f"a memory of {memory:,.0f} bytes has no room for a part of the relation and the tuples that wait for "
                f"it; give at least {math.ceil(least):,} bytes"
            )
        if caches and (whole := self.in_memory()).memory_bytes <= memory:
            return whole
        if buffer_rows is not None:
            return self._filling(memory, buffer_rows, caches=caches)
        if not caches:
            return self._filling(memory, self.best_buffer_rows(memory), caches=False)
        return _best(self._buffers(memory), lambda rows: self._filling(memory, rows, caches=True), _by_rate)

    def highest_rate_per_s(self, buffer_rows: float | None = None, *, caches: bool) -> float:
        """The rate that no memory exceeds: everything is cached, or a reading is shared by ever more tuples."""
        if caches:
            return self.in_memory().rate_per_s
        parts = 1.0 if buffer_rows is None else self.relation_rows / buffer_rows
        return 1 / (_NS * (self.times.miss(self.keys.matches) + parts * self.times.search))

    def given_rate(self, rate: float, buffer_rows: float | None = None, *, caches: bool) -> Balance:
        """The least memory in which a rate is reached (5).

        Args:
            buffer_rows: b; None for the one with the least memory.
        Raises:
            InputError: no memory is enough; says the highest rate.
        """
        ends = self.highest_rate_per_s(buffer_rows, caches=caches)
        if rate >= ends:
            raise InputError(f"no memory lets {rate:,.0f} tuples/s through; at most {ends:,.0f} are joined")
        found = [self._reaching(rate, buffer_rows, caches=caches)] if buffer_rows is not None else []
        if buffer_rows is None:
            buffers = np.geomspace(1.0, self.relation_rows, _BUFFERS)
            found = [_best(buffers, lambda rows: self._reaching(rate, rows, caches=caches), _by_memory)]
        if caches:
            found.append(self.in_memory())
        return min(found, key=lambda one: one.memory_bytes)

    def _buffers(self, memory: float) -> np.ndarray:
        most = min(memory / self.sizes.row, self.relation_rows)
        buffers = np.geomspace(1.0, most, _BUFFERS)
        return buffers[[self.least_memory_bytes(rows) <= memory for rows in buffers]]

    def _filling(self, memory: float, buffer_rows: float, *, caches: bool) -> Balance:
        """The longest round whose tuples and cache fit."""
        low = (memory - buffer_rows * self.sizes.row) / self.sizes.waiting
        if not caches:
            return self.balance(low, buffer_rows, caches=False)
        high = low
        while high < _ENDLESS and self.balance(high, buffer_rows, caches=True).memory_bytes <= memory:
            high *= 2
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if self.balance(middle, buffer_rows, caches=True).memory_bytes <= memory:
                low = middle
            else:
                high = middle
        return self.balance(low, buffer_rows, caches=True)

    def _reaching(self, rate: float, buffer_rows: float, *, caches: bool) -> Balance:
        """The shortest round at whose rate all are joined that come; longer ones share a reading among more tuples."""
        low, high = 0.0, 1.0
        while high < _ENDLESS and self.balance(high, buffer_rows, caches=caches).rate_per_s < rate:
            high *= 2
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if self.balance(middle, buffer_rows, caches=caches).rate_per_s < rate:
                low = middle
            else:
                high = middle
        return self.balance(high, buffer_rows, caches=caches)


def _by_rate(found: Balance) -> float:
    return found.rate_per_s


def _by_memory(found: Balance) -> float:
    return -found.memory_bytes


def _best(buffers: np.ndarray, at: Callable[[float], Balance], worth: Callable[[Balance], float]) -> Balance:
    """The best of some buffers."""
    return max((at(float(rows)) for rows in buffers), key=worth)
