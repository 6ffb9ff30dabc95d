"""Every page of the dashboard in a real browser, over a real platform with a running job."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamjoin.errors import InputError
from streamjoin.spark.java import find_java
from tests.servers.process import comes_true

from .browser import TEST_S_MAX, UP, UP_S_MAX, platform, walk

pytestmark = [pytest.mark.services, pytest.mark.slow]


@pytest.mark.timeout(TEST_S_MAX)
@pytest.mark.spark
def test_every_page_works_in_both_themes_while_a_job_runs(tmp_path: Path, browser: tuple[str, str]) -> None:
    try:
        find_java()
    except InputError as reason:
        pytest.skip(str(reason))
    with platform(tmp_path, UP, DRIVER_MEMORY_MIB="512", WARM_DRIVERS="0") as address:
        log = tmp_path / "platform.log"
        assert comes_true(lambda: "streamjoin is up" in log.read_text(), UP_S_MAX), log.read_text()
        walk("dashboard", browser, address)
