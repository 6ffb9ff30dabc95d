"""How many tuples go in one message (ESJ, "Message passing", blocked tuple transfer)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BlockSize:
    """Fixed while a chain runs: a new size comes with a new chain or at a barrier.

    Args:
        tuples: of one block, at least 1.
        dynamic: where the difference to the successor's load is larger, it is the size.
        one_by_one: TUPLE and ACK instead of TUPLE_BLK and ACK_BLK; then `tuples` is 1.
    """

    tuples: int = 1
    dynamic: bool = False
    one_by_one: bool = False

    def __post_init__(self) -> None:
        if self.tuples < 1:
            raise ValueError(f"a block has at least one tuple, not {self.tuples}")
        if self.one_by_one and (self.tuples > 1 or self.dynamic):
            raise ValueError("one-by-one forwarding has no block size")

    def of(self, difference: int) -> int:
        """The size of the next block where own load exceeds the successor's by `difference`."""
        return max(self.tuples, difference) if self.dynamic else self.tuples


ONE_BY_ONE = BlockSize(one_by_one=True)
