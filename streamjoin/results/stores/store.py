"""The interface of a result store: blocks, records and one head a job.

A store is deliberately dumb. It keeps immutable *blocks* of result rows, immutable *records* (manifests, descriptions)
under names that sort, and for each job one *head* that changes by compare-and-set only. What makes a snapshot visible,
who may write one and what may be deleted is written once, in `streamjoin.results.ledger`, for every store alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from streamjoin.errors import RunError


class StoreError(RunError):
    """A store refused or failed; the message names the store and the way out."""


class StoreMissingError(StoreError):
    """Nobody has made the store yet, so there is nothing in it."""


class StoreDownError(StoreError):
    """The store cannot be reached; nothing was applied. Trying again later is right."""


class StoreUncertainError(StoreError):
    """No answer came: what was asked may have been applied or not. Read back before deciding."""


@dataclass(frozen=True, slots=True, order=True)
class BlockKey:
    """The name of a block; a function of the batch's input alone, so writing it again changes nothing.

    Args:
        bucket: rows of one join key are in one bucket; stores that spread data over nodes spread by it.
        lowest: the code of the block's lowest join key, for stores whose rows lie in key order.
        generation: of the driver that had it written.
        batch, unit: what computed it.
        number: counts the blocks of one unit's batch from 0.
    """

    bucket: int
    lowest: int
    generation: int
    batch: int
    unit: int
    number: int


Blocks = Sequence[tuple[BlockKey, bytes]]
Records = Sequence[tuple[str, bytes]]


class Store(Protocol):
    """A result store. Every method may raise a StoreError; all but `swap_head` may be repeated at will.

    `job` is a text of letters, digits, `.`, `_` and `-`, 100 characters at most. Names of records are ASCII.
    One object serves one thread at a time; any number of processes may work on one job.
    """

    kind: str
    block_bytes: int
    """About how large blocks should be here."""

    def prepare(self) -> None:
        """Make what the store needs to keep anything, or bring it to this version's layout."""

    def put_blocks(self, job: str, blocks: Blocks) -> None:
        """Keep blocks; durable at the latest with the next `swap_head` of any process."""

    def get_blocks(self, job: str, keys: Sequence[BlockKey]) -> Iterator[tuple[BlockKey, bytes]]:
        """The blocks of `keys`, in any order; one that is not there is left out.

        A store may begin to fetch at the call. Errors come when the blocks are asked for, if they are.
        """

    def delete_blocks(self, job: str, keys: Sequence[BlockKey]) -> None:
        """Forget blocks; those that are not there are no mistake."""

    def list_blocks(self, job: str) -> Iterator[BlockKey]:
        """The keys of all blocks of a job, in any order. Cost: a scan; for sweeping only."""

    def put_records(self, job: str, records: Records) -> None:
        """Keep records; one of the same name is replaced."""

    def get_records(self, job: str, first: str, last: str) -> Iterator[tuple[str, bytes]]:
        """Records with first <= name <= last, by name."""

    def delete_records(self, job: str, names: Sequence[str]) -> None:
        """Forget records."""

    def head(self, job: str) -> bytes | None:
        """The job's head; None for a job that the store does not know."""

    def swap_head(self, job: str, expected: bytes | None, new: bytes) -> bool:
        """Replace the head if it is still `expected` (None: if there is none), and make it durable.

        Returns:
            Whether it was replaced.
        Raises:
            StoreUncertainError: it may or may not have been.
        """

    def jobs(self) -> list[str]:
        """The jobs that have a head, by name."""

    def drop(self, job: str) -> None:
        """Forget a job with all it has. Its head goes first."""

    def close(self) -> None:
        """Let go of connections; the object opens them again when it is used again."""
