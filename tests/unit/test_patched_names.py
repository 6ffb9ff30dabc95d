"""What tests put something else in place of is there: a name that has moved would fail in a stage that is run last."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parents[1]
PROJECT = ("streamjoin", "backend", "worker", "benchmarks")


def imported(tree: ast.Module) -> dict[str, Any]:
    """The modules and classes of the project that a file imports, by what it calls them."""
    found: dict[str, Any] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.module or node.module.split(".")[0] not in PROJECT:
            continue
        for alias in node.names:
            holder = importlib.import_module(node.module)
            if not hasattr(holder, alias.name):
                importlib.import_module(f"{node.module}.{alias.name}")
            found[alias.asname or alias.name] = getattr(holder, alias.name)
    return {name: value for name, value in found.items() if is_holder(value)}


def is_holder(value: Any) -> bool:
    """Whether it is a module or a class."""
    return inspect.ismodule(value) or inspect.isclass(value)


def patched(tree: ast.Module, known: Mapping[str, Any]) -> Iterator[tuple[int, Any, str]]:
    """(line, module or class, name) of each pair of these two that is given to `setattr` or stands in a tuple."""
    for node in ast.walk(tree):
        is_patch = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr"
        given = node.args if is_patch else node.elts if isinstance(node, ast.Tuple) else []
        match given:
            case [ast.Name(id=holder), ast.Constant(value=str(name)), *_] if name.isidentifier() and holder in known:
                yield node.lineno, known[holder], name
            case [ast.Attribute(ast.Name(id=holder), attr=within), ast.Constant(value=str(name)), *_] if (
                name.isidentifier() and is_holder(found := getattr(known.get(holder), within, None))
            ):
                yield node.lineno, found, name


@pytest.mark.slow
def test_what_tests_patch_is_there() -> None:
    names, missing = 0, []
    for path in sorted(TESTS.rglob("test_*.py")):
        tree = ast.parse(path.read_text())
        for line, holder, name in patched(tree, imported(tree)):
            names += 1
            if not hasattr(holder, name):
                missing.append(f"{path.relative_to(TESTS)}:{line}: {holder.__name__} has no {name}")
    assert names > 200
    assert not missing


def test_a_name_that_has_moved_is_found() -> None:
    tree = ast.parse('from streamjoin.engine import loop\n\nmonkeypatch.setattr(loop, "hearing", None)\n[(loop, "x")]')
    found = [(line, name) for line, holder, name in patched(tree, imported(tree)) if not hasattr(holder, name)]
    assert found == [(3, "hearing"), (4, "x")]
