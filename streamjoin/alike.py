"""Names that look like one that there is not: what a person probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

LETTERS_MAX: Final = 63
ALL_LETTERS_MAX: Final = 16_384
"""Of all known names that are compared together: enough for a thousand of sixteen letters."""


def alike(wanted: str, known: Iterable[str], *, most: int, cutoff: float) -> list[str]:
    """The known names that look like `wanted` in whatever case, the likest first.

    Args:
        most: so many at most.
        cutoff: how like they have to be, from 0 to 1.
    Cost: a tenth of a second at most. Two names take the product of their lengths, so those above `LETTERS_MAX` are
        not compared, and of the others the first `ALL_LETTERS_MAX` letters.
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
