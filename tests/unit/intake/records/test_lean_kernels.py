"""The decoders' kernels are all lean: one that is not brings the reference counts back for all that call it."""

from __future__ import annotations

import importlib
import pkgutil

from streamjoin.intake import records
from streamjoin.kernel import Kernel


def test_every_kernel_of_the_decoders_is_lean() -> None:
    kernels = {
        f"{module.name}.{name}": value
        for module in pkgutil.iter_modules(records.__path__)
        for name, value in vars(importlib.import_module(f"{records.__name__}.{module.name}")).items()
        if isinstance(value, Kernel)
    }
    assert len(kernels) > 40
    assert [name for name, value in kernels.items() if not value.is_lean] == []
