"""Up to where all results of a chain have been found.

A pair (r, s) has met iff r's worker is not left of s's. So a pair that has not met lies on both sides of some link, r
to the left of it and s to the right; at each link the newer one of the two oldest that do so is what counts.
"""

from __future__ import annotations

import numpy as np

NO_TUPLE = np.iinfo(np.int64).max
"""In place of a worker's lowest number, where it has no tuple."""


def settled(oldest_r: np.ndarray, oldest_s: np.ndarray, most: int) -> int:
    """The least number that the newer tuple of a pair can have that has not met; at most `most`.

    Args:
        oldest_r, oldest_s: the lowest number of R's and of S's tuples in each worker, left to right; int64 of shape
            (m,). Sequence numbers, or event times.
    """
    left_of = np.minimum.accumulate(oldest_r)[:-1]
    right_of = np.minimum.accumulate(oldest_s[::-1])[::-1][1:]
    return min(most, int(np.maximum(left_of, right_of).min(initial=most)))
