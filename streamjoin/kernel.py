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

    def __init__(self, function: Callable[..., Any], *, is_lean: bool = False) -> None:
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.py_func = function
        self.is_lean = is_lean

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's: cached on disk, without the interpreter lock."""
        from numba import njit

        options: dict[str, Any] = {"cache": True, "nogil": True}
        if self.is_lean:
            # The underscore means that the option may go away: Numba refuses those that it does not know.
            options |= {"forceinline": True, "_nrt": False}
        return njit(**options)(self.py_func)

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


def lean_kernel(function: F) -> F:
    """As `kernel`, for steps that are called for every byte or two: inlined, and without reference counts.

    Numba counts references to every array that one kernel passes to another, with atomic operations that it can rarely
    prune across calls. Counts and calls took two thirds of a scanner's time. Here the arrays stay alive because the
    Python caller holds them. A lean kernel that makes an array does not compile, and all that it calls should be lean.
    """
    return cast(F, Kernel(function, is_lean=True))
