"""Sections that come in kinds, such as the streams of several sources: which fields one takes is said by its kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from streamjoin.alike import alike
from streamjoin.settings.places import fields_at
from streamjoin.settings.setting import Settings
from streamjoin.settings.values import either, shown

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
        ValidationError: names the first unknown field, or all missing ones, with a sentence for each; or the wrong
            values.
    """
    known = fields_at(model, [])
    # Only the first is reported: finding out what was meant would take long for thousands.
    if extra := [name for name in value if name not in known]:
        raise refusal(model, [((extra[0],), _no_such_field(str(extra[0]), noun, known, kinds))])
    own = set().union(*(fields_at(kind, []) for kind in kinds.values()))
    needed = {field.alias or name: field for name, field in model.model_fields.items() if field.is_required()}
    if missing := [name for name in needed if name in own and name not in value]:
        says = {name: needed[name].description for name in missing}
        raise refusal(model, [((name,), f"is missing; {noun} needs it: {says[name]}") for name in missing])
    try:
        return model.model_validate(value)
    except ValidationError as wrong:
        place = next((error["loc"] for error in wrong.errors() if error["type"] == "extra_forbidden"), None)
        if place is None:
            raise
        # Below its fields only its own model knows which others there are.
        raise refusal(model, [(place, _hint(model, place))]) from None


def chosen(value: Mapping[str, Any], tag: str, kinds: Iterable[str]) -> str:
    """The kind that a section names.

    Raises:
        ValidationError: it names none, or one that there is not.
    """
    names = list(kinds)
    if tag not in value:
        *others, last = names
        raise refusal(BaseModel, [((tag,), f"is missing; it is {', '.join(others)} or {last}")])
    if (name := value[tag]) not in names:
        empty = "is empty; give it a value or leave the field out"
        wrong = empty if name is None else f"must be {either(names)}, not {shown(name)}"
        raise refusal(BaseModel, [((tag,), wrong)])
    return str(name)


def refusal(model: type[BaseModel], wrong: Sequence[tuple[tuple[int | str, ...], str]]) -> ValidationError:
    """Errors with a place and a sentence each; an empty place is the section itself."""
    errors = [
        InitErrorDetails(type=PydanticCustomError(REFUSED, "{says}", {"says": says}), loc=place, input=None)
        for place, says in wrong
    ]
    return ValidationError.from_exception_data(model.__name__, errors)


def _hint(model: type[BaseModel], place: tuple[int | str, ...]) -> str:
    *above, name = map(str, place)
    return near(name, fields_at(model, above))


def near(name: str, known: list[str]) -> str:
    """The message for an unknown field: it names the one that was probably meant, or else all of them."""
    found = alike(name, known, most=1, cutoff=0.6)
    hint = f'did you mean "{found[0]}"?' if found else f"fields here are {', '.join(known)}"
    return f"there is no such field; {hint}"


def _no_such_field(name: str, noun: str, known: list[str], kinds: Mapping[str, type[Settings]]) -> str:
    takers = [kind for kind, model in kinds.items() if name in fields_at(model, [])]
    return f"{noun} takes no such field; it is for {' and '.join(takers)}" if takers else near(name, known)
