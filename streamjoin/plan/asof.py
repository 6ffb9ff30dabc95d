"""As-of joins: each row of R with the one latest row of S that is not newer, or that is older, among equal keys."""

from __future__ import annotations

from dataclasses import dataclass

ENDS = "__ends"
"""Engine column of the stream S, where its rows may end their key: whether one does."""


@dataclass(frozen=True, slots=True)
class AsOf:
    """Which row of S a row of R gets. The window of its plan bounds how old that may be.

    Args:
        keeps: rows of R that get none are given too, with NULLs.
        older: the row of S must be older, where it may else be as old.
        values: a row of S without any of these columns ends its key: from then on there is none. Empty where no row
            does.
    """

    keeps: bool
    older: bool
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"ASOF{' LEFT' if self.keeps else ''} JOIN"
