"""Attacks on the API by files and databases that it is asked to look at: the look ends, and the API goes on."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from backend import apart
from backend.jobs import joinfile
from backend.settings import Settings
from streamjoin.errors import InputError
from streamjoin.index import kernels
from streamjoin.sources.fileread import FileRead
from tests.backend.matrix import add_person, new_app

pytestmark = pytest.mark.slow

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) AS x FROM n"
LARGE = "SELECT 1 AS k, zeroblob(900000000) AS x"
BIDS = {"source": "generator", "kind": "nexmark.bid", "time": "ts"}
QUERY = "SELECT ONLINE b.price, t.x FROM b JOIN t ON b.bidder = t.x"


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "SECONDS", 1.0)


@pytest.fixture
def frugal() -> Iterator[None]:
    """Fails where this process itself takes the memory that another one was meant to."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10


def view(folder: Path, query: str) -> dict[str, Any]:
    """A relation of a database that has only this view."""
    with sqlite3.connect(folder / "x.db") as database:
        database.execute(f"CREATE VIEW t AS {query}")
    return {"source": "sql", "url": f"sqlite:///{folder}/x.db", "table": "t"}


def refused(answer: Any, words: str) -> None:
    assert answer.status_code == 422, answer.text
    assert words in answer.json()["detail"]


def test_attack_a_view_that_never_ends_holds_no_thread(api: TestClient, tmp_path: Path) -> None:
    spec = view(tmp_path, ENDLESS)
    began = time.monotonic()
    refused(api.post("/api/v1/relations/test", json={"spec": spec}), "took too long")
    for what, name, entry in (("relations", "t", spec), ("streams", "b", BIDS)):
        assert api.post(f"/api/v1/{what}", json={"name": name, "spec": entry}).status_code == 201
    checked = api.post("/api/v1/jobs/validate", json={"query": QUERY}).json()
    assert not checked["valid"] and "took too long" in checked["diagnostics"][0]["detail"]
    refused(api.post("/api/v1/jobs/explain", json={"query": QUERY}), "took too long")
    refused(api.post("/api/v1/jobs/preview", json={"query": QUERY}), "took too long")
    refused(api.post("/api/v1/jobs", json={"name": "j", "query": QUERY}), "took too long")
    assert time.monotonic() - began < 120  # where nothing ends it, the first never returns


@pytest.mark.usefixtures("frugal")
def test_attack_a_value_of_a_gigabyte_takes_no_memory_of_the_api(
    api: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "SECONDS", 20.0)
    refused(api.post("/api/v1/relations/test", json={"spec": view(tmp_path, LARGE)}), "memory")


