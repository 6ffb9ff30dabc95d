"""From matched row numbers to result rows: check again what the index left open, then select."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from streamjoin.flow import portions
from streamjoin.flow.block import TS, Block
from streamjoin.flow.portions import is_text, offsets_of, sizes, taken_bytes
from streamjoin.index.layout import layout_of
from streamjoin.index.segment import Segment
from streamjoin.index.view import NUMBER
from streamjoin.kernel import kernel
from streamjoin.plan.decimals import carried
from streamjoin.plan.evaluation import evaluate, filter_mask
from streamjoin.plan.expression import TRUE, columns_of, conjunction
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.schema import VERSION

ROWS_A_BATCH = 1 << 16
"""Result rows are handed on in batches of about this size, however few a segment gives; of long texts it is fewer, as
`portions.BYTES_A_BATCH` says."""

Met = Callable[[int, Segment, np.ndarray, np.ndarray], np.ndarray | None]
"""The stored side, a segment, its rows of matched pairs, and the sequence numbers of the probing tuples -> the places
of those pairs that are to be given; None for all."""


Pairs = tuple[Segment, np.ndarray, np.ndarray]
"""A segment, rows of the probing block, and the rows of the segment that they meet; int64 of one shape."""


class Emitter:
    """Collects the pairs of one probing block with segments, and gives result batches of a useful size.

    Args:
        numbers: sequence numbers of the probing tuples, where they are kept.
        met: is told of all pairs, whatever the plan's filter says of them.
    """

    def __init__(
        self,
        plan: JoinPlan,
        stored: int,
        probing: Block,
        numbers: np.ndarray | None = None,
        met: Met | None = None,
    ) -> None:
        self.plan = plan
        self.stored = stored
        self.probing = probing
        self.numbers = numbers
        self.met = met
        self.filter_columns = columns_of(plan.filter)
        self.recheck = conjunction(layout_of(plan, stored).recheck)
        self.settled = not layout_of(plan, stored).recheck
        self.recheck_columns = columns_of(self.recheck)
        self.select = [expression for _, expression in plan.select]
        if plan.keyed and plan.result_key is not None:
            self.select.append(plan.result_key)
        self.select_columns = frozenset(pair for expression in self.select for pair in columns_of(expression))
        self._selected_texts = self._texts_of(self.select_columns)
        self._texts = self._texts_of(self.select_columns | self.filter_columns | self.recheck_columns)
        self._probing_offsets: dict[str, np.ndarray] = {}
        self._held: list[Pairs] = []
        self._rows = self._bytes = 0

    def add(self, segment: Segment, probe_rows: np.ndarray, stored_rows: np.ndarray) -> Iterator[pa.RecordBatch]:
        """Take pairs of row numbers; give a batch when enough have come together."""
        if not self._texts:
            return self._add(segment, probe_rows, stored_rows, 0)
        return self._in_portions(segment, probe_rows, stored_rows)

    def _in_portions(
        self, segment: Segment, probe_rows: np.ndarray, stored_rows: np.ndarray
    ) -> Iterator[pa.RecordBatch]:
        """As `add`, of pairs that may have more bytes of texts than are taken together."""
        size = self._taken(self._texts, segment, probe_rows, stored_rows)
        if size <= portions.BYTES_A_BATCH:
            yield from self._add(segment, probe_rows, stored_rows, size)
            return
        of_each = np.zeros(probe_rows.size, np.int64)
        for probes, name in self._texts:
            of_each += sizes(self._offsets(probes, name, segment), probe_rows if probes else stored_rows)
        for first, past in portions.cuts(of_each):
            part = probe_rows[first:past], stored_rows[first:past]
            yield from self._add(segment, *part, int(of_each[first:past].sum()))

    def _add(
        self, segment: Segment, probe_rows: np.ndarray, stored_rows: np.ndarray, size: int
    ) -> Iterator[pa.RecordBatch]:
        """As `add`.

        Args:
            size: bytes of all texts that are read of the pairs.
        """
        count = probe_rows.size
        if not self.settled:
            columns = self._columns([(segment, probe_rows, stored_rows)], self.recheck_columns)
            keep = filter_mask(self.recheck, columns, probe_rows.size, self.plan.predicates)
            if not keep.all():
                probe_rows, stored_rows = probe_rows[keep], stored_rows[keep]
        if self.met is not None and self.numbers is not None and probe_rows.size:
            given = self.met(self.stored, segment, stored_rows, self.numbers[probe_rows])
            if given is not None:
                probe_rows, stored_rows = probe_rows[given], stored_rows[given]
        if self.plan.filter != TRUE and probe_rows.size:
            columns = self._columns([(segment, probe_rows, stored_rows)], self.filter_columns)
            keep = filter_mask(self.plan.filter, columns, probe_rows.size, self.plan.predicates)
            probe_rows, stored_rows = probe_rows[keep], stored_rows[keep]
        if probe_rows.size:
            if size:
                if probe_rows.size < count or self._selected_texts != self._texts:
                    size = self._taken(self._selected_texts, segment, probe_rows, stored_rows)
                if self._bytes + size > portions.BYTES_A_BATCH:
                    yield from self.flush()
                self._bytes += size
            self._held.append((segment, probe_rows, stored_rows))
            self._rows += probe_rows.size
        if self._rows >= ROWS_A_BATCH:
            yield from self.flush()

    def flush(self) -> Iterator[pa.RecordBatch]:
        """Whatever is left."""
        if self._rows:
            columns = self._columns(self._held, self.select_columns)
            values = [evaluate(expression, columns, self._rows, self.plan.predicates) for expression in self.select]
            if self.plan.timed:
                values.insert(len(self.plan.select), self._times())
            if self.numbers is not None and self.plan.ordering is not Ordering.NONE:
                values += self._sequence(self.numbers)
            yield pa.RecordBatch.from_arrays(values, schema=self.plan.emitted)
        self._held, self._rows, self._bytes = [], 0, 0

    def _texts_of(self, wanted: frozenset[tuple[str, str]]) -> list[tuple[bool, str]]:
        """The columns of text or bytes among these: whether each is of the probing side, and its name."""
        found = []
        for stream, name in sorted(wanted):
            side = 1 - self.stored if stream == self.plan.names[1 - self.stored] else self.stored
            columns = self.plan.streams[side].columns
            if name in columns.names and is_text(columns.field(name).type):
                found.append((side != self.stored, name))
        return found

    def _offsets(self, probes: bool, name: str, segment: Segment) -> np.ndarray:
        """Where the texts of a column begin."""
        if not probes:
            return offsets_of(segment.rows.column(name))
        if name not in self._probing_offsets:
            self._probing_offsets[name] = offsets_of(self.probing.rows.column(name))
        return self._probing_offsets[name]

    def _taken(
        self, texts: list[tuple[bool, str]], segment: Segment, probe_rows: np.ndarray, stored_rows: np.ndarray
    ) -> int:
        """Bytes of these texts, as `_texts_of` gives them, in all pairs."""
        return sum(
            taken_bytes(self._offsets(probes, name, segment), probe_rows if probes else stored_rows)
            for probes, name in texts
        )

    def _times(self) -> pa.Array:
        """The latest event time of each pair, in us."""
        latest, at = np.empty(self._rows, np.int64), 0
        for segment, probe_rows, stored_rows in self._held:
            past = at + probe_rows.size
            _latest(segment.rows.column(TS).to_numpy(), stored_rows, self.probing.ts_us, probe_rows, latest[at:past])
            at = past
        return pa.array(latest)

    def _sequence(self, numbers: np.ndarray) -> list[pa.Array]:
        """Numbers of the newer and of the older tuple of each pair; where tuples move, either may probe."""
        stored = np.concatenate([segment.rows.column(NUMBER).to_numpy()[rows] for segment, _, rows in self._held])
        probing = np.concatenate([numbers[rows] for _, rows, _ in self._held])
        return [pa.array(np.maximum(stored, probing)), pa.array(np.minimum(stored, probing))]

    def _columns(self, held: list[Pairs], wanted: frozenset[tuple[str, str]]) -> dict[tuple[str, str], pa.Array]:
        probing_name = self.plan.names[1 - self.stored]
        probe_rows = np.concatenate([rows for _, rows, _ in held]) if len(held) > 1 else held[0][1]
        taken: dict[tuple[str, str], pa.Array] = {}
        for stream, name in wanted:
            if stream == probing_name:
                found = pa.array(self.probing.ts_us) if name == TS else self.probing.rows.column(name)
                taken[stream, name] = take(found, probe_rows)
            else:
                parts = [carried(take(segment.rows.column(name), rows)) for segment, _, rows in held]
                taken[stream, name] = pa.concat_arrays(parts) if len(parts) > 1 else parts[0]
        return taken


@kernel
def _latest(
    stored_us: np.ndarray, stored_rows: np.ndarray, probing_us: np.ndarray, probe_rows: np.ndarray, out: np.ndarray
) -> None:
    """The later time of each pair of rows; all int64, the last three of one shape (n,)."""
    for i in range(out.size):
        out[i] = max(stored_us[stored_rows[i]], probing_us[probe_rows[i]])


def warm_up() -> None:
    """Load the kernel; see `streamjoin/warming.py`."""
    one, zero = np.ones(1, np.int64), np.zeros(1, np.int64)
    _latest(one, zero, one, zero, one.copy())


class ProbingTimes(Emitter):
    """Results whose time is that of the probing row, as what is stored has none."""

    def _times(self) -> pa.Array:
        return pa.array(np.concatenate([self.probing.ts_us[rows] for _, rows, _ in self._held]))


def one_sided(
    plan: JoinPlan, side: int, rows: pa.RecordBatch, ts_us: np.ndarray, version: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Result rows of one side's tuples alone, with NULL for the columns of the other, in parts of bounded size.

    Args:
        rows: n tuples with the columns that units store.
        ts_us: their event times, int64 of shape (n,), which are those of the results.
        version: of the relation that the other side is, in which nothing matches them.
    """
    for first, past in portions.slices(rows, ROWS_A_BATCH):
        some, times = rows.slice(first, past - first), ts_us[first:past]
        columns = _with_nulls(plan, side, some, times, version)
        if plan.filter != TRUE:
            keep = np.nonzero(filter_mask(plan.filter, columns, some.num_rows, plan.predicates))[0]
            some, times = some.take(pa.array(keep)), times[keep]
            columns = _with_nulls(plan, side, some, times, version)
        if not some.num_rows:
            continue
        expressions = [expression for _, expression in plan.select]
        values = [evaluate(expression, columns, some.num_rows, plan.predicates) for expression in expressions]
        if plan.timed:
            values.append(pa.array(times))
        if plan.keyed and (key := plan.key_of(side)) is not None:
            values.append(evaluate(key, columns, some.num_rows, plan.predicates))
        yield pa.RecordBatch.from_arrays(values, schema=plan.emitted)


def _with_nulls(
    plan: JoinPlan, side: int, rows: pa.RecordBatch, ts_us: np.ndarray, version: int | None
) -> dict[tuple[str, str], pa.Array]:
    name, other = plan.names[side], plan.names[1 - side]
    columns = {(name, column): rows.column(column) for column in rows.schema.names}
    columns[name, TS] = pa.array(ts_us)
    for column in plan.streams[1 - side].columns:
        columns[other, column.name] = pa.nulls(rows.num_rows, column.type)
    columns[other, TS] = pa.nulls(rows.num_rows, pa.int64())
    if version is not None:
        columns[other, VERSION] = pa.array(np.full(rows.num_rows, version, np.int64))
    return columns


def take(values: pa.Array, rows: np.ndarray) -> pa.Array:
    """values[rows]. NumPy gathers plain numbers about twice as fast as Arrow does."""
    kind = values.type
    if values.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return pa.array(values.to_numpy()[rows], kind)
    if values.null_count == 0 and pa.types.is_timestamp(kind):
        return pa.array(values.view(pa.int64()).to_numpy()[rows]).view(kind)
    return values.take(pa.array(rows))
