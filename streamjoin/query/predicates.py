"""Predicates of the user's that a query may call by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class RegisteredPredicate:
    """A vectorised predicate a query may call by name.

    Args:
        function: numpy arrays of one length, one per argument -> bool array of that length. Equal arguments must
            give equal answers: after a failure rows are computed again.
        arguments: the types of the arguments; numbers are cast to them.
    """

    function: Callable[..., Any]
    arguments: tuple[pa.DataType, ...]
