"""Joins that can be started without any data: the papers' workloads, from generators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamjoin.generate import generator

_RATE_PER_S: Final = 2000
_PERSONS: Final = 1_000_000
"""Nexmark's bidders are new persons all the time: at that rate these are all that there are for seven hours."""
_PART: Final = 50_000


@dataclass(frozen=True, slots=True)
class Demo:
    """Streams and a job over them.

    Args:
        streams, relations: entries by name.
        files: the bytes of the files that relations read as uploads, by name; made where they are needed.
    """

    name: str
    title: str
    text: str
    streams: dict[str, dict[str, Any]]
    job: dict[str, Any]
    relations: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, Callable[[], bytes]] = field(default_factory=dict)


def _nexmark(stream: str) -> dict[str, Any]:
    """One of Nexmark's streams; all of one rate, so that they keep step."""
    kind = f"nexmark.{stream}"
    return {"source": "generator", "kind": kind, "rate": f"{_RATE_PER_S}/s", "time": "ts", "delay": "1s"}


def _bidders() -> bytes:
    """Nexmark's persons as a Parquet file, but for those of one state, so that some bids have no bidder in it.

    Cost: half a second.
    """
    written = pa.BufferOutputStream()
    made = generator("nexmark.person")
    columns = pa.schema([made.schema.field(name) for name in ("id", "name", "city", "state")])
    with pq.ParquetWriter(written, columns, compression="zstd") as file:
        for first in range(0, _PERSONS, _PART):  # so that making it takes little memory
            rows = made.rows(first, first + _PART, seed=1, rate=_RATE_PER_S).select(columns.names)
            file.write_batch(rows.filter(pc.not_equal(rows["state"], "WY")))
    return written.getvalue().to_pybytes()


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
            "bidders",
            "Bids with their bidders",
            "Nexmark's high bids with names from a Parquet file of bidders. Bids of those who are not in it come, too.",
            {"demo_bids": _nexmark("bid")},
            {
                "query": "SELECT ONLINE b.auction, b.price, b.bidder, p.name, p.city, b.ts AS bid_at "
                "FROM demo_bids AS b LEFT JOIN demo_bidders AS p ON b.bidder = p.id WHERE b.price >= 10000000",
            },
            {"demo_bidders": {"source": "parquet", "path": "upload:demo-bidders.parquet"}},
            {"demo-bidders.parquet": _bidders},
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
