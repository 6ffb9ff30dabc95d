"""What takes long to import is imported by those who need it: every start of a job or of the API would pay for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("alembic", "duckdb", "numba", "pandas", "pyspark.sql", "sqlglot")


@pytest.mark.parametrize(
    ("module", "allowed"),
    [
        ("backend.app", ()),
        ("streamjoin.cli", ()),
        ("streamjoin.job", ()),
        ("streamjoin.operators.biclique", ()),
        ("streamjoin.prepare", ()),
        ("streamjoin.spark.source", ("pyspark.sql",)),
    ],
)
def test_an_import_brings_nothing_heavy_that_it_may_not_need(module: str, allowed: tuple[str, ...]) -> None:
    script = f"import sys, {module}; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= set(allowed)
