"""Results in HBase, through its Thrift 1 gateway: rows lie in key order, so a range of join keys is one ordered scan.

A block's row key begins with its job and its lowest join key. Nothing of time and no salt stands before the key, as
time-series layouts have it: either would spread one range of keys over the whole table. Every row has one cell, and is
only put or deleted; the head is one cell too, because the gateway's compare-and-set covers one.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import select
import struct
import time
from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from streamjoin.results.stores.store import (
    BlockKey,
    Blocks,
    Records,
    StoreDownError,
    StoreError,
    StoreMissingError,
    StoreUncertainError,
)

LAYOUT = 1
CELL_BYTES_MAX = 9 << 20
"""A cell may have this many bytes at most."""
_FAMILY = b"d"
_COLUMN = b"d:v"
_LAYOUT_ROW = b"\0layout"  # among the heads; no job has such a name
_JOBS_START = b"\x01"

_KEY = struct.Struct(">Q5q")
_SIGN = 1 << 63  # turned over, negative numbers sort before the others as bytes do

_REQUEST_BYTES = 4 << 20
_ROWS_A_REQUEST = 256
_ROWS_FIRST = 16
_KEYS_ONLY = b"KeyOnlyFilter()"

_SCAN_KEYS_MIN = 4
_DENSE_PART = 0.25

_HBASE_TICK_S = 0.002
_LOOK_AGAIN_S = 0.1

# HBase's names for what waiting does not mend. Its texts are stack traces, and "DoNotRetry" in them means nothing: it
# says so of a ZooKeeper that is just starting.
_REFUSALS = ("NamespaceNotFoundException", "AccessDeniedException")
_QUOTED_MAX = 200


class _ForgottenScanError(StoreDownError):
    """The gateway does not know the scan any more."""


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
        self.host = host
        self.port = port
        self.table = table
        self.timeout_s = timeout_s
        self.scans = 0
        """Ordered scans that looked for blocks."""
        self.rows_scanned = 0
        """Blocks that those scans read, asked for or not."""
        self.gets = 0
        """Blocks that were asked for by name."""
        self._blocks, self._records, self._heads = (
            f"{table}_{kind}".encode() for kind in ("blocks", "records", "heads")
        )
        self._link: _Link | None = None
        self._is_checked = False

    def __reduce__(self) -> tuple[type[HbaseStore], tuple[str, int, str, float]]:
        return HbaseStore, (self.host, self.port, self.table, self.timeout_s)

    def prepare(self) -> None:
        """Make the tables."""
        thrift = _thrift()
        family = thrift.ColumnDescriptor(
            name=_FAMILY + b":", maxVersions=1, bloomFilterType="ROW", blockCacheEnabled=True
        )
        there = self._call("getTableNames", checked=False)
        for table in (self._blocks, self._records, self._heads):
            if table not in there:
                # Another process may be making it just now.
                with contextlib.suppress(thrift.AlreadyExists):
                    self._call("createTable", table, [family], checked=False)
            self._await_enabled(table)
        if self._read(self._heads, _LAYOUT_ROW, checked=False) is None:
            layout = thrift.Mutation(column=_COLUMN, value=str(LAYOUT).encode())
            self._call("checkAndPut", self._heads, _LAYOUT_ROW, _COLUMN, None, layout, {}, checked=False)
        self._check_layout()

    def put_blocks(self, job: str, blocks: Blocks) -> None:
        """See `Store`."""
        self._put(self._blocks, [(_block_row(job, key), content) for key, content in blocks])

    def get_blocks(self, job: str, keys: Sequence[BlockKey]) -> Iterator[tuple[BlockKey, bytes]]:
        """The blocks of `keys`, in the order of their join keys; see `Store`.

        One ordered scan reads them as long as a quarter of what it meets was asked for. Where it meets less, some
        blocks are asked for by name, and a scan goes on behind them: more of them each time, so that a scattered choice
        costs few scans in vain.
        """
        rows: Sequence[bytes] = sorted({_block_row(job, key) for key in keys})
        by_name = _ROWS_FIRST
        while rows:
            if len(rows) >= _SCAN_KEYS_MIN:
                rows = yield from self._scan_blocks(rows)
            for row, content in self._get_blocks(rows[:by_name]):
                yield _block_key(row), content
            rows = rows[by_name:]
            by_name *= 2

    def delete_blocks(self, job: str, keys: Sequence[BlockKey]) -> None:
        """See `Store`."""
        self._delete(self._blocks, (_block_row(job, key) for key in keys))

    def list_blocks(self, job: str) -> Iterator[BlockKey]:
        """See `Store`."""
        for page in self._scan(self._blocks, *_all_of(job), keys_only=True):
            yield from (_block_key(row) for row, _ in page)

    def put_records(self, job: str, records: Records) -> None:
        """See `Store`."""
        self._put(self._records, [(_record_row(job, name), content) for name, content in records])

    def get_records(self, job: str, first: str, last: str) -> Iterator[tuple[str, bytes]]:
        """See `Store`."""
        if first > last:
            return
        start = len(_record_row(job, ""))
        for page in self._scan(self._records, _record_row(job, first), _after(_record_row(job, last))):
            yield from ((row[start:].decode("ascii"), content) for row, content in page)

    def delete_records(self, job: str, names: Sequence[str]) -> None:
        """See `Store`."""
        self._delete(self._records, (_record_row(job, name) for name in names))

    def head(self, job: str) -> bytes | None:
        """See `Store`."""
        return self._read(self._heads, job.encode())

    def swap_head(self, job: str, expected: bytes | None, new: bytes) -> bool:
        """See `Store`. No head is empty."""
        if expected == b"":
            return False  # the gateway would take it for None
        self._check_size(len(new))
        swap = _thrift().Mutation(column=_COLUMN, value=new)
        done = self._call("checkAndPut", self._heads, job.encode(), _COLUMN, expected, swap, {}, repeatable=False)
        return bool(done)

    def jobs(self) -> list[str]:
        """See `Store`."""
        found = self._scan(self._heads, _JOBS_START, b"", keys_only=True)
        return [row.decode() for page in found for row, _ in page]

    def drop(self, job: str) -> None:
        """See `Store`."""
        self._delete(self._heads, [job.encode()])
        for table in (self._records, self._blocks):
            for page in self._scan(table, *_all_of(job), keys_only=True):
                self._delete(table, [row for row, _ in page])

    def close(self) -> None:
        """See `Store`."""
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def _put(self, table: bytes, rows: Sequence[tuple[bytes, bytes]]) -> None:
        thrift = _thrift()
        start = size = 0
        for end, (_, content) in enumerate(rows, 1):
            self._check_size(len(content))
            size += len(content)
            if size >= _REQUEST_BYTES or end - start >= _ROWS_A_REQUEST or end == len(rows):
                batch = [
                    thrift.BatchMutation(row=row, mutations=[thrift.Mutation(column=_COLUMN, value=value)])
                    for row, value in rows[start:end]
                ]
                self._call("mutateRows", table, batch, {})
                start, size = end, 0

    def _delete(self, table: bytes, rows: Iterable[bytes]) -> None:
        thrift = _thrift()
        gone = thrift.Mutation(column=_COLUMN, isDelete=True)
        batch = [thrift.BatchMutation(row=row, mutations=[gone]) for row in rows]
        for start in range(0, len(batch), _ROWS_A_REQUEST):
            self._call("mutateRows", table, batch[start : start + _ROWS_A_REQUEST], {})
        if batch:
            # HBase counts time in ms, and a deletion hides what is put within the same one.
            time.sleep(_HBASE_TICK_S)

    def _read(self, table: bytes, row: bytes, *, checked: bool = True) -> bytes | None:
        cells = self._call("get", table, row, _COLUMN, {}, checked=checked)
        return cells[0].value if cells else None

    def _get_blocks(self, rows: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """Blocks by name."""
        pace = _Pace()
        while rows:
            some, rows = rows[: pace.rows], rows[pace.rows :]
            self.gets += len(some)
            found = _contents(self._call("getRowsWithColumns", self._blocks, some, [_COLUMN], {}))
            pace.note(found)
            yield from found

    def _scan_blocks(self, rows: Sequence[bytes]) -> Generator[tuple[BlockKey, bytes], None, Sequence[bytes]]:
        """Blocks by one scan over rising `rows`; returns those it did not come to, as it met too few of them."""
        wanted = set(rows)
        self.scans += 1
        with contextlib.closing(self._scan(self._blocks, rows[0], _after(rows[-1]))) as pages:
            for page in pages:
                self.rows_scanned += len(page)
                found = [(_block_key(row), content) for row, content in page if row in wanted]
                yield from found
                if len(found) < _DENSE_PART * len(page):
                    return rows[bisect_right(rows, page[-1][0]) :]
        return []

    def _scan(
        self, table: bytes, start: bytes, stop: bytes, *, keys_only: bool = False
    ) -> Generator[list[tuple[bytes, bytes]], None, None]:
        """Rows with start <= row < stop in order, some at a time."""
        pace = _Pace()
        scan: _Scan | None = None
        try:
            while True:
                if fresh := scan is None:
                    scan = self._begin_scan(table, start, stop, keys_only)
                try:
                    page = _contents(self._call("scannerGetList", scan.number, pace.rows, scan=scan))
                except _ForgottenScanError:
                    scan = None
                    if fresh:
                        raise
                    continue  # where it stopped: the reader took long, or the connection is a new one
                if not page:
                    return
                start = _after(page[-1][0])
                pace.note(page)
                yield page
        finally:
            if scan is not None and scan.link is self._link:
                with contextlib.suppress(StoreError):
                    self._call("scannerClose", scan.number, scan=scan)

    def _begin_scan(self, table: bytes, start: bytes, stop: bytes, keys_only: bool) -> _Scan:
        asked = _thrift().TScan(
            startRow=start, stopRow=stop or None, columns=[_COLUMN], filterString=_KEYS_ONLY if keys_only else None
        )
        number = self._call("scannerOpenWithScan", table, asked, {})
        assert self._link is not None
        return _Scan(self._link, number)

    def _check_size(self, size: int) -> None:
        if size > CELL_BYTES_MAX:
            raise StoreError(
                f"{size} bytes are too many for one value in HBase at {self._where}, whose KeyValue limit is 10 MiB; "
                f"write blocks of at most {CELL_BYTES_MAX} bytes"
            )

    def _check_layout(self) -> None:
        found = self._read(self._heads, _LAYOUT_ROW, checked=False)
        if found is None:
            raise self._no_tables()
        layout = found.decode(errors="replace")
        if layout != str(LAYOUT):
            raise StoreError(
                f"the tables {self.table}_* of HBase at {self._where} have layout {layout}, and this version reads "
                f"layout {LAYOUT}; use the version that wrote them, or another table"
            )
        self._is_checked = True

    def _await_enabled(self, table: bytes) -> None:
        """A table that another process makes has its name before it can be used."""
        ends_s = time.monotonic() + self.timeout_s
        while not self._call("isTableEnabled", table, checked=False):
            if time.monotonic() >= ends_s:
                raise StoreDownError(f"the table {table.decode()} of HBase at {self._where} is disabled; enable it")
            time.sleep(_LOOK_AGAIN_S)

    def _call(
        self, name: str, *arguments: Any, checked: bool = True, repeatable: bool = True, scan: _Scan | None = None
    ) -> Any:
        """Ask the gateway.

        Args:
            checked: the tables must be of our layout.
            repeatable: doing it again does no harm.
            scan: what it is about.
        """
        thrift = _thrift()
        if checked and not self._is_checked:
            self._check_layout()
        link = self._connected()
        if scan is not None and scan.link is not link:
            # Its number means another scan to another gateway.
            raise self._forgotten()
        no_answer = StoreDownError if repeatable else StoreUncertainError
        try:
            return link.ask(name, arguments)
        except thrift.AlreadyExists:
            raise
        except thrift.IllegalArgument as cause:
            if scan is not None:
                raise self._forgotten() from None
            raise StoreError(f"HBase at {self._where} refuses: {_first_line(cause.message)}") from None
        except thrift.IOError as cause:
            text = _text(cause.message)
            if "TableExistsException" in text:
                raise thrift.AlreadyExists from None
            if "TableNotFoundException" in text:
                raise self._no_tables() from None
            if "NoSuchColumnFamilyException" in text:
                raise StoreError(
                    f"the tables {self.table}_* of HBase at {self._where} are of something else; name another"
                ) from None
            if any(refusal in text for refusal in _REFUSALS):
                raise StoreError(f"HBase at {self._where} refuses: {_first_line(text)}; look at its log") from None
            raise no_answer(f"HBase at {self._where} cannot do it now: {_first_line(text)}; look at its log") from None
        except TimeoutError:
            raise no_answer(
                f"HBase at {self._where} gave no answer within {self.timeout_s:g} s; look whether it runs"
            ) from None
        except (thrift.TException, OSError) as cause:
            raise no_answer(f"HBase at {self._where} broke off: {_first_line(cause)}; look whether it runs") from None
        finally:
            # An answer that comes later must not be taken for that to the next question.
            if link.is_waiting:
                self.close()

    def _connected(self) -> _Link:
        """The connection, opened at its first use in this process and again after it failed."""
        if self._link is not None and not self._link.is_usable():
            self.close()
        if self._link is None:
            try:
                self._link = _Link(self.host, self.port, self.timeout_s)
            except (_thrift().TException, OSError):
                raise StoreDownError(
                    f"HBase's Thrift gateway at {self._where} cannot be reached; start it, or name the right one"
                ) from None
        return self._link

    @property
    def _where(self) -> str:
        return f"{self.host}:{self.port}"

    def _forgotten(self) -> _ForgottenScanError:
        return _ForgottenScanError(f"HBase at {self._where} forgot a scan")

    def _no_tables(self) -> StoreMissingError:
        return StoreMissingError(
            f"HBase at {self._where} has no result store in tables {self.table}_*; `streamjoin run` makes it"
        )


class _Link:
    """A connection to the gateway, of the process that opened it."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        thrift = _thrift()
        self.is_waiting = False
        self._process = os.getpid()
        self._socket = thrift.TSocket(host, port, socket_timeout=max(int(timeout_s * 1000), 1))
        transport = thrift.TBufferedTransport(self._socket)
        transport.open()
        self.client = thrift.TClient(thrift.Hbase, thrift.TBinaryProtocol(transport, decode_response=False))

    def ask(self, name: str, arguments: Sequence[Any]) -> Any:
        """Ask and wait; `is_waiting` stays true where no answer came."""
        self.is_waiting = True
        thrift = _thrift()
        try:
            answer = getattr(self.client, name)(*arguments)
        except (thrift.AlreadyExists, thrift.IllegalArgument, thrift.IOError):
            self.is_waiting = False  # an answer, too
            raise
        self.is_waiting = False
        return answer

    def is_usable(self) -> bool:
        """Whether it is this process's, and the other end has not hung up, as the gateway does after a minute."""
        if self._process != os.getpid():
            return False
        poll = select.poll()
        poll.register(self._socket.sock, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        """Hang up; a forked process only lets go of its copy."""
        if self._process == os.getpid():
            self._socket.close()
        else:
            self._socket.sock.close()


@dataclass(frozen=True, slots=True)
class _Scan:
    link: _Link
    number: int


class _Pace:
    """How many rows to ask for next, so that an answer has about `_REQUEST_BYTES`."""

    def __init__(self) -> None:
        self.rows = _ROWS_FIRST

    def note(self, found: Sequence[tuple[bytes, bytes]]) -> None:
        """What the last answer was."""
        size = sum(len(content) for _, content in found)
        fitting = _REQUEST_BYTES * len(found) // max(size, 1)
        self.rows = min(max(fitting, 1), self.rows * 2, _ROWS_A_REQUEST)


@functools.cache
def _thrift() -> Any:
    """The client library, loaded when it is needed: it is an extra, and takes a moment to read HBase's interface.

    Of happybase this is the interface; its own connection would hang up on the parent of a forked process.
    """
    try:
        importlib.import_module("happybase")  # without it there is no Hbase_thrift
        from thriftpy2.protocol import TBinaryProtocol
        from thriftpy2.thrift import TClient, TException
        from thriftpy2.transport import TBufferedTransport, TSocket
    except ImportError:
        raise StoreError("results in HBase need the library happybase; install streamjoin[hbase]") from None
    generated = vars(importlib.import_module("Hbase_thrift"))
    return SimpleNamespace(
        **{name: generated[name] for name in _GENERATED},
        TBinaryProtocol=TBinaryProtocol, TBufferedTransport=TBufferedTransport, TClient=TClient, TException=TException,
        TSocket=TSocket,
    )  # fmt: skip


_GENERATED = (
    "AlreadyExists", "BatchMutation", "ColumnDescriptor", "Hbase", "IOError", "IllegalArgument", "Mutation", "TScan",
)  # fmt: skip


def _block_row(job: str, key: BlockKey) -> bytes:
    return job.encode() + b"\0" + _KEY.pack(
        key.lowest + _SIGN, key.bucket, key.generation, key.batch, key.unit, key.number
    )  # fmt: skip


def _block_key(row: bytes) -> BlockKey:
    lowest, bucket, generation, batch, unit, number = _KEY.unpack(row[-_KEY.size :])
    return BlockKey(bucket, lowest - _SIGN, generation, batch, unit, number)


def _record_row(job: str, name: str) -> bytes:
    return f"{job}\0{name}".encode("ascii")


def _all_of(job: str) -> tuple[bytes, bytes]:
    """Where the rows of a job start and stop."""
    return job.encode() + b"\0", job.encode() + b"\x01"


def _after(row: bytes) -> bytes:
    """The next row there could be."""
    return row + b"\0"


def _contents(answer: Sequence[Any]) -> list[tuple[bytes, bytes]]:
    return [(found.row, found.columns[_COLUMN].value) for found in answer if _COLUMN in found.columns]


def _text(message: Any) -> str:
    return message.decode(errors="replace") if isinstance(message, bytes) else str(message)


def _first_line(message: Any) -> str:
    line = _text(message).strip().partition("\n")[0]
    return line[:_QUOTED_MAX] or "it did not say why"