@pytest.mark.usefixtures("frugal")
@pytest.mark.parametrize("what", ["relations", "streams"])
def test_attack_a_parquet_file_that_unpacks_to_gigabytes_takes_no_memory_of_the_api(
    what: str, api: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "SECONDS", 20.0)
    monkeypatch.setattr(apart, "MEMORY_BYTES", 512 << 20)
    path = tmp_path / "bomb.parquet"
    row = pa.array([pa.scalar("x" * (1 << 20))] * 1)
    same = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), row)
    pq.write_table(pa.table({"x": same}), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 100_000
    spec = {"source": "parquet", "path": str(path)} | ({"time": "arrival"} if what == "streams" else {})
    answer = api.post(f"/api/v1/{what}/test", json={"spec": spec})
    assert answer.status_code == 422, answer.text


@pytest.mark.parametrize("time_of", ["ts", "x"])
def test_attack_a_parquet_relation_takes_no_memory_of_the_api_where_a_job_is_checked(
    time_of: str, api: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb.parquet"
    rows = pa.table({"k": [1], "ts": pa.array([1], pa.timestamp("us")), "x": ["x" * (16 << 20)]})
    pq.write_table(rows, path, compression="zstd", use_dictionary=False, write_statistics=False)
    assert path.stat().st_size < 20_000
    read: list[str] = []
    rows_of = FileRead.rows

    def noted(self: FileRead, names: Sequence[str]) -> Any:
        read.append(self.path)
        return rows_of(self, names)

    monkeypatch.setattr(FileRead, "rows", noted)  # in this process; looks have their own
    bomb = {"source": "parquet", "path": str(path)}
    for what, name, entry in (
        ("relations", "t", bomb), ("streams", "b", BIDS), ("streams", "s", {**bomb, "time": time_of}),
    ):  # fmt: skip
        assert api.post(f"/api/v1/{what}", json={"name": name, "spec": entry}).status_code in (201, 422)
    query = "SELECT ONLINE b.price, t.x FROM b JOIN t ON b.bidder = t.k"
    assert api.post("/api/v1/jobs/validate", json={"query": query}).json()["valid"]
    answer = api.post("/api/v1/jobs", json={"name": "j", "query": query})
    assert answer.status_code == 201, answer.text
    changed = api.patch("/api/v1/jobs/j", json={"run": {"slots": 1}}, headers={"If-Match": '"1"'})
    assert changed.status_code == 200, changed.text
    of_stream = {"query": "SELECT ONLINE b.price, s.x FROM b JOIN s ON b.bidder = s.k WITHIN 1 MINUTE"}
    assert api.post("/api/v1/jobs/validate", json=of_stream).json()["valid"] == (time_of == "ts")
    assert not read


def test_one_user_leaves_places_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "SECONDS", 0.2)
    with apart._turn("usr_1"), apart._turn("usr_1"):
        with pytest.raises(Exception, match="which is the limit"), apart._turn("usr_1"):
            pass
        with apart._turn("usr_2"):
            pass
    with apart._turn("usr_1"):
        pass


def test_looks_of_drafts_and_jobs_are_those_of_whoever_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sqlite3.connect(tmp_path / "x.db") as database:
        database.execute("CREATE TABLE t (k INTEGER, said TEXT)")
    app = new_app(Settings(data=tmp_path / "data", redis_url="redis://127.0.0.1:1/0", allowed_paths=(tmp_path,)))
    person = add_person(app.state.context, "kim", "operator")
    seen: list[str | None] = []

    def noted(who: str | None, look: Any, *given: Any) -> Any:
        seen.append(who)
        return look(*given)

    with TestClient(app, base_url="http://127.0.0.1", headers=person.headers) as api:
        table = {"source": "sql", "url": f"sqlite:///{tmp_path}/x.db", "table": "t"}
        assert api.post("/api/v1/streams", json={"name": "b", "spec": BIDS}).status_code == 201
        answer = api.post("/api/v1/relations", json={"name": "t", "spec": table})
        assert answer.status_code == 201, answer.text
        monkeypatch.setattr(joinfile, "bounded", noted)
        query: dict[str, Any] = {"query": "SELECT ONLINE b.price, t.said FROM b JOIN t ON b.bidder = t.k"}
        slots: dict[str, Any] = {"run": {"slots": 1}}
        for method, place, body in (
            ("POST", "/validate", query),
            ("POST", "", {"name": "j", **query}),
            ("POST", "/j/diff", slots),
            ("PATCH", "/j", slots),
        ):
            seen.clear()
            answer = api.request(method, f"/api/v1/jobs{place}", json=body, headers={"If-Match": '"1"'})
            assert answer.status_code < 300, answer.text
            assert set(seen) == {person.id}, answer.text


def test_attack_who_waits_for_turns_holds_few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "SECONDS", 2.0)

    def waits() -> None:
        with apart._turn("usr_1"):
            pass

    with apart._turn("usr_1"), apart._turn("usr_1"), ThreadPoolExecutor(apart.WAIT_OF_ONE) as threads:
        for _ in range(apart.WAIT_OF_ONE):
            threads.submit(waits)
        while apart._waiting["usr_1"] < apart.WAIT_OF_ONE:
            time.sleep(0.01)
        begun = time.monotonic()
        with pytest.raises(Exception, match="which is the limit"):
            waits()
        assert time.monotonic() - begun < 1
        with apart._turn("usr_2"):
            pass


def test_nobody_holds_a_turn_while_the_process_that_looks_are_forked_from_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(apart, "SECONDS", 0.5)
    monkeypatch.setattr(apart, "_ready", threading.Event())
    monkeypatch.setattr(apart, "_is_there", slowly)
    with ThreadPoolExecutor(4) as threads:
        looks = [threads.submit(apart.bounded, "usr_1", divmod, 7, 2) for _ in range(4)]
        assert [look.result() for look in looks] == [(3, 1)] * 4
    assert apart._ready.is_set()


def slowly() -> None:
    """The first process, on a busy machine: slower than anybody waits for a turn."""
    time.sleep(2)


def test_what_a_look_finds_and_what_it_raises_comes_back() -> None:
    assert apart.bounded(None, divmod, 7, 2) == (3, 1)


def test_what_nobody_foresaw_is_refused_by_its_name_and_its_stack_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(InputError, match="failed with ZeroDivisionError"):
        apart.bounded(None, divmod, 7, 0)
    (line,) = caplog.messages
    assert "sent = pickle.dumps((True, look(*given, **named), None))" in line and "ZeroDivisionError: " in line
    with pytest.raises(InputError, match="which nobody foresaw"):
        apart.bounded(None, memoryview, b"")  # found, and cannot be sent
    with pytest.raises(RuntimeError, match="status 7"):
        apart.bounded(None, os._exit, 7)


@pytest.mark.parametrize(
    ("by", "words"),
    [
        (signal.SIGSEGV, "crashed with SIGSEGV"), (signal.SIGBUS, "crashed with SIGBUS"),
        (signal.SIGALRM, "took too long"), (signal.SIGKILL, "too much memory"), (signal.SIGABRT, "too much memory"),
    ],
)  # fmt: skip
def test_a_look_that_a_signal_ends_says_which_and_why(by: signal.Signals, words: str) -> None:
    with pytest.raises(InputError, match=words):
        apart.bounded(None, signal.raise_signal, by)


def test_a_look_finds_kernels_loaded_and_what_others_allocated_is_not_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "SECONDS", 20.0)
    assert apart.bounded(None, what_is_there, apart.MEMORY_BYTES - (64 << 20)) == (True, "system")


def what_is_there(size: int) -> tuple[bool, str]:
    """In the process of a look: whether kernels are loaded, and by what Arrow allocates."""
    held = bytearray(size)
    return bool(held) and "dispatcher" in vars(kernels.mix), pa.default_memory_pool().backend_name
