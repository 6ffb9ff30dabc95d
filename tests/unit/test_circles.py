"""No two files and no two rooms import each other, whether at the top of a file, inside a function or for types alone.

A room is a package with all that is in it. Beside each other stand the modules and packages of one package, and the
packages at the root. One that is imported by what it imports, directly or round several corners, is in a circle.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("streamjoin", "backend", "worker", "demo", "benchmarks", "simulate")
BY_NAME = ("import_module", "platform_part")
"""Functions that import the module whose name they are given."""

Imports = Mapping[str, Mapping[str, int]]
"""By module, which others it imports, and in which line."""

ALLOWED: Mapping[tuple[str, str], str] = {
    ("streamjoin.__main__", "worker.up"): "`streamjoin up` is a command of the program, and starts the platform",
    (
        "streamjoin.cli.platform.server",
        "worker.commands",
    ): "all others for who runs it ask this one module",
}
"""Imports that close a circle and still may, each with its reason. One that no longer does must leave this list."""


def test_no_two_files_and_no_two_rooms_import_each_other() -> None:
    imports = _ours()
    assert len(imports) > 400  # it did look
    found = _circles(_without(imports, ALLOWED))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("edge", ALLOWED, ids="->".join)
def test_every_circle_that_is_allowed_is_there(edge: tuple[str, str]) -> None:
    imports = _ours()
    assert edge[1] in imports[edge[0]], "it is gone: take it off the list"
    assert _circles(_without(imports, ALLOWED.keys() - {edge})), "it closes no circle: take it off the list"


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"a.x": "from r.a.y import Y", "a.y": "import r.a.x"}, id="two files"),
        pytest.param({"a.x": "from . import y", "a.y": "from .x import X"}, id="by relative names"),
        pytest.param({"a.x": "def f():\n    from r.a import y", "a.y": "from r.a.x import X"}, id="inside a function"),
        pytest.param(
            {"a.x": "if TYPE_CHECKING:\n    from r.a.y import Y", "a.y": "from r.a.x import X"}, id="for types alone"
        ),
        pytest.param({"a.x": "import_module('r.b')", "b.y": "from r.a.x import X"}, id="by name"),
        pytest.param({"a.x": "import r.b.x", "b.y": "import r.a.y", "b.x": "", "a.y": ""}, id="two rooms"),
        pytest.param(
            {"a.x": "import r.b.x", "b.x": "import r.c.x", "c.x": "import r.a.y", "a.y": ""}, id="three rooms"
        ),
        pytest.param({"a": "import r.b.x", "b.x": "import r.a"}, id="a room and a file beside it"),
    ],
)
def test_a_circle_is_found(files: dict[str, str], tmp_path: Path) -> None:
    _write(tmp_path, files)
    assert _circles(_imports(tmp_path, ["r"]))


def test_what_goes_one_way_is_no_circle(tmp_path: Path) -> None:
    _write(tmp_path, {"a.x": "import r.b.x, r.a.y", "a.y": "import r.b.y", "b.x": "import r.b.y", "b.y": "import os"})
    assert not _circles(_imports(tmp_path, ["r"]))


@cache
def _ours() -> Imports:
    return _imports(ROOT, ROOMS)


def _write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root.joinpath("r", *name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for folder in [root / "r", *(path for path in (root / "r").iterdir() if path.is_dir())]:
        (folder / "__init__.py").touch()


def _imports(root: Path, rooms: Collection[str]) -> Imports:
    files = {}
    for path in (path for room in rooms for path in (root / room).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if any(part.startswith(".") for part in parts):  # Not ours: Flink's own environment is below benchmarks/.
            continue
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {name: dict(_imported(name, path, files)) for name, path in files.items()}


def _imported(name: str, path: Path, files: Mapping[str, Path]) -> Iterator[tuple[str, int]]:
    """The modules among `files` that one imports, and where."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import():
                wanted = [alias.name for alias in node.names]
            case ast.ImportFrom():
                above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
                base = ".".join([*above, *([node.module] if node.module else [])])
                # What is imported from a package is one of its modules, or is in the package itself.
                inside = [f"{base}.{alias.name}" for alias in node.names]
                wanted = [one if one in files else base for one in inside]
            case ast.Call(ast.Name(called) | ast.Attribute(attr=called), [ast.Constant(value=str(text)), *_]) if (
                called in BY_NAME
            ):
                wanted = [text]
            case _:
                continue
        yield from ((one, node.lineno) for one in wanted if one in files and one != name)


def _without(imports: Imports, edges: Collection[tuple[str, str]]) -> Imports:
    return {
        name: {other: line for other, line in others.items() if (name, other) not in edges}
        for name, others in imports.items()
    }


def _circles(imports: Imports) -> list[str]:
    """Every circle of what stands beside each other, with the imports that close it; files by themselves as well."""
    beside: dict[str, dict[str, dict[str, list[str]]]] = {"": {}}
    for name, others in imports.items():
        for other, line in others.items():
            where = f"{name}:{line} -> {other}"
            beside[""].setdefault(name, {}).setdefault(other, []).append(where)
            room, a, b = _parted(name, other)
            if a != b:
                beside.setdefault(f"in {room or 'the project'}: ", {}).setdefault(a, {}).setdefault(b, []).append(where)
    found = []
    for room, graph in beside.items():
        for circle in _strongly_connected(graph):
            within = [where for a in circle for b in circle for where in graph[a].get(b, ())]
            found.append(f"{room or 'files: '}{' <-> '.join(circle)}\n  " + "\n  ".join(within))
    return found


def _parted(name: str, other: str) -> tuple[str, str, str]:
    """The innermost room that holds both, and what of it holds each; a package and what is in it are one."""
    a, b = name.split("."), other.split(".")
    depth = next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return ".".join(a[:depth]), ".".join(a[: depth + 1]), ".".join(b[: depth + 1])


def _strongly_connected(graph: Mapping[str, Mapping[str, object]]) -> list[list[str]]:
    """Groups of two and more that reach each other. Cost: a search from each of n modules, n times the edges."""
    reached = {name: _reached(graph, name) for name in graph}
    groups = {tuple(sorted(other for other in reached[name] if name in reached.get(other, ()))) for name in graph}
    return sorted(list(group) for group in groups if len(group) > 1)


def _reached(graph: Mapping[str, Mapping[str, object]], start: str) -> set[str]:
    reached: set[str] = set()
    todo = [start]
    while todo:
        new = graph.get(todo.pop(), {}).keys() - reached
        reached |= new
        todo += new
    return reached
