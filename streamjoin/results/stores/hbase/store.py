"""Results in HBase, through its Thrift 1 gateway: rows lie in key order, so a range of join keys is one ordered scan.

A block's row key begins with its job and its lowest join key. Nothing of time and no salt stands before the key, as
time-series layouts have it: either would spread one range of keys over the whole table. Every row has one cell, and is
only put or deleted; the head is one cell too, because the gateway's compare-and-set covers one.
"""

from __future__ import annotations

import contextlib
import time
from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator, Sequence

from streamjoin.results.stores.hbase.gateway import ForgottenScanError, Gateway, Scan
from streamjoin.results.stores.hbase.rows import (
    COLUMN,
    REQUEST_BYTES,
    ROWS_A_REQUEST,
    ROWS_FIRST,
    Pace,
    after,
    all_of,
    block_key,
    block_row,
    contents,
    record_row,
)
from streamjoin.results.stores.hbase.thrift import thrift_library
from streamjoin.results.stores.store import BlockKey, Blocks, Records, StoreError

CELL_BYTES_MAX = 9 << 20
"""A cell may have this many bytes at most."""
_JOBS_START = b"\x01"
_KEYS_ONLY = b"KeyOnlyFilter()"
_SCAN_KEYS_MIN = 4
_DENSE_PART = 0.25

_HBASE_TICK_S = 0.002


