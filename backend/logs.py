"""Logs of all processes of the platform: JSON lines, or short lines for people where a terminal reads them."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any

import structlog

# Also what turns the direction of writing, and the line and paragraph separators.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def _escaped(_logger: object, _method: str, line: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """What comes from a request may look like another line, or tell a terminal what to do; stacks are our own."""
    return {name: escaped(value) if isinstance(value, str) else value for name, value in line.items()}


def escaped(text: str) -> str:
    """A text without what controls a terminal or turns a line: its codes in place of it."""
    return _CONTROL.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def set_up_logs(service: str, **fixed: Any) -> None:
    """Send all logs of this process to standard error.

    Each line has `service` and what is `fixed`, whatever thread it is from, and what is bound to the context.
    """
    structlog.contextvars.clear_contextvars()

    def add_fixed(_logger: object, _method: str, line: MutableMapping[str, Any]) -> Mapping[str, Any]:
        return {"service": service, **fixed, **line}

    shared: list[Any] = [
        _escaped,
        structlog.contextvars.merge_contextvars,
        add_fixed,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    last: Any = structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, last],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    logging.getLogger("py4j").setLevel(logging.WARNING)
