"""Column values as int64 keys that keep order, or at least equality.

A kernel compares int64 only. `order_key` maps every type with an order to int64 so that a < b iff key(a) < key(b);
where that is not possible (strings, wide decimals) the map is monotone but not one to one, and `is_exact` says so:
what an index finds with it must be checked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.index.kernels import hash_bytes, mix

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
_LARGEST_EXACT_DECIMAL = 18  # digits that always fit into int64


def is_exact(kind: pa.DataType) -> bool:
    """Whether `order_key` is one to one for this type."""
    if pa.types.is_decimal(kind):
        return kind.precision <= _LARGEST_EXACT_DECIMAL
    return not (pa.types.is_string(kind) or pa.types.is_binary(kind))


def order_key(values: pa.Array) -> np.ndarray:
    """int64 keys in the order of `values`; NULLs get an arbitrary key and must have been dropped before.

    NaN is canonical and above all numbers; -0.0 is 0.0.
    """
    kind = values.type
    if values.null_count:
        values = pc.fill_null(values, _any_value(kind))
    if pa.types.is_floating(kind):
        return float_key(values.cast(pa.float64()).to_numpy())
    if pa.types.is_decimal(kind):
        if kind.precision > _LARGEST_EXACT_DECIMAL:
            return float_key(values.cast(pa.float64()).to_numpy())
        # Little-endian 128 bits, of which the low half holds every value of up to 18 digits.
        halves = np.frombuffer(values.buffers()[1], np.int64).reshape(-1, 2)
        return np.ascontiguousarray(halves[values.offset : values.offset + len(values), 0])
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _prefix_key(values)
    if pa.types.is_boolean(kind):
        return np.asarray(values.cast(pa.int64()).to_numpy())
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return np.asarray(values.view(pa.int64()).to_numpy())
    if pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    return np.asarray(values.cast(pa.int64()).to_numpy())


def _any_value(kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.scalar("", kind) if pa.types.is_string(kind) else pa.scalar(b"", kind)
    if pa.types.is_boolean(kind):
        return pa.scalar(False)
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(0), kind)
    return pa.scalar(0, pa.int32() if pa.types.is_date32(kind) else pa.int64()).cast(kind)


def float_key(values: np.ndarray) -> np.ndarray:
    """float64 -> int64 in the same order: negative numbers have their magnitude bits turned over."""
    canonical = np.where(np.isnan(values), np.nan, values + 0.0)
    bits = canonical.view(np.int64)
    return bits ^ ((bits >> 63) & INT64_MAX)


def _prefix_key(values: pa.Array) -> np.ndarray:
    """The first eight bytes, big-endian, as a signed number in the same order."""
    offsets, data = _buffers(values)
    out = np.zeros(len(values), np.uint64)
    lengths = np.diff(offsets)
    for place in range(8):  # eight passes over columns, not a pass over rows
        present = lengths > place
        byte = np.zeros(len(values), np.uint64)
        byte[present] = data[offsets[:-1][present] + place]
        out = (out << np.uint64(8)) | byte
    return (out ^ np.uint64(1 << 63)).view(np.int64)


def _buffers(values: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    values = values.cast(pa.large_binary())
    offsets = np.frombuffer(values.buffers()[1], np.int64)[values.offset : values.offset + len(values) + 1]
    data = values.buffers()[2]
    return offsets, np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)


def hash_key(columns: Sequence[pa.Array]) -> np.ndarray:
    """One int64 for each row of `columns`, equal for equal rows. Source of the mixing: see `kernels.mix`."""
    combined: np.ndarray | None = None
    for values in columns:
        if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
            part = hash_bytes(*_buffers(pc.fill_null(values, _any_value(values.type))))
        else:
            part = mix(order_key(values))
        combined = part if combined is None else mix(combined * np.int64(31) + part)
    assert combined is not None
    return combined


def shift_key(values: pa.Array, shift: float | int | None, *, upward: bool, strict: bool) -> np.ndarray:
    """Keys of `values + shift`, as one bound of a search.

    Args:
        shift: None for an unbounded side.
        upward: the bound is an upper one; rounding then goes up, otherwise down, so that nothing is missed.
        strict: the bound itself is excluded (only kept where keys are one to one and the shift is exact).
    """
    n = len(values)
    if shift is None:
        return np.full(n, INT64_MAX if upward else INT64_MIN, np.int64)
    kind = values.type
    step = (-1 if upward else 1) if strict else 0
    if shift == 0:
        keys = order_key(values)
        return _saturating_add(keys, step) if step and is_exact(kind) else keys
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind) or (isinstance(shift, float) and shift != int(shift)):
        numbers = pc.fill_null(values.cast(pa.float64()), 0.0).to_numpy()
        if pa.types.is_decimal(kind) and is_exact(kind):
            return _decimal_bound(order_key(values), kind.scale, shift, upward)
        # Both the addition here and the subtraction in the query round; a few units in the last place cover it.
        # Infinite keys meet nothing inside a band, so what becomes of their bounds does not matter.
        with np.errstate(over="ignore", invalid="ignore"):
            margin = 8 * np.finfo(np.float64).eps * (np.abs(numbers) + abs(shift))
            bound = numbers + shift + (margin if upward else -margin)
            bound = np.nextafter(bound, np.inf if upward else -np.inf)
        if not pa.types.is_floating(kind):
            limit = float(2**63 - 1024)
            return np.clip(np.ceil(bound) if upward else np.floor(bound), -limit, limit).astype(np.int64)
        return float_key(bound)
    return _saturating_add(order_key(values), int(shift) + step)


def _decimal_bound(keys: np.ndarray, scale: int, shift: float | int, upward: bool) -> np.ndarray:
    exact = shift * 10**scale
    return _saturating_add(keys, int(np.ceil(exact)) + 1 if upward else int(np.floor(exact)) - 1)


def _saturating_add(keys: np.ndarray, shift: int) -> np.ndarray:
    shift = max(min(shift, INT64_MAX), INT64_MIN)
    total = keys + np.int64(shift)
    if shift > 0:
        return np.where(total < keys, INT64_MAX, total)
    return np.where(total > keys, INT64_MIN, total)
