"""The dashboard in a real browser, over a real platform with a running job; and its sign-in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from backend.frontend import BUILT
from streamjoin.errors import InputError
from streamjoin.spark.java import find_java
from tests.servers.process import ServerProcess, comes_true, free_ports
from tests.spark.command import JAVA_OPTIONS

pytestmark = [pytest.mark.services, pytest.mark.slow]

FRONTEND = Path(__file__).parents[2] / "frontend"
UP_S_MAX = 90.0
WALK_S_MAX = 700.0
END_S_MAX = 40.0
PASSWORD = "a password for the walk"


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


@contextmanager
def platform(folder: Path, module: str, **variables: str) -> Iterator[str]:
    """`python -m module` in a folder of its own; gives its address."""
    (port,) = free_ports(1)
    rest = [f"{name}=" for name in os.environ if name.startswith("STREAMJOIN_")]
    mine = {"DATA": str(folder / "data"), "PORT": str(port), "FRONTEND": str(BUILT), **variables}
    given = [f"STREAMJOIN_{name}={value}" for name, value in mine.items()]
    unset = [word for name in rest for word in ("-u", name.removesuffix("="))]
    command = ["env", *unset, *given, f"JAVA_TOOL_OPTIONS={JAVA_OPTIONS}", sys.executable, "-m", module]
    (folder / "data").mkdir()
    process = ServerProcess("the platform", command, folder / "platform.log")
    try:
        process.wait_until(lambda: answers(port), "does not answer", UP_S_MAX)
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.stop(END_S_MAX)


def answers(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/livez", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def walk(script: str, browser: tuple[str, str], *arguments: str) -> None:
    """Run a walk; what it found is the failure."""
    node, chromium = browser
    command = [node, f"walk/{script}.mjs", arguments[0], chromium, *arguments[1:]]
    done = subprocess.run(command, cwd=FRONTEND, capture_output=True, text=True, timeout=WALK_S_MAX, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.spark
def test_every_page_works_in_both_themes_while_a_job_runs(tmp_path: Path, browser: tuple[str, str]) -> None:
    try:
        find_java()
    except InputError as reason:
        pytest.skip(str(reason))
    with platform(tmp_path, "worker.up", DRIVER_MEMORY_MIB="512") as address:
        log = tmp_path / "platform.log"
        assert comes_true(lambda: "streamjoin is up" in log.read_text(), UP_S_MAX), log.read_text()
        walk("dashboard", browser, address, str(tmp_path / "pictures"))


def test_people_sign_in_and_out_where_the_platform_asks_for_it(tmp_path: Path, browser: tuple[str, str]) -> None:
    with platform(tmp_path, "backend", AUTH="on", ADMIN_PASSWORD=PASSWORD) as address:
        walk("signing-in", browser, address, PASSWORD, str(tmp_path / "pictures"))


def test_the_first_page_is_small_and_soon_there(tmp_path: Path, browser: tuple[str, str]) -> None:
    with platform(tmp_path, "backend", AUTH="off") as address:
        walk("first-load", browser, address)
