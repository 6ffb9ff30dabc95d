"""A ring of another number of nodes over the same tuples (PSP, section 6, "aggressive adjustment").

Between two batches each segment is given to the node whose slice it is in now; files stay where they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter

from streamjoin.engine.state import UnitState, totals_of
from streamjoin.index.segment import SegmentInfo
from streamjoin.operators.ring.slices import node_of
from streamjoin.operators.ring.state import NodeState
from streamjoin.operators.rounds.expiry import others_mark_us


def resized(
    states: Mapping[int, UnitState], nodes: int, lengths: Sequence[int], reaches_us: Sequence[int]
) -> dict[int, UnitState]:
    """States of a ring of `nodes` nodes, from those of a ring of another number.

    Args:
        lengths, reaches_us: by stream, of the new ring.
    """
    clocks = states[0].clocks  # all nodes have come equally far
    found: dict[int, dict[int, list[SegmentInfo]]] = {node: {} for node in range(nodes)}
    for old, state in states.items():
        before = NodeState.of(state)
        for stream in range(len(lengths)):
            mark_us = others_mark_us(clocks, stream)
            for info in before.answered(stream, with_new=True):
                node = node_of(info.ts_max_us, mark_us, reaches_us[stream], lengths[stream])
                found[node].setdefault(stream, []).append(info.taken_over(old, node))
    after = {}
    for node, of_streams in found.items():
        at_rest = {stream: tuple(sorted(infos, key=attrgetter("ts_max_us"))) for stream, infos in of_streams.items()}
        totals = totals_of(states.values()) if node == 0 else {}
        after[node] = UnitState(
            states[0].version, NodeState(at_rest).tables, {}, clocks, totals, elsewhere=states[0].elsewhere
        )
    return after
