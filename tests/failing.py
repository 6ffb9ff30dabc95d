"""Failures at named places of the code, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from streamjoin import failpoints


@contextmanager
def failing_at(place: str, visit: int = 1) -> Iterator[None]:
    """Whoever comes to a place for so many times gets a `FailpointError`; visits count from the block's beginning."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failpoints, "_points", {place: ("raise", visit)})
        patch.setattr(failpoints, "_reached", {})
        yield
