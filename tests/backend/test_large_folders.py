"""Folders with more in them than a request may have looked at: it is refused, and jobs that read them go on."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.apart import bounded
from backend.auth.hosts import check_place
from backend.settings import Settings
from streamjoin.errors import InputError
from streamjoin.sources import patterns
from streamjoin.sources.filelog import FileLog, list_files
from streamjoin.sources.guess import first_schema

V1 = "/api/v1"
SAYS = "more than 5 files and folders would have to be looked at; name the folders in which the files are"
ROWS = '{"k": 1, "ts": "2026-01-01T00:00:00Z"}\n'
QUERY = "SELECT ONLINE a.k FROM a JOIN t ON a.k = t.k"


@pytest.fixture
def fill(tmp_path: Path) -> Callable[[str, int], Path]:
    """Makes a folder with so many files, or puts more into it."""

    def make(name: str, count: int) -> Path:
        folder = tmp_path / name
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(count):
            (folder / f"{number}.jsonl").write_text(ROWS)
        return folder

    return make


def stream(folder: Path) -> dict[str, Any]:
    return {"source": "jsonl", "path": str(folder), "time": "ts", "schema": {"k": "int64", "ts": "timestamp"}}


def relation(folder: Path) -> dict[str, Any]:
    return {"source": "jsonl", "path": str(folder)}


def with_many(kind: str, folder: Path) -> Path:
    """A folder with too much in it: files, files and folders that are not read, or partitions that are links back."""
    folder.mkdir()
    for number in range(6):
        match kind:
            case "files":
                (folder / f"{number}.jsonl").write_text(ROWS)
            case "hidden":
                (folder / f".{number}").touch()
            case "folders":
                (folder / f"d{number}").mkdir()
            case "partitions" if number < 2:
                (folder / f"n={number}").symlink_to(folder)
    return folder


@pytest.mark.parametrize("kind", ["files", "hidden", "folders", "partitions"])
def test_attack_a_folder_with_more_than_may_be_looked_at_is_refused(
    kind: str, api: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = relation(with_many(kind, tmp_path / "many"))
    monkeypatch.setattr(patterns, "ENTRIES_MAX", 5)
    listed, scandir = 0, os.scandir

    class Counted:
        def __init__(self, path: Any) -> None:
            self._entries = scandir(path)

        def __enter__(self) -> Counted:
            return self

        def __exit__(self, *_: object) -> None:
            self._entries.close()

        def __iter__(self) -> Counted:
            return self

        def __next__(self) -> Any:
            nonlocal listed
            found = next(self._entries)
            listed += 1
            return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "scandir", Counted)
        for what, spec in (("relations", entry), ("streams", {**entry, "time": "ts"})):
            answers = [
                api.post(f"{V1}/{what}", json={"name": "t", "spec": spec}),
                api.post(f"{V1}/{what}/test", json={"spec": spec}),
            ]
            for answer in answers:
                assert (answer.status_code, answer.json()["subcode"]) == (422, "bad_place"), answer.text
                assert SAYS in answer.json()["detail"] and answer.json()["errors"][0]["pointer"] == "/spec/path"
    assert 0 < listed <= 4 * 6


def test_attack_a_folder_that_grew_since_it_was_registered_holds_up_no_request(
    api: TestClient, fill: Callable[[str, int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns, "ENTRIES_MAX", 5)
    for what, name, spec in (("streams", "a", stream(fill("a", 2))), ("relations", "t", relation(fill("t", 5)))):
        assert api.post(f"{V1}/{what}", json={"name": name, "spec": spec}).status_code == 201
    assert api.post(f"{V1}/jobs/validate", json={"query": QUERY}).json()["valid"]
    assert api.post(f"{V1}/jobs", json={"name": "j", "query": QUERY}).status_code == 201
    fill("t", 6)
    checked = api.post(f"{V1}/jobs/validate", json={"query": QUERY}).json()
    assert not checked["valid"] and SAYS in checked["diagnostics"][0]["detail"]
    answers = [
        api.post(f"{V1}/relations/t/sample"),
        api.post(f"{V1}/jobs", json={"name": "k", "query": QUERY}),
        api.patch(f"{V1}/jobs/j", json={"run": {"slots": 1}}, headers={"If-Match": '"1"'}),
    ]
    for answer in answers:
        assert answer.status_code == 422 and SAYS in answer.text, answer.text
    # The job itself can be started, although it cannot be changed.
    assert api.post(f"{V1}/jobs/j/start").status_code < 300


def listed_apart(folder: Path) -> int:
    """How many files a folder has, by a process in which few may be looked at."""
    patterns.ENTRIES_MAX = 5  # type: ignore[misc]
    return len(list_files(folder))


def test_a_look_in_another_process_has_the_bound_of_whoever_asks_for_it(fill: Callable[[str, int], Path]) -> None:
    folder = fill("many", 6)
    assert bounded(None, listed_apart, folder) == 6
    with patterns.listing_bounded(folder.parent / "other"), pytest.raises(InputError, match=SAYS):
        bounded(None, listed_apart, folder)
    with patterns.listing_bounded(folder.parent):
        assert bounded(None, listed_apart, folder) == 6


def test_a_job_goes_on_however_large_its_folders_grow(
    fill: Callable[[str, int], Path], settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns, "ENTRIES_MAX", 5)
    log = FileLog(fill("a", 2), tmp_path / "log.jsonl")
    log.refresh()
    fill("a", 9)
    log.refresh()
    assert len(log.files) == 9
    again = FileLog(fill("a", 12), tmp_path / "log.jsonl")  # as after a crash, when its places are looked at, too
    check_place(settings, stream(tmp_path / "a"))
    again.refresh()
    assert len(again.files) == 12 and first_schema("jsonl", tmp_path / "a").names == ["k", "ts"]


def test_a_pattern_counts_what_lies_beside_its_files_only_where_a_request_asks(
    fill: Callable[[str, int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    top = fill("top/a", 2).parent
    for number in range(9):
        (top / "a" / f".{number}.crc").touch()
    monkeypatch.setattr(patterns, "ENTRIES_MAX", 5)
    assert len(list_files(top / "*")) == 2
    with patterns.listing_bounded(Path("/nowhere")), pytest.raises(InputError, match="more than 5 files"):
        list_files(top / "*")


def test_rows_that_were_posted_are_looked_at_however_many_posts_there_were(
    api: TestClient, settings: Settings, monkeypatch: pytest.MonkeyPatch, fill: Callable[[str, int], Path]
) -> None:
    monkeypatch.setattr(patterns, "ENTRIES_MAX", 5)
    spec = {"source": "push", "time": "ts", "schema": {"k": "int64", "ts": "timestamp"}}
    assert api.post(f"{V1}/streams", json={"name": "a", "spec": spec}).status_code == 201
    assert api.post(f"{V1}/relations", json={"name": "t", "spec": relation(fill("t", 1))}).status_code == 201
    for _ in range(7):
        assert api.post(f"{V1}/streams/a/rows", content=ROWS).status_code < 300
    assert api.post(f"{V1}/streams/a/sample").json()["rows_seen"] == 7
    assert api.post(f"{V1}/jobs/validate", json={"query": QUERY}).json()["valid"]
    # A path through there to another folder is none of them.
    many = fill("many", 6)
    (settings.data / "spool").mkdir(exist_ok=True)
    with patterns.listing_bounded(settings.data / "spool"), pytest.raises(InputError, match="more than 5"):
        list_files(settings.data / "spool" / ".." / ".." / many.name)
