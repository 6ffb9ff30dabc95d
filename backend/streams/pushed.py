"""Streams whose rows are posted to the API, by their entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

PUSH: Final = "push"
"""The connector for rows that are posted to the API: they are kept as files of JSON lines in a spool folder."""


def is_push(entry: Mapping[str, Any]) -> bool:
    """Whether rows are posted to it."""
    return bool(entry.get(PUSH))
