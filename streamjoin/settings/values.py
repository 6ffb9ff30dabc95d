"""Values as people write them in a join file, and values as messages show them."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, get_args

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema, core_schema

SLOTS_MAX = 4096
UNITS_MAX = 4096
"""Of any kind of unit: a join has at most so many."""
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
_SIZE = re.compile(r"([0-9]{1,15})\s*([mgt])(?:i?b)?")
_SIZE_SHIFTS = {"m": 20, "g": 30, "t": 40}


def parse_span(value: object) -> int:
    """A span such as `2s`, `1.5 min` or `0s`, in us."""
    given = shown(value)
    match = _SPAN.fullmatch(str(value).strip())
    if match is None:
        raise ValueError(f"{given} is not a span of time; write a number and us, ms, s, min, h or d, such as 2s")
    exact = Decimal(match[1]) * _SPAN_US[match[2]]
    if exact < 0:
        raise ValueError(f"{given} is negative; a span is 0s or longer")
    if exact != int(exact) or exact > _SPAN_US_MAX:
        raise ValueError(f"{given} is not a whole number of microseconds below 100 years")
    return int(exact)


def parse_size(value: object) -> int:
    """A size such as `200g` or `512 MiB`, in bytes; letters stand for powers of 1024."""
    given = shown(value)
    match = _SIZE.fullmatch(str(value).strip().lower())
    if match is None:
        raise ValueError(f"{given} is not a size; write a whole number and m, g or t, such as 200g")
    size = int(match[1]) << _SIZE_SHIFTS[match[2]]
    if not 1 << 20 <= size <= _COUNT_MAX:
        raise ValueError(f"{given} is no size that holds anything; write 1m or more")
    return size


def parse_rate(value: object) -> float:
    """A rate such as `1000/s` or 1000, a second."""
    given = shown(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        rate = float(value) if abs(value) <= RATE_MAX else RATE_MAX * 2
    elif match := _RATE.fullmatch(str(value).strip()):
        rate = float(match[1]) / _RATE_S[match[2]]
    else:
        raise ValueError(f"{given} is not a rate; write 1000/s")
    if not 0 < rate <= RATE_MAX:
        raise ValueError(f"{given} is not a rate; it must be above 0 and at most {RATE_MAX:g}/s, such as 1000/s")
    return rate


def _setting(value: object) -> object:
    """Spark's settings are texts; numbers and truth values mean the text that Spark reads."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


@dataclass(frozen=True, slots=True)
class Whole:
    """In an annotation: a whole number from `least` to `most`, and nothing that only looks like one."""

    least: int
    most: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The schema of a bounded integer after the check."""
        return core_schema.no_info_before_validator_function(
            self.checked, core_schema.int_schema(ge=self.least, le=self.most)
        )

    def checked(self, value: object) -> object:
        """The value.

        Raises:
            ValueError: it is something else, or out of bounds.
        """
        if isinstance(value, bool) or not isinstance(value, int) or not self.least <= value <= self.most:
            raise ValueError(f"{shown(value)} is not a whole number from {self.least} to {self.most}")
        return value


@dataclass(frozen=True, slots=True)
class Choice:
    """In an annotation of an enumeration or a Literal: an error says what it is a choice of, and lists all."""

    noun: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The schema of the choices after the check."""
        is_enum = isinstance(source, type) and issubclass(source, Enum)
        known = [str(one.value) for one in source] if is_enum else [str(one) for one in get_args(source)]

        def checked(value: object) -> object:
            if value not in known:
                raise ValueError(f"{shown(value)} is not a valid {self.noun}; use {', '.join(known)}")
            return value

        return core_schema.no_info_before_validator_function(checked, handler(source))


def _keys(value: object) -> object:
    if not isinstance(value, list) or not all(isinstance(item, int) and not isinstance(item, bool) for item in value):
        raise ValueError(f"{shown(value)} is not a list of whole numbers")
    return value


def _names(value: object) -> object:
    if not isinstance(value, list | tuple) or not value or not all(isinstance(item, str) and item for item in value):
        raise ValueError(f"{shown(value)} is not a list of names; write one or more, such as [sym]")
    return value


def shown(value: object) -> str:
    """A value of the file in a message: short, and as YAML has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{cut(value)}"'
    try:
        return cut(reprlib.repr(value))
    except ValueError:  # in hexadecimal, or by 60, YAML reads numbers that Python does not show
        return "a number of thousands of digits"


def either(choices: Iterable[str]) -> str:
    """Texts to choose from, as a sentence has them."""
    *others, last = (f"'{choice}'" for choice in choices)
    return f"{', '.join(others)} or {last}" if others else last


def cut(text: str) -> str:
    """A text of the file in a message: 100 letters at most, all printable."""
    printable = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text[:101])
    return printable if len(text) <= 100 else f"{printable[:97]}..."


Size = Annotated[int, BeforeValidator(parse_size), WithJsonSchema({"type": "string", "description": "Such as 200g."})]
Span = Annotated[int, BeforeValidator(parse_span), WithJsonSchema({"type": "string", "format": "span"})]
Rate = Annotated[
    float, BeforeValidator(parse_rate), WithJsonSchema({"type": ["number", "string"], "description": "Such as 1000/s."})
]
Count = Annotated[int, Field(ge=1, le=_COUNT_MAX, strict=True)]
Keys = Annotated[list[int], BeforeValidator(_keys)]
Names = Annotated[list[str], BeforeValidator(_names)]
Units = Annotated[int, Whole(1, UNITS_MAX)]
Port = Annotated[int, Field(ge=1, le=65_535, strict=True)]
Slots = Annotated[int, Field(ge=1, le=SLOTS_MAX, strict=True)]
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63, strict=True)]
Flag = Annotated[bool, Field(strict=True)]
Setting = Annotated[str, BeforeValidator(_setting), WithJsonSchema({"type": ["string", "number", "boolean"]})]
