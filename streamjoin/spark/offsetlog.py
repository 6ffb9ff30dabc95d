"""Which Kafka partitions a batch read from, by Spark's own log of its offsets.

Spark shares the records of a batch out among all partitions that have unread ones, and leaves none out: the least it
reads of one is an offset. So a partition whose offset a batch did not move had nothing unread as the batch was planned.
What it did move need not give a row: records of transactions that were aborted have offsets and are never seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from streamjoin.flow.punctuation import Punctuation

_HEADERS = 2
RELATIONS = "relations"
"""In an offset of our own sources: name -> version of each relation that the batch joins."""
_NO_OFFSET = "-"


def router_of(topic: str, partition: int | str) -> str:
    """What a partition is called among its stream's routers."""
    return f"{topic}/{partition}"


def partitions_read(offsets: Path, batch: int, topics: Mapping[int, str]) -> Iterator[Punctuation]:
    """A punctuation without tuples of every partition that a batch moved the offset of.

    A pure function of what was logged before the batch began.

    Args:
        offsets: the folder that Spark was given for its logs.
        topics: by side, in the order in which Spark knows them.
    Cost: two small files; none without topics.
    """
    if not topics or not batch:
        return
    logged = zip(topics.items(), _logged(offsets, batch - 1), _logged(offsets, batch), strict=True)
    for (side, topic), before, after in logged:
        started, ended = (found.get(topic, {}) for found in (before, after))
        for partition, offset in sorted(ended.items()):
            if offset != started.get(partition):
                router = router_of(topic, partition)
                yield Punctuation(side, router, f"{side}-{router} was read", 0, None, 0)


def versions_joined(offsets: Path, batch: int) -> dict[str, int]:
    """Which version of each relation a batch joins, by name, as logged before it began; empty without relations.

    Cost: one small file.
    """
    for offset in _offsets(offsets, batch):
        if RELATIONS in offset:
            return {str(name): int(version) for name, version in offset[RELATIONS].items()}
    return {}


def _logged(offsets: Path, batch: int) -> list[dict[str, Any]]:
    """What Spark logged of each Kafka source, in its order; our own sources' offsets have a clock."""
    return [offset for offset in _offsets(offsets, batch) if "clock_us" not in offset]


def _offsets(offsets: Path, batch: int) -> list[dict[str, Any]]:
    lines = (offsets / "offsets" / str(batch)).read_text().splitlines()[_HEADERS:]
    return [{} if line == _NO_OFFSET else json.loads(line) for line in lines]
