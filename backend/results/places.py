"""Where a job's results are, found by its id or name; a job's join file is read once for each of its versions."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass

from backend.catalog import models
from backend.catalog.database import Catalog
from backend.jobs.joinfile import result_spec
from backend.jobs.service import find_job
from backend.problems import Problem
from backend.settings import Settings
from streamjoin.results.stores.spec import StoreSpec

KNOWN_S = 0.5
"""So long a job's row is taken for what it was: reads come in bursts, and jobs change by people's hands."""
KNOWN_MAX = 1000


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job's results are.

    Args:
        name: of the results in the store; it changes when the job is made to start anew.
        query: whose they are, if not the job's own query's.
        is_stopped: this query is.
    """

    job_id: str
    job_name: str
    spec: StoreSpec
    name: str
    query: str = ""
    is_stopped: bool = False

    @property
    def key(self) -> tuple[StoreSpec, str]:
        """What tells it apart from all others."""
        return self.spec, self.name


class Places:
    """Finds jobs' results; a job's join file is read once for each of its versions."""

    def __init__(self, settings: Settings, catalog: Catalog) -> None:
        self._settings = settings
        self._catalog = catalog
        self._specs: OrderedDict[tuple[str, int, str], StoreSpec] = OrderedDict()
        self._found: OrderedDict[str, tuple[float, Place]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, id_or_name: str) -> Place:
        """The results of a job, or as `job:query` those of one of the queries beside its own.

        Raises:
            Problem: there is no such job, or no such query.
        """
        if (known := self.known(id_or_name)) is not None:
            return known
        asked, _, query = id_or_name.partition(":")
        with self._catalog.read() as session:
            job = find_job(session, asked)
        if query not in job.queries:
            others = ", ".join(job.queries[1:]) or "none"
            raise Problem(
                "not_found.no_query", f'job {job.name} has no query "{query[:100]}" beside its own; there are: {others}'
            )
        place = self._of(job, query)
        with self._lock:
            self._found[id_or_name] = time.monotonic(), place
            self._found.move_to_end(id_or_name)
            while len(self._found) > KNOWN_MAX:
                self._found.popitem(last=False)
        return place

    def known(self, id_or_name: str) -> Place | None:
        """The same, if it was found just now; the catalog is not asked."""
        with self._lock:
            found_s, found = self._found.get(id_or_name, (0.0, None))
        return found if found is not None and time.monotonic() - found_s < KNOWN_S else None

    def _of(self, job: models.Job, query: str) -> Place:
        version = (job.id, job.version, job.results_name)
        with self._lock:
            spec = self._specs.get(version)
        if spec is None:
            spec = result_spec(self._settings, job)
            with self._lock:
                self._specs[version] = spec
                while len(self._specs) > KNOWN_MAX:
                    self._specs.popitem(last=False)
        further = job.spec.queries.get(query, {})
        return Place(job.id, job.name, spec, job.results_of(query), query, bool(further.get("stopped")))
