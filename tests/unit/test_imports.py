"""What takes long to import is imported by those who need it: every start of a job or of the API would pay for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("alembic", "duckdb", "numba", "pandas", "pyspark.sql", "sqlglot")
PLATFORM = ("pydantic", "numpy", "cyclopts", "psutil")
"""Before the API has begun to load, too much for `up`."""
ENGINE = ("fastapi", "numpy", "pyarrow", "streamjoin.engine", "streamjoin.operators.registry")
"""Half a second of each process that only looks after jobs, and of Java's start."""


@pytest.mark.parametrize(
    ("module", "allowed"),
    [
        ("backend.app", ()),
        ("streamjoin.cli.commands", ()),
        ("streamjoin.spec.job", ()),
        ("streamjoin.operators.biclique", ()),
        ("streamjoin.spec.prepare", ()),
        ("streamjoin.spark.source", ("pyspark.sql",)),
    ],
)
def test_an_import_brings_nothing_heavy_that_it_may_not_need(module: str, allowed: tuple[str, ...]) -> None:
    assert _brought(module, HEAVY) <= set(allowed)


@pytest.mark.parametrize("module", ["worker.up", "streamjoin.__main__"])
def test_the_api_begins_to_load_before_anything_else_does(module: str) -> None:
    assert not _brought(module, HEAVY + PLATFORM)


@pytest.mark.parametrize(
    "module",
    ["worker.platform", "worker.app", "worker.reconcile", "backend.catalog.migrate", "streamjoin.spark.session"],
)
def test_what_looks_after_jobs_loads_no_engine(module: str) -> None:
    assert not _brought(module, ENGINE)


def _brought(module: str, names: tuple[str, ...]) -> set[str]:
    script = f"import sys, {module}; print(*(name for name in {names!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())
