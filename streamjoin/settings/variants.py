"""Sections that come in kinds, such as the streams of several sources: which fields one takes is said by its kind."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from streamjoin.settings.setting import Settings

REFUSED = "refused"
"""The type of errors whose message is the whole sentence."""
Model = TypeVar("Model", bound=BaseModel)


def as_kind(model: type[Model], value: Mapping[str, Any], noun: str, kinds: Mapping[str, type[Settings]]) -> Model:
    """A section of one kind.

    Args:
        model: with the fields of every such section, and those of the kind.
        noun: what a section of the kind is called, such as `a kafka stream`.
        kinds: the settings of all kinds, by name: says for whom a field is that this one does not take.
    Raises:
        ValidationError: of fields that it does not take, or lacks, with a sentence for each; or of wrong values.
    """
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    wrong = [(name, _no_such_field(str(name), noun, list(fields), kinds)) for name in value if name not in fields]
    wrong += [] if wrong else [
        (name, f"is missing; {noun} needs {field.description}")
        for name, field in fields.items()
        if field.is_required() and name not in value
    ]  # fmt: skip
    if wrong:
        raise refusal(model.__name__, wrong)
    return model.model_validate(value)


def refusal(title: str, wrong: list[tuple[str, str]]) -> ValidationError:
    """Errors with a field and a sentence each; with an empty field one is about all of it."""
    errors = [
        InitErrorDetails(
            type=PydanticCustomError(REFUSED, "{says}", {"says": says}), loc=(field,) if field else (), input=None
        )
        for field, says in wrong
    ]
    return ValidationError.from_exception_data(title, errors)


def _no_such_field(name: str, noun: str, known: list[str], kinds: Mapping[str, type[Settings]]) -> str:
    takers = [kind for kind, model in kinds.items() if name in _names(model)]
    if takers:
        return f"{noun} takes no such field; it is for {' and '.join(takers)}"
    near = difflib.get_close_matches(name, known, 1)
    hint = f'did you mean "{near[0]}"?' if near else f"fields here are {', '.join(known)}"
    return f"there is no such field; {hint}"


def _names(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}
