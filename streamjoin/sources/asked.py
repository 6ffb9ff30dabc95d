"""Who asks a server about a table while a join file is bound: this process, unless somebody else is named.

Where somebody else is, this process is one that others need, and it reads no rows of files either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import pyarrow as pa

Asking = Callable[..., pa.Schema]
"""Is given a function of a module and what that is given: plain values, with passwords among them."""


def _here(look: Callable[..., pa.Schema], *given: Any) -> pa.Schema:
    return look(*given)


_asking: ContextVar[Asking] = ContextVar("_asking", default=_here)


@contextmanager
def asked_by(ask: Asking) -> Iterator[None]:
    """In the block `ask` calls what asks servers, such as one that does so in another process."""
    before = _asking.set(ask)
    try:
        yield
    finally:
        _asking.reset(before)


def may_read_rows() -> bool:
    """Whether rows of Parquet and Arrow files may be read here, which may unpack to anything."""
    return _asking.get() is _here


def asked(look: Callable[..., pa.Schema], *given: Any) -> pa.Schema:
    """What `look` finds, called by whoever is to."""
    return _asking.get()(look, *given)
