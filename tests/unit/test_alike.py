"""Suggestions for unknown names, wherever they are made, take only a moment."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

import pytest

from streamjoin import alike as room
from streamjoin.alike import ALL_LETTERS_MAX, LETTERS_MAX, alike
from streamjoin.plan.schema import no_column
from streamjoin.query.scope import suggest
from streamjoin.settings.variants import near

COLUMNS = 990
Told = Callable[[str, list[str]], str]
WHERE: list[Told] = [no_column, near, lambda wanted, known: suggest(wanted, {name: name for name in known})]


def names(letters: int) -> list[str]:
    """Names of two letters only, of which any two have much in common."""
    made = random.Random(1)
    return ["c" + "".join(made.choice("ab") for _ in range(letters - 1)) for _ in range(COLUMNS + 1)]


@pytest.mark.parametrize("told", WHERE)
@pytest.mark.parametrize("letters", [30, LETTERS_MAX, LETTERS_MAX + 1, 199])
def test_attack_names_that_are_long_and_alike_are_compared_for_a_moment_only(
    told: Told, letters: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 0

    def counted(wanted: str, known: Sequence[str], *args: Any) -> list[str]:
        nonlocal steps
        steps += sum(len(wanted) * len(name) for name in known)
        return get_close_matches(wanted, known, *args)

    monkeypatch.setattr(room, "get_close_matches", counted)
    wanted, *known = names(letters)
    said = told(wanted, known)
    assert any(name in said for name in known)  # what is meant, or what there is
    assert steps <= LETTERS_MAX * ALL_LETTERS_MAX
    assert (steps > 0) == (letters <= LETTERS_MAX)


def test_among_a_thousand_names_of_a_usual_length_the_last_one_is_found() -> None:
    known = [f"column_{number:04d}_xy" for number in range(1_000)]
    assert alike("COLUMN_0999xy", known, most=1, cutoff=0.7) == ["column_0999_xy"]


def test_long_names_hide_no_short_ones() -> None:
    assert alike("amont", ["a" * (LETTERS_MAX + 1), "Amount"], most=3, cutoff=0.6) == ["Amount"]


def test_a_long_name_is_like_no_other() -> None:
    assert alike("a" * (LETTERS_MAX + 1), ["a" * LETTERS_MAX], most=3, cutoff=0.6) == []
