"""What every generated stream has in common: its rows are numbered, and row i depends on its number alone.

    rows(0, 100) == rows(0, 50) + rows(50, 100)

so a restarted, rescaled or parallel reader makes exactly the rows it needs, and nothing has to be remembered.
Event time follows the nominal rate and not the clock: it starts at 2026-01-01T00:00:00Z, and how fast rows are
really emitted is the reader's affair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from streamjoin.errors import InputError
from streamjoin.generate.counter import Ints
from streamjoin.plan.schema import EVENT_TIME_LIMIT_US

TIME = "ts"
"""The event-time column of every generated stream."""

TIMESTAMP = pa.timestamp("us", tz="UTC")

BASE_US = 1_767_225_600_000_000
"""Event time of row 0, 2026-01-01T00:00:00Z, in microseconds since 1970."""

NO_OPTIONS: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Option:
    """A number that shapes a stream; valid from `low` to `high`, both included, and whole where `whole` says so."""

    default: float
    low: float
    high: float
    whole: bool
    description: str

    def check(self, name: str, value: float) -> float:
        """`value`, if it is allowed.

        Raises:
            InputError: it is out of range, no number, or broken where a whole number is needed.
        """
        fits = isinstance(value, Real) and self.low <= value <= self.high
        if not fits or (self.whole and value != int(value)):
            kind = "whole number" if self.whole else "number"
            raise InputError(f'option "{name}" is {value!r}; it must be a {kind} from {self.low:g} to {self.high:g}')
        return value


@dataclass(frozen=True, slots=True)
class Request:
    """Rows `start`..`stop - 1` of one stream, with checked arguments; `options` names every option of the kind."""

    start: int
    stop: int
    seed: int
    rate: float
    options: Mapping[str, float]

    def numbers(self) -> Ints:
        """The row numbers, int64 of shape (stop - start,)."""
        return np.arange(self.start, self.stop, dtype=np.int64)

    def times_us(self, numbers: Ints) -> Ints:
        """Event time of the events with these numbers, in microseconds since 1970: floor(number * 10**6 / rate) on.

        Exact for whole rates and numbers below 9 * 10**9; beyond that the float64 quotient may round by its last
        bit. It never decreases.

        Raises:
            InputError: the rate is so low that a time leaves the range of event times.
        """
        with np.errstate(over="ignore"):
            elapsed_us = np.floor(numbers * 1e6 / self.rate)
        if len(elapsed_us) and elapsed_us.max() >= EVENT_TIME_LIMIT_US - BASE_US:
            raise InputError(
                f"at {self.rate:g} rows/s the event times of {self.stop} rows leave the supported range; "
                "raise the rate or ask for fewer rows",
                field="rate",
            )
        times_us: Ints = BASE_US + elapsed_us.astype(np.int64)
        return times_us


def timestamps(times_us: Ints) -> pa.Array:
    """Microseconds since 1970 as an event-time column."""
    return pa.array(times_us).cast(TIMESTAMP)


def _endless(options: Mapping[str, float]) -> int | None:
    return None


@dataclass(frozen=True, slots=True)
class Generator:
    """One kind of generated stream.

    Args:
        kind: its name, `workload.stream`, such as `band.r`.
        description: one line for people.
        schema: columns in order; the last is the event time.
        columns: makes the columns of a checked request, in the order of `schema`.
        known_options: the options it takes, by name.
        count: rows there are with these (checked) options; None where the stream has no end.
        time: its event-time column.
        disorder_us: no row's event time lies further than this behind a row before it; 0 is in order.
        share: rows for each of the events that the rate counts, on average; by it streams of one workload keep step.
    """

    kind: str
    description: str
    schema: pa.Schema
    columns: Callable[[Request], Sequence[pa.Array]]
    known_options: Mapping[str, Option] = field(default_factory=dict)
    count: Callable[[Mapping[str, float]], int | None] = _endless
    time: str = TIME
    disorder_us: int = 0
    share: float = 1.0

    @property
    def defaults(self) -> dict[str, float]:
        """What each option is when it is not given; empty for a kind without options."""
        return {name: option.default for name, option in self.known_options.items()}

    def rows(
        self, start: int, stop: int, *, seed: int, rate: float, options: Mapping[str, float] = NO_OPTIONS
    ) -> pa.RecordBatch:
        """Rows number `start`..`stop - 1`; row i is a function of (i, seed, rate, options) alone.

        Args:
            seed: other seeds give independent values; event times follow the rate only, unless the kind says so.
            rate: nominal rows per second of event time, greater than 0 (nexmark: events of all three streams;
                tpch.lineitem: orders).
        Raises:
            InputError: an option is unknown or out of range, the rate is no positive number, the rows are not
                0 <= start <= stop, or the stream ends before `stop`.
        """
        checked = self.check_options(options)
        if not (math.isfinite(rate) and rate > 0):
            raise InputError(f"the rate is {rate!r}; it must be a number of rows/s greater than 0", field="rate")
        if not 0 <= start <= stop:
            raise InputError(f"{self.kind} has no rows {start} to {stop}; rows count from 0 upwards")
        end = self.count(checked)
        if end is not None and stop > end:
            raise InputError(f"{self.kind} ends after {end} rows with these options, row {stop - 1} does not exist")
        request = Request(start, stop, seed, rate, checked)
        return pa.RecordBatch.from_arrays(list(self.columns(request)), schema=self.schema)

    def length(self, options: Mapping[str, float] = NO_OPTIONS) -> int | None:
        """Rows there are with these options; None: the stream has no end.

        Raises:
            InputError: as in `rows`.
        """
        return self.count(self.check_options(options))

    def check_options(self, options: Mapping[str, float]) -> dict[str, float]:
        """All options of this kind: those given, else their defaults.

        Raises:
            InputError: one is unknown or out of range.
        """
        for name in options:
            if name not in self.known_options:
                known = f"options are {', '.join(self.known_options)}" if self.known_options else "it has no options"
                raise InputError(f'{self.kind} has no option "{name}"; {known}')
        return self.defaults | {name: self.known_options[name].check(name, options[name]) for name in options}
