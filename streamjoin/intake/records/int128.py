"""128-bit magnitudes in compiled code: four limbs of 32 bits in int64, least significant first.

Limbs that small leave room for a product by ten and its carry, so no step needs an unsigned or wider type.
"""

from __future__ import annotations

from typing import Final

from streamjoin.kernel import lean_kernel

Limbs = tuple[int, int, int, int]

ZERO: Final = (0, 0, 0, 0)
_LIMB: Final = 0xFFFFFFFF


@lean_kernel
def times_ten_plus(limbs: Limbs, digit: int) -> Limbs:
    """`limbs * 10 + digit`, modulo 2**128."""
    a = limbs[0] * 10 + digit
    b = limbs[1] * 10 + (a >> 32)
    c = limbs[2] * 10 + (b >> 32)
    d = limbs[3] * 10 + (c >> 32)
    return a & _LIMB, b & _LIMB, c & _LIMB, d & _LIMB


@lean_kernel
def times_256_plus(limbs: Limbs, byte: int) -> Limbs:
    """`limbs * 256 + byte`, modulo 2**128."""
    a = (limbs[0] << 8) + byte
    b = (limbs[1] << 8) + (a >> 32)
    c = (limbs[2] << 8) + (b >> 32)
    d = (limbs[3] << 8) + (c >> 32)
    return a & _LIMB, b & _LIMB, c & _LIMB, d & _LIMB


@lean_kernel
def below(left: Limbs, right: Limbs) -> bool:
    """Whether `left` < `right`."""
    if left[3] != right[3]:
        return left[3] < right[3]
    if left[2] != right[2]:
        return left[2] < right[2]
    if left[1] != right[1]:
        return left[1] < right[1]
    return left[0] < right[0]


@lean_kernel
def negated(limbs: Limbs) -> Limbs:
    """The two's complement of `limbs`."""
    a = (limbs[0] ^ _LIMB) + 1
    b = (limbs[1] ^ _LIMB) + (a >> 32)
    c = (limbs[2] ^ _LIMB) + (b >> 32)
    d = (limbs[3] ^ _LIMB) + (c >> 32)
    return a & _LIMB, b & _LIMB, c & _LIMB, d & _LIMB


@lean_kernel
def words(limbs: Limbs) -> tuple[int, int]:
    """`limbs` as two int64, low word first: how Arrow stores a decimal128."""
    return limbs[0] | (limbs[1] << 32), limbs[2] | (limbs[3] << 32)


def limbs_of(number: int) -> Limbs:
    """The limbs of `number`, which must lie in 0 .. 2**128 - 1."""
    return number & _LIMB, number >> 32 & _LIMB, number >> 64 & _LIMB, number >> 96 & _LIMB
