"""SSBJ: MESHJOIN with a cache of those rows of the relation that take less memory than the tuples that ask for them."""

from streamjoin.operators.ssbj.operator import BalancedJoin

__all__ = ["BalancedJoin"]
