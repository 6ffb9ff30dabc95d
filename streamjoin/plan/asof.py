"""As-of joins: each row of R with the one latest row of S that is not newer, or that is older, among equal keys."""

from __future__ import annotations

from dataclasses import dataclass

from streamjoin.plan.expression import Column

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
        at: the time by which a row of R looks for one of S, in us; None where it is the row's own. A row of a flow has
            the time of its newest part, and may look by that of another one.
        at_lags_us: no row's `at` is older than the row by more; None where it may be as old as you like.
    """

    keeps: bool
    older: bool
    values: tuple[str, ...] = ()
    at: Column | None = None
    at_lags_us: int | None = None

    @property
    def kind(self) -> str:
        """What stands before JOIN."""
        return "ASOF LEFT" if self.keeps else "ASOF"

    def __str__(self) -> str:
        return f"{self.kind} JOIN"
