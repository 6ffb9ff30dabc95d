"""Streams for equality joins, (id, k, v): keys are uniform, or skewed by Zipf's law.

Zipf: P(k = i) is proportional to (i + 1) ** -skew for i in 0..keys - 1, so 0 is the most frequent key, in both
streams and for every seed: two streams with different seeds still share their hot keys. The draw is exact: the
cumulative distribution is inverted by binary search in a table of `keys` float64.

Source: the skewed stream of SSBJ (A Memory-Optimal Many-to-Many Semi-Stream Join, DAPD 2019) has exponents 0..1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
import pyarrow as pa

from streamjoin.generate.counter import Floats, Ints, integers, uniforms
from streamjoin.generate.stream import TIME, TIMESTAMP, Generator, Option, Request, timestamps

_SCHEMA = pa.schema({"id": pa.int64(), "k": pa.int64(), "v": pa.float64(), TIME: TIMESTAMP})

# The table of the largest Zipf domain takes 800 MB.
_ZIPF_KEYS_MAX = 10**8
_UNIFORM_KEYS_MAX = 2**53


def _columns(kind: str, keys_of: Callable[[Request, str], Ints], request: Request) -> list[pa.Array]:
    numbers = request.numbers()
    return [
        pa.array(numbers),
        pa.array(keys_of(request, f"{kind}.k")),
        pa.array(uniforms(request.seed, f"{kind}.v", numbers)),
        timestamps(request.times_us(numbers)),
    ]


def _uniform_keys(request: Request, column: str) -> Ints:
    return integers(request.seed, column, request.numbers(), int(request.options["keys"]))


def _zipf_keys(request: Request, column: str) -> Ints:
    cumulative = zipf_cumulative(int(request.options["keys"]), float(request.options["skew"]))
    ranks = np.searchsorted(cumulative, uniforms(request.seed, column, request.numbers()), side="right")
    return ranks.astype(np.int64)


@lru_cache(maxsize=4)
def zipf_cumulative(keys: int, skew: float) -> Floats:
    """P(k <= i) for i in 0..keys - 1, read-only; the last entry is exactly 1."""
    cumulative = np.arange(1, keys + 1, dtype=np.float64)
    # In place: the largest table is big enough once.
    np.power(cumulative, -skew, out=cumulative)
    np.cumsum(cumulative, out=cumulative)
    cumulative /= cumulative[-1]
    cumulative.flags.writeable = False
    return cumulative


def _zipf(stream: str) -> Generator:
    kind = f"zipf.{stream}"
    return Generator(
        kind=kind,
        description="keys k by Zipf's law, 0 the most frequent; v uniform in [0, 1)",
        schema=_SCHEMA,
        columns=partial(_columns, kind, _zipf_keys),
        known_options={
            "skew": Option(1.0, 0, 2, whole=False, description="exponent of Zipf's law; 0 is uniform"),
            "keys": Option(100_000, 1, _ZIPF_KEYS_MAX, whole=True, description="number of different keys"),
        },
    )


def _uniform(stream: str) -> Generator:
    kind = f"uniform.{stream}"
    return Generator(
        kind=kind,
        description="keys k uniform in 0..keys - 1; v uniform in [0, 1)",
        schema=_SCHEMA,
        columns=partial(_columns, kind, _uniform_keys),
        known_options={
            "keys": Option(1_000_000, 1, _UNIFORM_KEYS_MAX, whole=True, description="number of different keys"),
        },
    )


ZIPF_R, ZIPF_S = _zipf("r"), _zipf("s")
UNIFORM_R, UNIFORM_S = _uniform("r"), _uniform("s")
