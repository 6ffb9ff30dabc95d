"""What answers hold in memory until their clients have read them: bounded for each, for one actor, and for all.

Most answers are read as they are given and hold next to nothing. The last values of groups that change are found before
the first row leaves, as aggregates are, and stay until the last one has.
"""

from __future__ import annotations

import threading
from collections import Counter

from backend.problems import Problem
from streamjoin.errors import InputError


class Holding:
    """Safe for threads.

    Args:
        of_answer, of_actor, bytes_max: so many bytes may one answer hold, all of one actor, and all.
    """

    def __init__(self, of_answer: int, of_actor: int, bytes_max: int) -> None:
        self.of_answer = of_answer
        self.of_actor = of_actor
        self.bytes_max = bytes_max
        self._held: Counter[str | None] = Counter()
        self._lock = threading.Lock()

    @property
    def bytes(self) -> int:
        """How much is held."""
        return self._held.total()

    def change(self, actor: str | None, before: int, now: int) -> None:
        """An answer holds `now` bytes in place of `before`.

        Args:
            actor: whose; None where everybody is the same, and only what all hold counts.
        Raises:
            InputError: that is more than an answer may.
            Problem: with what others hold it is too much.
        """
        if now > self.of_answer:
            raise InputError(
                f"the groups that this question is about take more than {self.of_answer >> 20} MiB; ask for one key, "
                "select fewer columns, or ask for the history of the changes, which is given as it is read"
            )
        with self._lock:
            self._held[actor] += now - before
            if now > before and (over := self._over(actor)) is not None:
                self._held[actor] -= now - before
                raise Problem(
                    "rate_limited.too_much_held",
                    f"answers {over}, which is the limit; read those that are open, and ask again in a moment",
                    headers={"Retry-After": "5"},
                )
            if not self._held[actor]:
                del self._held[actor]

    def _over(self, actor: str | None) -> str | None:
        if actor is not None and self._held[actor] > self.of_actor:
            return f"of yours would hold more than {self.of_actor >> 20} MiB of memory"
        if self._held.total() > self.bytes_max:
            return f"of all users would hold more than {self.bytes_max >> 20} MiB of memory"
        return None
