"""How the stored tuples of one side are laid out, and how tuples of the other side find them.

Rows of a segment are sorted by (cell, key). A probe names one cell and a range of keys:

    layout  cell                      key                          answers
    hash    equal keys share one      second range, else window    =            (BiStream: hash maps)
    grid    slice of the first band   second range                 two bands    (index the secondary predicate too)
    tree    all rows are in one       the range                    <, <=, bands (BiStream: balanced search trees)
    scan    all rows are in one       window                       anything

The answer is never too small. Conjuncts it does not settle exactly are in `recheck`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.errors import InputError
from streamjoin.index.kernels import is_sorted, radix_order
from streamjoin.index.keys import (
    WholeSpace,
    float_ranges,
    hash_key,
    is_exact,
    key_ranges,
    key_space,
    order_key,
    rounding_of,
)
from streamjoin.plan.evaluation import evaluate_carried
from streamjoin.plan.expression import Expression, columns_of
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.predicate import JoinPredicate, Range
from streamjoin.plan.rounds import RoundPlan
from streamjoin.plan.values import Columns
from streamjoin.plan.window import FullHistory, R, Window

INDEX_KINDS = ("auto", "hash", "tree", "scan")
"""What a user may ask for; `tree` is a grid where there are two bands to index."""

_EMPTY = np.zeros(0, np.int64)
_CELL_LIMIT = 2.0**40
"""Keys so many slices from zero share the last one: out there rounding is as wide as a slice, and a band could span
any number of them."""
_WIDEST_FLOAT_BAND = 1e290
"""Beyond it a finite key and its bound may lie at both ends of all floats, and so in any number of slices."""


@dataclass(frozen=True, slots=True)
class Probes:
    """Probes of one block, sorted by (cell, low); a row may stand for several probes, at most one a cell.

    Args:
        rows: row number in the block, int64 of shape (p,).
        cells, lows, highs: int64 of shape (p,), or empty where the layout has no cells or keys.
        coordinates: window coordinates, int64 of shape (p,), or empty without a window.
    """

    rows: np.ndarray
    cells: np.ndarray
    lows: np.ndarray
    highs: np.ndarray
    coordinates: np.ndarray


@dataclass(frozen=True, slots=True)
class Grid:
    """Slices of equal width over the keys of a band.

    Args:
        width: of a slice; in key steps where keys are whole numbers.
    """

    band: Range
    width: float | int

    def cells(self, values: pa.Array) -> np.ndarray:
        """The slice each of the stored `values` lies in, int64 of shape (n,)."""
        if isinstance(self.width, int):
            return order_key(values) // np.int64(self.width)
        return self._slices(values.cast(pa.float64()).fill_null(0.0).to_numpy())

    def met(self, values: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """(first, last) slice that the band of each probing value meets: at most five, whatever the values."""
        if isinstance(self.width, int):
            lows, highs = key_ranges(values, self.band)
            lows = np.minimum(lows, highs)  # an empty band meets any one slice: bands are checked again
            return lows // np.int64(self.width), highs // np.int64(self.width)
        first, last = float_ranges(values, self.band)
        assert first is not None and last is not None
        return self._slices(first), self._slices(last)

    def _slices(self, numbers: np.ndarray) -> np.ndarray:
        # NaN has infinity's slice: it is next to NaN alone, and the band is checked again.
        with np.errstate(over="ignore", invalid="ignore"):
            slices = np.nan_to_num(np.floor(numbers / self.width), nan=_CELL_LIMIT)
        return np.clip(slices, -_CELL_LIMIT, _CELL_LIMIT).astype(np.int64)


@dataclass(frozen=True, slots=True)
class IndexLayout:
    """The layout of the tuples stored on one side.

    Args:
        stored: the side, R or S, whose tuples are laid out.
        kind: hash, grid, tree or scan.
        equal: (stored, probing) expressions of every equality; only hash has any.
        grid: the slices of a grid.
        key: the range that keys answer, oriented as stored - probing; None where the window is the key, or nothing.
        window: the window of the join.
        window_is_key: rows of a cell are sorted by window coordinate, so that a probe touches only those inside.
        recheck: the conjuncts to evaluate again on found pairs.
    """

    stored: int
    kind: str
    equal: tuple[tuple[Expression, Expression], ...]
    grid: Grid | None
    key: Range | None
    window: Window
    window_is_key: bool
    recheck: tuple[Expression, ...]

    @property
    def has_cells(self) -> bool:
        """Whether rows lie in cells; otherwise all share one."""
        return bool(self.equal) or self.grid is not None

    @property
    def stored_reads(self) -> frozenset[tuple[str, str]]:
        """The columns that cells and keys of stored tuples are computed from."""
        expressions = [pair[0] for pair in self.equal]
        if self.grid:
            expressions.append(self.grid.band.keys[0])
        if self.key:
            expressions.append(self.key.keys[0])
        return frozenset(pair for expression in expressions for pair in columns_of(expression))

    def cells_of(self, columns: Columns, rows: int, face: int) -> np.ndarray:
        """Cells of rows by their equal keys; face 0 is the stored side's, 1 the probing side's."""
        values = [evaluate_carried(pair[face], columns, rows) for pair in self.equal]
        return equality_cells(values)

    def stored_cells(self, columns: Columns, rows: int) -> np.ndarray:
        """Cells of stored rows, int64 of shape (rows,); empty where there are none."""
        if self.equal:
            return self.cells_of(columns, rows, 0)
        return self.grid.cells(evaluate_carried(self.grid.band.keys[0], columns, rows)) if self.grid else _EMPTY

    def stored_keys(self, columns: Columns, rows: int) -> np.ndarray:
        """Keys of stored rows, int64 of shape (rows,); empty where there are none, or where the window is the key."""
        return order_key(evaluate_carried(self.key.keys[0], columns, rows)) if self.key else _EMPTY

    def arrange(
        self, columns: Columns, coordinates: np.ndarray, rows: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """How to store a block of `rows` rows.

        Returns:
            (order, cells, keys): row numbers sorted by (cell, key), then cells and keys in that order; either is
            empty where the layout has none, and keys are empty too where the window is the key.
        """
        cells, keys = self.stored_cells(columns, rows), self.stored_keys(columns, rows)
        order = sorted_by(cells, coordinates if self.window_is_key else keys, rows)
        return order, cells[order] if cells.size else _EMPTY, keys[order] if keys.size else _EMPTY

    def probes(self, columns: Columns, coordinates: np.ndarray, rows: int) -> Probes:
        """The probes of a block of the other side."""
        lows = highs = _EMPTY
        if self.key:
            values = evaluate_carried(self.key.keys[1], columns, rows)
            lows, highs = key_ranges(values, self.key)
        elif self.window_is_key:
            bounds = self.window.bounds(self.stored)
            assert bounds is not None
            lows, highs = coordinates + bounds[0], coordinates + bounds[1]
        numbers = np.arange(rows, dtype=np.int64)
        cells = _EMPTY
        if self.equal:
            cells = self.cells_of(columns, rows, 1)
        elif self.grid:
            values = evaluate_carried(self.grid.band.keys[1], columns, rows)
            first, last = self.grid.met(values)
            counts = last - first + 1
            numbers = np.repeat(numbers, counts)
            starts = np.cumsum(counts) - counts
            cells = first[numbers] + (np.arange(numbers.size) - starts[numbers])
            lows, highs = lows[numbers], highs[numbers]
        order = sorted_by(cells, lows, numbers.size)
        numbers = numbers[order]
        return Probes(
            numbers,
            cells[order] if cells.size else _EMPTY,
            lows[order] if lows.size else _EMPTY,
            highs[order] if highs.size else _EMPTY,
            coordinates[numbers] if coordinates.size else _EMPTY,
        )

    def __str__(self) -> str:
        key = f"{self.key.keys[0]}" if self.key else ""
        if self.equal:
            text = "hash of " + ", ".join(str(pair[0]) for pair in self.equal)
            return f"{text}, then {key}" if key else text
        if self.grid:
            return f"grid over {self.grid.band.keys[0]} and {key}"
        return f"tree over {key}" if key else "scan of the window"


def equality_cells(values: list[pa.Array]) -> np.ndarray:
    """One int64 for each row, equal for equal keys of either stream: the key itself where one fits, else a hash."""
    if len(values) == 1 and is_exact(values[0].type):
        return order_key(values[0])
    return hash_key(values)


def sorted_by(first: np.ndarray, second: np.ndarray, rows: int) -> np.ndarray:
    """Row numbers sorted by (first, second), int64 of shape (rows,) or empty; equal ones keep their order."""
    order = np.arange(rows, dtype=np.int64)
    for keys in (second, first):  # least significant first: the sort is stable
        if keys.size and not is_sorted(keys[order]):
            order = radix_order(keys, order)
    return order


def layout_of(query: JoinPlan, stored: int) -> IndexLayout:
    """How a query's tuples that are stored on side `stored` are laid out."""
    return choose_layout(query.predicate, query.window, stored, query.index)


