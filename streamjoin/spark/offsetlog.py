"""Which Kafka partitions a batch read from, by Spark's own log of its offsets.

Spark shares the records of a batch out among all partitions that have unread ones, and leaves none out: the least it
reads of one is an offset. So a partition whose offset a batch did not move had nothing unread as the batch was planned.
What it did move need not give a row: records of transactions that were aborted have offsets and are never seen.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamjoin.durable import sync_all, sync_file, sync_folder
from streamjoin.errors import StateError
from streamjoin.flow.moment import Moment
from streamjoin.flow.punctuation import Punctuation
from streamjoin.flow.silence import REST_US
from streamjoin.state.generation import last_logged, own_head
from streamjoin.state.root import ObjectRoot

if TYPE_CHECKING:
    from streamjoin.spec.job import Job

_HEADERS = 2
RELATIONS = "relations"
"""In an offset of our own sources: name -> version of each relation that the batch joins."""
HEARTBEAT = "heartbeat_us"
"""In an offset of our own source beside topics: the heartbeat of the run that planned the batch; 0 for none."""
_NO_OFFSET = "-"


def router_of(topic: str, partition: int | str) -> str:
    """What a partition is called among its stream's routers."""
    return f"{topic}/{partition}"


Logged = Callable[[int], str]
"""What Spark logged of a batch before it began."""


def logged_in(offsets: Path) -> Logged:
    """As it is in the folder that Spark was given for its logs."""
    return lambda batch: (offsets / "offsets" / str(batch)).read_text()


def sync_log(offsets: Path, batch: int, *, first: bool) -> None:
    """Make what was logged of a batch outlast a power cut; Spark itself leaves that to the system.

    Args:
        first: it is the first batch of a run, before which Spark noted who the query is and where its sources begin.
    Cost: two syncs of a small file and its folder, a millisecond or so; of the first batch, of whatever else is there.
    """
    if first:
        sync_all(offsets, lambda path: path.relative_to(offsets).parts[0] not in ("offsets", "commits"))
        sync_folder(offsets.parent)
    sync_file(offsets / "offsets" / str(batch))
    sync_folder(offsets / "offsets")


def drop_torn(offsets: Path) -> None:
    """Remove what a power cut left of entries that were not on disk yet, and at which Spark would stop.

    A batch whose commit is torn is done again, if it is the last. None had begun whose offsets are torn, as they are
    synced before; nor had any if Spark's note on who the query is is torn.
    """
    for entry in (offsets / "commits").glob("[0-9]*"):
        if not _is_whole(entry, 1):
            entry.unlink()
    newest = offsets / "offsets" / str(last_logged(offsets, "offsets"))
    if newest.exists() and not _is_whole(newest, _HEADERS):
        newest.unlink()
    metadata = offsets / "metadata"
    if metadata.exists() and not _is_whole(metadata, 0) and last_logged(offsets, "offsets") < 0:
        shutil.rmtree(offsets)


def _is_whole(path: Path, headers: int) -> bool:
    """Whether there is a line behind the headers, and the last one is complete."""
    try:
        *before, last = path.read_text().splitlines()
        return len(before) >= headers and (last == _NO_OFFSET or isinstance(json.loads(last), dict))
    except ValueError:
        return False


def carried_offsets(root: ObjectRoot) -> Logged:
    """As the driver put it beside the states, before the batch.

    Cost: one object, however many batches are asked for.
    """
    head = cache(lambda: own_head(root))

    def read(batch: int) -> str:
        try:
            return head().files[f"offsets/offsets/{batch}"]
        except KeyError:
            raise StateError(
                f"nothing at {root.place} says what batch {batch} reads; its driver is at another"
            ) from None

    return read


def partitions_read(offsets: Logged, batch: int, topics: Mapping[int, str]) -> Iterator[Punctuation]:
    """A punctuation without tuples of every partition that a batch moved the offset of.

    A pure function of what was logged before the batch began.

    Args:
        offsets: Spark's log.
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


def began(offsets: Logged, batch: int, job: Job) -> Moment:
    """When a batch began.

    The offset of our own source says it. Of a batch that only topics bring rows of, that may be the offset of an
    earlier batch, and Spark's time, which is the wall clock's, says how much later it began. Our source looks at the
    clocks just before Spark does, and has a new offset whenever the wall clock was set or a heartbeat is due. So it
    cannot be later than that: where Spark's time is, the clock was set between the two looks.

    Which heartbeat the run had that planned the batch is logged with it, so that another run that does it again sees
    the same time; where an earlier version logged none, it is that of the run that asks. Without a source of ours, as
    in checkpoints of old, all is Spark's time.

    Cost: one small file.
    """
    _, metadata, *_ = offsets(batch).splitlines()
    spark_us = 1000 * int(json.loads(metadata)["batchTimestampMs"])
    own = next((offset for offset in _offsets(offsets, batch) if "clock_us" in offset), None)
    if own is None:
        return Moment().begun(spark_us)
    looked = Moment.from_json(own)
    if not job.topics:
        return looked
    passed_us = max(spark_us - looked.wall_us, 0)
    if heartbeat_us := int(own.get(HEARTBEAT, job.heartbeat_us)):
        passed_us = min(passed_us, max(heartbeat_us, REST_US))
    return looked.after(passed_us, max(spark_us, looked.wall_us))


def versions_joined(offsets: Logged, batch: int) -> dict[str, int]:
    """Which version of each relation a batch joins, by name, as logged before it began; empty without relations.

    Cost: one small file.
    """
    for offset in _offsets(offsets, batch):
        if RELATIONS in offset:
            return {str(name): int(version) for name, version in offset[RELATIONS].items()}
    return {}


def logged_topics(offsets: Path) -> list[str | None]:
    """The topic of each Kafka source, in Spark's order, as of the newest batch; None for one without an offset.

    Empty before the first batch.
    """
    if (batch := last_logged(offsets, "offsets")) < 0:
        return []
    return [next(iter(offset), None) for offset in _logged(logged_in(offsets), batch)]


def logs_own(offsets: Path) -> bool:
    """Whether a source of ours is among those of the newest batch; it is before the first one.

    Spark goes on only with as many sources as it has offsets of.
    """
    batch = last_logged(offsets, "offsets")
    return batch < 0 or any("clock_us" in offset for offset in _offsets(logged_in(offsets), batch))


def _logged(offsets: Logged, batch: int) -> list[dict[str, Any]]:
    """What Spark logged of each Kafka source, in its order; our own sources' offsets have a clock."""
    return [offset for offset in _offsets(offsets, batch) if "clock_us" not in offset]


def _offsets(offsets: Logged, batch: int) -> list[dict[str, Any]]:
    lines = offsets(batch).splitlines()[_HEADERS:]
    return [{} if line == _NO_OFFSET else json.loads(line) for line in lines]
