"""Work grows with a query's length and no faster: a text within the limits is bound in a few seconds.

Calls of functions are counted in place of seconds, as they are the same on every machine.
"""

from __future__ import annotations

import contextlib
import cProfile
import pstats
from dataclasses import dataclass

import pyarrow as pa
import pytest

from streamjoin.errors import InputError
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query
from streamjoin.query.limits import TEXT_BYTES_MAX

pytestmark = pytest.mark.slow

COLUMNS = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("k", pa.int64()),
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("s", pa.string()),
    ]
)
STREAMS = {name: StreamSchema(name, COLUMNS, "ts") for name in "abcd"}
CALLS_A_BYTE = 200
"""Calls for each byte of the longest query."""
DEEP_CALLS_A_BYTE = 600
"""The same of one that is 60 levels deep."""


@dataclass(frozen=True)
class Shape:
    """A query of any length.

    Args:
        part: what is repeated; `#` is its number.
    """

    before: str
    part: str
    between: str
    after: str

    def text(self, size: int) -> str:
        """As long as that, or a little shorter."""
        parts: list[str] = []
        left = size - len(self.before) - len(self.after)
        while left > 0:
            parts.append(self.part.replace("#", str(len(parts))))
            left -= len(parts[-1]) + len(self.between)
        return self.before + self.between.join(parts[:-1]) + self.after


PAIRS = " FROM a JOIN b ON a.k = b.k WITHIN 1 SECOND"
ON = "SELECT ONLINE a.k FROM a JOIN b ON "
MORE = "SELECT ONLINE a.k FROM a JOIN b ON a.k = b.k AND "
WITHIN = " WITHIN 1 SECOND"
WINDOW = " FROM a GROUP BY k, TUMBLE(1 SECOND)"
NOT = ("NOT (" * 60, ")" * 60)
SHAPES = {
    "items without a name or constant": Shape("SELECT ONLINE ", "TRUE", ", ", PAIRS),
    "items of NULL": Shape("SELECT ONLINE ", "NULL IS NULL", ", ", PAIRS),
    "items with names": Shape("SELECT ONLINE ", "a.k AS c#", ", ", PAIRS),
    "items that are computed": Shape("SELECT ONLINE ", "ABS(a.n + #)", ", ", PAIRS),
    "equalities": Shape(ON, "a.k + # = b.k", " AND ", WITHIN),
    "ranges": Shape(ON, "a.k * # < b.k", " AND ", WITHIN),
    "bands": Shape(ON, "a.k BETWEEN b.k - # AND b.k + #", " AND ", WITHIN),
    "ranges that NaN is in": Shape(ON, "a.x * # - b.x >= 1", " AND ", WITHIN),
    "conditions of NULL": Shape(MORE, "NULL", " AND ", WITHIN),
    "alternatives": Shape(ON, "a.k = b.n + #", " OR ", WITHIN),
    "conditions in brackets": Shape(MORE, "(a.k = b.k OR NOT (a.n <> #))", " AND ", WITHIN),
    "numbers of IN": Shape(MORE + "a.n IN (", "#", ", ", ")" + WITHIN),
    "texts of IN": Shape(MORE + "a.s IN (", "'#'", ", ", ")" + WITHIN),
    "choices": Shape("SELECT ONLINE ", "CASE WHEN a.n = 1 THEN 2 WHEN a.n = # THEN 3 END", ", ", PAIRS),
    "texts one after the other": Shape("SELECT ONLINE ", "a.s", " || ", PAIRS),
    "a long text": Shape(MORE + "a.s = '", "''", "", "'" + WITHIN),
    "comments": Shape("SELECT ONLINE a.k ", "/* # */", " ", PAIRS),
    "conditions of four streams": Shape(
        "SELECT ONLINE a.k FROM a, b, c, d WHERE a.k = b.k AND a.k = c.k AND a.k = d.k AND ", "b.n + # < c.n + d.n",
        " AND ", WITHIN,
    ),
    "equalities of an as-of join": Shape(
        "SELECT ONLINE a.k FROM a ASOF JOIN b ON a.ts >= b.ts AND ", "a.n + # = b.n", " AND ", ""
    ),
    "sums": Shape("SELECT ONLINE k, ", "SUM(n + #)", ", ", WINDOW),
    "the same sum": Shape("SELECT ONLINE k, ", "SUM(n) AS s#", ", ", WINDOW),
    "what is grouped by": Shape("SELECT ONLINE COUNT(*) AS n FROM a GROUP BY ", "k + #", ", ", ", TUMBLE(1 SECOND)"),
    "conditions of groups": Shape("SELECT ONLINE k" + WINDOW + " HAVING ", "SUM(n + #) > 1", " AND ", ""),
    "a deep condition of groups": Shape("SELECT ONLINE " + NOT[0], "k <> #", " AND ", NOT[1] + " AS y" + WINDOW),
    "rows that differ": Shape("SELECT ONLINE DISTINCT ", "k + #", ", ", " FROM a"),
}  # fmt: skip


def calls(text: str) -> int:
    """How many functions are called to bind a query, or to refuse it."""
    profile = cProfile.Profile()
    with contextlib.suppress(InputError):
        profile.runcall(plan_query, text, STREAMS)
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.soak] if at % 3 else []) for at, name in enumerate(SHAPES)]
)
def test_four_times_the_text_is_four_times_the_work(name: str) -> None:
    calls(SHAPES[name].text(1_000))  # what is done once
    few, many = (calls(SHAPES[name].text(size)) for size in (1_500, 6_000))
    assert many < min(4.6 * few, DEEP_CALLS_A_BYTE * 6_000)


@pytest.mark.parametrize("name", [pytest.param("items without a name or constant", marks=pytest.mark.soak), "ranges"])
def test_the_longest_text_is_bound_soon(name: str) -> None:
    text = SHAPES[name].text(TEXT_BYTES_MAX)
    assert TEXT_BYTES_MAX - 100 < len(text) <= TEXT_BYTES_MAX
    assert calls(text) < CALLS_A_BYTE * TEXT_BYTES_MAX
