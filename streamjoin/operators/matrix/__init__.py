"""The join-matrix, BiStream's baseline (section 2): R by rows, S by columns, every pair meets in one cell."""

from __future__ import annotations

from dataclasses import dataclass

from streamjoin.engine.operator import Operator
from streamjoin.engine.routing import PROBE, STORE, Route, Tuples, UnitSpec, split, unit_of
from streamjoin.errors import InputError
from streamjoin.plan.window import R, S


@dataclass(frozen=True)
class Matrix(Operator):
    """rows x columns cells.

    A tuple of R goes to one row at random, and is stored and joined in all its cells; a tuple of S likewise to one
    column. So R is kept `columns` times and S `rows` times, and a pair meets in exactly one cell.
    """

    rows: int
    columns: int
    name: str = "matrix"

    def __post_init__(self) -> None:
        for field in ("rows", "columns"):
            if getattr(self, field) < 1:
                raise InputError(f"a matrix has at least one of its {field}", field=f"operator.{field}")

    def __str__(self) -> str:
        return f"{self.rows} rows for R and {self.columns} columns for S"

    def cell(self, row: int, column: int) -> int:
        """The unit number of a cell."""
        return row * self.columns + column

    @property
    def units(self) -> tuple[UnitSpec, ...]:
        """All cells, row by row. Late tuples count in the first cell of their row or column."""
        return tuple(
            UnitSpec(
                self.cell(row, column),
                f"cell {row},{column}",
                (R, S),
                tuple(side for side, first in ((R, column == 0), (S, row == 0)) if first),
            )
            for row in range(self.rows)
            for column in range(self.columns)
        )

    def route(self, side: int, tuples: Tuples) -> list[Route]:
        """A row's cells for each tuple of R, a column's for each of S."""
        lines = self.rows if side == R else self.columns
        line = unit_of(tuples.identity, lines)
        routes = []
        for code, rows in split(line):
            cells = (
                [self.cell(code, column) for column in range(self.columns)]
                if side == R
                else [self.cell(row, code) for row in range(self.rows)]
            )
            routes.append(Route(rows, tuple((cell, STORE | PROBE) for cell in cells)))
        return routes
