"""One check for all tests of random conditions: the engine against oracle 1, and oracle 1 against DuckDB."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import duckdb

from . import in_duckdb
from .case import Case, Window, difference
from .generator import generate
from .memory import limited
from .shrinking import report

SHOWN_MAX = 3
"""Differences that are made smaller and shown, of those a test finds."""


def check(cases: Iterable[Case]) -> None:
    """Every case gives oracle 1's pairs; the smallest cases are shown for those that do not."""
    with limited():
        found = [(case, differs) for case in cases if (differs := difference(case))]
        shown = "\n\n".join(report(case, differs) for case, differs in found[:SHOWN_MAX])
    assert not found, f"{len(found)} cases differ\n{shown}"


def seeded(seeds: Iterable[int]) -> Iterable[Case]:
    """The cases of these seeds."""
    return map(generate, seeds)


def check_in_duckdb(cases: Iterable[Case]) -> int:
    """Oracle 1 gives DuckDB's pairs, where conditions mean the same; how many cases those were."""
    compared = 0
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for case in cases:
            # Windows of rows are ours alone; the conditions are not.
            case = replace(case, window=Window() if case.window.rows is not None else case.window, items=())
            if in_duckdb.otherwise(case):
                continue
            compared += 1
            theirs, ours = in_duckdb.pairs(case, connection), case.wanted()
            assert theirs == ours, (
                f"seed {case.seed}: {case.query}\n{case.columns}\nDuckDB has {sorted(theirs - ours)[:5]} too many and "
                f"{sorted(ours - theirs)[:5]} too few"
            )
    return compared
