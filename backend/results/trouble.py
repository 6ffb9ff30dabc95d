"""Results that cannot be read, as problems for clients."""

from __future__ import annotations

import logging

from backend.problems import Problem
from backend.results.places import Place
from streamjoin.errors import StateError

RETRY_AFTER_S = 2

_log = logging.getLogger("streamjoin.results")


class NoResults(Problem):
    """Of a job that has committed nothing yet, or nothing since it began anew."""

    def __init__(self, place: Place) -> None:
        what = f'query "{place.query}" of job "{place.job_name}"' if place.query else f'job "{place.job_name}"'
        if place.is_stopped:
            detail = f"{what} is stopped and has no results"
            hint = f'change the job with "queries": {{"{place.query}": {{..., "stopped": false}}}}, and ask again then'
        else:
            detail = f"{what} has no results yet"
            hint = "start the job if it does not run, and ask again once its first snapshot is committed; a "
            hint += "subscription waits for that"
        super().__init__("conflict", detail, hint=hint)


def store_problem(place: Place, failure: Exception) -> Problem:
    """Of a store that failed; what it said may name folders and hosts, so it goes into the log only."""
    _log.warning("the result store of job %s failed: %s", place.job_id, failure)
    if isinstance(failure, StateError):
        return Problem(
            "internal.results_damaged", f'the results of job "{place.job_name}" are damaged; the log says where'
        )
    return Problem(
        "unavailable.store_away",
        f'the result store ({place.spec.kind}) of job "{place.job_name}" does not answer; ask again in a moment',
        headers={"Retry-After": str(RETRY_AFTER_S)},
    )
