"""Input that is wrong in thousands of places costs no more than input that is wrong in a few."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator
from pydantic_core import PydanticKnownError


class Given(BaseModel):
    """Unknown fields are errors. If an input has more than the model, only the first unknown one is reported."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _with_one_unknown(cls, given: Any) -> Any:
        fields = cls.model_fields
        if not isinstance(given, dict) or len(given) <= len(fields):
            return given
        known = {name for field, about in fields.items() for name in (field, about.alias)}
        first = next((name for name in given if name not in known), None)
        return {name: value for name, value in given.items() if name in known or name == first}


def at_most(entries: int) -> BeforeValidator:
    """Count the entries of a dictionary before any of them is checked. `Field(max_length=...)` documents the limit.

    Pydantic by itself checks each entry first, reports every wrong one, and counts only the right ones.
    """

    def check(given: Any) -> Any:
        if isinstance(given, dict) and len(given) > entries:
            about = {"field_type": "Dictionary", "max_length": entries, "actual_length": len(given)}
            raise PydanticKnownError("too_long", about)
        return given

    return BeforeValidator(check)
