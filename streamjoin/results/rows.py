"""Which rows of a block answer a question, and which of their columns: by time, by key and by condition."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.errors import InputError
from streamjoin.index.keys import INT64_MAX, INT64_MIN, is_exact
from streamjoin.plan.changing import DELETE, EMIT_TIME, OPERATION
from streamjoin.plan.evaluation import filter_mask
from streamjoin.plan.join import RESULT_KEY, RESULT_TIME
from streamjoin.plan.schema import type_name
from streamjoin.results.block import ordered_codes
from streamjoin.results.question import Question
from streamjoin.results.reader import Wanted
from streamjoin.results.sink import RESULTS


def no_column_text(name: str, columns: Sequence[str]) -> str:
    """What is said of a column that results have not."""
    return f'there is no result column "{name}"; columns are {", ".join(columns)}'


def check_once(names: Sequence[str], field: str) -> None:
    """Refuse a column that is named more than once: an answer could be made a thousand times as large like this.

    Args:
        field: the question's field that names the columns.
    Raises:
        InputError: one is named more than once.
    """
    if (twice := next((name for name, times in Counter(names).items() if times > 1), None)) is not None:
        raise InputError(f'"{twice}" is given twice; ask for it once', field=field)


class Rows:
    """The question's row by row part: filters and columns.

    Args:
        identity: where rows are changes of groups, what tells groups apart: a change into what is not asked for is then
            the end of its group.
    """

    def __init__(self, question: Question, stored: pa.Schema, identity: tuple[str, ...] = ()) -> None:
        self.question = question
        self.identity = identity
        visible = [name for name in stored.names if not name.startswith("__")]
        for name in question.select or ():
            if name not in visible:
                raise InputError(no_column_text(name, visible))
        check_once(question.select or (), "select")
        self.names = list(question.select) if question.select else visible
        self.schema = pa.schema([stored.field(name) for name in self.names])
        self.where = question.bound
        if question.where is not None and question.bound is None:
            from streamjoin.query import bind_condition  # here, since most ask without a condition

            self.where = bind_condition(question.where, stored, RESULTS)
        kind = stored.field(RESULT_KEY).type if RESULT_KEY in stored.names else None
        self.key = _value(question.key, kind)
        self.low = _value(question.key_from, kind)
        self.high = _value(question.key_to, kind)
        if self.low is not None and self.high is not None and _is_above(self.low, self.high):
            raise InputError(f"the key range is empty: {question.key_from} is above {question.key_to}; swap the two")
        self.kind = kind
        self.bounds = self.codes() if self.key is None else (int(ordered_codes(self.key)[0]),) * 2

    @property
    def keyed(self) -> bool:
        """Whether a key range is asked for."""
        return self.low is not None or self.high is not None

    @property
    def wanted(self) -> Wanted | None:
        """Which keys are asked for; None where all are."""
        if self.kind is None or (self.key is None and not self.keyed):
            return None
        return Wanted(self._keys, self.bounds if is_exact(self.kind) else None)

    def codes(self) -> tuple[int, int]:
        """The key range as codes, both ends included; a superset where codes are not one to one."""
        low = INT64_MIN if self.low is None else int(ordered_codes(self.low)[0])
        high = INT64_MAX if self.high is None else int(ordered_codes(self.high)[0])
        return low, high

    def of(self, batch: pa.RecordBatch, *, by_key: bool = True) -> pa.RecordBatch:
        """The rows that answer, with the columns asked for.

        Args:
            by_key: whether to look at keys; not where all rows have one that is asked for.
        """
        masks: list[np.ndarray] = []
        question = self.question
        if question.from_us is not None or question.to_us is not None:
            times = batch.column(RESULT_TIME).to_numpy()
            if question.from_us is not None:
                masks.append(times >= question.from_us)
            if question.to_us is not None:
                masks.append(times <= question.to_us)
        if by_key and (wanted := self.wanted) is not None:
            masks.append(wanted.mask(batch.column(RESULT_KEY)))
        if self.where is not None:
            columns = {(RESULTS, name): batch.column(name) for name in batch.schema.names}
            mask = filter_mask(self.where, columns, batch.num_rows, {})
            if self.identity:
                batch = _ended(batch, mask, self.identity)
            else:
                masks.append(mask)
        chosen = batch.select(self.names)
        if masks:
            keep = np.logical_and.reduce(masks)
            if not keep.all():
                chosen = chosen.filter(pa.array(keep))
        return chosen

    def _keys(self, keys: pa.Array) -> np.ndarray:
        assert self.kind is not None
        found = np.asarray(keys.is_valid().to_numpy(zero_copy_only=False))  # NULL is no key that is asked for
        if is_exact(self.kind):  # codes compare as the engine does: NaN is above all numbers, -0.0 is 0.0
            codes = ordered_codes(keys)
            return np.asarray(found & (codes >= self.bounds[0]) & (codes <= self.bounds[1]))
        for wanted, compare in ((self.key, pc.equal), (self.low, pc.greater_equal), (self.high, pc.less_equal)):
            if wanted is not None:
                found = found & compare(keys, wanted[0]).fill_null(False).to_numpy(zero_copy_only=False)
        return found


def _is_above(low: pa.Array, high: pa.Array) -> bool:
    if is_exact(low.type):  # for which NaN is above all numbers
        return bool(ordered_codes(low)[0] > ordered_codes(high)[0])
    return bool(pc.greater(low[0], high[0]).as_py())


def _ended(batch: pa.RecordBatch, kept: np.ndarray, identity: tuple[str, ...]) -> pa.RecordBatch:
    """Changes of groups in which those that are not kept say that their group is no more."""
    keep = pa.array(kept)
    arrays = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name == OPERATION:
            column = pc.if_else(keep, column, pa.scalar(DELETE, column.type))
        elif not (name in identity or name == EMIT_TIME or name.startswith("__")):
            column = pc.if_else(keep, column, pa.scalar(None, column.type))
        arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


_INTEGER = re.compile("-?[0-9]{1,18}")
_ZONE = re.compile(r"(Z|:[0-9.]+[+-][0-9]{2}(:?[0-9]{2})?)$")


def _value(given: Any, kind: pa.DataType | None) -> pa.Array | None:
    """A key as an array of one value of the key's type."""
    if given is None:
        return None
    if kind is None:
        raise InputError("this join has no key to look up: its condition has neither an equality nor a range")
    try:
        if isinstance(given, bool) and not pa.types.is_boolean(kind):
            raise pa.ArrowInvalid("a truth value")
        if pa.types.is_int64(kind) and isinstance(given, str) and _INTEGER.fullmatch(given):
            return pa.array([int(given)], kind)
        if isinstance(given, str):
            found = pa.array([given], pa.string())
            if pa.types.is_binary(kind):
                return pa.array([given.encode()], kind)
            if pa.types.is_timestamp(kind) and not _ZONE.search(given):
                found = found.cast(pa.timestamp(kind.unit))  # without a zone it is UTC
            return found.cast(kind) if not pa.types.is_string(kind) else found
        if isinstance(given, float) and pa.types.is_integer(kind) and given != int(given):
            raise pa.ArrowInvalid("a fraction")
        if isinstance(given, int) and pa.types.is_decimal(kind):
            given = Decimal(given)
        return pa.array([given]).cast(kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        raise InputError(f'"{given}" is not a key of this join; keys are {type_name(kind)}') from None
