"""Orders without a payment in a real browser: completion, the template, its plan and preview, and a job's figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamjoin.client import Client

from .browser import TEST_S_MAX, platform, report, walk

pytestmark = [pytest.mark.services, pytest.mark.slow]
ORDERS = "ts,id,item\n2026-01-01T12:00:00Z,1,tea\n2026-01-01T12:00:01Z,2,cup\n2026-01-01T12:00:02Z,3,pot\n"
PAYMENTS = "ts,order_id,amount\n2026-01-01T12:00:03Z,1,5\n2026-01-01T12:00:30Z,2,3\n"
QUERY = "SELECT ONLINE orders.id FROM orders LEFT ANTI JOIN payments ON orders.id = payments.order_id WITHIN 10 SECONDS"
BODY = {
    "seconds": 2, "results": 14, "tuples": {"orders": 200, "payments": 100}, "open_rows": 40, "unmatched_rows": 120,
    "late_after_final": 2, "units": [],
    "stages": [{"stage": 1, "results": 14, "kind": "LEFT ANTI", "open_rows": 40,
                "inputs": [{"stream": "orders"}, {"stream": "payments"}]}],
}  # fmt: skip


@pytest.mark.timeout(TEST_S_MAX)
def test_orders_without_a_payment(tmp_path: Path, browser: tuple[str, str]) -> None:
    with platform(tmp_path, "backend", AUTH="off") as address:
        with Client(address) as client:
            for name, text in (("orders", ORDERS), ("payments", PAYMENTS)):
                path = client.uploads.add(f"{name}.csv", text.encode())["path"]
                client.streams.create(name, {"source": "csv", "path": path, "time": "ts"})
            job = client.jobs.create("unpaid", QUERY)
        report(tmp_path, job["id"], BODY)
        walk("unmatched", browser, address, job["id"], str(tmp_path / "pictures"))
