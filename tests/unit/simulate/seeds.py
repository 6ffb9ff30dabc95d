"""A run of a seed that fails tells everything that happened in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from simulate.network import Network


def expansion(network: Network) -> str:
    """The message log, a delivery a line."""
    return "\n".join(
        f"{each.at_us:>10} us  {each.sender or '-'} -> {each.receiver} #{each.number}: {each.message}"
        for each in network.log
    )


@contextmanager
def told(seed: int, network: Network) -> Iterator[None]:
    """Whatever fails inside is raised again with the seed and its message log."""
    try:
        yield
    except Exception as error:
        raise AssertionError(
            f"seed {seed}: {type(error).__name__}: {error}\n{len(network.log)} deliveries:\n{expansion(network)}"
        ) from error
