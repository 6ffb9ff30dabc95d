"""The line of workers: who is next to whom, and where tuples come in (ESJ, "Join engine").

    R -> worker 0 -> worker 1 -> ... -> worker m-1 <- S
         S leaves here                  R leaves here

Each worker stores a share of R and one of S. A stream's tuples enter at its head and move from worker to successor, R
to the right and S to the left, so that each tuple of R meets each tuple of S somewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from streamjoin.plan.window import R


@dataclass(frozen=True)
class Line:
    """A line of workers, and what they send on.

    Args:
        workers: m, at least 1.
        block: tuples that are sent on together; None to take half of a worker's fair share.
        balance: send on what the successor has less of; without it each worker keeps tuples of a fixed age.
        threshold: how many tuples more than its successor a worker must have before it sends any on.
    """

    workers: int
    block: int | None = None
    balance: bool = True
    threshold: int = 0

    def position(self, side: int, worker: int) -> int:
        """How many workers a tuple of `side` has passed when it comes to `worker`."""
        return worker if side == R else self.workers - 1 - worker

    def worker(self, side: int, position: int) -> int:
        """The inverse of `position`."""
        return position if side == R else self.workers - 1 - position

    def successor(self, side: int, worker: int) -> int | None:
        """Whom `worker` sends tuples of `side` to; None at the end where they leave."""
        position = self.position(side, worker) + 1
        return self.worker(side, position) if position < self.workers else None

    def predecessor(self, side: int, worker: int) -> int | None:
        """Who sends `worker` tuples of `side`; None at the stream's head."""
        position = self.position(side, worker) - 1
        return self.worker(side, position) if position >= 0 else None
