"""Which of the many combinations `make check` runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

ONE_IN = 8
HERE = Path(__file__).parent
WHOLE = (HERE / "typed" / "test_edges.py", HERE / "typed" / "test_key_mutations.py")
"""Each of their cases is about something else, and takes a tenth of a second."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of each test's combinations every eighth is quick: they take most of the time, and fail by the dozen."""
    seen: Counter[str] = Counter()
    for item in items:
        whole = item.path in WHOLE or not hasattr(item, "callspec") or item.get_closest_marker("soak")
        if HERE not in item.path.parents or whole:
            continue
        test = item.nodeid.partition("[")[0]
        if seen[test] % ONE_IN:
            item.add_marker(pytest.mark.slow)
        seen[test] += 1
