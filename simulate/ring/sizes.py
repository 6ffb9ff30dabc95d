"""How large messages of the ring are."""

from __future__ import annotations

from simulate.ring.messages import Build, Input, Inter, Probe

HEADER_BYTES = 16
"""Of a message: whom it is for, what it is, and of which input."""


def rows_in(message: object) -> int:
    """How many rows a message carries; a partial result carries each of its parts."""
    match message:
        case Input() | Build() | Probe():
            return 1
        case Inter(parts):
            return sum(row is not None for row in parts)
        case _:
            return 0


def bytes_of(message: object, tuple_bytes: int) -> int:
    """Of one message, where a row has so many bytes."""
    return HEADER_BYTES + rows_in(message) * tuple_bytes