class HbaseStore:
    """A store in the tables `<table>_blocks`, `<table>_records` and `<table>_heads`, which `prepare` makes.

    Args:
        host, port: of a Thrift 1 gateway with the binary protocol and the buffered transport, its defaults.
        table: how the tables' names begin; a namespace may stand before it, as in `results:streamjoin`.
        timeout_s: how long to wait for a connection, and for each answer.
    """

    kind = "hbase"
    block_bytes = 1 << 17

    def __init__(
        self, host: str = "127.0.0.1", port: int = 9090, table: str = "streamjoin", timeout_s: float = 10.0
    ) -> None:
        self.gateway = Gateway(host, port, table, timeout_s)
        self.scans = 0
        """Ordered scans that looked for blocks."""
        self.rows_scanned = 0
        """Blocks that those scans read, asked for or not."""
        self.gets = 0
        """Blocks that were asked for by name."""

    def __reduce__(self) -> tuple[type[HbaseStore], tuple[str, int, str, float]]:
        gateway = self.gateway
        return HbaseStore, (gateway.host, gateway.port, gateway.table, gateway.timeout_s)

    def prepare(self) -> None:
        """Make the tables."""
        self.gateway.prepare()

    def put_blocks(self, job: str, blocks: Blocks) -> None:
        """See `Store`."""
        self._put(self.gateway.blocks, [(block_row(job, key), content) for key, content in blocks])

    def get_blocks(self, job: str, keys: Sequence[BlockKey]) -> Iterator[tuple[BlockKey, bytes]]:
        """The blocks of `keys`, in the order of their join keys; see `Store`.

        One ordered scan reads them as long as a quarter of what it meets was asked for. Where it meets less, some
        blocks are asked for by name, and a scan goes on behind them: more of them each time, so that a scattered choice
        costs few scans in vain.
        """
        rows: Sequence[bytes] = sorted({block_row(job, key) for key in keys})
        by_name = ROWS_FIRST
        while rows:
            if len(rows) >= _SCAN_KEYS_MIN:
                rows = yield from self._scan_blocks(rows)
            for row, content in self._get_blocks(rows[:by_name]):
                yield block_key(row), content
            rows = rows[by_name:]
            by_name *= 2

    def delete_blocks(self, job: str, keys: Sequence[BlockKey]) -> None:
        """See `Store`."""
        self._delete(self.gateway.blocks, (block_row(job, key) for key in keys))

    def list_blocks(self, job: str) -> Iterator[BlockKey]:
        """See `Store`."""
        for page in self._scan(self.gateway.blocks, *all_of(job), keys_only=True):
            yield from (block_key(row) for row, _ in page)

    def put_records(self, job: str, records: Records) -> None:
        """See `Store`."""
        self._put(self.gateway.records, [(record_row(job, name), content) for name, content in records])

    def get_records(self, job: str, first: str, last: str) -> Iterator[tuple[str, bytes]]:
        """See `Store`."""
        if first > last:
            return
        start = len(record_row(job, ""))
        for page in self._scan(self.gateway.records, record_row(job, first), after(record_row(job, last))):
            yield from ((row[start:].decode("ascii"), content) for row, content in page)

    def delete_records(self, job: str, names: Sequence[str]) -> None:
        """See `Store`."""
        self._delete(self.gateway.records, (record_row(job, name) for name in names))

    def head(self, job: str) -> bytes | None:
        """See `Store`."""
        return self.gateway.read(self.gateway.heads, job.encode())

    def swap_head(self, job: str, expected: bytes | None, new: bytes) -> bool:
        """See `Store`. No head is empty."""
        if expected == b"":
            return False  # the gateway would take it for None
        self._check_size(len(new))
        swap = thrift_library().Mutation(column=COLUMN, value=new)
        done = self.gateway.call(
            "checkAndPut", self.gateway.heads, job.encode(), COLUMN, expected, swap, {}, repeatable=False
        )
        return bool(done)

    def jobs(self) -> list[str]:
        """See `Store`."""
        found = self._scan(self.gateway.heads, _JOBS_START, b"", keys_only=True)
        return [row.decode() for page in found for row, _ in page]

    def drop(self, job: str) -> None:
        """See `Store`."""
        self._delete(self.gateway.heads, [job.encode()])
        for table in (self.gateway.records, self.gateway.blocks):
            for page in self._scan(table, *all_of(job), keys_only=True):
                self._delete(table, [row for row, _ in page])

    def close(self) -> None:
        """See `Store`."""
        self.gateway.close()

    def _put(self, table: bytes, rows: Sequence[tuple[bytes, bytes]]) -> None:
        thrift = thrift_library()
        start = size = 0
        for end, (_, content) in enumerate(rows, 1):
            self._check_size(len(content))
            size += len(content)
            if size >= REQUEST_BYTES or end - start >= ROWS_A_REQUEST or end == len(rows):
                batch = [
                    thrift.BatchMutation(row=row, mutations=[thrift.Mutation(column=COLUMN, value=value)])
                    for row, value in rows[start:end]
                ]
                self.gateway.call("mutateRows", table, batch, {})
                start, size = end, 0

    def _delete(self, table: bytes, rows: Iterable[bytes]) -> None:
        thrift = thrift_library()
        gone = thrift.Mutation(column=COLUMN, isDelete=True)
        batch = [thrift.BatchMutation(row=row, mutations=[gone]) for row in rows]
        for start in range(0, len(batch), ROWS_A_REQUEST):
            self.gateway.call("mutateRows", table, batch[start : start + ROWS_A_REQUEST], {})
        if batch:
            # HBase counts time in ms, and a deletion hides what is put within the same one.
            time.sleep(_HBASE_TICK_S)

    def _get_blocks(self, rows: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """Blocks by name."""
        pace = Pace()
        while rows:
            some, rows = rows[: pace.rows], rows[pace.rows :]
            self.gets += len(some)
            found = contents(self.gateway.call("getRowsWithColumns", self.gateway.blocks, some, [COLUMN], {}))
            pace.note(found)
            yield from found

    def _scan_blocks(self, rows: Sequence[bytes]) -> Generator[tuple[BlockKey, bytes], None, Sequence[bytes]]:
        """Blocks by one scan over rising `rows`; returns those it did not come to, as it met too few of them."""
        wanted = set(rows)
        self.scans += 1
        with contextlib.closing(self._scan(self.gateway.blocks, rows[0], after(rows[-1]))) as pages:
            for page in pages:
                self.rows_scanned += len(page)
                found = [(block_key(row), content) for row, content in page if row in wanted]
                yield from found
                if len(found) < _DENSE_PART * len(page):
                    return rows[bisect_right(rows, page[-1][0]) :]
        return []

    def _scan(
        self, table: bytes, start: bytes, stop: bytes, *, keys_only: bool = False
    ) -> Generator[list[tuple[bytes, bytes]], None, None]:
        """Rows with start <= row < stop in order, some at a time."""
        pace = Pace()
        scan: Scan | None = None
        try:
            while True:
                if fresh := scan is None:
                    scan = self._begin_scan(table, start, stop, keys_only)
                try:
                    page = contents(self.gateway.call("scannerGetList", scan.number, pace.rows, scan=scan))
                except ForgottenScanError:
                    scan = None
                    if fresh:
                        raise
                    continue  # where it stopped: the reader took long, or the connection is a new one
                if not page:
                    return
                start = after(page[-1][0])
                pace.note(page)
                yield page
        finally:
            if scan is not None and scan.link is self.gateway.link:
                with contextlib.suppress(StoreError):
                    self.gateway.call("scannerClose", scan.number, scan=scan)

    def _begin_scan(self, table: bytes, start: bytes, stop: bytes, keys_only: bool) -> Scan:
        asked = thrift_library().TScan(
            startRow=start, stopRow=stop or None, columns=[COLUMN], filterString=_KEYS_ONLY if keys_only else None
        )
        number = self.gateway.call("scannerOpenWithScan", table, asked, {})
        assert self.gateway.link is not None
        return Scan(self.gateway.link, number)

    def _check_size(self, size: int) -> None:
        if size > CELL_BYTES_MAX:
            raise StoreError(
                f"{size} bytes are too many for one value in HBase at {self.gateway.where}, whose KeyValue limit is "
                f"10 MiB; write blocks of at most {CELL_BYTES_MAX} bytes"
            )


open_store = HbaseStore
