"""Coordinated tuple routing (CTR): copies of segments, and for each hop the fewest hosts that have all of a stream."""

from streamjoin.operators.coordinated.coordinated import Coordinated

__all__ = ["Coordinated"]
