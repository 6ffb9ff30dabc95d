"""A section with thousands of unknown fields: the first is reported, and the others cost nothing."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from streamjoin.settings import variants
from streamjoin.spec.joinfile import JoinFile

MANY = {f"f{i}": 0 for i in range(3000)}
FILE = {"source": "csv", "path": "/rows", "time": "ts"}


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ({"streams": {"s": {**FILE, **MANY}}}, ("streams", "s", "f0")),
        ({"streams": {"s": {**FILE, "csv": MANY}}}, ("streams", "s", "csv", "f0")),
        ({"streams": {}, "relations": {"r": {"source": "csv", "path": "/rows", **MANY}}}, ("relations", "r", "f0")),
    ],
)
def test_attack_of_thousands_of_unknown_fields_one_is_looked_at(
    content: dict[str, Any], place: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    near = variants.near
    monkeypatch.setattr(variants, "near", lambda name, known: asked.append(name) or near(name, known))
    with pytest.raises(ValidationError) as refused:
        JoinFile.model_validate({**content, "query": "SELECT ONLINE", "name": "many", "base": "/"})
    (error,) = refused.value.errors()
    assert (error["loc"], asked) == (place, ["f0"])
