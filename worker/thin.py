"""What is kept of the past: reports in ever longer spans, and events and ended keys for as long as admins say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from sqlalchemy import delete, or_, select

from backend.catalog.database import Catalog
from backend.catalog.ended_keys import forget_ended
from backend.catalog.models import Event, Report
from worker.reports import merged

SPANS: Final = ((600, 10), (7_200, 60))
"""Reports older than so many seconds are merged into one for so many seconds."""
DAY_US: Final = 86_400_000_000
REPORTS_S: Final = 24 * 3600
_ROWS_AT_ONCE = 2_000


def thin(catalog: Catalog, now_us: int, events_days: float, audit_days: float) -> None:
    """Merge reports that are older, and remove what is too old, also API keys that ended.

    Args:
        events_days, audit_days: as in the settings.
    """
    # What is no job's own doing tells what people did, or were refused.
    is_audit = or_(Event.actor_id.is_not(None), Event.job_id.is_(None))
    with catalog.begin() as session:
        session.execute(delete(Report).where(Report.at_us < now_us - REPORTS_S * 1_000_000))
        session.execute(delete(Event).where(Event.at_us < now_us - round(events_days * DAY_US), ~is_audit))
        session.execute(delete(Event).where(Event.at_us < now_us - round(audit_days * DAY_US), is_audit))
        forget_ended(session, now_us - round(audit_days * DAY_US))  # as long as the record may name them
    for age_s, span_s in SPANS:
        while _merge(catalog, now_us - age_s * 1_000_000, span_s):
            pass


def _merge(catalog: Catalog, before_us: int, span_s: int) -> bool:
    """Merge some; whether there may be more."""
    span_us = span_s * 1_000_000
    before_us -= before_us % span_us  # a span that is not over yet is left alone
    with catalog.begin() as session:
        rows = session.scalars(
            select(Report)
            .where(Report.span_s < span_s, Report.at_us < before_us)
            .order_by(Report.job_id, Report.at_us)
            .limit(_ROWS_AT_ONCE)
            .with_for_update()  # not skip_locked: of two at once, each would get some reports of the same span
        ).all()
        full = len(rows) == _ROWS_AT_ONCE
        groups = list(_spans(rows, span_us))
        # The last one may go on beyond what was read.
        for group in groups[:-1] if full and len(groups) > 1 else groups:
            *others, last = group
            last.body = merged([report.body for report in group])
            last.span_s = span_s
            for report in others:
                session.delete(report)
    return full


def _spans(rows: Sequence[Report], span_us: int) -> Iterator[list[Report]]:
    for _, group in groupby(rows, key=lambda row: (row.job_id, row.generation, row.at_us // span_us)):
        yield list(group)
