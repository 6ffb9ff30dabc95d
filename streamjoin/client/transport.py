"""The two transports: they do what conversations ask for, one by blocking, one on an event loop.

Connections are given back when the client is closed; a websocket when its iteration ends, however it ends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar, cast

import httpx2
from websockets.asyncio.client import ClientConnection as AsyncSocket
from websockets.asyncio.client import connect as connect_async
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection as Socket
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from streamjoin.client.errors import AnswerError
from streamjoin.client.steps import (
    Connect,
    Emit,
    Exchange,
    Fetch,
    Flow,
    Hear,
    Lost,
    Pause,
    Reply,
    Request,
    Say,
    SocketStep,
    Step,
)
from streamjoin.errors import InputError, StreamJoinError

T = TypeVar("T")
PORT_MAX = 65_535
FRAME_BYTES_MAX = 64 << 20
CLOSE_S = 2.0
HTTP_FAILURES = (httpx2.TransportError, httpx2.DecodingError)
NONSENSE = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError)
SOCKET_FAILURES = (OSError, WebSocketException, TimeoutError)


class Talk:
    """A conversation that fails by name where what it is told makes no sense: it was not written for other servers.

    Args:
        host: for messages.
    """

    def __init__(self, conversation: Generator[Any, Any, Any], host: str) -> None:
        self._conversation = conversation
        self._host = host
        self._is_told = False

    def send(self, came: Any) -> Any:
        """As a generator's.

        Raises:
            AnswerError: what came is nothing that the platform says.
        """
        self._is_told = self._is_told or isinstance(came, Reply | str)
        try:
            return self._conversation.send(came)
        except NONSENSE as failure:
            if not self._is_told or isinstance(failure, StreamJoinError):
                raise  # it is the caller's, or has its sentence
            what = f"it has no {failure}" if isinstance(failure, KeyError) else str(failure)[:200]
            raise AnswerError(
                f"{self._host} gave an answer that cannot be read ({what}); is it a StreamJoin of this version?",
                code="no_sense",
            ) from failure


class Blocking:
    """Does steps by waiting for them. May be used by several threads.

    Args:
        host: where the platform is, such as http://127.0.0.1:8000.
        headers: of every request.
    """

    def __init__(self, host: str, headers: Mapping[str, str]) -> None:
        self.host = host
        self.headers = dict(headers)
        self.http = httpx2.Client(base_url=_base(host), headers=self.headers)

    def run(self, exchange: Exchange[T]) -> T:
        """The result of a conversation."""
        came: Any = None
        talk = Talk(exchange, self.host)
        while True:
            try:
                step = talk.send(came)
            except StopIteration as end:
                result: T = end.value
                return result
            came = self._do(step)

    def iterate(self, flow: Flow[T]) -> Iterator[T]:
        """The values of a conversation, each as it comes."""
        came: Any = None
        socket: Socket | None = None
        talk = Talk(flow, self.host)
        try:
            while True:
                try:
                    step = talk.send(came)
                except StopIteration:
                    return
                came = None
                if isinstance(step, Emit):
                    yield step.value
                elif isinstance(step, Fetch):
                    try:
                        with self.http.stream(**_arguments(step.request)) as response:
                            if response.is_success:
                                for piece in response.iter_bytes():
                                    yield cast(T, piece)
                            else:
                                response.read()
                                came = _reply(response)
                    except HTTP_FAILURES as failure:
                        came = _no_reply(failure)
                elif isinstance(step, Request | Pause):
                    came = self._do(step)
                elif isinstance(step, Connect):
                    _close(socket)
                    came = socket = self._connect(step)
                    if isinstance(came, Lost):
                        socket = None
                else:
                    came = _use(socket, step)
        finally:
            flow.close()
            _close(socket)

    def close(self) -> None:
        """Give the connections back."""
        self.http.close()

    def _do(self, step: Step) -> Reply | Lost | None:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        try:
            return _reply(self.http.request(**_arguments(step)))
        except HTTP_FAILURES as failure:
            return _no_reply(failure)

    def _connect(self, step: Connect) -> Any:
        try:
            return connect(**_handshake(self.host, self.headers, step), legacy=True)
        except SOCKET_FAILURES as failure:
            return _lost(failure)


class Asynchronous:
    """Does steps on the running event loop; for the arguments see `Blocking`."""

    def __init__(self, host: str, headers: Mapping[str, str]) -> None:
        self.host = host
        self.headers = dict(headers)
        self.http = httpx2.AsyncClient(base_url=_base(host), headers=self.headers)

    async def run(self, exchange: Exchange[T]) -> T:
        """The result of a conversation."""
        came: Any = None
        talk = Talk(exchange, self.host)
        while True:
            try:
                step = talk.send(came)
            except StopIteration as end:
                result: T = end.value
                return result
            came = await self._do(step)

    async def iterate(self, flow: Flow[T]) -> AsyncIterator[T]:
        """The values of a conversation, each as it comes."""
        came: Any = None
        socket: AsyncSocket | None = None
        talk = Talk(flow, self.host)
        try:
            while True:
                try:
                    step = talk.send(came)
                except StopIteration:
                    return
                came = None
                if isinstance(step, Emit):
                    yield step.value
                elif isinstance(step, Fetch):
                    try:
                        async with self.http.stream(**_arguments(step.request)) as response:
                            if response.is_success:
                                async for piece in response.aiter_bytes():
                                    yield cast(T, piece)
                            else:
                                await response.aread()
                                came = _reply(response)
                    except HTTP_FAILURES as failure:
                        came = _no_reply(failure)
                elif isinstance(step, Request | Pause):
                    came = await self._do(step)
                elif isinstance(step, Connect):
                    await _close_async(socket)
                    came = socket = await self._connect(step)
                    if isinstance(came, Lost):
                        socket = None
                else:
                    came = await _use_async(socket, step)
        finally:
            flow.close()
            await _close_async(socket)

    async def close(self) -> None:
        """Give the connections back."""
        await self.http.aclose()

    async def _do(self, step: Step) -> Reply | Lost | None:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        try:
            return _reply(await self.http.request(**_arguments(step)))
        except HTTP_FAILURES as failure:
            return _no_reply(failure)

    async def _connect(self, step: Connect) -> Any:
        try:
            return await connect_async(**_handshake(self.host, self.headers, step))
        except SOCKET_FAILURES as failure:
            return _lost(failure)


def _base(host: str) -> httpx2.URL:
    try:
        url = httpx2.URL(host)
        if (url.port or 0) > PORT_MAX:
            raise ValueError(f"there is no port {url.port}")
    except (httpx2.InvalidURL, ValueError) as wrong:
        raise InputError(f'"{host[:100]}" is not an address of a platform: {wrong}') from None
    return url


def _use(socket: Socket | None, step: SocketStep) -> str | Lost | None:
    assert socket is not None, "a conversation connects before it speaks"
    try:
        if isinstance(step, Say):
            socket.send(step.text)
            return None
        assert isinstance(step, Hear)
        return socket.recv(step.timeout_s, decode=True)
    except SOCKET_FAILURES as failure:
        return _lost(failure)


async def _use_async(socket: AsyncSocket | None, step: SocketStep) -> str | Lost | None:
    assert socket is not None, "a conversation connects before it speaks"
    try:
        if isinstance(step, Say):
            await socket.send(step.text)
            return None
        assert isinstance(step, Hear)
        async with asyncio.timeout(step.timeout_s):
            return await socket.recv(decode=True)
    except SOCKET_FAILURES as failure:
        return _lost(failure)


def _close(socket: Socket | None) -> None:
    if socket is not None:
        with suppress(*SOCKET_FAILURES):
            socket.close()


async def _close_async(socket: AsyncSocket | None) -> None:
    if socket is not None:
        with suppress(*SOCKET_FAILURES):
            await socket.close()


def _arguments(request: Request) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "method": request.method, "url": request.path, "params": dict(request.params) or None,
        "headers": dict(request.headers), "timeout": request.timeout_s,
    }  # fmt: skip
    if request.content is not None:
        arguments["content"] = request.content
    elif request.json is not None:
        arguments["json"] = request.json
    return arguments


def _reply(response: httpx2.Response) -> Reply:
    return Reply(response.status_code, dict(response.headers), response.content)


def _handshake(host: str, headers: Mapping[str, str], step: Connect) -> dict[str, Any]:
    return {
        "uri": "ws" + host.removeprefix("http") + step.path,
        "subprotocols": [Subprotocol(step.subprotocol)],
        "additional_headers": dict(headers),
        "open_timeout": step.timeout_s,
        "close_timeout": CLOSE_S,
        "max_size": FRAME_BYTES_MAX,
    }


def _no_reply(failure: Exception) -> Lost:
    return Lost(_why(failure), refused=isinstance(failure, httpx2.ConnectError))


def _lost(failure: Exception) -> Lost:
    if isinstance(failure, InvalidStatus):
        response = failure.response
        return Lost(f"HTTP status {response.status_code}", response.status_code, bytes(response.body or b""))
    if isinstance(failure, ConnectionClosed):
        frame = failure.rcvd
        if frame is None:
            return Lost("the connection broke off")
        return Lost(frame.reason or f"the connection was closed with {frame.code}", frame.code)
    return Lost(_why(failure))


def _why(failure: Exception) -> str:
    return str(failure) or type(failure).__name__
