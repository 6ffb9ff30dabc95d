"""JSON lines of which most values agree: what is left when the others are taken out, for a guess of columns."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from streamjoin.sources.nesting import DEPTH_MAX, depth_of

_INT64_MAX = 2**63 - 1


def agreeing(lines: bytes) -> bytes:
    """The lines that are objects whose values are of the kind that most lines have there.

    The others become bad records when they are read, so that one of them is no reason to refuse its file. Lines that
    are nested too deeply for a guess are left out, too.

    Args:
        lines: a beginning of a file; of a megabyte at most, since Python reads it.
    Returns:
        Whole lines; none if no line is an object.
    """
    kinds: list[tuple[bytes, list[tuple[str, str]]]] = []
    for line in lines.split(b"\n"):
        try:
            found = json.loads(line, object_pairs_hook=_without_twins)
            if isinstance(found, dict) and depth_of(line) <= DEPTH_MAX:
                kinds.append((line, list(_kinds(found))))
        except (ValueError, RecursionError):
            continue
    counts = Counter(kind for _, of_line in kinds for kind in of_line)
    usual: dict[str, str] = {}
    for (path, kind), _ in counts.most_common():  # of equally frequent ones the first that came
        usual.setdefault(path, kind)
    kept = [line for line, of_line in kinds if all(usual[path] == kind for path, kind in of_line)]
    return b"".join(line + b"\n" for line in kept)


def _kinds(fields: dict[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """(path, kind) of each value that is there; a null is of any kind."""
    for name, value in fields.items():
        path = f"{above}/{name}"
        if isinstance(value, dict):
            yield path, "object"
            yield from _kinds(value, path)
        elif isinstance(value, bool):
            yield path, "truth"
        elif isinstance(value, int | float):
            yield path, "number" if abs(value) <= _INT64_MAX else "number beyond int64"
        elif value is not None:
            yield path, type(value).__name__


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands there twice")
    return found
