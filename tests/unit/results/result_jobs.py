"""Jobs that fill result stores without Spark, and what checks a store's content against what was put in."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.flow.periods import Ended
from streamjoin.flow.punctuation import lowest_mark_us
from streamjoin.plan.join import RESULT_KEY, RESULT_TIME
from streamjoin.results.block import BlockRef, KeyCode, cut, decode, hash_sum, key_code
from streamjoin.results.description import Description
from streamjoin.results.ledger import Ledger
from streamjoin.results.patience import Patience
from streamjoin.results.policy import Collected, EpochPolicy, Policy
from streamjoin.results.reader import Reader
from streamjoin.results.snapshot import Snapshot
from streamjoin.results.stores.store import BlockKey, Store

SCHEMA = pa.schema(
    [
        ("id", pa.int64()), ("price", pa.float64()), ("name", pa.string()),
        (RESULT_TIME, pa.int64()), (RESULT_KEY, pa.int64()),
    ]
)  # fmt: skip


@functools.lru_cache(maxsize=256)
def rows(n: int, seed: int = 0, keys: int = 100, first_us: int = 0, last_us: int = 10**6) -> pa.RecordBatch:
    """n rows with int64 keys below `keys`; ids are unique among seeds."""
    random = np.random.default_rng(seed)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.arange(n, dtype=np.int64) + seed * 10**7),
            pa.array(random.random(n)),
            pa.array([f"n{number % 7}" for number in range(n)], pa.string()),
            pa.array(random.integers(first_us, last_us, n, endpoint=True)),
            pa.array(random.integers(0, keys, n)),
        ],
        schema=SCHEMA,
    )


@dataclass
class Job:
    """One unit that cuts and puts, and one ledger that commits."""

    store: Store
    policy: Policy = field(default_factory=lambda: EpochPolicy(span_us=None, batches=1))
    code: KeyCode = field(default_factory=lambda: key_code(pa.int64(), equality=True, buckets=2))
    schema: pa.Schema = SCHEMA
    name: str = "j"
    block_bytes: int = 1 << 12
    rows_max: int | None = None
    retain_us: int | None = None
    publish: Callable[[Snapshot], None] | None = None
    patience: Patience = field(default_factory=Patience)
    ledger: Ledger = field(init=False)

    def start(self, origin: str = "", lease: int = 0) -> Job:
        """Take over."""
        self.ledger = Ledger(
            self.store, self.name, Description(self.schema, self.code), self.policy,
            retain_us=self.retain_us, publish=self.publish, patience=self.patience,
        )  # fmt: skip
        self.ledger.take_over(origin, lease)
        return self

    def put(self, number: int, content: pa.RecordBatch) -> list[BlockRef]:
        """What the unit does with a batch."""
        self.store.prepare()
        blocks = list(
            cut(
                content, self.code, generation=self.ledger.head.generation, batch=number, unit=0, first_number=0,
                block_bytes=self.block_bytes, rows_max=self.rows_max or self.policy.rows_max,
                period_us=self.policy.period_us,
            )
        )  # fmt: skip
        put = functools.partial(self.store.put_blocks, self.name, [(ref.key, content) for ref, content in blocks])
        self.patience.steadily(put)
        return [ref for ref, _ in blocks]

    def batch(
        self,
        number: int,
        content: pa.RecordBatch,
        clock_us: int | None = None,
        marks_us: tuple[int | None, int | None] = (None, None),
        shed: int = 0,
        ended: tuple[Ended, ...] = (),
    ) -> list[Snapshot]:
        """A whole batch."""
        refs = self.put(number, content)
        clock = number * 1_000_000 if clock_us is None else clock_us
        return self.ledger.commit(Collected(number, clock, marks_us, refs, shed, lowest_mark_us(marks_us), ended))


def table(*batches: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches(batches)


def ids(batches: Any) -> list[int]:
    """The ids of the rows in record batches, sorted."""
    return sorted(value for batch in batches for value in batch.column("id").to_pylist())


def seen(store: Store, name: str = "j") -> list[int]:
    """The ids of all rows that a new reader sees, sorted; snapshots that are not what they say are no answer."""
    reader = Reader(store, name)
    reader.refresh()
    snapshots = reader.snapshots()
    assert [found.id for found in snapshots] == sorted({found.id for found in snapshots})
    found = []
    for snapshot in snapshots:
        batches = [batch for _, batch in reader.rows(snapshot.blocks)]
        assert sum(batch.num_rows for batch in batches) == snapshot.rows
        assert sum(hash_sum(batch) for batch in batches) % 2**64 == snapshot.hash_sum
        found += ids(batches)
    return sorted(found)


def assert_once(got: Sequence[int], wanted: Sequence[int]) -> None:
    """Each wanted id once, and no other."""
    assert Counter(got) == Counter(wanted)


def stored_blocks(store: Store, name: str = "j") -> set[BlockKey]:
    return set(store.list_blocks(name))


def stored_rows(store: Store, refs: Sequence[BlockRef], name: str = "j") -> list[int]:
    found = dict(store.get_blocks(name, [ref.key for ref in refs]))
    return ids(decode(ref, found[ref.key]) for ref in refs)
