"""The band-join benchmark: R(x, y, z) and S(a, b, c, d), to be joined on |x - a| <= 10 and |y - b| <= 10.

Source: SplitJoin (USENIX ATC 2016), evaluation, which takes it from handshake join: numbers are uniform in
1..10**4, so about one pair in 250,000 matches. `z` (20 characters), `c` and `d` carry no meaning; they set the
width of a tuple.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.generate.counter import bits, integers, uniforms
from streamjoin.generate.stream import TIME, TIMESTAMP, Generator, Request, timestamps
from streamjoin.generate.text import letters, strings

DOMAIN = 10_000
TEXT_LENGTH = 20

_BELOW_DOMAIN = np.nextafter(np.float32(DOMAIN), np.float32(0))


def _r_columns(request: Request) -> list[pa.Array]:
    numbers = request.numbers()
    return [
        pa.array(numbers),
        pa.array(_whole(request, "band.r.x")),
        pa.array(_broken(request, "band.r.y")),
        strings(letters(request.seed, "band.r.z", numbers, TEXT_LENGTH)),
        timestamps(request.times_us(numbers)),
    ]


def _s_columns(request: Request) -> list[pa.Array]:
    numbers = request.numbers()
    return [
        pa.array(numbers),
        pa.array(_whole(request, "band.s.a")),
        pa.array(_broken(request, "band.s.b")),
        pa.array(1 + uniforms(request.seed, "band.s.c", numbers) * (DOMAIN - 1)),
        pa.array(bits(request.seed, "band.s.d", numbers) >> np.uint64(63) == 1),
        timestamps(request.times_us(numbers)),
    ]


def _whole(request: Request, column: str) -> npt.NDArray[np.int32]:
    """Uniform in 1..10**4, both ends included."""
    return (1 + integers(request.seed, column, request.numbers(), DOMAIN)).astype(np.int32)


def _broken(request: Request, column: str) -> npt.NDArray[np.float32]:
    """Uniform in [1, 10**4)."""
    values = 1 + uniforms(request.seed, column, request.numbers()) * (DOMAIN - 1)
    # Rounding to float32 can reach the excluded end.
    return np.minimum(values.astype(np.float32), _BELOW_DOMAIN)


BAND_R = Generator(
    kind="band.r",
    description="R of SplitJoin's band benchmark: x whole, y broken, both uniform in 1..10000; z 20 characters",
    schema=pa.schema(
        {"id": pa.int64(), "x": pa.int32(), "y": pa.float32(), "z": pa.string(), TIME: TIMESTAMP},
    ),
    columns=_r_columns,
)
BAND_S = Generator(
    kind="band.s",
    description="S of SplitJoin's band benchmark: a whole, b and c broken, uniform in 1..10000; d true or false",
    schema=pa.schema(
        {"id": pa.int64(), "a": pa.int32(), "b": pa.float32(), "c": pa.float64(), "d": pa.bool_(), TIME: TIMESTAMP},
    ),
    columns=_s_columns,
)
