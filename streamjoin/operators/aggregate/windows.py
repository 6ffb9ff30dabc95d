"""Which windows a pane is in, and which of them end when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamjoin.plan.aggregate import Hopping


@dataclass(frozen=True, slots=True)
class Ending:
    """The windows that are given in a batch.

    Args:
        after_us, until_us: those whose end is later than the one and not later than the other; None for no bound.
    """

    windows: Hopping
    after_us: int | None
    until_us: int | None

    def numbers(self, panes: np.ndarray) -> np.ndarray:
        """The windows that have any of these panes, by their number from 1970, int64, in time's order.

        Args:
            panes: starts of panes that rise, int64.
        """
        first, last = self._spans(panes)
        begins = first.copy()
        if begins.size:
            # Later panes are in no earlier windows, so what was listed ends where the pane before ends.
            begins[1:] = np.maximum(first[1:], np.maximum.accumulate(last)[:-1] + 1)
        counts = np.maximum(last - begins + 1, 0)
        starts = np.cumsum(counts) - counts
        return np.repeat(begins - starts, counts) + np.arange(int(counts.sum()), dtype=np.int64)

    def _spans(self, panes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        windows = self.windows
        first, last = first_window(windows, panes), panes // windows.slide_us
        if self.after_us is not None:
            first = np.maximum(first, (self.after_us - windows.size_us) // windows.slide_us + 1)
        if self.until_us is not None:
            last = np.minimum(last, (self.until_us - windows.size_us) // windows.slide_us)
        return first, last


def first_window(windows: Hopping, panes: np.ndarray) -> np.ndarray:
    """The number of the earliest window that each pane is in."""
    return -((windows.size_us - windows.pane_us - panes) // windows.slide_us)


def first_end_us(windows: Hopping, panes: np.ndarray) -> np.ndarray:
    """When the earliest window ends that each pane is in."""
    return first_window(windows, panes) * windows.slide_us + windows.size_us


def last_end_us(windows: Hopping, panes: np.ndarray) -> np.ndarray:
    """When the latest window ends that each pane is in: its views are needed until then."""
    return panes // windows.slide_us * windows.slide_us + windows.size_us


def last_given_us(windows: Hopping, until_us: int) -> int:
    """The end of the latest window that ends at a moment or before it."""
    return (until_us - windows.size_us) // windows.slide_us * windows.slide_us + windows.size_us
