"""The as-of join: an operator of its own, whose units are parallel by the equality key."""

from streamjoin.operators.asof.asof import AsOfJoin

__all__ = ["AsOfJoin"]
