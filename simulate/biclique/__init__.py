"""BiStream's order-consistent protocol (SIGMOD 2015, section 3.2.3), message by message."""

from simulate.biclique.checker import OrderError, global_sequence
from simulate.biclique.cluster import Cluster, Setting
from simulate.biclique.manager import Change
from simulate.biclique.messages import Arrival, Plan, Protections
from simulate.biclique.plans import routed_by, spread
from simulate.biclique.unit import Window

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
