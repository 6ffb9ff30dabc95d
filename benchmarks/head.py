"""What the page says of its parts before their figures: on what, when and at which commit they were measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.provenance import said

Results = Mapping[str, Mapping[str, Any]]
Part = Mapping[str, Any]

NO_FIGURES = (ArithmeticError, AttributeError, LookupError, StopIteration, TypeError, ValueError)
"""What sections and plots raise for a part that failed half-way."""
VERSIONS = {
    "pyspark": "Spark", "flink": "Flink", "java": "Java", "python": "Python", "pyarrow": "PyArrow", "numba": "Numba",
    "duckdb": "DuckDB",
}  # fmt: skip


def machine(results: Results) -> str:
    """What the parts were measured on; where they differ, what the newest was."""
    if not results:
        return "Nothing has been measured yet.\n"
    newest = _newest(results)
    described = newest["machine"]
    versions = ", ".join(f"{name} {described[key]}" for key, name in VERSIONS.items())
    busy = ", ".join(f"{name} {_busy(part)}" for name, part in results.items())
    after = ", and after it where that was looked at" if any("busy_after" in part for part in results.values()) else ""
    toy = "**Toy sizes: these numbers show that the programs work, and nothing else.**\n\n" if newest["quick"] else ""
    return (
        f"{toy}{described['cores']} cores ({described['model']}), {_shown(described, 'memory_bytes')}, "
        f"{described['system']}. {versions}. Every system has "
        f"{described['slots']} task slots. Time of the cores used by others before each part{after}: {busy}.\n"
    )


def _busy(part: Part) -> str:
    after = f" and {part['busy_after']:.0%}" if "busy_after" in part else ""
    return f"{part['busy_before']:.0%}{after}"


def _newest(results: Results) -> Part:
    return max(results.values(), key=lambda part: part["begun"])


def _shown(machine: Mapping[str, Any], key: str) -> str:
    """What a reader sees of it: a machine has some KiB more or less of memory each time it starts."""
    return f"{machine[key] / 2**30:.0f} GiB" if key == "memory_bytes" else str(machine[key])


def measured(part: Part, results: Results) -> str:
    """When and at which commit, and what was not as the page's beginning says."""
    own, usual = part["machine"], _newest(results)["machine"]
    kinds = {"cores": "cores", "model": "processor", "system": "system", "memory_bytes": "memory", **VERSIONS}
    other = [f"{name} {_shown(own, key)}" for key, name in kinds.items() if _shown(own, key) != _shown(usual, key)]
    return said(part["begun"], own["commit"], gone=own.get("commit_gone", False)) + (
        f" With {', '.join(other)}." if other else ""
    )


def warnings(part: Part) -> str:
    """What a reader has to know before the figures of a part; may be empty."""
    lines = []
    if not part["quiet"]:
        lines.append(
            f"\nThe machine was not idle before this part{' or after it' if 'busy_after' in part else ''} "
            f"({_busy(part)} of the cores' time): read it with care.\n"
        )
    if part.get("error"):
        lines.append(f"\nIncomplete: {one_line(part['error'])}\n")
    return "".join(lines)


def one_line(text: str) -> str:
    """The beginning of a message, on one line."""
    return " ".join(str(text).split())[:300]
