"""The ring (PSP): all streams of a query in one state, cut into slices of age, and partial results that go round."""

from streamjoin.operators.ring.ring import Ring

__all__ = ["Ring"]
