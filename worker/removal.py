"""What goes with a job that is removed, and is not in its folder: its results, and a state in a store."""

from __future__ import annotations

import itertools
import logging
from typing import Final

from backend.catalog.models import Job, results_name
from backend.settings import Settings
from streamjoin.errors import InputError
from streamjoin.results.stores.store import StoreDownError, StoreError, StoreMissingError

REMOVE_S: Final = 5.0
"""So long a store may fail to remove a state before it counts as a failure."""
_log = logging.getLogger("streamjoin.reconciler")


def drop_results(settings: Settings, job: Job) -> None:
    """Remove the results of every incarnation of a job.

    Raises:
        StoreError: the store does not answer, or refuses.
    """
    from backend.jobs.joinfile import result_spec  # half a second, for what is rare

    try:
        spec = result_spec(settings, job)
    except InputError as wrong:
        # Without a launch there are none, and an embedded store goes with the job's folder.
        if job.generation and job.spec.store not in (None, "sqlite"):
            raise StoreError(f"its store cannot be opened any more: {wrong}") from None
        _log.info("job %s has no results to remove: %s", job.id, wrong)
        return
    store = spec.open()
    try:
        for incarnation, query in itertools.product(range(job.incarnation + 1), job.queries):
            store.drop(results_name(job.id, incarnation, query))
    except StoreDownError:
        raise
    except StoreError as failure:
        # Nothing to remove; or a file that goes with the job's folder, in whatever state it is.
        if not isinstance(failure, StoreMissingError) and spec.kind != "sqlite":
            raise
        _log.info("job %s: no results removed: %s", job.id, failure)
    finally:
        store.close()


def drop_state(settings: Settings, job: Job) -> None:
    """Remove the states of every incarnation of a job from the store where jobs keep them, if they do.

    Raises:
        StateError: the store does not answer, or refuses.
        InputError: it cannot be opened.
    """
    place = settings.state_place(job.id)
    if place is None or not job.generation:
        return
    from streamjoin.state.objects import Objects, opened  # file systems that few platforms need here
    from streamjoin.state.uris import without_secrets

    Objects(*opened(place), without_secrets(place), retry_s=REMOVE_S).remove_all()
