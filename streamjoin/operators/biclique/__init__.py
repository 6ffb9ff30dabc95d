"""The join-biclique of BiStream (SIGMOD 2015, section 3): m units store R, n units store S, nothing is stored twice."""

from streamjoin.operators.biclique.router import Biclique, Routing

__all__ = ["Biclique", "Routing"]
