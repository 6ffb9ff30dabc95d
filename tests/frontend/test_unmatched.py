"""Orders without a payment in a real browser: completion, the template, its plan and preview, and a job's figures.

On the same platform: groups that change while somebody looks at them, and a table that an as-of join reads.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from backend.catalog.database import Catalog
from backend.catalog.models import Job
from backend.jobs.joinfile import result_spec
from backend.settings import Settings
from streamjoin.client import Client
from streamjoin.plan.changing import DELETE, EMIT_TIME, OPERATION, UPSERT
from streamjoin.plan.join import RESULT_KEY, RESULT_TIME
from streamjoin.results.block import key_code
from streamjoin.results.description import Description
from streamjoin.results.parts import BatchDone
from streamjoin.results.policy import EpochPolicy
from streamjoin.results.sink import StoreSink

from .browser import API, TEST_S_MAX, platform, report, walk

pytestmark = [pytest.mark.services, pytest.mark.slow]
ORDERS = "ts,id,item\n2026-01-01T12:00:00Z,1,tea\n2026-01-01T12:00:01Z,2,cup\n2026-01-01T12:00:02Z,3,pot\n"
PAYMENTS = "ts,order_id,amount\n2026-01-01T12:00:03Z,1,5\n2026-01-01T12:00:30Z,2,3\n"
QUERY = "SELECT ONLINE orders.id FROM orders LEFT ANTI JOIN payments ON orders.id = payments.order_id WITHIN 10 SECONDS"
RATES = "ts,item,rate\n2026-01-01T11:59:00Z,tea,5\n2026-01-01T11:59:00Z,cup,7\n2026-01-01T12:00:00.5Z,cup,\n"
GROUPS = "SELECT ONLINE payments.order_id, COUNT(*) AS n FROM payments GROUP BY payments.order_id CUMULATIVE"
CHANGES = pa.schema(
    [
        ("order_id", pa.int64()), ("n", pa.int64()), (OPERATION, pa.string()), (EMIT_TIME, pa.timestamp("us", "UTC")),
        (RESULT_TIME, pa.int64()), (RESULT_KEY, pa.int64()),
    ]
)  # fmt: skip
SNAPSHOTS_A_TURN = 16
EVERY_S = 0.25
BODY = {
    "seconds": 2, "results": 14, "tuples": {"orders": 200, "payments": 100}, "open_rows": 40, "unmatched_rows": 120,
    "late_after_final": 2, "units": [],
    "stages": [{"stage": 1, "results": 14, "kind": "LEFT ANTI", "open_rows": 40,
                "inputs": [{"stream": "orders"}, {"stream": "payments"}]}],
}  # fmt: skip


@pytest.mark.timeout(TEST_S_MAX)
@pytest.mark.soak
def test_orders_without_a_payment(tmp_path: Path, browser: tuple[str, str]) -> None:
    with platform(tmp_path, API, AUTH="off") as address:
        with Client(address) as client:
            for name, text in (("orders", ORDERS), ("payments", PAYMENTS)):
                _add(client, name, text)
            job = client.jobs.create("unpaid", QUERY)
        report(tmp_path, job["id"], BODY)
        walk("unmatched", browser, address, job["id"], str(tmp_path / "pictures"))
        with Client(address) as client:
            _add(client, "rates", RATES)
            groups = client.jobs.create("payments of an order", GROUPS)
        report(tmp_path, groups["id"], BODY)
        with changing(tmp_path / "data", groups["id"]):
            walk("groups", browser, address, groups["id"], str(tmp_path / "pictures"))


def _add(client: Client, name: str, text: str) -> None:
    path = client.uploads.add(f"{name}.csv", text.encode())["path"]
    client.streams.create(name, {"source": "csv", "path": path, "time": "ts"})


@contextmanager
def changing(data: Path, job_id: str) -> Iterator[None]:
    """What a driver does whose groups change: ten all the time, one never, and one comes and goes."""
    settings = Settings(data=data, auth="off")
    catalog = Catalog(settings.catalog)
    with catalog.begin() as session:
        job = session.get_one(Job, job_id)
        spec, name = result_spec(settings, job), job.results_name
    catalog.close()
    described = Description(CHANGES, key_code(pa.int64(), equality=True, buckets=1), identity=("order_id",))
    policy = EpochPolicy(span_us=None, threshold_rows=1, whole_batches=True)
    ends = threading.Event()

    def commit() -> None:
        sink = StoreSink(spec, name, described, policy)
        writer = sink.begin("checkpoint")
        number = 0
        while not ends.wait(EVERY_S if number else 0):
            with writer.part(number, 0, CHANGES) as part:
                part.write(pa.RecordBatch.from_pylist(_changes(number), CHANGES), 0)
            sink.commit(BatchDone(number, 1_000_000 * number), [part.summary()])
            number += 1
        sink.ledger.store.close()

    driver = threading.Thread(target=commit)
    driver.start()
    try:
        yield
    finally:
        ends.set()
        driver.join()


def _changes(number: int) -> list[dict[str, Any]]:
    found: dict[int, int | None] = {group: number + group for group in range(1, 11)}
    if number == 0:
        found[11] = 500
    if number % (SNAPSHOTS_A_TURN // 2) == 0:
        found[12] = None if number % SNAPSHOTS_A_TURN else 1
    at = 1_767_268_800_000_000 + 1_000_000 * number
    return [
        {
            "order_id": group, "n": n, OPERATION: DELETE if n is None else UPSERT, EMIT_TIME: at, RESULT_TIME: at,
            RESULT_KEY: group,
        }
        for group, n in found.items()
    ]  # fmt: skip
