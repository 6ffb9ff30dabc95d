"""What the demo shows of a running job: rows as they are committed, and what its drivers report."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from streamjoin.client import Client

REPORTS_MINUTES = 0.1
"""Reports are looked at twice a second, so this is far more than what is new."""


class Tail:
    """Follows a job's results from a thread of its own.

    Args:
        time: the column whose distance to the clock is the lag.
    """

    def __init__(self, client: Client, job: str, time: str) -> None:
        self.client = client
        self.job = job
        self.time = time
        self.columns: list[str] = []
        self.first: list[list[Any]] = []
        self.rows = 0
        self.snapshots = 0
        self.lag_s: float | None = None
        self.failure: Exception | None = None
        threading.Thread(target=self._run, name="tail", daemon=True).start()

    def wait_for(self, rows: int, deadline_s: float) -> None:
        """Wait until so many rows have come, or the deadline, in seconds from now, has passed."""
        ends_s = time.monotonic() + deadline_s
        while self.rows < rows and self.failure is None and time.monotonic() < ends_s:
            time.sleep(0.05)

    def _run(self) -> None:
        try:
            for news in self.client.tail(self.job, after="oldest"):
                now_s = time.time()
                self.snapshots += 1
                self.rows += len(news.rows)
                if not news.rows:
                    continue
                self.columns = [column["name"] for column in news.columns]
                place = self.columns.index(self.time)
                # ISO 8601 in one zone, so the largest text is the latest time.
                latest = datetime.fromisoformat(max(row[place] for row in news.rows))
                self.lag_s = now_s - latest.timestamp()
                self.first = self.first or news.rows
        except Exception as failure:  # the main thread tells it
            self.failure = failure


@dataclass
class Figures:
    """What the job's drivers have reported: totals of each generation, and the newest report.

    Args:
        late: tuples that came later than their stream's delay.
    """

    client: Client
    job: str
    newest: dict[str, Any] = field(default_factory=dict)
    late: int = 0
    _totals: dict[int, dict[str, int]] = field(default_factory=dict)
    _seen: str = ""

    def look(self) -> bool:
        """Ask for what is new; tell whether there was anything."""
        points = self.client.jobs.metrics(self.job, minutes=REPORTS_MINUTES)["points"]
        new = [(at, point) for point in points if (at := point["at"]) is not None and at > self._seen]
        for at, point in new:
            self._seen = at
            self.newest = point["figures"]
            self._totals[point["generation"]] = self.newest["totals"]
            self.late += sum(self.newest["late"].values())
        return bool(new)

    @property
    def tuples(self) -> int:
        """That the job has taken in."""
        return self._total("tuples")

    @property
    def results(self) -> int:
        """That it has found."""
        return self._total("results")

    @property
    def live_tuples(self) -> int:
        """That it keeps, because later ones may match them."""
        return sum(self.newest.get("live_tuples", {}).values())

    @property
    def state_bytes(self) -> int:
        """That they take."""
        return int(self.newest.get("state_bytes", 0))

    def _total(self, name: str) -> int:
        return sum(totals[name] for totals in self._totals.values())
