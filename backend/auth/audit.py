"""What happens too often for an event each time: refusals, and rows that are pushed.

The same is written down once in a while, with how often it was since, so that nobody fills the catalog by it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from backend.catalog.database import Catalog
from backend.catalog.events import record
from backend.context import Context
from backend.problems import CATALOG_IS_AWAY, Problem

KIND: Final = "request.refused"
EVERY_S: Final = 60.0
"""So often at most the same is written down."""
KNOWN_MAX: Final = 200
"""So many different ones in that time; of others is only said how many there were."""
CODES: Final = frozenset({"forbidden", "rate_limited"})
"""Refusals of these kinds are all written down."""
SUBCODES: Final = frozenset({
    "not_allowed", "secret_in_spec", "secrets_of_other_servers", "link_in_data", "wrong_password", "loopback_only",
    "over_limit", "space_used_up",
})  # fmt: skip
"""And these, whatever their code is."""
_OTHERS: Final = ("others",)
_log = logging.getLogger("streamjoin.auth")


def is_noted(problem: Problem, *, with_key: bool) -> bool:
    """Whether a refusal is written down.

    Args:
        with_key: an API key came with the request. A login may just have expired, which is nobody's attack.
    """
    return problem.code in CODES or problem.subcode in SUBCODES or (problem.subcode == "no_login" and with_key)


@dataclass(slots=True)
class _Seen:
    since_s: float
    more: int = 0


class Seldom:
    """Counts what happens often, so that one line in a while tells of all of it."""

    def __init__(self, steady_s: Callable[[], float] = time.monotonic) -> None:
        self._steady_s = steady_s
        self._seen: dict[tuple[str, ...], _Seen] = {}
        self._lock = threading.Lock()

    def due(self, *key: str, count: int = 1) -> int:
        """Count something; how much a line is due for by now, 0 if it is too early for one."""
        now_s = self._steady_s()
        with self._lock:
            if len(self._seen) >= KNOWN_MAX:
                self._seen = {key: seen for key, seen in self._seen.items() if now_s - seen.since_s < EVERY_S}
            if key not in self._seen and len(self._seen) >= KNOWN_MAX:
                key = _OTHERS
            seen = self._seen.get(key)
            if seen is not None and now_s - seen.since_s < EVERY_S:
                seen.more += count
                return 0
            self._seen[key] = _Seen(now_s)
            return count + (0 if seen is None else seen.more)


class Audit:
    """What one process has written down lately."""

    def __init__(self, catalog: Catalog, steady_s: Callable[[], float] = time.monotonic) -> None:
        self._catalog = catalog
        self._refused = Seldom(steady_s)
        self._pushed = Seldom(steady_s)

    def pushed(self, rows: int, *, who: str | None, name: str, stream_id: str, stream: str) -> None:
        """Rows were pushed into a stream."""
        if due := self._pushed.due(who or "", stream_id, count=rows):
            self._write("rows.pushed", f"{name} pushed {due:,} rows into stream {stream}", "info",
                        {"rows": due, "stream_id": stream_id}, who)  # fmt: skip

    def refused(self, problem: Problem, *, who: str | None, name: str, address: str, asked: str) -> None:
        """Write a refusal down, unless the same was just now. Nobody is made to fail by this.

        Args:
            who, name: the actor's id and name; None and anything where nobody is known.
            asked: what for, such as "POST /api/v1/jobs".
        """
        times = self._refused.due(who or "", address, problem.subcode)
        if not times:
            return
        data = {"code": problem.code, "subcode": problem.subcode, "asked": asked[:200], "address": address,
                "times": times}  # fmt: skip
        message = f"{name} was refused {asked[:200]}: {problem.detail[:500]}"
        self._write(KIND, message, "warning", data, who)

    def _write(self, kind: str, message: str, severity: str, data: Mapping[str, object], who: str | None) -> None:
        try:
            with self._catalog.begin() as session:
                record(session, kind, message, severity=severity, data=data, actor_id=who)
        except CATALOG_IS_AWAY as failure:
            _log.warning("%s could not be written down: %s", kind, type(failure).__name__)


def audit_of(context: Context) -> Audit:
    """The app's."""
    found = context.shared.get("audit")
    if found is None:
        found = context.shared.setdefault("audit", Audit(context.catalog))
    assert isinstance(found, Audit)
    return found
