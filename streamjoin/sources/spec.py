"""How a task opens a source, as plain data that travels to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamjoin.sources.source import Source


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """How to open a source; opening it reads its log.

    Args:
        opens: `module:attribute` of what opens it: called with the stream's name, where it may keep a log, the stream's
            columns and `settings`, all by name.
        settings: the source's own arguments.
        schema: the stream's columns.
    """

    opens: str
    settings: Mapping[str, Any]
    schema: pa.Schema | None = None

    def open(self, stream: str, log: Path) -> Source:
        """The source; `log` is where a file source keeps its log."""
        module, _, attribute = self.opens.partition(":")
        source: Source = getattr(import_module(module), attribute)(
            stream=stream, log=log, schema=self.schema, **self.settings
        )
        return source
