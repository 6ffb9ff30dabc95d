"""Which of the many combinations `make check` runs."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import pytest

ONE_IN = 24
HERE = Path(__file__).parent
WHOLE = (HERE / "typed" / "test_edges.py", HERE / "typed" / "test_key_mutations.py")
"""Each of their cases is about something else, and takes a tenth of a second."""

EACH = re.compile("_caught|_mistake_shows|_without_a_sync")
"""Tests of mutations, by their names: each of their parameters is another defect that has to be noticed."""
EACH_IN = {HERE / f"test_{name}.py" for name in ("a_day", "places_in_tasks", "ring_of_many")}

KEPT_IN = {
    HERE / f"test_{name}.py": share
    for name, share in {
        "asof": 12,
        "asof_deletes": 12,
        "asof_idle": 12,
        "asof_stages": 12,
        "brackets": 12,
        "idle_streams": 12,
        "outer": 12,
        "periods": 12,
        "relations": 12,
    }.items()
}
OTHERS_KEPT_IN = 4
"""Of the other combinations of a test one in so many is in `make test`, and the rest in `make soak`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of each test's combinations one in twenty-four is quick: they take most of the time, and fail by the dozen.

    Which ones is said by a hash of their names: every twenty-fourth would always have the same value of a parameter
    that has two, three or four. The first one is always there.
    """
    seen: set[str] = set()
    for item in items:
        whole = item.path in WHOLE or not hasattr(item, "callspec") or item.get_closest_marker("soak")
        if HERE not in item.path.parents or whole:
            continue
        test = item.nodeid.partition("[")[0]
        chosen = zlib.crc32(item.nodeid.encode())
        if test in seen and chosen % ONE_IN:
            is_each = item.path in EACH_IN or EACH.search(test)
            is_kept = chosen // ONE_IN % KEPT_IN.get(item.path, OTHERS_KEPT_IN) == 0
            item.add_marker(pytest.mark.slow if is_each or is_kept else pytest.mark.soak)
        seen.add(test)
