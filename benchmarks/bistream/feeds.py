"""What is joined: the dearest joins of TPC-H's queries 5 and 7, and the band join of line items, drawn as TPC-H draws.

Source: BiStream (SIGMOD 2015), section 6.1. Rows are projected and selected before they are sent, as there. The two
streams bring equally many tuples here; in the paper, equally many bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

KEYS = 1_000_000
"""As many suppliers as TPC-H has at scale 100: a tuple has few partners."""
NATIONS = np.array([
    "ALGERIA", "ARGENTINA", "BRAZIL", "CANADA", "EGYPT", "ETHIOPIA", "FRANCE", "GERMANY", "INDIA", "INDONESIA", "IRAN",
    "IRAQ", "JAPAN", "JORDAN", "KENYA", "MOROCCO", "MOZAMBIQUE", "PERU", "CHINA", "ROMANIA", "SAUDI ARABIA", "VIETNAM",
    "RUSSIA", "UNITED KINGDOM", "UNITED STATES",
])  # fmt: skip
TS, INT, TEXT, NUMBER = ("ts", pa.int64()), pa.int64(), pa.string(), pa.float64()


@dataclass(frozen=True, slots=True)
class Feed:
    """One of the three joins.

    Args:
        columns: of R and of S.
        query: without WITHIN.
        groups: the query with the paper's aggregates; WITHIN goes where the braces are.
    """

    name: str
    columns: tuple[pa.Schema, pa.Schema]
    query: str
    groups: str
    is_band: bool = False

    def rows(self, side: int, first: int, count: int, rate_per_s: float, keys: int) -> pa.RecordBatch:
        """Tuples `first` and following of a side; the same whenever they are asked for.

        Args:
            keys: of how many suppliers, or orders.
        """
        chosen = np.random.default_rng((side, first))
        numbers = np.arange(first, first + count, dtype=np.int64)
        drawn_keys = chosen.integers(0, keys, count)
        drawn = {
            "ts": (numbers / rate_per_s * 1e6).astype(np.int64),
            "suppkey": drawn_keys,
            "orderkey": drawn_keys,
            "nation": NATIONS[chosen.integers(0, len(NATIONS), count)],
            "extendedprice": chosen.integers(90_000, 10_500_000, count) / 100,
            "discount": chosen.integers(0, 11, count) / 100,
            "shipyear": chosen.integers(1995, 1997, count),
            "quantity": chosen.integers(49, 51, count),
        }
        schema = self.columns[side]
        return pa.RecordBatch.from_arrays([pa.array(drawn[one.name], one.type) for one in schema], schema=schema)


def _feed(name: str, r: list[tuple[str, pa.DataType]], s: list[tuple[str, pa.DataType]], join: str, select: str,
          aggregates: str, *, is_band: bool = False) -> Feed:  # fmt: skip
    text = f"SELECT ONLINE r.nation, {{}} FROM r, s WHERE {join}"
    return Feed(
        name, (pa.schema([TS, *r]), pa.schema([TS, *s])), text.format(select),
        text.format(aggregates) + "{} GROUP BY r.nation, TUMBLE(1 SECOND)", is_band,
    )  # fmt: skip


FEEDS = (
    _feed("Q5", [("suppkey", INT), ("nation", TEXT)],
          [("suppkey", INT), ("orderkey", INT), ("extendedprice", NUMBER), ("discount", NUMBER)],
          "r.suppkey = s.suppkey", "s.orderkey, s.extendedprice, s.discount",
          "SUM(s.extendedprice * (1 - s.discount)) AS revenue"),
    _feed("Q7", [("suppkey", INT), ("nation", TEXT)],
          [("suppkey", INT), ("orderkey", INT), ("extendedprice", NUMBER), ("discount", NUMBER), ("shipyear", INT)],
          "r.suppkey = s.suppkey", "s.orderkey, s.extendedprice, s.discount, s.shipyear",
          "SUM(s.extendedprice * (1 - s.discount)) AS revenue"),
    _feed("Band", [("orderkey", INT), ("quantity", INT), ("nation", TEXT)],
          [("orderkey", INT), ("extendedprice", NUMBER)],
          "ABS(r.orderkey - s.orderkey) <= 1", "r.quantity, s.extendedprice",
          "COUNT(*) AS n, MIN(s.extendedprice) AS lowest, MAX(s.extendedprice) AS highest", is_band=True),
)  # fmt: skip
