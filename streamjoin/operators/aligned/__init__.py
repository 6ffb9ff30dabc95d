"""Aligned tuple routing (ATR): a master stream in segments, each at one node with all that its tuples may meet."""

from streamjoin.operators.aligned.aligned import Aligned

__all__ = ["Aligned"]
