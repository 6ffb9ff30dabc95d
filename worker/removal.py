"""Removing a job with all it has: its results, a state in a store, its folder, and at last its rows."""

from __future__ import annotations

import itertools
import logging
import shutil
from typing import Final

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from backend.catalog.database import Catalog
from backend.catalog.events import record
from backend.catalog.models import Event, Job, JobRevision, results_name
from backend.settings import Settings
from streamjoin.errors import InputError, StreamJoinError
from streamjoin.results.stores.store import StoreDownError, StoreError, StoreMissingError

REMOVE_S: Final = 5.0
"""So long a store may fail to remove a state before it counts as a failure."""
REMOVED: Final = "job.removed"
"""The kind of the event that says that a job is gone; its data has the id."""
_log = logging.getLogger("streamjoin.reconciler")


def remove(settings: Settings, catalog: Catalog, job_id: str) -> bool:
    """Remove a job that is to be deleted and that nobody runs. Returns whether this call removed it.

    If its results or its state cannot be removed now, the job stays, and its reason says why.

    Raises:
        SQLAlchemyError: the catalog does not answer.
    """
    with catalog.read() as session:
        job = session.get(Job, job_id)
        if job is None:
            return False  # somebody else was faster
        former = _in_former_stores(session, job)
    parts = [*(("results are", drop_results, one) for one in (job, *former)), ("state is", drop_state, job)]
    for what, drop, one in parts:
        try:
            drop(settings, one)
        except StreamJoinError as failure:
            _note(catalog, job, f"its {what} still to be removed: {failure}")
            return False
    shutil.rmtree(settings.job_folder(job_id), ignore_errors=True)
    with catalog.begin() as session:
        found = session.get(Job, job_id, with_for_update=True)
        if found is None:
            return False
        # What people did to it stays, for as long as all such lines do.
        session.execute(update(Event).where(Event.job_id == job_id, Event.actor_id.is_not(None)).values(job_id=None))
        session.flush()
        session.delete(found)
        record(session, REMOVED, f"job {job.name} and its results are gone", data={"job_id": job_id})
    return True


def _in_former_stores(session: Session, job: Job) -> list[Job]:
    """The job once for each store that kept its results before it was changed, as far as its kept versions tell."""
    specs = session.scalars(select(JobRevision.spec).where(JobRevision.job_id == job.id))
    # SQLite's files go with the folder, and no other machine knows them.
    kinds = {spec.store for spec in specs if spec.store is not None} - {"sqlite", job.spec.store}
    return [
        Job(
            id=job.id, spec=job.spec.with_store(kind), streams=job.streams, relations=job.relations,
            generation=job.generation, incarnation=job.incarnation,
        )
        for kind in sorted(kinds)
    ]  # fmt: skip


def _note(catalog: Catalog, job: Job, reason: str) -> None:
    if job.reason != reason:
        with catalog.begin() as session:
            session.execute(update(Job).where(Job.id == job.id).values(reason=reason))


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
