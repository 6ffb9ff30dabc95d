"""SplitJoin (USENIX ATC 2016): every core sees every tuple, and each finds out alone which of them it stores."""

from streamjoin.operators.splitjoin.router import SplitJoin

__all__ = ["SplitJoin"]
