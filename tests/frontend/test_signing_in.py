"""Signing in and out in a real browser, and who may what."""

from __future__ import annotations

from pathlib import Path

import pytest

from .browser import API, TEST_S_MAX, platform, walk

pytestmark = [pytest.mark.services, pytest.mark.slow]
PASSWORD = "a password for the walk"


@pytest.mark.timeout(TEST_S_MAX)
def test_people_sign_in_and_out_where_the_platform_asks_for_it(tmp_path: Path, browser: tuple[str, str]) -> None:
    with platform(tmp_path, API, AUTH="on", ADMIN_PASSWORD=PASSWORD) as address:
        walk("signing-in", browser, address, PASSWORD, str(tmp_path / "pictures"))
