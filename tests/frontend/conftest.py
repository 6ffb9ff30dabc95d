"""The browser, where there is one."""

from __future__ import annotations

import shutil

import pytest

from backend.frontend import BUILT

from .browser import FRONTEND


@pytest.fixture
def browser() -> tuple[str, str]:
    """Node and chromium, where the dashboard is built."""
    node = shutil.which("node")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if node is None:
        pytest.skip("there is no node; the dashboard's tests need Node 20.19 or newer")
    if chromium is None:
        pytest.skip("there is no chromium; install the package chromium")
    if not (FRONTEND / "node_modules" / "playwright-core").is_dir() or not (BUILT / "index.html").is_file():
        pytest.skip("the dashboard has not been built; run make frontend")
    return node, chromium
