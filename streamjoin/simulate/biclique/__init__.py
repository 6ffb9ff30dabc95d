"""BiStream's order-consistent protocol (SIGMOD 2015, section 3.2.3), message by message."""

from streamjoin.simulate.biclique.checker import OrderError, global_sequence
from streamjoin.simulate.biclique.cluster import Cluster, Setting
from streamjoin.simulate.biclique.manager import Change
from streamjoin.simulate.biclique.messages import Arrival, Plan, Protections
from streamjoin.simulate.biclique.plans import routed_by, spread
from streamjoin.simulate.biclique.unit import Window

__all__ = [
    "Arrival",
    "Change",
    "Cluster",
    "OrderError",
    "Plan",
    "Protections",
    "Setting",
    "Window",
    "global_sequence",
    "routed_by",
    "spread",
]
