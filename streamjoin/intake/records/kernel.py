"""The one way compiled functions of this package are declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function` with Numba: cached on disk, without the interpreter lock, keeping its static type.

    The cache of a kernel notices a change of its own file only: after editing a helper that kernels of other
    files call, remove their `__pycache__`.
    """
    return cast(F, njit(cache=True, nogil=True)(function))
