"""Places for answers that are open at once: so many in all, and fewer for one actor, so that nobody has all of them."""

from __future__ import annotations

import threading
from collections import Counter

from backend.problems import Problem


class Slots:
    """Safe for threads.

    Args:
        most: in all.
        most_of_one: of one actor.
    """

    def __init__(self, most: int, most_of_one: int) -> None:
        self.most = most
        self.most_of_one = most_of_one
        self._taken: Counter[str | None] = Counter()
        self._lock = threading.Lock()

    @property
    def taken(self) -> int:
        """How many are taken."""
        return self._taken.total()

    def take(self, actor: str | None) -> None:
        """Take one.

        Args:
            actor: whose; None where everybody is the same, and only `most` counts.
        Raises:
            Problem: all are taken, or all that this actor may have.
        """
        with self._lock:
            if actor is not None and self._taken[actor] >= self.most_of_one:
                raise _too_many("too_many_answers_of_yours", f"{self.most_of_one} answers of yours are being read")
            if self._taken.total() >= self.most:
                raise _too_many("too_many_answers", f"{self.most} answers are being read")
            self._taken[actor] += 1

    def give(self, actor: str | None) -> None:
        """Give one back."""
        with self._lock:
            self._taken[actor] -= 1
            if not self._taken[actor]:
                del self._taken[actor]


def _too_many(subcode: str, what: str) -> Problem:
    return Problem(f"rate_limited.{subcode}", f"{what}; ask again in a moment", headers={"Retry-After": "1"})
