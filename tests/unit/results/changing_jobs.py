"""Jobs that fill result stores with groups that change, and what there is of each group in the end."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

from streamjoin.plan.join import RESULT_KEY, RESULT_TIME
from streamjoin.results.answer import ask
from streamjoin.results.block import key_code
from streamjoin.results.description import Description
from streamjoin.results.ledger import Ledger
from streamjoin.results.policy import Collected, EpochPolicy
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.results.stores.store import Store
from tests.unit.results.result_jobs import Job

SCHEMA = pa.schema(
    [
        ("k", pa.int64()), ("t", pa.string()), ("n", pa.int64()), ("op", pa.string()),
        ("emit_time", pa.timestamp("us", "UTC")), (RESULT_TIME, pa.int64()), (RESULT_KEY, pa.int64()),
    ]
)  # fmt: skip
DESCRIBED = Description(SCHEMA, key_code(pa.int64(), equality=True, buckets=2), identity=("k", "t"))
Group = tuple[int | None, str | None]
Change = tuple[Group, int | None]


class Changes(Job):
    """A job whose results are changes; each batch is a snapshot, as of 10 times its number."""

    def start(self, origin: str = "", lease: int = 0) -> Changes:
        self.ledger = Ledger(self.store, self.name, DESCRIBED, self.policy, retain_us=self.retain_us)
        self.ledger.take_over(origin, lease)
        return self

    def change(self, number: int, changes: list[Change]) -> None:
        at = 10 * number
        rows = [
            {
                "k": k, "t": t, "n": n, "op": "delete" if n is None else "upsert", "emit_time": at, RESULT_TIME: at,
                RESULT_KEY: k,
            }
            for (k, t), n in changes
        ]  # fmt: skip
        self.ledger.commit(
            Collected(number, number * 1_000_000, (None,), self.put(number, pa.RecordBatch.from_pylist(rows, SCHEMA)))
        )


def history(batches: int = 30, seed: int = 1) -> tuple[list[list[Change]], list[dict[Group, int]]]:
    """Changes by batch, and after each batch what there is."""
    chosen = random.Random(seed)
    groups: list[Group] = [(k, t) for k in (1, 2, 3, None) for t in ("a", None)]
    there: dict[Group, int] = {}
    changes, tables = [], []
    for number in range(batches):
        some: list[Change] = []
        for group in chosen.sample(groups, chosen.randrange(4)):
            if group in there and chosen.random() < 0.4:
                del there[group]
                some.append((group, None))
            else:
                there[group] = 100 * number + len(some)
                some.append((group, there[group]))
        changes.append(some)
        tables.append(dict(there))
    return changes, tables


def asked(store: Store, of: str = "j", **question: Any) -> dict[Group, int]:
    """What there is, each group once."""
    found = [row for batch in ask(Reader(store, of), Question(**question)) for row in batch.to_pylist()]
    assert len({(row["k"], row["t"]) for row in found}) == len(found)
    assert all(row["op"] == "upsert" for row in found)
    return {(row["k"], row["t"]): row["n"] for row in found}


def filled(store: Store, changes: list[list[Change]], retain: int | None = None, of: str = "j") -> Changes:
    retain_us = None if retain is None else retain * 1_000_000
    policy = EpochPolicy(span_us=None, threshold_rows=1, whole_batches=True)
    job = Changes(store, policy, name=of, retain_us=retain_us).start()
    for number, some in enumerate(changes):
        job.change(number, some)
    return job
