"""What happens too often for an event each time: refusals, and rows that are pushed.

The same is written down once in a while, with how often it was since, so that nobody fills the catalog by it.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from backend.catalog.database import Catalog
from backend.catalog.events import record
from backend.context import Context
from backend.logs import escaped
from backend.problems import CATALOG_IS_AWAY, TITLES, Problem
from backend.subcodes import ALWAYS, SUBCODES, WITH_KEY

KIND: Final = "request.refused"
EVERY_S: Final = 60.0
"""So often at most the same is written down."""
KNOWN_MAX: Final = 200
"""So many different ones in that time; of others is only said how many there were."""
ASKED_MAX: Final = 200
"""Letters of a method and path that are kept."""
_OTHERS: Final = ("others",)
_NAMED: Final = re.compile(r"`(needed|has|limit)`")
"""What the platform itself puts into `params`; others may repeat what was sent."""
_log = logging.getLogger("streamjoin.auth")


def is_noted(problem: Problem, *, with_key: bool) -> bool:
    """Whether a refusal is written down.

    Args:
        with_key: an API key came with the request. A login may just have expired, which is nobody's attack.
    """
    found = SUBCODES.get(problem.subcode)
    return found is not None and (found.recorded is ALWAYS or (found.recorded is WITH_KEY and with_key))


def meaning_of(problem: Problem) -> str:
    """What a refusal means, with the numbers and roles it is about: nothing of what was sent is in it."""
    found = SUBCODES.get(problem.subcode)
    said = TITLES[problem.code][1] if found is None else found.meaning
    return _NAMED.sub(lambda match: str(problem.params.get(match[1], match[0])), said)


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

    def due(self, problem: Problem, *, who: str | None, address: str) -> int:
        """Count a refusal; how many a line is due for by now, 0 where the same was written down just now.

        Cost: no question to the catalog, as floods of refusals are what it is for.
        """
        return self._refused.due(who or "", address, problem.subcode)

    def refused(self, problem: Problem, *, times: int, who: str | None, name: str, address: str, asked: str) -> None:
        """Write a refusal down. Nobody is made to fail by this.

        Args:
            times: as `due` said.
            who, name: the actor's id and name; None and anything where nobody is known.
            asked: what for, such as "POST /api/v1/jobs".
        """
        asked = escaped(asked[:ASKED_MAX])  # PostgreSQL keeps no NUL, and readers no letters that turn a line
        data = {"code": problem.code, "subcode": problem.subcode, "asked": asked, "address": address, "times": times}
        self._write(KIND, f"{name} was refused {asked}: {meaning_of(problem)}", "warning", data, who)

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
