"""The papers' cost formulas: what an operator will store, send and compare. A module a paper."""

from streamjoin.operators.costs.bistream import (
    biclique,
    biclique_bytes_per_s,
    biclique_inputs_bytes_per_s,
    biclique_memory_bytes,
    biclique_scaling_gain,
    matrix,
    matrix_bytes_per_s,
    matrix_memory_bytes,
    matrix_scaling_gain,
    scaling_change,
)
from streamjoin.operators.costs.prediction import BlockSize, Latency, Prediction, StreamStatistics, UnitCosts

__all__ = [
    "BlockSize",
    "Latency",
    "Prediction",
    "StreamStatistics",
    "UnitCosts",
    "biclique",
    "biclique_bytes_per_s",
    "biclique_inputs_bytes_per_s",
    "biclique_memory_bytes",
    "biclique_scaling_gain",
    "matrix",
    "matrix_bytes_per_s",
    "matrix_memory_bytes",
    "matrix_scaling_gain",
    "scaling_change",
]
