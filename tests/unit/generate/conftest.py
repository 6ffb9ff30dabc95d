"""TPC-H data of these tests goes to a cache of their own."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tpch_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty cache folder for the whole session; skips where the program that makes the data is missing."""
    if shutil.which("tpchgen-cli") is None and not (Path(sys.executable).parent / "tpchgen-cli").exists():
        pytest.skip("the program tpchgen-cli is missing; pip install tpchgen-cli")
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("STREAMJOIN_CACHE", str(folder))
        yield folder
