"""The address of the API: claimed once, shared evenly by its processes, and by nobody else."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from backend.listener import BACKLOG, SOCKET, SPREADS, claim, inherited

CONNECTIONS = 128


@pytest.fixture
def claimed() -> Iterator[socket.socket]:
    with claim("127.0.0.1", 0) as made:
        yield made


@pytest.fixture
def listening(claimed: socket.socket, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[socket.socket]]:
    """As two processes would."""
    with ExitStack() as stack:
        found = []
        for _ in range(2):
            monkeypatch.setenv(SOCKET, str(os.dup(claimed.fileno())))
            made = inherited()
            assert made is not None and made.getsockname() == claimed.getsockname()
            made.listen(BACKLOG)
            found.append(stack.enter_context(made))
        yield found


each_listens = pytest.mark.skipif(not SPREADS, reason="the processes share one socket here")


@each_listens
def test_connections_are_spread_although_they_come_at_once(listening: list[socket.socket]) -> None:
    address = listening[0].getsockname()
    with ExitStack() as stack:
        for _ in range(CONNECTIONS):
            stack.enter_context(socket.create_connection(address, timeout=5))
        shares = dict.fromkeys(listening, 0)
        ends_s = time.monotonic() + 10
        while sum(shares.values()) < CONNECTIONS and time.monotonic() < ends_s:
            for made in select.select(listening, [], [], 0.2)[0]:
                stack.enter_context(made.accept()[0])
                shares[made] += 1
    assert sum(shares.values()) == CONNECTIONS
    assert min(shares.values()) >= CONNECTIONS // 4, shares


@each_listens
def test_nobody_listens_before_a_process_does(claimed: socket.socket) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(claimed.getsockname(), timeout=5)


def test_an_address_where_somebody_listens_cannot_be_claimed(listening: list[socket.socket]) -> None:
    with pytest.raises(OSError, match="in use"):
        claim(*listening[0].getsockname())
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(OSError, match="in use"):
        claim(*other.getsockname())


def test_who_was_given_none_finds_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SOCKET, raising=False)
    assert inherited() is None
