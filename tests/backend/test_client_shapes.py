"""The client's shapes are those of the API: the same fields, and None where the API may give none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args, get_type_hints, is_typeddict

import pytest

from streamjoin.client import shapes

SCHEMAS = json.loads((Path(__file__).resolve().parents[2] / "docs/openapi.json").read_text())["components"]["schemas"]
CALLED = {"FileEntry": "FileOut"}
"""Shapes that the API calls otherwise, beside those that end with `Out` there."""
OURS = {
    name: shape for name, shape in vars(shapes).items() if is_typeddict(shape) and name != "Seen"  # a part of two
}  # fmt: skip


def of_api(name: str) -> dict[str, Any]:
    """The API's schema of a shape."""
    found: dict[str, Any] = SCHEMAS[next(one for one in (CALLED.get(name), f"{name}Out", name) if one in SCHEMAS)]
    return found["properties"]


def test_the_shapes_were_found() -> None:
    assert {"Job", "Run", "Stream", "RejectedRow", "Sample"} <= OURS.keys()


@pytest.mark.parametrize("name", OURS)
def test_a_shape_has_the_fields_of_the_api(name: str) -> None:
    hints = get_type_hints(OURS[name])
    assert hints.keys() == of_api(name).keys()
    given = {field: type(None) in get_args(hint) for field, hint in hints.items()}
    told = {field: {"type": "null"} in one.get("anyOf", []) for field, one in of_api(name).items()}
    assert {field for field in told if told[field] and not given[field] and name != "Place"} == set()
