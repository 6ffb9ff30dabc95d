"""The evaluation pages, with every figure taken from the run's results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.curves.handshake_page import handshake
from benchmarks.curves.splitjoin_page import splitjoin
from benchmarks.curves.text import wrapped


def pages(results: Mapping[str, Any]) -> dict[str, str]:
    """File name -> text."""
    return {"splitjoin.md": wrapped(splitjoin(results)), "handshake.md": wrapped(handshake(results))}
