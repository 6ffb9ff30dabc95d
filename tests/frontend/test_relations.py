"""Relations in a real browser: registered, looked at and refreshed, with their versions in the jobs that join them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.client import Client
from streamjoin.relations.history import History
from streamjoin.relations.versions import Version

from .browser import API, TEST_S_MAX, platform, walk

pytestmark = [pytest.mark.services, pytest.mark.slow]
BIDS = {"source": "generator", "kind": "nexmark.bid", "time": "ts"}
QUERY = "SELECT ONLINE b.auction, c.name, VERSION(c) FROM bids b JOIN customers c ON b.bidder = c.id"


@pytest.mark.timeout(TEST_S_MAX)
def test_a_relation_is_registered_refreshed_and_told_by_version(tmp_path: Path, browser: tuple[str, str]) -> None:
    (tmp_path / "open").mkdir()
    file = tmp_path / "open" / "customers.parquet"
    pq.write_table(pa.table({"id": [1, 2], "name": ["Ada", "Bob"]}), file)
    with platform(tmp_path, API, AUTH="off", ALLOWED_PATHS=str(tmp_path / "open")) as address:
        with Client(address) as client:
            client.streams.create("bids", BIDS)
            client.relations.create("customers", {"source": "parquet", "path": str(file)})
            job = client.jobs.create("named", QUERY)
        tables = tmp_path / "data" / "jobs" / job["id"] / "checkpoint-0" / "relations"
        history = History(tables, "customers")
        history.folder.mkdir(parents=True)
        for number in (1, 2):  # what a driver notes
            history.used(
                Version(number, "", 1_767_225_600_000_000, 1_000 * number, 0, {}), number, 1_767_225_601_000_000
            )
        history.looked(history.look().failed(1_767_225_602_000_000, "customers has no files any more"))
        walk("relations", browser, address, str(file), str(tmp_path / "pictures"))
