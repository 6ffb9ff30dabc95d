"""What comes from outside costs no more for being wrong in thousands of places than in a few."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator
from pydantic_core import PydanticKnownError


class Given(BaseModel):
    """Unknown fields are mistakes. Where there are more than it has fields, the first of them alone is told."""

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
    """Counts the entries of a dictionary before it looks at them; `Field(max_length=...)` before it describes that.

    Pydantic itself counts those that are right, and tells of each that is wrong.
    """

    def check(given: Any) -> Any:
        if isinstance(given, dict) and len(given) > entries:
            about = {"field_type": "Dictionary", "max_length": entries, "actual_length": len(given)}
            raise PydanticKnownError("too_long", about)
        return given

    return BeforeValidator(check)
