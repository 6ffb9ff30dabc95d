"""Places in nested models, such as `streams.orders.shed.base`: which fields there are, and what is said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo


def fields_at(model: type[BaseModel], place: Sequence[str]) -> list[str]:
    """The fields that a file may have at a place, such as `["streams", "orders", "shed"]`."""
    at: Any = model
    for part in place:
        at = _below(at, part)
    return [field.alias or name for name, field in at.model_fields.items()] if _is_model(at) else []


def fields_on(model: type[BaseModel], place: Sequence[str]) -> list[FieldInfo]:
    """The fields on the way to a place, outermost first, as far as models know them."""
    at: Any = model
    found = []
    for part in place:
        if _is_model(at) and (field := _field(at.model_fields, part)) is not None:
            found.append(field)
        at = _below(at, part)
    return found


def _below(at: Any, part: str) -> Any:
    if _is_model(at):
        field = _field(at.model_fields, part)
        return None if field is None else _plain(field.annotation)
    return _plain(get_args(at)[1]) if get_origin(at) is dict else None


def _field(fields: Mapping[str, FieldInfo], part: str) -> FieldInfo | None:
    return next((field for name, field in fields.items() if part in (name, field.alias)), None)


def _plain(annotation: Any) -> Any:
    """The model or mapping that a field may hold, among others."""
    choices = [_plain(choice) for choice in get_args(annotation)] if get_origin(annotation) is UnionType else []
    return next((choice for choice in choices if _is_model(choice) or get_origin(choice) is dict), annotation)


def _is_model(annotation: Any) -> bool:
    return get_origin(annotation) is None and isinstance(annotation, type) and issubclass(annotation, BaseModel)
