"""What is said of each stream of a query: orders such as `{a: [b, c]}`, and numbers such as `{a: 2}`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from streamjoin.errors import InputError
from streamjoin.settings.text import read_yaml
from streamjoin.settings.values import UNITS_MAX, Whole, shown

_STREAMS_MAX = 9
_LETTERS_MAX = 10_000
"""Of such a text: nine orders of eight names each are shorter."""
_LENGTH = Whole(1, UNITS_MAX)


def parse_orders(value: object) -> dict[str, list[str]] | None:
    """Orders as they are written, in YAML or as text.

    Raises:
        ValueError: they are none.
    """
    example = "write the other streams in order, such as {a: [b, c]}"
    found = _by_stream(value, example)
    for name, order in (found or {}).items():
        if not isinstance(order, list) or not all(isinstance(one, str) and one for one in order):
            raise ValueError(f"the order for {name} must be a list of streams, not {shown(order)}; {example}")
    return found


def parse_lengths(value: object) -> dict[str, int] | None:
    """Numbers of nodes as they are written, in YAML or as text.

    Raises:
        ValueError: they are none.
    """
    found = _by_stream(value, "write how many nodes keep a stream, such as {a: 2}")
    for name, length in (found or {}).items():
        try:
            _LENGTH.checked(length)
        except ValueError as wrong:
            raise ValueError(f"for {name}: {wrong}") from None
    return found


def _by_stream(value: object, example: str) -> dict[str, Any] | None:
    if isinstance(value, str):
        if len(value) > _LETTERS_MAX:
            raise ValueError(f"this text has more than {_LETTERS_MAX:,} letters, which is the limit; {example}")
        try:
            value = read_yaml(value)
        except InputError:
            raise ValueError(f"this says nothing of streams; {example}") from None
    if value is None:
        return None
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value) or len(value) > _STREAMS_MAX:
        raise ValueError(f"{shown(value)} says nothing of streams; {example}")
    return value


OrdersSetting = Annotated[
    Any,
    BeforeValidator(parse_orders),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
                {"type": "string"},
            ]
        }
    ),
]
LengthsSetting = Annotated[
    Any,
    BeforeValidator(parse_lengths),
    WithJsonSchema(
        {"anyOf": [{"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}}, {"type": "string"}]}
    ),
]
