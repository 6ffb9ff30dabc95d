"""Made-up and replayed streams for demos, tests and benchmarks; the workloads of the papers among them.

    generator("band.r").rows(0, 1000, seed=1, rate=1000.0)

`files` writes a stream to disk.
"""

from __future__ import annotations

from streamjoin.errors import InputError
from streamjoin.generate import band, keys, nexmark, tpch
from streamjoin.generate.stream import Generator

__all__ = ["GENERATORS", "Generator", "generator"]

GENERATORS: dict[str, Generator] = {
    one.kind: one
    for one in (
        band.BAND_R,
        band.BAND_S,
        keys.ZIPF_R,
        keys.ZIPF_S,
        keys.UNIFORM_R,
        keys.UNIFORM_S,
        nexmark.PERSON,
        nexmark.AUCTION,
        nexmark.BID,
        tpch.ORDERS,
        tpch.LINEITEM,
    )
}
"""Every kind of stream, by name."""


def generator(kind: str) -> Generator:
    """The generator of this kind.

    Raises:
        InputError: there is no such kind; the message lists those there are.
    """
    if found := GENERATORS.get(kind):
        return found
    raise InputError(f'"{kind}" is not a kind of generated stream; kinds are {", ".join(GENERATORS)}')
