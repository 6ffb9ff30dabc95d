"""Jobs in a catalog, and what is to be seen of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa
from sqlalchemy import select

from backend.catalog.database import Catalog
from backend.catalog.ids import new_id, now_us
from backend.catalog.jobspec import JobSpec
from backend.catalog.models import Event, Job, Lease, Report
from backend.jobs.joinfile import result_spec
from backend.settings import Settings
from streamjoin.errors import InputError
from streamjoin.generate import generator
from streamjoin.results.answer import ask
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.results.stores.store import StoreError

RATE = 2_000
"""Events a second of the whole auction house: 3 of 50 are auctions, 46 are bids."""
WINDOW_S = 10


def streams(seconds: float) -> dict[str, Any]:
    """Auctions and bids of so many seconds of event time; live, it takes as long to join them."""
    epochs = int(seconds * RATE / 50)
    common = {"source": "generator", "rate": f"{RATE}/s", "time": "ts"}
    return {
        "auction": {**common, "kind": "nexmark.auction", "rows": 3 * epochs},
        "bid": {**common, "kind": "nexmark.bid", "rows": 46 * epochs},
    }


def expected(given: Mapping[str, Any]) -> Counter[tuple[int, int, int]]:
    """What the join of such streams is, by another database."""
    return by_duckdb(
        given,
        "SELECT auction.id, bid.price, bid.bidder FROM auction, bid WHERE auction.id = bid.auction "
        f"AND abs(epoch_us(auction.ts) - epoch_us(bid.ts)) <= {WINDOW_S * 1_000_000}",
    )


def expected_of_three(given: Mapping[str, Any]) -> Counter[tuple[int, int, int]]:
    """The same, of those bids alone whose bidder is among the persons, all three within the window."""
    times = "epoch_us(auction.ts), epoch_us(bid.ts), epoch_us(person.ts)"
    return by_duckdb(
        given,
        "SELECT auction.id, bid.price, bid.bidder FROM auction, bid, person WHERE auction.id = bid.auction "
        f"AND bid.bidder = person.id AND greatest({times}) - least({times}) <= {WINDOW_S * 1_000_000}",
    )


def by_duckdb(given: Mapping[str, Any], query: str) -> Counter[Any]:
    """The rows of a query over such streams, by another database."""
    tables = {
        name: generator(entry["kind"]).rows(0, entry["rows"], seed=1, rate=float(RATE)) for name, entry in given.items()
    }
    with duckdb.connect() as connection:
        for name, rows in tables.items():
            connection.register(name, pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows)
        found = connection.execute(query).fetchall()
    return Counter(found)


def results(settings: Settings, job: Job, query: str = "") -> Counter[tuple[int, int, int]]:
    """What a job has put into its store so far, by its own query or by one beside it."""
    store = result_spec(settings, job).open()
    try:
        reader = Reader(store, job.results_of(query))
        reader.refresh()
        return Counter(tuple(row.values()) for batch in ask(reader, Question()) for row in batch.to_pylist())
    except (StoreError, InputError):
        return Counter()  # it has not begun
    finally:
        store.close()


SPEC = JobSpec(
    "SELECT ONLINE auction.id AS auction, bid.price AS price, bid.bidder AS bidder FROM auction, bid "
    f"WHERE auction.id = bid.auction WITHIN {WINDOW_S} SECONDS",
    operator={"name": "biclique", "routing": "hash", "r_units": 2, "s_units": 2},
    run={"slots": 2},
)
"""Auctions and the bids on them."""


def add_job(catalog: Catalog, **fields: Any) -> str:
    """A job, stopped unless `fields` say otherwise; its id."""
    job_id = new_id("job")
    given = {"spec": SPEC, "streams": streams(2), "name": job_id, **fields}
    with catalog.begin() as session:
        session.add(Job(id=job_id, **given))
    return job_id


def change(catalog: Catalog, job_id: str, **fields: Any) -> None:
    """Set columns of a job."""
    with catalog.begin() as session:
        job = session.get_one(Job, job_id)
        for name, value in fields.items():
            setattr(job, name, value)


def want(catalog: Catalog, job_id: str, wanted: str) -> None:
    """As somebody who presses a button."""
    change(catalog, job_id, wanted=wanted, wanted_since_us=now_us())


def job_of(catalog: Catalog, job_id: str) -> Job:
    """A job as it is now."""
    with catalog.read() as session:
        return session.get_one(Job, job_id)


def lease_of(catalog: Catalog, job_id: str) -> Lease | None:
    """A job's lease as it is now."""
    with catalog.read() as session:
        return session.get(Lease, job_id)


def events_of(catalog: Catalog, job_id: str) -> list[str]:
    """The kinds of a job's events, oldest first."""
    with catalog.read() as session:
        return list(session.scalars(select(Event.kind).where(Event.job_id == job_id).order_by(Event.id)))


def reports_of(catalog: Catalog, job_id: str) -> list[Report]:
    """A job's reports, oldest first."""
    with catalog.read() as session:
        return list(session.scalars(select(Report).where(Report.job_id == job_id).order_by(Report.at_us)))
