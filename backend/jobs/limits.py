"""How much of the machines one job may ask for, and the running jobs of one user, as the platform's owner set it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.catalog import lifecycle
from backend.catalog.database import Lock, hold
from backend.catalog.entries import WITHOUT_ENTRIES
from backend.catalog.models import Job
from backend.jobs.runs import run_of, slots_of_run
from backend.problems import Place, Problem
from backend.settings import Settings
from backend.shares import has_share
from streamjoin.spark.memory import JOB_MIB

_OFF: Final = frozenset({lifecycle.STOPPED, lifecycle.FAILED})


def check_limits(settings: Settings, slots: int, memory_mib: int) -> None:
    """Refuse a job that asks for too much.

    Args:
        slots, memory_mib: of its driver.
    Raises:
        Problem: names the field, and the setting.
    """
    asked = (
        ("slots", slots, settings.job_slots_max, "STREAMJOIN_JOB_SLOTS_MAX", ""),
        ("driver_memory", memory_mib, settings.driver_memory_mib_max, "STREAMJOIN_DRIVER_MEMORY_MIB_MAX", " MiB"),
    )
    for field, value, most, setting, unit in asked:
        if value > most:
            detail = (
                f"{value:,}{unit} is more than a job may have here, {most:,}{unit}; the platform's owner set {setting}"
            )
            raise Problem("invalid.over_limit", f"run.{field}: {detail}", params={"limit": most},
                          errors=[Place(pointer=f"/run/{field}", detail=detail)])  # fmt: skip


@contextmanager
def within_share(settings: Settings, session: Session, job: Job) -> Iterator[None]:
    """Change a job in the block, so that its owner's jobs have no more together than one user's may.

    What runs already goes on, and may restart, also where there is less for it by now. A user's only job may ask for
    what any job may.

    Args:
        session: of a transaction that may write, and that is to fail with the block.
    Raises:
        Problem: the job would take more than it did, and its owner's other jobs leave no room for that.
    Cost: reads the owner's jobs where it takes more than it did.
    """
    before = _taken(settings, job)
    yield
    after = _taken(settings, job)
    if after[0] > before[0] or after[1] > before[1]:
        _check_share(settings, session, job, before, after)


def _check_share(
    settings: Settings, session: Session, job: Job, before: tuple[int, int], after: tuple[int, int]
) -> None:
    if not has_share(settings, session, job.owner_id):
        return
    hold(session, Lock.STARTING)  # of two jobs that start at once one sees the other
    others = select(Job).options(*WITHOUT_ENTRIES).where(Job.owner_id == job.owner_id, Job.id != job.id)
    taken = [_taken(settings, other) for other in session.scalars(others)]
    slots, memory_mib = (sum(one[part] for one in taken) for part in (0, 1))
    shares = (
        (slots, settings.user_job_slots_max or settings.job_slots_max, "USER_JOB_SLOTS_MAX", "slots", None),
        (memory_mib, settings.user_job_memory_mib_max, "USER_JOB_MEMORY_MIB_MAX", "MiB of memory",
         f"the memory of a job is its driver_memory and {JOB_MIB} MiB beside it"),
    )  # fmt: skip
    for (used, most, setting, what, hint), was, asked in zip(shares, before, after, strict=True):
        if used and asked > was and used + asked > most:
            raise Problem(
                "conflict.jobs_share_used_up",
                f"job {job.name} needs {asked:,} {what}, its owner's other jobs have {used:,}, and {most:,} is the "
                "limit for one user; stop one of those (it counts until it has ended), let this one have less, or "
                f"ask the platform's owner to raise STREAMJOIN_{setting}",
                hint=hint,
                params={"limit": most, "used": used, "asked": asked},
            )


def _taken(settings: Settings, job: Job) -> tuple[int, int]:
    """The slots and MiB of memory of a job that runs, or is to run; nothing of another."""
    runs = job.wanted == lifecycle.RUNNING and not (job.observed == lifecycle.FAILED and job.is_given_up)
    if not runs and job.observed in _OFF:
        return 0, 0
    run = run_of(settings, job.spec.run)
    return slots_of_run(run), run["driver_memory"] + JOB_MIB
