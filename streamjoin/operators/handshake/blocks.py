"""How many tuples make a block (ESJ, "Message passing", blocked tuple transfer)."""

from __future__ import annotations

from streamjoin.index.chain import MERGED_ROWS_MAX
from streamjoin.operators.costs.handshake import block_size

WEIGHT, COST_SERIALIZATION = 0.5, 1.0
"""alpha and C_ser, as in the text's example. From C_ser = 1 / (4 m) on, the cap decides: half of a fair share."""


def automatic_block(live: int, workers: int) -> int:
    """The block for a stream of `live` tuples in the chain, those included that are just coming in.

    E(rate) x window is the number of live tuples, and that is counted rather than estimated: it is in the state that a
    batch starts from, so a repeated batch makes the same blocks.
    """
    return min(block_size(live, 1.0, workers, WEIGHT, COST_SERIALIZATION), MERGED_ROWS_MAX)