def check_index(query: object) -> None:
    """Refuse an index that a join of a query cannot have, before anything is stored; what joins nothing has none.

    Raises:
        InputError: see `choose_layout`.
    """
    if isinstance(query, JoinPlan):
        layout_of(query, 0)
    if not isinstance(query, RoundPlan):
        return
    names = [steps[0].names[0] for steps in query.steps]
    for origin, order, steps in zip(names, query.orders, query.steps, strict=True):
        for met, step in zip(order, steps, strict=True):
            try:
                layout_of(step, 0)
            except InputError as wrong:
                raise InputError(
                    f"{wrong.message}, and {query.operator} joins what {origin} brings with {names[met]} without one; "
                    "leave it out, or write other orders",
                    field=wrong.field,
                ) from None


def choose_layout(predicate: JoinPredicate, window: Window, stored: int, wanted: str = "auto") -> IndexLayout:
    """The best layout for one side, as the table at the top says.

    Args:
        wanted: auto, or the index the user insists on.
    Raises:
        InputError: the wanted index cannot answer this predicate.
    """
    if wanted not in INDEX_KINDS:
        raise InputError(f'"{wanted}" is not a valid index; use {", ".join(INDEX_KINDS)}', field="operator.index")
    if wanted == "hash" and not predicate.equalities:
        raise InputError("a hash index needs an equality between the two streams", field="operator.index")
    if wanted == "tree" and not predicate.ranges and not predicate.equalities:
        raise InputError("a tree index needs a comparison between the two streams", field="operator.index")
    ranges = [found if stored == R else found.mirrored() for found in predicate.ranges]
    # Bands first: a slice beats a half. Sorting is stable, so the query's own order decides among equals.
    ranges.sort(key=lambda found: not found.is_band)
    windowed = not isinstance(window, FullHistory)
    equal: tuple[tuple[Expression, Expression], ...] = ()
    grid: Grid | None = None
    key: Range | None = None
    if wanted == "scan":
        kind = "scan"
    elif predicate.equalities and wanted != "tree":
        kind = "hash"
        equal = tuple((found.keys[stored], found.keys[1 - stored]) for found in predicate.equalities)
        key = next((found for found in ranges if found.is_band or not windowed), None)
    elif ranges or predicate.equalities:
        if wanted == "tree" and predicate.equalities:
            ranges = [_as_range(predicate, stored), *ranges]
        kind = "tree"
        key = ranges[0]
        if len(ranges) > 1 and (width := _slice_width(ranges[0])):
            kind, grid, key = "grid", Grid(ranges[0], width), ranges[1]
    else:
        kind = "scan"
    window_is_key = windowed and key is None
    return IndexLayout(stored, kind, equal, grid, key, window, window_is_key, _recheck(predicate, kind, key))


