"""How the API serves the dashboard's files, with a small build in place of the real one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from backend.app import create_app
from backend.frontend import is_page
from backend.settings import Settings
from tests.processor import seconds_of

INDEX = (
    '<!doctype html><html><head><base href="/"/><meta name="csp-nonce" content="__CSP_NONCE__"/></head>'
    '<body><script src="./static/js/main.1a2b.js"></script></body></html>'
)
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def build_in(folder: Path) -> Path:
    """A build: a page, a script with a hash in its name, an icon; and a secret beside it."""
    (folder / "build" / "static" / "js").mkdir(parents=True)
    (folder / "build" / "index.html").write_text(INDEX)
    (folder / "build" / "static" / "js" / "main.1a2b.js").write_text("run();" * 500)
    (folder / "build" / "icon.svg").write_text("<svg/>")
    (folder / "secret.txt").write_text("secret")
    return folder / "build"


def client(folder: Path, root_path: str = "") -> TestClient:
    (folder / "data").mkdir()
    settings = Settings(data=folder / "data", auth="off", frontend=folder / "build", redis_url="redis://127.0.0.1:1/0")
    return TestClient(
        create_app(settings), base_url="http://127.0.0.1", root_path=root_path, raise_server_exceptions=False
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_in(tmp_path_factory.mktemp("dashboard")).parent


@pytest.fixture(scope="module")
def pages(folder: Path) -> TestClient:
    return client(folder)


@pytest.mark.parametrize("address", ["/", "/jobs", "/jobs/job_01", "/streams/a-name?tab=x", "/nowhere/at/all"])
def test_every_address_of_a_page_gets_the_page_with_a_nonce_of_its_own(pages: TestClient, address: str) -> None:
    nonces = set()
    for _ in range(2):
        answer = pages.get(address, headers=BROWSER)
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "no-store"
        (nonce,) = re.findall('name="csp-nonce" content="(.*?)"', answer.text)
        policy = answer.headers["content-security-policy"]
        assert f"style-src 'self' 'nonce-{nonce}'" in policy and "script-src 'self';" in policy
        assert "unsafe" not in policy
        nonces.add(nonce)
    assert len(nonces) == 2


def test_names_with_a_hash_are_kept_and_others_asked_again(pages: TestClient) -> None:
    script = pages.get("/static/js/main.1a2b.js", headers={"Accept-Encoding": "gzip"})
    assert script.status_code == 200 and script.text == "run();" * 500
    assert script.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert script.headers["content-encoding"] == "gzip"
    icon = pages.get("/icon.svg")
    assert (icon.status_code, icon.headers["cache-control"]) == (200, "no-cache")
    assert pages.get("/icon.svg", headers={"If-None-Match": icon.headers["etag"]}).status_code == 304
    assert pages.head("/").status_code == 200


@pytest.mark.parametrize(
    "address", ["/api/v1/nothing", "/api", "/static/js/main.0000.js", "/favicon.ico", "/static/js", f"/{'a' * 5000}.js"]
)
def test_what_is_missing_is_missing_and_no_page(pages: TestClient, address: str) -> None:
    answer = pages.get(address, headers=BROWSER)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


@pytest.mark.parametrize(
    "address", ["/../secret.txt", "/static/%2e%2e/%2e%2e/secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt"]
)
def test_nothing_beside_the_build_is_served(pages: TestClient, address: str) -> None:
    answer = pages.get(address)
    assert answer.status_code == 404 and "secret" not in answer.text.replace("secret.txt", "")


def test_attack_a_path_of_dots_holds_up_nobody(pages: TestClient) -> None:
    assert seconds_of(lambda: is_page("/" + "." * 65_000)) < 0.01
    assert not is_page("/" + "." * 65_000)
    assert is_page("/" + "." * 65_000 + "/x")
    assert "csp-nonce" in pages.get("/" + "." * 5_000 + "/x", headers=BROWSER).text


@pytest.mark.parametrize("path", ["/%2e%2e/{}", "/x/..%2f..%2f{}", "/%2e%2e%2f{}", "/%2e%2e/%2e%2e/etc/{}", "/%00/{}"])
def test_attack_nobody_learns_which_files_of_the_machine_exist(pages: TestClient, path: str) -> None:
    there, missing = (pages.get(path.format(name), headers=BROWSER) for name in ("secret.txt", "secre.txt"))
    differs = re.compile('"csp-nonce" content=".*?"|"request_id":".*?"|secret?[.]txt')
    there_text, missing_text = (differs.sub("", one.text) for one in (there, missing))
    assert (there.status_code, there_text) == (missing.status_code, missing_text)


def test_pages_files_and_addresses_of_the_api_are_told_apart() -> None:
    rule = re.compile(r"/(api|static)(/.*)?|.*\.[^/]*")
    for path in ("/", "/api", "/api/", "/api/v1/x", "/apis", "/static", "/static/a/b", "/statics/x", "/a.b", "/a.b/c",
                 "/jobs/x.y", "/jobs/api/x", "//api", "/."):  # fmt: skip
        assert is_page(path) == (not rule.fullmatch(path)), path


def test_links_out_of_the_build_are_not_followed(pages: TestClient, folder: Path) -> None:
    (folder / "build" / "link.txt").symlink_to(folder / "secret.txt")
    assert pages.get("/link.txt").status_code == 404


def test_the_api_answers_as_without_a_dashboard(pages: TestClient) -> None:
    assert pages.get("/livez").json() == {"status": "alive"}
    assert pages.get("/api/v1/operators", headers=BROWSER).json()
    assert pages.get("/api/v1/sessions", headers=BROWSER).status_code == 405
    assert pages.post("/jobs", headers=BROWSER).status_code == 404
    assert pages.get("/jobs", headers={"Accept": "application/json"}).status_code == 404


def test_below_a_path_the_page_knows_where_it_is(tmp_path: Path) -> None:
    build_in(tmp_path)
    answer = client(tmp_path, root_path="/joins").get("/joins/jobs/job_01", headers=BROWSER)
    assert '<base href="/joins/">' in answer.text


def test_without_a_build_it_says_what_to_do_and_a_build_is_found_as_soon_as_it_is_there(tmp_path: Path) -> None:
    pages = client(tmp_path)
    answer = pages.get("/", headers=BROWSER)
    assert answer.status_code == 404
    assert "make frontend" in answer.text and "STREAMJOIN_FRONTEND" in answer.text
    assert pages.get("/livez").status_code == 200
    build_in(tmp_path)
    assert pages.get("/", headers=BROWSER).status_code == 200
