"""A join of three streams in a real browser: a preview, and the plan as a tree of stages before and while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamjoin.client import Client

from .browser import API, TEST_S_MAX, platform, report, walk

pytestmark = [pytest.mark.services, pytest.mark.slow, pytest.mark.soak]
BIDS = {"source": "generator", "kind": "nexmark.bid", "time": "ts"}
QUERY = (
    "SELECT ONLINE auctions.id, bids.price, people.name FROM auctions JOIN bids ON auctions.id = bids.auction "
    "JOIN people ON bids.bidder = people.id WITHIN 10 SECONDS"
)
STAGES = [{"stage": 1, "results": 90, "inputs": [{"stream": "auctions"}, {"stream": "bids"}]},
          {"stage": 2, "results": 14, "inputs": [{"stage": 1}, {"stream": "people"}]}]  # fmt: skip
RATES = {"auctions": 600.0, "bids": 9200.0, "people": 200.0}
BETTER = {
    "plan": "(auctions, (bids, people))", "setting": "tree: [auctions, [bids, people]]", "times": 1.6,
    "operator": {"name": "biclique", "tree": ["auctions", ["bids", "people"]]},
}  # fmt: skip
ORDER = {
    "plan": "((auctions, bids), people)", "chosen_for": RATES, "rates": RATES, "better": BETTER,
    "text": "((auctions, bids), people) was chosen for 600 auctions/s; at today's 200 it has 1.6 times the work",
}  # fmt: skip
BODY = {
    "order": ORDER,
    "seconds": 2, "results": 14, "tuples": {"auctions": 200, "bids": 100, "people": 6}, "stages": STAGES,
    "units": [{"unit": place, "label": f"{stage}.R0", "stage": stage, "stored_rows": 40}
              for place, stage in enumerate((1, 2))],
}  # fmt: skip


@pytest.mark.timeout(TEST_S_MAX)
def test_a_join_of_three_streams_is_drawn_as_a_tree(tmp_path: Path, browser: tuple[str, str]) -> None:
    with platform(tmp_path, API, AUTH="off") as address:
        with Client(address) as client:
            client.streams.create("bids", BIDS)
            for name, kind in (("auctions", "nexmark.auction"), ("people", "nexmark.person")):
                client.streams.create(name, {**BIDS, "kind": kind})
            job = client.jobs.create("sellers", QUERY)
        report(tmp_path, job["id"], BODY, has_run=True)
        walk("stages", browser, address, job["id"], str(tmp_path / "pictures"))
