"""MESHJOIN: a relation is read part by part, again and again, and each tuple of a stream stays for one round."""

from streamjoin.operators.meshjoin.operator import MeshJoin

__all__ = ["MeshJoin"]
