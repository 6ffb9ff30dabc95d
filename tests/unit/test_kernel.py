"""Kernels that make no arrays do without reference counts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from numba.core.errors import NumbaError

from streamjoin.kernel import kernel, lean_kernel


def test_a_lean_kernel_that_makes_an_array_does_not_compile() -> None:
    @kernel
    def zeros(count: int) -> npt.NDArray[np.float64]:
        return np.zeros(count)

    @lean_kernel
    def lean_zeros(count: int) -> npt.NDArray[np.float64]:
        return np.zeros(count)

    assert zeros(3).tolist() == [0, 0, 0]
    with pytest.raises(NumbaError, match="zeros"):
        lean_zeros(3)


def test_a_lean_kernel_reads_and_fills_the_arrays_of_its_caller() -> None:
    @lean_kernel
    def one(values: npt.NDArray[np.int64], at: int) -> int:
        return values[at] + 1

    @lean_kernel
    def each(values: npt.NDArray[np.int64], out: npt.NDArray[np.int64]) -> None:
        for at in range(len(values)):
            out[at] = one(values, at)

    out = np.zeros(3, np.int64)
    each(np.arange(3), out)
    assert out.tolist() == [1, 2, 3]
