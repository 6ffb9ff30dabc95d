"""What a conversation with the platform asks its transport to do, step by step.

Conversations are generators that yield steps and are sent what came of them. They do no input or output themselves, so
each is written once, for the blocking client and for the asynchronous one.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. What comes of it is a `Reply` or `Lost`.

    Args:
        path: below the host.
        json: the body, or None for none.
        content: the body as it is, with its type in `headers`, in place of `json`.
        repeatable: sending it twice does no more than sending it once.
        timeout_s: for this one attempt.
    """

    method: str
    path: str
    params: Mapping[str, str | int] = field(default_factory=dict)
    json: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = False
    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Fetch:
    """One HTTP request whose reply is handed over piece by piece as it comes, and is never held as a whole.

    What comes of it is None when all is there, a `Reply` that refuses, or `Lost`.
    """

    request: Request


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP reply, read to its end; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Lost:
    """No reply, no connection, or a connection that ended.

    Args:
        why: for people.
        status: of an HTTP reply that refused a websocket, or the code that closed one.
        body: of that reply, or the reason that came with the code.
        refused: nobody listened, so the request was not even sent.
    """

    why: str
    status: int = 0
    body: bytes = b""
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Connect:
    """Open a websocket, after closing the one before. What comes of it is None or `Lost`."""

    path: str
    subprotocol: str
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Say:
    """Send a text over the websocket. What comes of it is None or `Lost`."""

    text: str


@dataclass(frozen=True, slots=True)
class Hear:
    """Wait for the next text of the websocket. What comes of it is the text, or `Lost`; a time-out is one."""

    timeout_s: float


@dataclass(frozen=True, slots=True)
class Emit(Generic[T]):
    """Hand a value to whoever iterates."""

    value: T


Step = Request | Pause
SocketStep = Connect | Say | Hear
Exchange = Generator[Step, Any, T]
"""A conversation with one result."""
Flow = Generator[Step | SocketStep | Fetch | Emit[T], Any, None]
"""A conversation that hands over one value after the other."""
