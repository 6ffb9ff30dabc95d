"""Which of the many combinations `make check` runs."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import pytest

ONE_IN = 36
HERE = Path(__file__).parent
WHOLE = (HERE / "typed" / "test_edges.py", HERE / "typed" / "test_key_mutations.py")
"""Each of their cases is about something else, and takes a tenth of a second."""

EACH = re.compile("_caught|_mistake_shows|_without_a_sync")
"""Names of mutation tests: each of their parameters is a different defect that has to be noticed."""
EACH_IN = {HERE / f"test_{name}.py" for name in ("a_day", "places_in_tasks", "ring_of_many")}

KEPT_ONE_IN = 9
"""One in this many of a test's other combinations runs in `make test`, the rest in `make soak`."""
LARGE = {
    HERE / f"test_{name}.py"
    for name in (
        "asof", "asof_deletes", "asof_idle", "asof_stages", "brackets", "idle_streams", "outer", "periods", "relations",
    )
}  # fmt: skip
LARGE_KEPT_ONE_IN = 18


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of each test's combinations one in thirty-six is quick: they take most of the time, and fail by the dozen.

    A hash of its name decides whether a combination is: taking every thirty-sixth would always pick the same value of
    a parameter that has two, three or four. The first combination always is.
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
            is_kept = chosen // ONE_IN % (LARGE_KEPT_ONE_IN if item.path in LARGE else KEPT_ONE_IN) == 0
            item.add_marker(pytest.mark.slow if is_each or is_kept else pytest.mark.soak)
        seen.add(test)
