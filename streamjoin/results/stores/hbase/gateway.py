"""Asking the gateway: our tables and their layout, and its errors as ours."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Any

from streamjoin.results.stores.hbase.rows import COLUMN, FAMILY
from streamjoin.results.stores.hbase.thrift import Link, thrift_library
from streamjoin.results.stores.store import StoreDownError, StoreError, StoreMissingError, StoreUncertainError

LAYOUT = 1
_LAYOUT_ROW = b"\0layout"  # among the heads; no job has such a name
_LOOK_AGAIN_S = 0.1

# HBase's names for what waiting does not mend. Its texts are stack traces, and "DoNotRetry" in them means nothing: it
# says so of a ZooKeeper that is just starting.
_REFUSALS = ("NamespaceNotFoundException", "AccessDeniedException")
_QUOTED_MAX = 200


class ForgottenScanError(StoreDownError):
    """The gateway does not know the scan any more."""


@dataclass(frozen=True, slots=True)
class Scan:
    """A scan that is open, and in which connection."""

    link: Link
    number: int


class Gateway:
    """The gateway and our tables behind it, connected at its first use in each process; see `HbaseStore`."""

    def __init__(self, host: str, port: int, table: str, timeout_s: float) -> None:
        self.host = host
        self.port = port
        self.table = table
        self.timeout_s = timeout_s
        self.blocks, self.records, self.heads = (f"{table}_{kind}".encode() for kind in ("blocks", "records", "heads"))
        self.link: Link | None = None
        self._is_checked = False

    def prepare(self) -> None:
        """Make the tables."""
        thrift = thrift_library()
        family = thrift.ColumnDescriptor(
            name=FAMILY + b":", maxVersions=1, bloomFilterType="ROW", blockCacheEnabled=True
        )
        there = self.call("getTableNames", checked=False)
        for table in (self.blocks, self.records, self.heads):
            if table not in there:
                # Another process may be making it just now.
                with contextlib.suppress(thrift.AlreadyExists):
                    self.call("createTable", table, [family], checked=False)
            self._await_enabled(table)
        if self.read(self.heads, _LAYOUT_ROW, checked=False) is None:
            layout = thrift.Mutation(column=COLUMN, value=str(LAYOUT).encode())
            self.call("checkAndPut", self.heads, _LAYOUT_ROW, COLUMN, None, layout, {}, checked=False)
        self._check_layout()

    def read(self, table: bytes, row: bytes, *, checked: bool = True) -> bytes | None:
        cells = self.call("get", table, row, COLUMN, {}, checked=checked)
        return cells[0].value if cells else None

    def close(self) -> None:
        """Hang up; it connects again when it is used."""
        link, self.link = self.link, None
        if link is not None:
            link.close()

    def _check_layout(self) -> None:
        found = self.read(self.heads, _LAYOUT_ROW, checked=False)
        if found is None:
            raise self._no_tables()
        layout = found.decode(errors="replace")
        if layout != str(LAYOUT):
            raise StoreError(
                f"the tables {self.table}_* of HBase at {self.where} have layout {layout}, and this version reads "
                f"layout {LAYOUT}; use the version that wrote them, or another table"
            )
        self._is_checked = True

    def _await_enabled(self, table: bytes) -> None:
        """A table that another process makes has its name before it can be used."""
        ends_s = time.monotonic() + self.timeout_s
        while not self.call("isTableEnabled", table, checked=False):
            if time.monotonic() >= ends_s:
                raise StoreDownError(f"the table {table.decode()} of HBase at {self.where} is disabled; enable it")
            time.sleep(_LOOK_AGAIN_S)

    def call(
        self, name: str, *arguments: Any, checked: bool = True, repeatable: bool = True, scan: Scan | None = None
    ) -> Any:
        """Ask the gateway.

        Args:
            checked: the tables must be of our layout.
            repeatable: doing it again does no harm.
            scan: what it is about.
        """
        thrift = thrift_library()
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
            raise StoreError(f"HBase at {self.where} refuses: {_first_line(cause.message)}") from None
        except thrift.IOError as cause:
            text = _text(cause.message)
            if "TableExistsException" in text:
                raise thrift.AlreadyExists from None
            if "TableNotFoundException" in text:
                raise self._no_tables() from None
            if "NoSuchColumnFamilyException" in text:
                raise StoreError(
                    f"the tables {self.table}_* of HBase at {self.where} are of something else; name another"
                ) from None
            if any(refusal in text for refusal in _REFUSALS):
                raise StoreError(f"HBase at {self.where} refuses: {_first_line(text)}; look at its log") from None
            raise no_answer(f"HBase at {self.where} cannot do it now: {_first_line(text)}; look at its log") from None
        except TimeoutError:
            raise no_answer(
                f"HBase at {self.where} gave no answer within {self.timeout_s:g} s; look whether it runs"
            ) from None
        except (thrift.TException, OSError) as cause:
            raise no_answer(f"HBase at {self.where} broke off: {_first_line(cause)}; look whether it runs") from None
        finally:
            # An answer that comes later must not be taken for that to the next question.
            if link.is_waiting:
                self.close()

    def _connected(self) -> Link:
        """The connection, opened at its first use in this process and again after it failed."""
        if self.link is not None and not self.link.is_usable():
            self.close()
        if self.link is None:
            try:
                self.link = Link(self.host, self.port, self.timeout_s)
            except (thrift_library().TException, OSError):
                raise StoreDownError(
                    f"HBase's Thrift gateway at {self.where} cannot be reached; start it, or name the right one"
                ) from None
        return self.link

    @property
    def where(self) -> str:
        """Host and port."""
        return f"{self.host}:{self.port}"

    def _forgotten(self) -> ForgottenScanError:
        return ForgottenScanError(f"HBase at {self.where} forgot a scan")

    def _no_tables(self) -> StoreMissingError:
        return StoreMissingError(
            f"HBase at {self.where} has no result store in tables {self.table}_*; `streamjoin run` makes it"
        )


def _text(message: Any) -> str:
    return message.decode(errors="replace") if isinstance(message, bytes) else str(message)


def _first_line(message: Any) -> str:
    line = _text(message).strip().partition("\n")[0]
    return line[:_QUOTED_MAX] or "it did not say why"
