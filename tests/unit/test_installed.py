"""What users install: the program and the platform, and nothing that only tests and the pages of figures need."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"][
    "packages"
]
OURS = {path.parent.name for path in ROOT.glob("*/__init__.py")}


def test_what_is_installed_has_no_simulated_protocols_and_no_benchmarks() -> None:
    assert {"simulate", "benchmarks", "demo", "tests"} <= OURS
    assert set(INSTALLED) == {"streamjoin", "backend", "worker", "migrations"}
    assert not [path for name in INSTALLED for path in (ROOT / name).rglob("*.py") if "simulate" in path.parts]


@pytest.mark.parametrize("name", INSTALLED)
def test_what_is_installed_imports_nothing_that_is_not(name: str) -> None:
    imported = {
        top: f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / name).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        for top in _imported(node)
    }
    assert imported.keys() & OURS, "it did look"
    assert not {top: where for top, where in imported.items() if top in OURS - set(INSTALLED)}


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module.partition(".")[0]]
    return []
