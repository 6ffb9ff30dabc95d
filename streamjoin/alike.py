"""Known names that look like an unknown one: what a person probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

LETTERS_MAX: Final = 63
ALL_LETTERS_MAX: Final = 16_384
"""Letters compared in all: enough for a thousand names of sixteen letters."""


def alike(wanted: str, known: Iterable[str], *, most: int, cutoff: float) -> list[str]:
    """The known names that look like `wanted` in whatever case, the likest first.

    Args:
        most: how many to return at most.
        cutoff: how similar they must be, from 0 to 1.
    Cost: a tenth of a second at most. Comparing two names takes the product of their lengths, so names above
        `LETTERS_MAX` letters are left out, and after `ALL_LETTERS_MAX` letters in all no more names are compared.
    """
    if len(wanted) > LETTERS_MAX:
        return []
    compared: dict[str, str] = {}
    left = ALL_LETTERS_MAX
    for name in known:
        if len(name) > LETTERS_MAX:
            continue
        left -= len(name)
        if left < 0:
            break
        compared[name.lower()] = name
    return [compared[name] for name in get_close_matches(wanted.lower(), compared, most, cutoff)]
