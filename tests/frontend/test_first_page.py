"""How much the first page is, and how soon it is there; it runs when nothing else does."""

from __future__ import annotations

from pathlib import Path

import pytest

from .browser import API, platform, walk


@pytest.mark.slow
def test_the_first_page_is_small_and_soon_there(tmp_path: Path, browser: tuple[str, str]) -> None:
    with platform(tmp_path, API, AUTH="off") as address:
        walk("first-load", browser, address)
