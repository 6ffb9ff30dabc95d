"""Values as people write them in a join file, and values as messages show them."""

from __future__ import annotations

import re
import reprlib
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

SLOTS_MAX = 4096
_COUNT_MAX = 2**53
_SPAN = re.compile(r"(-?[0-9]{1,30}(?:\.[0-9]{1,30})?)\s*(us|ms|s|sec|min|m|h|d)")
_SPAN_US = {
    "us": 1, "ms": 1_000, "s": 1_000_000, "sec": 1_000_000, "min": 60_000_000, "m": 60_000_000,
    "h": 3_600_000_000, "d": 86_400_000_000,
}  # fmt: skip
_SPAN_US_MAX = 100 * 366 * 86_400_000_000
_RATE = re.compile(r"([0-9]{1,30}(?:\.[0-9]{1,30})?)\s*/\s*(s|min|h)")
_RATE_S = {"s": 1, "min": 60, "h": 3600}
RATE_MAX = 1e12


def parse_span(value: object) -> int:
    """A span such as `2s`, `1.5 min` or `0s`, in us."""
    given = shown(value)
    match = _SPAN.fullmatch(str(value).strip())
    if match is None:
        raise ValueError(f"{given} is no span of time; write a number and us, ms, s, min, h or d, such as 2s")
    exact = Decimal(match[1]) * _SPAN_US[match[2]]
    if exact < 0:
        raise ValueError(f"{given} is negative; a span is 0s or longer")
    if exact != int(exact) or exact > _SPAN_US_MAX:
        raise ValueError(f"{given} is not a whole number of microseconds below 100 years")
    return int(exact)


def parse_rate(value: object) -> float:
    """A rate such as `1000/s` or 1000, a second."""
    given = shown(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        rate = float(value) if abs(value) <= RATE_MAX else RATE_MAX * 2
    elif match := _RATE.fullmatch(str(value).strip()):
        rate = float(match[1]) / _RATE_S[match[2]]
    else:
        raise ValueError(f"{given} is no rate; write 1000/s")
    if not 0 < rate <= RATE_MAX:
        raise ValueError(f"{given} is no rate; it must be above 0 and at most {RATE_MAX:g}/s, such as 1000/s")
    return rate


def _setting(value: object) -> object:
    """Spark's settings are texts; numbers and truth values mean the text that Spark reads."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def knob(value: Any) -> Any:
    """A knob of an operator; which ones it has, the operator checks."""
    is_list = isinstance(value, list)
    if is_list and not all(isinstance(item, int) and not isinstance(item, bool) for item in value):
        raise ValueError(f"{shown(value)} is no list of whole numbers")
    if not is_list and not isinstance(value, str | int | float):
        raise ValueError(f"{shown(value)} is neither a text nor a number nor a list of numbers")
    return value


def shown(value: object) -> str:
    """A value of the file in a message: short, and as YAML has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{cut(value)}"' if isinstance(value, str) else cut(reprlib.repr(value))


def cut(text: str) -> str:
    """A text of the file in a message: 100 letters at most, all printable."""
    printable = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text[:101])
    return printable if len(text) <= 100 else f"{printable[:97]}..."


Span = Annotated[
    int, BeforeValidator(parse_span), WithJsonSchema({"type": "string", "description": "A span of time, such as 2s."})
]
Rate = Annotated[
    float, BeforeValidator(parse_rate), WithJsonSchema({"type": ["number", "string"], "description": "Such as 1000/s."})
]
Count = Annotated[int, Field(ge=1, le=_COUNT_MAX, strict=True)]
Slots = Annotated[int, Field(ge=1, le=SLOTS_MAX, strict=True)]
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63, strict=True)]
Flag = Annotated[bool, Field(strict=True)]
Setting = Annotated[str, BeforeValidator(_setting)]