def _as_range(predicate: JoinPredicate, stored: int) -> Range:
    first = predicate.equalities[0]
    keys = (first.keys[stored], first.keys[1 - stored])
    exact = is_exact(keys[0].type) and not first.joins_null
    return Range(keys, Fraction(0), Fraction(0), False, False, exact, (first.source,))


def _slice_width(band: Range) -> float | int | None:
    """Half of the band, so that a probe meets three slices at the most; None where there is nothing to slice.

    Where sums round by more than the band is wide, as far as they do.
    """
    if band.low is None or band.high is None or band.low >= band.high:
        return None
    width = (band.high - band.low) / 2
    space = key_space(band.keys[0].type)
    if isinstance(space, WholeSpace):
        steps = max(int(width * space.units), 1)
        return steps if steps < 2**61 else None
    if not pa.types.is_floating(band.keys[0].type) or max(width, band.slack) >= _WIDEST_FLOAT_BAND:
        return None
    return max(float(width), 2 * rounding_of(band.slack))


def _recheck(predicate: JoinPredicate, kind: str, key: Range | None) -> tuple[Expression, ...]:
    settled: set[Expression] = set()
    if kind == "hash" and len(predicate.equalities) == 1:
        (only,) = predicate.equalities
        settled.update([only.source] if is_exact(only.keys[0].type) and not only.joins_null else ())
    if key is not None and key.exact and is_exact(key.keys[0].type):
        settled.update(key.sources)
    conditions = [found.source for found in predicate.equalities]
    conditions += [source for found in predicate.ranges for source in found.sources]
    return tuple(part for part in (*conditions, *predicate.residual) if part not in settled)


Predicates = Mapping[str, Callable[..., Any]]
