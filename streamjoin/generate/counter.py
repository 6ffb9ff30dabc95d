"""Random numbers by counting: number `n` of a column is a hash of (seed, column, n), so rows can be made in any order.

The hash is splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014): its
generator state after n steps is start + n * gamma, which makes the n-th output a function of n alone. Every
(seed, column) has a start of its own.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def bits(seed: int, column: str, numbers: Ints) -> npt.NDArray[np.uint64]:
    """64 independent fair bits for each of `numbers`, uint64 of the same shape.

    Args:
        seed: any integer, of any size and sign.
        column: name of what is drawn, such as `band.r.x`; other names give independent draws.
        numbers: int64, what is drawn for: row or event numbers, or any other identity.
    """
    z = np.uint64(_start(seed, column)) + numbers.astype(np.uint64) * _GAMMA
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


def uniforms(seed: int, column: str, numbers: Ints) -> Floats:
    """Uniform float64 in [0, 1), all multiples of 2**-53."""
    return (bits(seed, column, numbers) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def integers(seed: int, column: str, numbers: Ints, count: int | Ints) -> Ints:
    """Uniform int64 in [0, count); `count` is 1..2**53, one for all or one for each of `numbers`."""
    return (uniforms(seed, column, numbers) * count).astype(np.int64)


@lru_cache(maxsize=1024)
def _start(seed: int, column: str) -> int:
    digest = hashlib.blake2b(f"{seed}/{column}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")
