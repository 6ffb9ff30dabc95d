"""From matched row numbers to result rows: check again what the index left open, then select."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from streamjoin.flow.block import TS, Block
from streamjoin.index.layout import layout_of
from streamjoin.index.segment import Segment
from streamjoin.index.view import NUMBER
from streamjoin.plan.evaluation import evaluate, filter_mask
from streamjoin.plan.expression import Column, columns_of, conjunction
from streamjoin.plan.join import JoinPlan

ROWS_A_BATCH = 1 << 16
"""Result rows are handed on in batches of about this size, however few a segment gives."""


class Emitter:
    """Collects the pairs of one probing block with segments, and gives result batches of a useful size.

    Args:
        numbers: sequence numbers of the probing tuples, where results will be ordered.
    """

    def __init__(self, plan: JoinPlan, stored: int, probing: Block, numbers: np.ndarray | None = None) -> None:
        self.plan = plan
        self.stored = stored
        self.probing = probing
        self.numbers = numbers
        self.recheck = conjunction(layout_of(plan, stored).recheck)
        self.settled = not layout_of(plan, stored).recheck
        self.recheck_columns = columns_of(self.recheck)
        self.select = [expression for _, expression in plan.select]
        if plan.keyed and plan.result_key is not None:
            self.select.append(plan.result_key)
        self.select_columns = frozenset(pair for expression in self.select for pair in columns_of(expression))
        self._held: list[tuple[Segment, np.ndarray, np.ndarray]] = []
        self._rows = 0

    def add(self, segment: Segment, probe_rows: np.ndarray, stored_rows: np.ndarray) -> Iterator[pa.RecordBatch]:
        """Take pairs of row numbers; give a batch when enough have come together."""
        if not self.settled:
            columns = self._columns([(segment, probe_rows, stored_rows)], self.recheck_columns)
            keep = filter_mask(self.recheck, columns, probe_rows.size, self.plan.predicates)
            if not keep.all():
                probe_rows, stored_rows = probe_rows[keep], stored_rows[keep]
        if probe_rows.size:
            self._held.append((segment, probe_rows, stored_rows))
            self._rows += probe_rows.size
        if self._rows >= ROWS_A_BATCH:
            yield from self.flush()

    def flush(self) -> Iterator[pa.RecordBatch]:
        """Whatever is left."""
        if self._rows:
            columns = self._columns(self._held, self.select_columns)
            values = [
                columns[expression.stream, expression.name]
                if isinstance(expression, Column)
                else evaluate(expression, columns, self._rows, self.plan.predicates)
                for expression in self.select
            ]
            if self.plan.timed:
                values.insert(len(self.plan.select), self._times())
            if self.numbers is not None:
                values += self._sequence(self.numbers)
            yield pa.RecordBatch.from_arrays(values, schema=self.plan.emitted)
        self._held, self._rows = [], 0

    def _times(self) -> pa.Array:
        """The latest event time of each pair, in us."""
        stored = [segment.rows.column(TS).to_numpy()[rows] for segment, _, rows in self._held]
        probing = [self.probing.ts_us[rows] for _, rows, _ in self._held]
        return pa.array(np.maximum(np.concatenate(stored), np.concatenate(probing)))

    def _sequence(self, numbers: np.ndarray) -> list[pa.Array]:
        """Numbers of the newer and of the older tuple of each pair; where tuples move, either may probe."""
        stored = np.concatenate([segment.rows.column(NUMBER).to_numpy()[rows] for segment, _, rows in self._held])
        probing = np.concatenate([numbers[rows] for _, rows, _ in self._held])
        return [pa.array(np.maximum(stored, probing)), pa.array(np.minimum(stored, probing))]

    def _columns(
        self, held: list[tuple[Segment, np.ndarray, np.ndarray]], wanted: frozenset[tuple[str, str]]
    ) -> dict[tuple[str, str], pa.Array]:
        probing_name = self.plan.names[1 - self.stored]
        probe_rows = np.concatenate([rows for _, rows, _ in held]) if len(held) > 1 else held[0][1]
        taken: dict[tuple[str, str], pa.Array] = {}
        for stream, name in wanted:
            if stream == probing_name:
                found = pa.array(self.probing.ts_us) if name == TS else self.probing.rows.column(name)
                taken[stream, name] = take(found, probe_rows)
            else:
                parts = [take(segment.rows.column(name), rows) for segment, _, rows in held]
                taken[stream, name] = pa.concat_arrays(parts) if len(parts) > 1 else parts[0]
        return taken


def take(values: pa.Array, rows: np.ndarray) -> pa.Array:
    """values[rows]. NumPy gathers plain numbers about twice as fast as Arrow does."""
    kind = values.type
    if values.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return pa.array(values.to_numpy()[rows], kind)
    if values.null_count == 0 and pa.types.is_timestamp(kind):
        return pa.array(values.view(pa.int64()).to_numpy()[rows]).view(kind)
    return values.take(pa.array(rows))
