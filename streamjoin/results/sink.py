"""Results into a store: blocks from the units, one commit a batch from the driver."""

from __future__ import annotations

import base64
import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import pyarrow as pa

from streamjoin.failpoints import failpoint
from streamjoin.plan.evaluation import filter_mask
from streamjoin.plan.expression import Expression
from streamjoin.plan.join import ENGINE_COLUMNS
from streamjoin.results.block import BlockRef, KeyCode, cut, encode, refs_from_batch, refs_to_batch
from streamjoin.results.description import Description
from streamjoin.results.head import NOTHING, Elsewhere
from streamjoin.results.ledger import Ledger
from streamjoin.results.parts import BatchDone, Part, PartWriter
from streamjoin.results.patience import RETRY_S, Patience
from streamjoin.results.policy import Collected, Policy
from streamjoin.results.recent import Recent
from streamjoin.results.snapshot import Snapshot
from streamjoin.results.stores.spec import StoreSpec
from streamjoin.results.stores.store import BlockKey, Store

BUFFER_BYTES = 64 << 20
"""So much of one unit's batch is sorted at once; a larger batch gives several sorted runs."""
_PUT_BYTES = 4 << 20
RESULTS = "results"
"""What conditions on result columns call them."""


@dataclass(frozen=True, slots=True)
class Post:
    """Post-selection and post-projection: what of a result is kept (ESJ, section 3.2).

    Args:
        where: over the result columns; None keeps every row.
        select: the columns kept, in order; None keeps all.
    """

    where: Expression | None = None
    select: tuple[str, ...] | None = None

    def apply(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The kept rows and columns; engine columns stay."""
        if self.where is not None:
            columns = {(RESULTS, name): rows.column(name) for name in rows.schema.names}
            keep = filter_mask(self.where, columns, rows.num_rows, {})
            if not keep.all():
                rows = rows.filter(pa.array(keep))
        if self.select is not None:
            engine = [name for name in ENGINE_COLUMNS if name in rows.schema.names]
            rows = rows.select([*self.select, *engine])
        return rows


@dataclass
class StorePart:
    """One slot's results of one batch, on their way into a store."""

    writer: StoreWriter
    batch: int
    store: Store
    patience: Patience
    memory: Store | None = None
    rows: int = 0
    refs: list[BlockRef] = field(default_factory=list)
    _unit: int = -1
    _number: int = 0
    _held: list[pa.RecordBatch] = field(default_factory=list)
    _held_bytes: int = 0

    def __enter__(self) -> Part:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is None:
            self._flush()

    def write(self, rows: pa.RecordBatch, unit: int = 0) -> None:
        """Add rows of a unit; units come one after the other."""
        if unit != self._unit:
            self._flush()
            self._unit, self._number = unit, 0
        rows = self.writer.post.apply(rows)
        if rows.num_rows == 0:
            return
        self.rows += rows.num_rows
        self._held.append(rows)
        self._held_bytes += rows.nbytes
        if self._held_bytes >= BUFFER_BYTES:
            self._flush()

    def _flush(self) -> None:
        if not self._held:
            return
        rows = pa.concat_batches(self._held)
        self._held, self._held_bytes = [], 0
        some: list[tuple[BlockKey, bytes]] = []
        for ref, content in cut(
            rows, self.writer.code, generation=self.writer.generation, batch=self.batch, unit=self._unit,
            first_number=self._number, block_bytes=self.store.block_bytes, rows_max=self.writer.rows_max,
            period_us=self.writer.period_us,
        ):  # fmt: skip
            self.refs.append(ref)
            self._number += 1
            some.append((ref.key, content))
            if sum(len(content) for _, content in some) >= _PUT_BYTES:
                self._put(some)
                some = []
        if some:
            self._put(some)

    def _put(self, blocks: Sequence[tuple[BlockKey, bytes]]) -> None:
        self.patience.steadily(functools.partial(self.store.put_blocks, self.writer.job, blocks))
        if self.memory is not None:
            self.memory.put_blocks(self.writer.job, blocks)
        failpoint("store.after_blocks")

    def summary(self) -> dict[str, Any]:
        """Rows, what the driver must know of the blocks, and how often the store had to be asked again."""
        text = base64.b64encode(encode(refs_to_batch(self.refs))).decode()
        return {"rows": self.rows, "refs": text, "retries": self.patience.retries}


@functools.lru_cache(maxsize=4)
def _opened(spec: StoreSpec, process: int) -> Store:
    # One a worker: connections stay open from batch to batch.
    return spec.open()


@dataclass(frozen=True, slots=True)
class StoreWriter:
    """The slots' side; it travels to the tasks.

    Args:
        generation: blocks carry it, so that only their own driver can make them visible.
        rows_max, period_us: see `cut`.
        memory: a store of recent snapshots that these tasks can reach; None if there is none.
    """

    spec: StoreSpec
    job: str
    generation: int
    code: KeyCode
    post: Post = field(default_factory=Post)
    rows_max: int | None = None
    period_us: int | None = None
    retry_s: float = RETRY_S
    memory: StoreSpec | None = None

    def part(self, batch: int, slot: int, schema: pa.Schema) -> Part:
        """A part to fill."""
        memory = None if self.memory is None else _opened(self.memory, os.getpid())
        return StorePart(self, batch, _opened(self.spec, os.getpid()), Patience(self.retry_s), memory)


@dataclass
class StoreSink:
    """The driver's side.

    Args:
        job: the name of the results in the store.
        retain_us: see `Ledger`.
        recent: keeps the newest snapshots in memory, for continuous queries.
        memory: how tasks reach the memory that `recent` uses; without it blocks are read back from the store.
        lease: see `Ledger.take_over`.
        elsewhere: see `Ledger`.
    """

    spec: StoreSpec
    job: str
    description: Description
    policy: Policy
    post: Post = field(default_factory=Post)
    retain_us: int | None = None
    recent: Recent | None = None
    memory: StoreSpec | None = None
    retry_s: float = RETRY_S
    retries: int = 0
    lease: int = 0
    elsewhere: Elsewhere = NOTHING
    _ledger: Ledger | None = None

    def begin(self, origin: str) -> PartWriter:
        """Become the job's writer."""
        if self._ledger is not None:  # the query is started again
            self._ledger.store.close()
        self._ledger = Ledger(
            self.spec.open(), self.job, self.description, self.policy,
            retain_us=self.retain_us, publish=self._publish, forget=self._forget,
            patience=Patience(self.retry_s), elsewhere=self.elsewhere,
        )  # fmt: skip
        generation = self._ledger.take_over(origin, self.lease)
        if self.recent is not None:
            self.recent.begin(self.description.to_bytes(), self._ledger.head)
        return StoreWriter(
            self.spec, self.job, generation, self.description.code, self.post, self.policy.rows_max,
            self.policy.period_us, self.retry_s, self.memory,
        )  # fmt: skip

    def _publish(self, snapshot: Snapshot) -> None:
        if self.recent is not None:
            self.recent.publish(snapshot, self.ledger.head, self._fetch)

    def _forget(self, keys: Sequence[BlockKey]) -> None:
        if self.recent is not None:
            self.recent.forget(keys)

    def _fetch(self, keys: Sequence[BlockKey]) -> list[tuple[BlockKey, bytes]]:
        return self.ledger.patience.steadily(lambda: list(self.ledger.store.get_blocks(self.job, keys)))

    @property
    def ledger(self) -> Ledger:
        """Once it has begun."""
        assert self._ledger is not None
        return self._ledger

    def commit(self, batch: BatchDone, parts: Sequence[dict[str, Any]]) -> None:
        """Collect a batch; the snapshots that its policy closes become visible."""
        refs = [ref for part in parts for ref in _refs(part["refs"])]
        refs.sort(key=lambda ref: (ref.key.unit, ref.key.number))
        self.retries += sum(part["retries"] for part in parts)
        collected = Collected(
            batch.number, batch.clock_us, batch.marks_us, refs, batch.shed, batch.output_mark_us, batch.ended
        )
        self.ledger.commit(collected)

    def finish(self, *, for_good: bool = False) -> None:
        """What waits becomes visible, if the policy says so, or for good."""
        self.ledger.finish(for_good=for_good)


def _refs(text: str) -> list[BlockRef]:
    return refs_from_batch(pa.ipc.open_stream(base64.b64decode(text)).read_next_batch())
