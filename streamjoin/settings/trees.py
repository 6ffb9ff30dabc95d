"""What is joined with what, as people write it: `[[a, b], c]`, in YAML or as text."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

NamedTree = str | tuple["NamedTree", "NamedTree"]
"""A stream by its name, or two trees."""

NESTED_MAX = 9
_EXAMPLE = "write two streams, or trees of them, in brackets, such as [[a, b], c]"
_NOT_A_TREE = f"this is not a tree of joins; {_EXAMPLE}"
_PART = re.compile(r"\s*([\[\](),]|[^\s\[\](),]+)\s*")


def parse_tree(value: object) -> NamedTree | None:
    """A tree as it is written.

    Raises:
        ValueError: it is none.
    """
    if value is None:
        return None
    found = _nested(_read(value) if isinstance(value, str) else value, NESTED_MAX)
    if isinstance(found, str):
        raise ValueError(f"{found} alone is not joined with anything; {_EXAMPLE}")
    return found


def _nested(value: object, depth: int) -> NamedTree:
    if isinstance(value, str) and value.strip():
        return value.strip()
    if not isinstance(value, list | tuple) or len(value) != 2 or not depth:
        raise ValueError(_NOT_A_TREE)
    left, right = (_nested(part, depth - 1) for part in value)
    return left, right


def _read(text: str) -> object:
    """Brackets and names as nested lists."""
    open_lists: list[list[object]] = [[]]
    at = 0
    while at < len(text):
        match = _PART.match(text, at)
        if match is None or len(open_lists) > NESTED_MAX + 1:
            raise ValueError(_NOT_A_TREE)
        at = match.end()
        if match[1] in "[(":
            open_lists.append([])
            open_lists[-2].append(open_lists[-1])
        elif match[1] in "])":
            open_lists.pop()
            if not open_lists:
                raise ValueError(f"a bracket too many is closed; {_EXAMPLE}")
        elif match[1] != ",":
            # In JSON, as forms show it, names stand in quotes.
            open_lists[-1].append(match[1].strip("\"'"))
    if len(open_lists) != 1 or len(open_lists[0]) != 1:
        raise ValueError(_NOT_A_TREE)
    return open_lists[0][0]


TreeSetting = Annotated[
    Any,
    BeforeValidator(parse_tree),
    WithJsonSchema({"anyOf": [{"type": "array", "minItems": 2, "maxItems": 2}, {"type": "string"}]}),
]
