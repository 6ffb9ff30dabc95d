"""lookup: a relation is sorted once into mapped segments, and rows of a stream look it up."""

from streamjoin.operators.lookup.operator import Lookup

__all__ = ["Lookup"]
