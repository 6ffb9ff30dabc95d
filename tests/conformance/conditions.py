"""Join conditions twice: as a query's text, and as a plain Python function for the reference."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Row = dict[str, Any]


def sql_equal(a: Any, b: Any) -> bool:
    """NULL equals nothing, NaN equals NaN."""
    if a is None or b is None:
        return False
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b):
        return True
    return bool(a == b)


def same(a: Any, b: Any) -> bool:
    """IS NOT DISTINCT FROM: NULL is NULL, too."""
    return (a is None and b is None) or sql_equal(a, b)


def _less(a: float, b: float) -> bool:
    """NaN is greater than every other number."""
    if math.isnan(a):
        return False
    return True if math.isnan(b) else a < b


CONDITIONS: dict[str, tuple[str, Callable[[Row, Row], bool]]] = {
    "everything": ("", lambda r, s: True),
    "nothing": ("1 = 0", lambda r, s: False),
    "equality": ("r.k = s.k", lambda r, s: sql_equal(r["k"], s["k"])),
    "float equality": ("r.f = s.f", lambda r, s: sql_equal(r["f"], s["f"])),
    "equality across types": (
        "r.k = s.f",
        lambda r, s: r["k"] is not None and sql_equal(float(r["k"]), s["f"]),
    ),
    "decimal equality": ("r.p = s.x", lambda r, s: r["p"] == s["x"]),
    "text equality": ("r.n = s.n", lambda r, s: r["n"] == s["n"]),
    "null-safe equality": ("r.k IS NOT DISTINCT FROM s.k", lambda r, s: same(r["k"], s["k"])),
    "null-safe equalities, then inequality": (
        "s.f IS NOT DISTINCT FROM r.f AND NULLIF(r.k, 3) IS NOT DISTINCT FROM NULLIF(s.k, 3) AND r.x < s.x + 40",
        lambda r, s: (
            same(r["f"], s["f"])
            and same(r["k"] if r["k"] != 3 else None, s["k"] if s["k"] != 3 else None)
            and r["x"] < s["x"] + 40
        ),
    ),
    "two equalities": (
        "r.k = s.k AND r.n = s.n",
        lambda r, s: sql_equal(r["k"], s["k"]) and r["n"] == s["n"],
    ),
    "band": ("ABS(r.x - s.x) <= 3", lambda r, s: abs(r["x"] - s["x"]) <= 3),
    "strict band": ("ABS(r.x - s.x) < 3", lambda r, s: abs(r["x"] - s["x"]) < 3),
    "float band": ("ABS(r.y - s.y) <= 0.3", lambda r, s: abs(r["y"] - s["y"]) <= 0.3),
    "two bands": (
        "ABS(r.x - s.x) <= 10 AND ABS(r.y - s.y) <= 0.3",
        lambda r, s: abs(r["x"] - s["x"]) <= 10 and abs(r["y"] - s["y"]) <= 0.3,
    ),
    "float band, then inequality": (
        "ABS(r.y - s.y) <= 0.3 AND r.x < s.x",
        lambda r, s: abs(r["y"] - s["y"]) <= 0.3 and r["x"] < s["x"],
    ),
    "bands of extreme floats": (
        "ABS(r.f - s.f) <= 0.5 AND r.x < s.x",
        lambda r, s: r["f"] is not None and s["f"] is not None and abs(r["f"] - s["f"]) <= 0.5 and r["x"] < s["x"],
    ),
    "between": (
        "r.x BETWEEN s.x - 5 AND s.x + 7",
        lambda r, s: s["x"] - 5 <= r["x"] <= s["x"] + 7,
    ),
    "decimal band": (
        "ABS(r.p - s.p) <= 0.05",
        lambda r, s: float(abs(r["p"] - s["p"])) <= 0.05,
    ),
    "inequality": ("r.x > s.x + 30", lambda r, s: r["x"] > s["x"] + 30),
    "float inequality": (
        "r.f < s.f",
        lambda r, s: r["f"] is not None and s["f"] is not None and _less(r["f"], s["f"]),
    ),
    "text inequality": ("r.n < s.n", lambda r, s: r["n"].encode() < s["n"].encode()),
    "equality, then band": (
        "r.k = s.k AND r.x >= s.x - 5 AND r.x < s.x + 7",
        lambda r, s: sql_equal(r["k"], s["k"]) and s["x"] - 5 <= r["x"] < s["x"] + 7,
    ),
    "four conjuncts, one unindexed": (
        "r.k = s.k AND ABS(r.x - s.x) <= 20 AND r.y < s.y AND (r.x * s.x) % 3 <> 1",
        lambda r, s: (
            sql_equal(r["k"], s["k"]) and abs(r["x"] - s["x"]) <= 20 and r["y"] < s["y"] and (r["x"] * s["x"]) % 3 != 1
        ),
    ),
    "selection on both sides": (
        "r.k = s.k AND r.x < 30 AND s.n LIKE 'a%'",
        lambda r, s: sql_equal(r["k"], s["k"]) and r["x"] < 30 and s["n"].startswith("a"),
    ),
    "arithmetic only": ("(r.x * s.x) % 7 = 1", lambda r, s: (r["x"] * s["x"]) % 7 == 1),
    "either or": (
        "r.k = s.k OR r.x = s.x",
        lambda r, s: sql_equal(r["k"], s["k"]) or r["x"] == s["x"],
    ),
}
"""name -> (WHERE clause, the same as a function)."""
