"""The two streams of a join."""

from __future__ import annotations

from enum import StrEnum


class Stream(StrEnum):
    """One of the two inputs."""

    R = "R"
    S = "S"

    @property
    def opposite(self) -> Stream:
        """The other one."""
        return Stream.S if self is Stream.R else Stream.R
