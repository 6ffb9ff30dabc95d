"""Which machine has what a job has joined so far, where that is in a data folder that this API does not see."""

from __future__ import annotations

from sqlalchemy.orm import Session

from backend.catalog.machines import folder_id
from backend.catalog.models import Job, Lease, Machine
from backend.settings import Settings


def host_elsewhere(session: Session, settings: Settings, job: Job) -> str | None:
    """The machine whose checkpoint a job goes on with; None where that is here, or where the job begins.

    A job with its state in a store has a checkpoint in the folder of the machine that ran it last; in another folder
    there is none, or one that others have gone on from.
    """
    lease = session.get(Lease, job.id)
    if lease is None or lease.incarnation != job.incarnation:
        return None
    here = folder_id(settings.data)
    if (ran_in := lease.folder or lease.ran_in) is not None:
        is_here = ran_in == here
    else:  # it ran under a version that did not say where
        machine = session.get(Machine, lease.host)
        is_here = lease.host == settings.machine if machine is None else machine.folder == here
    return None if is_here else lease.host
