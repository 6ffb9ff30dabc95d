"""The client library of HBase's Thrift gateway, which is an extra, and a connection to the gateway."""

from __future__ import annotations

import functools
import importlib
import os
import select
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from streamjoin.results.stores.store import StoreError


@functools.cache
def thrift_library() -> Any:
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


class Link:
    """A connection to the gateway, of the process that opened it."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        thrift = thrift_library()
        self.is_waiting = False
        self._process = os.getpid()
        self._socket = thrift.TSocket(host, port, socket_timeout=max(int(timeout_s * 1000), 1))
        transport = thrift.TBufferedTransport(self._socket)
        transport.open()
        self.client = thrift.TClient(thrift.Hbase, thrift.TBinaryProtocol(transport, decode_response=False))

    def ask(self, name: str, arguments: Sequence[Any]) -> Any:
        """Ask and wait; `is_waiting` stays true where no answer came."""
        self.is_waiting = True
        thrift = thrift_library()
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
