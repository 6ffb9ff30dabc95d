"""What the dashboard's part of the API answers to paths that nobody would write."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.frontend import Dashboard, is_page

HTML = {"accept": "text/html"}


@pytest.fixture
def dashboard(tmp_path: Path) -> TestClient:
    (build := tmp_path / "build").mkdir()
    (build / "index.html").write_text("the page")
    (build / "icon.svg").write_text("<svg/>")
    (tmp_path / "secret").write_text("of the machine")
    app = FastAPI()
    app.router.default = Dashboard(build, app.router.not_found)
    return TestClient(app)


def test_attack_a_path_of_dots_holds_up_nobody(dashboard: TestClient) -> None:
    begun_s = time.process_time()
    assert not is_page("/" + "." * 65_000)
    assert is_page("/" + "." * 65_000 + "/x")
    assert time.process_time() - begun_s < 0.01
    assert dashboard.get("/" + "." * 5_000 + "/x", headers=HTML).text == "the page"


@pytest.mark.parametrize("path", ["/%2e%2e/{}", "/x/..%2f..%2f{}", "/%2e%2e%2f{}", "/%2e%2e/%2e%2e/etc/{}", "/%00/{}"])
def test_attack_nobody_learns_which_files_of_the_machine_exist(dashboard: TestClient, path: str) -> None:
    there, not_there = (dashboard.get(path.format(name), headers=HTML) for name in ("secret", "secre"))
    assert (there.status_code, there.text) == (not_there.status_code, not_there.text)
    assert "of the machine" not in there.text


def test_pages_files_and_addresses_of_the_api_are_told_apart(dashboard: TestClient) -> None:
    assert dashboard.get("/icon.svg").text == "<svg/>"
    assert dashboard.get("/jobs/1", headers=HTML).text == dashboard.get("/").text == "the page"
    rule = re.compile(r"/(api|static)(/.*)?|.*\.[^/]*")
    for path in ("/", "/api", "/api/", "/api/v1/x", "/apis", "/static", "/static/a/b", "/statics/x", "/a.b", "/a.b/c",
                 "/jobs/x.y", "/jobs/api/x", "//api", "/."):  # fmt: skip
        assert is_page(path) == (not rule.fullmatch(path)), path
