"""The list of files to choose from shows what streams may read, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.app import create_app
from backend.files import browse
from backend.files.format import format_of
from backend.settings import Settings
from tests.catalogs import migrated

CSV = "id,at\n1,2026-01-01T00:00:00Z\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with a data folder, hidden files and links in it, beside files of somebody else."""
    home = tmp_path / "home"
    for folder in ("home/orders/2026", "home/.ssh", "home/data", "other"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("home/a.csv", "home/B.jsonl", "home/notes.txt", "home/.secret.csv", "home/.ssh/id.csv",
                 "home/orders/2026/jan.parquet", "other/theirs.csv"):  # fmt: skip
        (tmp_path / file).write_text(CSV)
    (home / "out.csv").symlink_to(tmp_path / "other/theirs.csv")
    (home / "out").symlink_to(tmp_path / "other")
    (home / "keys").symlink_to(home / ".ssh")
    (home / "in.csv").symlink_to(home / "a.csv")
    (home / "circle").symlink_to(home / "circle")
    os.mkfifo(home / "pipe.csv")
    return home


@pytest.fixture
def api(home: Path) -> Iterator[TestClient]:
    """Of a platform that `streamjoin up` started in that home folder."""
    settings = Settings(data=home / "data", auth="off", redis_url="redis://127.0.0.1:1/0", own_paths=(home,))
    migrated(settings)
    with TestClient(create_app(settings), base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


def listed(api: TestClient, path: Path | str | None = None, **given: Any) -> Any:
    return api.get("/api/v1/files", params={**({} if path is None else {"path": str(path)}), **given})


def test_choosing_begins_with_the_allowed_folders(api: TestClient, home: Path) -> None:
    found = listed(api).json()
    assert (found["path"], found["parent"]) == (None, None)
    assert [entry["path"] for entry in found["data"]] == [str(home)]
    inside = listed(api, home).json()
    assert (inside["path"], inside["parent"]) == (str(home), None)
    assert listed(api, home / "orders" / "2026").json()["parent"] == str(home / "orders")


def test_only_what_may_be_read_is_shown(api: TestClient, home: Path) -> None:
    shown = [
        (entry["name"], entry["kind"], entry["format"], entry["bytes"]) for entry in listed(api, home).json()["data"]
    ]
    size = len(CSV)
    assert shown == [
        ("orders", "folder", None, None), ("a.csv", "file", "csv", size), ("B.jsonl", "file", "jsonl", size),
        ("in.csv", "file", "csv", size), ("notes.txt", "file", None, size),
    ]  # fmt: skip


def test_what_is_shown_can_be_read(api: TestClient, home: Path) -> None:
    for entry in listed(api, home).json()["data"]:
        if entry["format"] == "csv":
            spec = {"source": entry["format"], "path": entry["path"], "time": "at"}
            assert api.post("/api/v1/streams/test", json={"spec": spec}).status_code == 200


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/etc", "none of the folders"), ("/", "none of the folders"), ("{home}/../other", "none of the folders"),
        ("{home}/out", "none of the folders"), ("{home}/data", "data folder"), ("{home}/orders/../data", "data folder"),
        ("{home}/.ssh", "hidden"), ("{home}/keys", "hidden"), ("{home}/circle", "cannot be looked at"),
        ("{home}/nothing", "No such file"), ("{home}/a.csv", "is a file"), ("orders", "absolute"), ("", "absolute"),
        ("../..", "absolute"), ("/x" * 1500, "none of the folders"),
    ],
)  # fmt: skip
def test_other_places_are_refused(api: TestClient, home: Path, path: str, said: str) -> None:
    answer = listed(api, path.format(home=home))
    assert answer.status_code == 422, answer.text
    assert said in answer.json()["detail"]
    assert "theirs" not in answer.text and "catalog.db" not in answer.text


def test_hidden_folders_are_not_listed_even_where_streams_may_read_them(home: Path) -> None:
    settings = Settings(data=home / "data", auth="off", redis_url="redis://127.0.0.1:1/0", allowed_paths=(home,))
    migrated(settings)
    with TestClient(create_app(settings), base_url="http://127.0.0.1", raise_server_exceptions=False) as api:
        assert listed(api, home / ".ssh").status_code == 422
        assert not [entry for entry in listed(api, home).json()["data"] if entry["name"].startswith(".")]


def test_a_long_folder_comes_page_by_page(api: TestClient, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(7):
        (home / "orders" / f"{number}.csv").write_text(CSV)
    seen: list[str] = []
    url = f"/api/v1/files?path={home}/orders&limit=3"
    while url:
        answer = api.get(url)
        seen += [entry["name"] for entry in answer.json()["data"]]
        url = answer.headers["link"].split(">")[0][1:] if answer.json()["has_more"] else ""
    assert seen == ["2026", *(f"{number}.csv" for number in range(7))]
    assert not answer.json()["is_cut"]
    monkeypatch.setattr(browse, "LOOKED_AT_MAX", 4)
    cut = listed(api, home / "orders").json()
    assert cut["is_cut"] and len(cut["data"]) == 4


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look at everything")
def test_a_folder_that_the_platform_may_not_open_is_told(api: TestClient, home: Path) -> None:
    (home / "orders").chmod(0)
    try:
        assert "cannot be looked at" in listed(api, home / "orders").json()["detail"]
    finally:
        (home / "orders").chmod(0o700)


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.csv", "csv"), ("A.CSV", "csv"), ("a.tsv", "csv"), ("a.csv.gz", "csv"), ("a.b.jsonl.zst", "jsonl"),
        ("a.ndjson", "jsonl"), ("a.parquet", "parquet"), ("a.feather", "arrow"), ("a.parquet.gz", None),
        ("a.txt", None), ("csv", None), ("a.gz", None),
    ],
)  # fmt: skip
def test_a_name_tells_the_format(name: str, format: str | None) -> None:
    assert format_of(name) == format
