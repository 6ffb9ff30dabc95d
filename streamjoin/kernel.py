"""The one way compiled functions are declared."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


class Kernel:
    """A function that Numba compiles when it is first called.

    Numba takes more than half a second to import, and most processes of a job (the command line, Spark's planners)
    call no kernel. A call costs one Python call more than calling Numba's dispatcher itself.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.py_func = function

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's: cached on disk, without the interpreter lock."""
        from numba import njit

        return njit(cache=True, nogil=True)(self.py_func)

    def __call__(self, *arguments: Any) -> Any:
        return self.dispatcher(*arguments)

    @property
    def _numba_type_(self) -> Any:
        # By this Numba sees a dispatcher where one kernel calls another.
        return self.dispatcher._numba_type_


def kernel(function: F) -> F:
    """Compile `function` with Numba when it is first called, keeping its static type.

    The cache on disk notices a change of a kernel's own file only: after editing a helper that kernels of other
    files call, remove their `__pycache__`.
    """
    return cast(F, Kernel(function))
