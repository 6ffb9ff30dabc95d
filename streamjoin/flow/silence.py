"""How long a job has been without input, and how often a batch runs meanwhile all the same.

Such a batch, a heartbeat, lets routers become idle, drops what is due, moves on what is under way in a chain, and ends
epochs of the results. It costs as much as any small batch: at one a second half a core, for each job. Before the first
tuple there is nothing of all that to do. Nor is there once routers have been idle for a heartbeat and a chain has been
drained: marks stand still from then on. A job rests then: heartbeats come less often, for `retain` and for long epochs
only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from streamjoin.flow.punctuation import IDLE_TIMEOUT_US

REST_US: Final = 30_000_000
"""While a job rests it has a heartbeat so often, if it has not fewer anyway."""


@dataclass(frozen=True, slots=True)
class Silence:
    """What is known after a batch of the input until then.

    Args:
        since_us: the clock of the last batch with input, moved on by the time between runs; None before the first.
        beats: heartbeats since its routers are idle.
    """

    since_us: int | None = None
    beats: int = 0

    def until(self, input_us: int | None) -> Silence:
        """As of a look at when there was input last."""
        return self if input_us == self.since_us else Silence(input_us)

    def after_stop(self, stopped_us: int) -> Silence:
        """As of the first look of a run: the time since the last batch of the run before was nobody's silence."""
        return self if self.since_us is None else replace(self, since_us=self.since_us + stopped_us)

    def beat(self, now_us: int, idle_us: int = IDLE_TIMEOUT_US) -> Silence:
        """After one more heartbeat; `idle_us` is the longest after which a router or a stream is idle."""
        idle = self.since_us is not None and now_us - self.since_us > idle_us
        return replace(self, beats=self.beats + 1) if idle else self

    def pause_us(self, heartbeat_us: int, drain_batches: int) -> int:
        """So long after the last batch the next heartbeat is due; 0 where there is none.

        Args:
            drain_batches: so many heartbeats drain the chain.
        """
        rests = self.since_us is None or self.beats > drain_batches
        return max(heartbeat_us, REST_US) if rests and heartbeat_us else heartbeat_us

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; `from_json` reads it back."""
        return {"since_us": self.since_us, "beats": self.beats}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Silence:
        """The inverse of `to_json`."""
        return Silence(**value)
