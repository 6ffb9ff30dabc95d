"""Joins that can be started without any data: the papers' workloads, from generators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Demo:
    """Streams and a job over them.

    Args:
        streams: entries by name.
    """

    name: str
    title: str
    text: str
    streams: dict[str, dict[str, Any]]
    job: dict[str, Any]


def _nexmark(stream: str) -> dict[str, Any]:
    """One of Nexmark's streams; all of one rate, so that they keep step."""
    kind = f"nexmark.{stream}"
    return {"source": "generator", "kind": kind, "rate": "2000/s", "time": "ts", "delay": "1s"}


DEMOS: Final = {
    demo.name: demo
    for demo in (
        Demo(
            "auctions",
            "Bids that win",
            "Nexmark's auctions and bids: each bid that reaches its auction's reserve within ten seconds.",
            {"demo_auctions": _nexmark("auction"), "demo_bids": _nexmark("bid")},
            {
                "query": "SELECT ONLINE demo_auctions.id AS auction, demo_bids.bidder, demo_bids.price, "
                "demo_auctions.reserve, demo_bids.ts AS bid_at FROM demo_auctions, demo_bids "
                "WHERE demo_bids.auction = demo_auctions.id AND demo_bids.price >= demo_auctions.reserve "
                "WITHIN (0 SECONDS, 10 SECONDS)",
            },
        ),
        Demo(
            "sellers",
            "Who sells what",
            "Nexmark's three streams in one join: persons, the auctions that they begin, and bids that win.",
            {
                "demo_persons": _nexmark("person"),
                "demo_auctions": _nexmark("auction"),
                "demo_bids": _nexmark("bid"),
            },
            {
                "query": "SELECT ONLINE p.name AS seller, p.city, a.id AS auction, a.item, b.price, b.ts AS bid_at "
                "FROM demo_persons AS p, demo_auctions AS a, demo_bids AS b "
                "WHERE a.seller = p.id AND b.auction = a.id AND b.price >= a.reserve WITHIN 10 SECONDS",
            },
        ),
        Demo(
            "band",
            "SplitJoin's band join",
            "Two streams of points, joined where both coordinates differ by 10 at most. There is no equality.",
            {
                "demo_r": {"source": "generator", "kind": "band.r", "rate": "1000/s", "time": "ts", "begin": "now"},
                "demo_s": {"source": "generator", "kind": "band.s", "rate": "1000/s", "time": "ts", "begin": "now"},
            },
            {
                "query": "SELECT ONLINE demo_r.x, demo_s.a, demo_r.y, demo_s.b FROM demo_r, demo_s "
                "WHERE ABS(demo_r.x - demo_s.a) <= 10 AND ABS(demo_r.y - demo_s.b) <= 10 WITHIN 60 SECONDS",
            },
        ),
        Demo(
            "skew",
            "Skewed keys",
            "An equality over keys of a Zipf distribution: watch how evenly the units are loaded.",
            {
                "demo_zr": {"source": "generator", "kind": "zipf.r", "rate": "2000/s", "time": "ts", "begin": "now"},
                "demo_zs": {"source": "generator", "kind": "zipf.s", "rate": "2000/s", "time": "ts", "begin": "now"},
            },
            {
                "query": "SELECT ONLINE demo_zr.k, demo_zr.v, demo_zs.v AS w FROM demo_zr, demo_zs "
                "WHERE demo_zr.k = demo_zs.k WITHIN 1 SECONDS",
                "results": {"where": "v > 0.9 AND w > 0.9"},
            },
        ),
    )
}
