"""Orders and numbers of nodes that are given as text, which is YAML inside of a join file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from streamjoin.settings.orders import parse_lengths, parse_orders


def test_a_text_says_what_the_same_yaml_says() -> None:
    assert parse_orders("{a: [b, c], b: [a, c]}") == {"a": ["b", "c"], "b": ["a", "c"]}
    assert parse_lengths("{a: 2, on: 3}") == {"a": 2, "on": 3}
    assert parse_orders("") is None


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_orders, "{a: &one [b, c], b: *one}"),
        (parse_lengths, "{a: &one 2, b: *one}"),
        (parse_orders, "{a: [b], a: [c]}"),
        (parse_lengths, "<<: &one {a: 2}\nb: 3\n<<: [*one, *one]"),
    ],
)
def test_attack_nothing_in_a_text_of_orders_multiplies(parse: Callable[[object], Any], text: str) -> None:
    assert yaml.safe_load(text)  # YAML's own loader takes it
    with pytest.raises(ValueError, match="this says nothing of streams"):
        parse(text)


def test_attack_a_long_text_of_orders_is_not_parsed() -> None:
    long = "{" + ", ".join(f"stream_{number}: 2" for number in range(9)) + " " * 10_000 + "}"
    with pytest.raises(ValueError, match="more than 10,000 letters"):
        parse_lengths(long)
