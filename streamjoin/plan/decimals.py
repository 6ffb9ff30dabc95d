"""Decimals as the integers they are made of, as floats, and as tuples carry them.

Columns of up to 18 digits are *carried* from intake to results, in blocks and segments, in 64 bits in place of 128:
half the bytes, and the very integers that keys are. Expressions are evaluated on 128 bits and more, as Arrow has few
functions for less.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_EXACT_INTEGERS = 2**53
"""float64 holds every integer up to here."""
_EXACT_POWERS = 22
"""And every power of ten up to this one, so that one division rounds once."""
_SAFE_DIGITS = 9
"""Arrow divides rightly by powers of ten of 32 bits; beyond, its quotient may be one too small."""
_PLAIN_SCALE = 6
"""Up to so many digits after the point Arrow writes none of them as a power of ten."""
CARRIED_DIGITS_MAX = 18
"""Decimals of so many digits are carried in 64 bits."""
_HALF_AWAY = "half_towards_infinity"


def carried_type(kind: pa.DataType) -> pa.DataType:
    """The type in which tuples carry a column."""
    small = pa.types.is_decimal128(kind) and kind.precision <= CARRIED_DIGITS_MAX
    return pa.decimal64(kind.precision, kind.scale) if small else kind


def carried(values: pa.Array) -> pa.Array:
    """The same values in the type in which tuples carry them."""
    kind = carried_type(values.type)
    if kind == values.type:
        return values
    words = unscaled(values)
    if not values.null_count:
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(words)])
    valid = values.is_valid()  # a copy that begins at its first bit
    return pa.Array.from_buffers(kind, len(values), [valid.buffers()[1], pa.py_buffer(words)], values.null_count)


def widened(values: pa.Array) -> pa.Array:
    """Values as they are carried in the type of their column."""
    kind = values.type
    if not pa.types.is_decimal64(kind):
        return values
    low = unscaled(values)
    words = np.empty((low.size, 2), np.int64)
    words[:, 0] = low
    np.right_shift(low, 63, out=words[:, 1])
    valid = values.is_valid().buffers()[1] if values.null_count else None
    wide = pa.decimal128(kind.precision, kind.scale)
    return pa.Array.from_buffers(wide, low.size, [valid, pa.py_buffer(words)], values.null_count)


def limbs(values: pa.Array) -> np.ndarray:
    """The unscaled integers in two's complement, uint64 of shape (n, 1, 2 or 4), least significant first; no copy.

    NULLs have arbitrary limbs.
    """
    width = values.type.bit_width // 64
    data = values.buffers()[1]
    words = np.frombuffer(b"" if data is None else data, np.uint64).reshape(-1, width)
    return words[values.offset : values.offset + len(values)]


def unscaled(values: pa.Array) -> np.ndarray:
    """The unscaled integers of a decimal of up to 18 digits, int64 of shape (n,); of 64 bits without copying."""
    return np.ascontiguousarray(limbs(values)[:, 0]).view(np.int64)


def to_float64(values: pa.Array) -> pa.Array:
    """Each value as the nearest float64, ties to even. (Arrow's own cast misses it for 14 % of all cents.)"""
    words = limbs(values)
    low = np.ascontiguousarray(words[:, 0]).view(np.int64)
    small = (low >= -_EXACT_INTEGERS) & (low <= _EXACT_INTEGERS)
    for limb in range(1, words.shape[1]):
        small &= words[:, limb].view(np.int64) == low >> 63
    missing = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    if values.type.scale <= _EXACT_POWERS and bool((small if missing is None else small | missing).all()):
        return pa.array(low / float(10**values.type.scale), mask=missing)
    return values.cast(pa.string()).cast(pa.float64())  # which reads text correctly rounded


def to_text(values: pa.Array | pa.ChunkedArray | pa.Scalar) -> pa.Array | pa.ChunkedArray | pa.Scalar:
    """Each value with all its digits, as SQL writes it: 0.0000000001, where Arrow's own cast gives 1E-10."""
    kind = values.type
    if kind.scale <= _PLAIN_SCALE:
        return values.cast(pa.string())
    if isinstance(values, pa.Scalar):
        return to_text(pa.array([values.as_py()], kind))[0]
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([to_text(chunk) for chunk in values.chunks], pa.string())
    # An Arrow decimal is an integer and a scale: its digits are that integer's.
    whole = pa.decimal128 if pa.types.is_decimal128(kind) else pa.decimal256
    digits = pc.abs(values.view(whole(kind.precision, 0))).cast(pa.string())
    digits = pc.utf8_lpad(digits, kind.scale + 1, "0")
    before, after = pc.utf8_slice_codeunits(digits, 0, -kind.scale), pc.utf8_slice_codeunits(digits, -kind.scale)
    sign = pc.if_else(pc.less(values, pa.scalar(0, kind)), "-", "")
    return pc.binary_join_element_wise(sign, before, ".", after, "")


def shortened(values: pa.Array | pa.Scalar, scale: int, round_mode: str = _HALF_AWAY) -> pa.Array | pa.Scalar:
    """Decimals with `scale` digits after the point, in 256 bits and with room for a carry where there is any.

    Args:
        scale: not above the scale there is.
        round_mode: Arrow's: down, up, towards_zero or half_towards_infinity.
    Cost: a pass for nine digits.
    """
    precision = min(values.type.precision + 1, 76)
    values = values.cast(pa.decimal256(precision, values.type.scale))
    while (drop := values.type.scale - scale) > 0:
        # The first digit dropped decides what is half; those after it are cut off.
        cut = round_mode == _HALF_AWAY and drop > 1
        drop = min(drop - cut, _SAFE_DIGITS)
        shorter = values.type.scale - drop
        values = pc.round(values, shorter, round_mode="towards_zero" if cut else round_mode)
        values = values.cast(pa.decimal256(precision, shorter))
    return values
