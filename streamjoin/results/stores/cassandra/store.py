"""Results in Apache Cassandra, 4.0 or later.

Blocks are spread by job, bucket and *chapter* (64 batches), records by job and *shelf* (the beginning of the name), so
that no partition grows without end; two small tables list the chapters and shelves there are. The head is changed and
read by lightweight transactions only. Everything else may be written again, and of two writes the later one counts: the
clocks of the clients must agree (NTP) to well within the time between a `drop` and the job's next start.

A node that syncs its commit log periodically, which is the default, may forget the last answered writes when it
crashes. Three copies, or `commitlog_sync: group`, make what was answered durable.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from streamjoin.results.stores.cassandra.keyspace import Keyspace
from streamjoin.results.stores.cassandra.link import AT_ONCE
from streamjoin.results.stores.cassandra.tables import LANES, chapter_of, place_of, shelf_of
from streamjoin.results.stores.store import BlockKey, Blocks, Records, StoreError

LARGEST_BYTES = 8 << 20
"""Of a block or record. Cassandra refuses writes of half a commit log segment, 16 MiB unless configured."""
_SETTLED_US = 600_000_000
"""An entry of a list that nobody has renewed for so long belongs to no write that is still under way."""
_BLOCKS_AT_ONCE = 128
_BLOCKS_A_REQUEST = 16
_SHELVES_AT_ONCE = 8

_Sent = tuple[tuple[Any, ...], Any]
"""The values of a statement, and the future of what it gives."""


class CassandraStore:
    """A store in a keyspace of a Cassandra cluster.

    Args:
        hosts: some of the nodes; the driver finds the others.
        replication: copies in a keyspace that this store makes: a number (one data centre), or a number for each data
            centre by name. An existing keyspace stays as it is.
        datacenter: the one to work with; that of the first host that answers if it is not given.
        timeout_s: for one statement, and for connecting to one host.
    """

    kind = "cassandra"
    block_bytes = 1 << 16

    def __init__(
        self,
        hosts: Sequence[str] | str,
        port: int = 9042,
        keyspace: str = "streamjoin",
        username: str | None = None,
        password: str | None = None,
        replication: Mapping[str, int] | Sequence[tuple[str, int]] | int = 1,
        datacenter: str | None = None,
        timeout_s: float = 10.0,
    ) -> None:
        self.keyspace = Keyspace(hosts, port, keyspace, username, password, replication, datacenter, timeout_s)

    def prepare(self) -> None:
        """Make the keyspace and the tables."""
        self.keyspace.prepare()

    def put_blocks(self, job: str, blocks: Blocks) -> None:
        """See `Store`."""
        for key, content in blocks:
            self._check_size(f"block {key} of job {job}", content)
        chapters = sorted({(key.bucket, chapter_of(key)) for key, _ in blocks})
        with self.keyspace.using() as link:
            # Renewed with every write, for that keeps the entries from being forgotten meanwhile.
            link.many("put_chapter", [(job, bucket % LANES, bucket, chapter) for bucket, chapter in chapters])
            link.many("put_block", [(*place_of(job, key), content) for key, content in blocks])

    def get_blocks(self, job: str, keys: Sequence[BlockKey]) -> Iterator[tuple[BlockKey, bytes]]:
        """See `Store`. The first requests leave at the call, so that what came before can be decoded meanwhile."""
        groups = [keys[start : start + _BLOCKS_AT_ONCE] for start in range(0, len(keys), _BLOCKS_AT_ONCE)]
        sent: list[_Sent] = []
        with contextlib.suppress(StoreError):  # whoever iterates tries once more, and is told
            sent = self._send_requests(job, groups[0]) if groups else []
        return self._blocks(job, groups, sent)

    def _blocks(
        self, job: str, groups: Sequence[Sequence[BlockKey]], sent: Sequence[_Sent]
    ) -> Iterator[tuple[BlockKey, bytes]]:
        for number, group in enumerate(groups):
            if not sent:
                sent = self._send_requests(job, group)
            found: dict[BlockKey, bytes] = {}
            for values, future in sent:
                with self.keyspace.using() as link:
                    rows = link.result(future, "get_blocks", values)
                found.update((BlockKey(*place), content) for *place, content in rows)
            coming = groups[number + 1 : number + 2]
            sent = self._send_requests(job, coming[0]) if coming else []
            yield from ((key, found[key]) for key in dict.fromkeys(group) if key in found)

    def _send_requests(self, job: str, keys: Sequence[BlockKey]) -> list[_Sent]:
        """Ask for a few blocks at a time, each time of one partition: a request for each block costs more."""
        partitions: dict[tuple[int, int], list[BlockKey]] = {}
        for key in keys:
            partitions.setdefault((key.bucket, chapter_of(key)), []).append(key)
        requests = [
            (job, *partition, [place_of(job, key)[3:] for key in among[first : first + _BLOCKS_A_REQUEST]])
            for partition, among in partitions.items()
            for first in range(0, len(among), _BLOCKS_A_REQUEST)
        ]
        with self.keyspace.using() as link:
            statement = link.statement("get_blocks")
            return [(values, link.session.execute_async(statement, values)) for values in requests]

    def delete_blocks(self, job: str, keys: Sequence[BlockKey]) -> None:
        """See `Store`."""
        with self.keyspace.using() as link:
            link.many("delete_block", [place_of(job, key) for key in keys])

    def list_blocks(self, job: str) -> Iterator[BlockKey]:
        """See `Store`. Chapters long empty are taken off the list on the way."""
        old = _now_us() - _SETTLED_US
        for lane in range(LANES):
            chapters = self._rows("list_chapters", job, lane)
            full = set()
            places = [(job, bucket, chapter) for bucket, chapter, _ in chapters]
            for number, rows in self._pages("list_blocks", places, AT_ONCE):
                if rows:
                    full.add(number)
                for row in rows:
                    yield BlockKey(*row)
            self._forget(
                "forget_chapter",
                [
                    (written, job, lane, bucket, chapter)
                    for number, (bucket, chapter, written) in enumerate(chapters)
                    if number not in full and written < old
                ],
            )

    def put_records(self, job: str, records: Records) -> None:
        """See `Store`."""
        for name, content in records:
            self._check_size(f"record {name} of job {job}", content)
        shelves = sorted({shelf_of(name) for name, _ in records})
        with self.keyspace.using() as link:
            link.many("put_shelf", [(job, shelf) for shelf in shelves])
            link.many("put_record", [(job, shelf_of(name), name, content) for name, content in records])

    def get_records(self, job: str, first: str, last: str) -> Iterator[tuple[str, bytes]]:
        """See `Store`. Shelves long empty are taken off the list on the way."""
        lowest, highest = shelf_of(first), shelf_of(last)
        old = _now_us() - _SETTLED_US
        shelves = [(lowest, old)] if lowest == highest else self._rows("list_shelves", job, lowest, highest)
        full = {number for number, (shelf, _) in enumerate(shelves) if shelf in (lowest, highest)}  # not read to an end
        places = [(job, shelf, first, last) for shelf, _ in shelves]
        for number, rows in self._pages("get_records", places, _SHELVES_AT_ONCE):
            if rows:
                full.add(number)
            yield from rows
        self._forget(
            "forget_shelf",
            [
                (written, job, shelf)
                for number, (shelf, written) in enumerate(shelves)
                if number not in full and written < old
            ],
        )

    def delete_records(self, job: str, names: Sequence[str]) -> None:
        """See `Store`."""
        with self.keyspace.using() as link:
            link.many("delete_record", [(job, shelf_of(name), name) for name in names])

    def head(self, job: str) -> bytes | None:
        """See `Store`."""
        with self.keyspace.using() as link:
            found = link.one("head", job).one()
        return None if found is None else found[0]

    def swap_head(self, job: str, expected: bytes | None, new: bytes) -> bool:
        """See `Store`."""
        self._check_size(f"the head of job {job}", new)
        name, values = ("first_head", (job, new)) if expected is None else ("swap_head", (new, job, expected))
        with self.keyspace.using() as link:
            link.statement(name)  # what fails so far has changed nothing
        with self.keyspace.using(swapping=True) as link:
            return bool(link.one(name, *values).was_applied)

    def jobs(self) -> list[str]:
        """See `Store`."""
        return sorted(job for (job,) in self._rows("jobs"))

    def drop(self, job: str) -> None:
        """See `Store`."""
        with self.keyspace.using() as link:
            link.one("drop_head", job)
        # The lists go last, so that a drop which failed half-way can be repeated.
        for lane in range(LANES):
            chapters = self._rows("list_chapters", job, lane)
            with self.keyspace.using() as link:
                link.many("drop_blocks", [(job, bucket, chapter) for bucket, chapter, _ in chapters])
                link.one("drop_chapters", job, lane)
        shelves = self._rows("all_shelves", job)
        with self.keyspace.using() as link:
            link.many("drop_records", [(job, shelf) for (shelf,) in shelves])
            link.one("drop_shelves", job)

    def close(self) -> None:
        """See `Store`."""
        self.keyspace.close()

    def _rows(self, name: str, *values: Any) -> list[Any]:
        return [row for _, rows in self._pages(name, [values], 1) for row in rows]

    def _pages(self, name: str, places: Sequence[tuple[Any, ...]], at_once: int) -> Iterator[tuple[int, list[Any]]]:
        """Pages of the results of a statement with each row of values, in their order, with the row's number."""
        for start in range(0, len(places), at_once):
            with self.keyspace.using() as link:
                results = link.many(name, places[start : start + at_once])
            for number, result in enumerate(results, start):
                yield number, result.current_rows
                while result.has_more_pages:
                    with self.keyspace.using():
                        result.fetch_next_page()
                    yield number, result.current_rows

    def _forget(self, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Take entries off a list, up to the time they were written: one that was renewed since stays.

        Whether it succeeds is of no matter; a reader may not be allowed to.
        """
        if rows:
            with contextlib.suppress(StoreError), self.keyspace.using() as link:
                link.many(name, rows)

    def _check_size(self, what: str, content: bytes) -> None:
        if len(content) > LARGEST_BYTES:
            raise StoreError(
                f"{what} has {len(content):,} bytes, and {self.keyspace.name} takes {LARGEST_BYTES:,} at most; "
                "make blocks smaller or commit more often"
            )


def _now_us() -> int:
    return time.time_ns() // 1000


open_store = CassandraStore
