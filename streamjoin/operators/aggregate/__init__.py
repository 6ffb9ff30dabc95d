"""Groups of what streams or joins give, window by window (BiStream, section 3.4)."""

from streamjoin.operators.aggregate.operator import Aggregate

__all__ = ["Aggregate"]
