"""A preview over the API: rows of registered streams before a job is there, within bounds, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import SecretStr
from sqlalchemy import update
from test_jobs import CHEAP, QUERY
from test_streams import BIDS, RUNS_CODE, TOPIC, registered

from backend.auth.secrets import seal
from backend.catalog.models import Stream
from backend.jobs import previews
from streamjoin.explain import overlap
from streamjoin.explain.preview import NOTE, Preview, preview
from streamjoin.spec.prepare import Bound

URL = "/api/v1/jobs/preview"
JOINED = "SELECT ONLINE r.id, s.id AS other, s.word FROM r, s WHERE r.k = s.k WITHIN 2 SECONDS"


@pytest.fixture
def generated(api: TestClient) -> None:
    """The streams of `QUERY`."""
    registered(api)
    registered(api, "auctions", **{**BIDS, "kind": "nexmark.auction"})


def from_file(api: TestClient, folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    """A stream of a file with `rows`."""
    columns = pa.schema([("id", pa.int64()), ("k", pa.int64()), ("word", pa.string()),
                         ("ts", pa.timestamp("us", "UTC"))])  # fmt: skip
    (folder / name).mkdir()
    pq.write_table(pa.Table.from_pylist(rows, schema=columns), folder / name / "1.parquet")
    registered(api, name, source="parquet", path=str(folder / name), time="ts")


def some(rows: int, **more: Any) -> list[dict[str, Any]]:
    return [{"id": place, "k": place % 5, "word": "w", "ts": place * 100_000, **more} for place in range(rows)]


def shown(api: TestClient, query: str, **more: Any) -> dict[str, Any]:
    answer = api.post(URL, json={"query": query, **more})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_preview_has_columns_with_types_rows_and_what_was_looked_at(api: TestClient, tmp_path: Path) -> None:
    from_file(api, tmp_path, "r", [{**row, "id": row["id"] + 2**60} for row in some(40)])
    from_file(api, tmp_path, "s", some(60))
    found = shown(api, JOINED)
    (only,) = found["queries"]
    assert only["columns"] == [{"name": "id", "type": "int64"}, {"name": "other", "type": "int64"},
                               {"name": "word", "type": "string"}]  # fmt: skip
    assert len(only["rows"]) == 20 and only["reason"] is None and only["large_rows"] == 0
    for id, other, word in only["rows"]:  # whole numbers that a browser would round are texts
        assert abs(int(id) - 2**60 - other) <= 20 and (int(id) - 2**60 - other) % 5 == 0 and word == "w"
    assert isinstance(only["rows"][0][0], str) and isinstance(only["rows"][0][1], int)
    assert [(one["name"], one["rows"], one["bad_records"]) for one in found["streams"]] == [("r", 40, 0), ("s", 60, 0)]
    assert found["streams"][1]["first"] == "1970-01-01T00:00:00Z"
    assert found["streams"][1]["last"] == "1970-01-01T00:00:05.900Z"
    assert (found["note"], found["cut_off"]) == (NOTE, False) and "r: 40 rows from" in found["text"]


@pytest.mark.parametrize(
    ("rows", "query", "said"),
    [
        (some(20, ts=9_000_000_000), JOINED, "no pair of them is within 2 s"),
        ([{**row, "k": row["k"] + 100} for row in some(20)], JOINED, "no value of r.k is among those of s.k"),
        ([], JOINED, "s has no rows to look at yet"),
    ],
)
def test_without_rows_a_preview_says_why(
    api: TestClient, tmp_path: Path, rows: list[dict[str, Any]], query: str, said: str
) -> None:
    from_file(api, tmp_path, "r", some(20))
    from_file(api, tmp_path, "s", rows)
    (only,) = shown(api, query)["queries"]
    assert only["rows"] == [] and said in only["reason"]


def test_a_preview_shows_what_results_keep_and_each_query_beside(api: TestClient, generated: None) -> None:
    found = shown(
        api, QUERY, results={"select": ["price"], "where": "price > 100"}, queries={"cheap": {"query": CHEAP}}
    )
    main, cheap = found["queries"]
    assert (main["query"], cheap["query"]) == ("main", "cheap")
    assert [column["name"] for column in main["columns"]] == ["price"] and len(main["rows"]) == 20
    assert all(price > 100 for (price,) in main["rows"])
    assert [column["name"] for column in cheap["columns"]] == ["id", "price"]
    assert all(price < 1000 for _, price in cheap["rows"])


def test_a_wrong_draft_is_told_where(api: TestClient, generated: None) -> None:
    for body, pointer in (
        ({"query": QUERY.replace("bids.price ", "bids.prise ")}, "/query"),
        ({"query": QUERY, "streams": ["nobody"]}, "/streams"),
        ({"query": QUERY, "run": {"checkpoint": "/etc"}}, "/run/checkpoint"),
        ({"query": QUERY, "results": {"where": "nothing > 1"}}, "/results/where"),
    ):
        answer = api.post(URL, json=body)
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer), answer.text


def test_a_preview_leaves_nothing_behind(api: TestClient, app: FastAPI, generated: None) -> None:
    folder = app.state.context.settings.data
    before = sorted(folder.rglob("*"))
    assert shown(api, QUERY)["queries"][0]["rows"]
    assert [path for path in sorted(folder.rglob("*")) if path.suffix not in (".db-wal", ".db-shm")] == [
        path for path in before if path.suffix not in (".db-wal", ".db-shm")
    ]
    assert api.get("/api/v1/jobs").json()["data"] == []


ALONE = """
import sys
from pathlib import Path
from backend.jobs import previews
from streamjoin.spec.joinfile import of_content
from streamjoin.spec.prepare import bind

stream = {"source": "generator", "time": "ts"}
streams = {"r": {**stream, "kind": "zipf.r"}, "s": {**stream, "kind": "zipf.s"}}
query = "SELECT ONLINE r.k FROM r, s WHERE r.k = s.k WITHIN 5 SECONDS"
draft = {"streams": streams, "query": query, "run": {"checkpoint": "state"}}
found = previews.preview(bind(of_content(draft, base=Path(), name="draft")))
print(found.queries[0].rows.num_rows, [name for name in sys.modules if name.split(".")[0] in ("pyspark", "py4j")])
"""


def test_a_preview_never_loads_spark() -> None:
    ran = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True)
    assert ran.stdout == "20 []\n"


# ---- attacks ----------------------------------------------------------------------------------------------------


def test_attack_a_stream_outside_of_the_allowed_folders_is_not_read(
    api: TestClient, app: FastAPI, tmp_path: Path
) -> None:
    (tmp_path / "inner").mkdir()
    from_file(api, tmp_path, "r", some(20))
    from_file(api, tmp_path / "inner", "s", some(20, word="hush"))
    assert shown(api, JOINED)["queries"][0]["rows"]

    def is_refused() -> bool:
        answer = api.post(URL, json={"query": JOINED})
        assert "hush" not in answer.text
        return answer.status_code == 422 and "STREAMJOIN_ALLOWED_PATHS" in answer.text

    app.state.context.settings.allowed_paths = (tmp_path / "r",)
    assert is_refused()
    # Its folder may be read again, and has become a link to where nothing may be.
    app.state.context.settings.allowed_paths = (tmp_path / "r", tmp_path / "inner")
    (tmp_path / "inner" / "s").rename(tmp_path / "outer")
    (tmp_path / "inner" / "s").symlink_to(tmp_path / "outer")
    assert is_refused()


def test_attack_secrets_that_would_run_code_are_refused_in_a_preview(
    api: TestClient, app: FastAPI, generated: None
) -> None:
    settings = app.state.context.settings
    settings.secret_key = SecretStr("a key of this test and of nobody else")
    registered(api, "t", **TOPIC)
    with app.state.context.catalog.begin() as session:  # as if it had been kept before it was refused
        session.execute(update(Stream).where(Stream.name == "t").values(secrets=seal(settings, RUNS_CODE)))
    query = "SELECT ONLINE bids.price FROM bids, t WHERE bids.ts = t.ts WITHIN 1 SECONDS"
    answer = api.post(URL, json={"query": query})
    assert (answer.status_code, "plugin.library.paths" in answer.text) == (422, True), answer.text


def test_secrets_of_a_topic_reach_its_broker_and_nobody_else(
    api: TestClient, app: FastAPI, generated: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker is `tests/servers`' affair."""
    given: list[Any] = []

    def newest(servers: str, topic: str, client: dict[str, str], rows: int) -> pa.Array:
        given.append(client)
        return pa.array([b"{}"])

    monkeypatch.setattr(previews, "bounded", lambda who, look, *given: look(*given))  # as the next line is here
    monkeypatch.setattr(overlap, "newest_values", newest)
    settings = app.state.context.settings
    settings.secret_key = SecretStr("a key of this test and of nobody else")
    answer = api.post("/api/v1/streams", json={"name": "t", "spec": TOPIC, "secrets": {"sasl.password": "hush"}})
    assert answer.status_code == 201, answer.text
    asked = api.post(URL, json={"query": "SELECT ONLINE bids.price FROM bids, t WHERE bids.ts = t.ts"})
    assert (asked.status_code, "hush" in asked.text) == (200, False), asked.text
    assert given == [{"sasl.password": "hush"}]


def test_attack_huge_rows_make_no_huge_answer(api: TestClient, tmp_path: Path) -> None:
    from_file(api, tmp_path, "r", [*some(60, word="x" * 10_000, k=1), {**some(1)[0], "word": "y" * 5_000_000}])
    from_file(api, tmp_path, "s", some(60, k=1))
    many = ", ".join(f"r.word AS w{place}" for place in range(300))
    answer = api.post(URL, json={"query": f"SELECT ONLINE {many} FROM r, s WHERE r.k = s.k"})
    assert answer.status_code == 200 and len(answer.content) < 100_000
    (only,) = answer.json()["queries"]
    assert only["rows"] == [] and only["large_rows"] > 0 and "larger than 192 KiB" in only["reason"]
    assert answer.json()["streams"][0]["large_rows"] == 1
    few = api.post(URL, json={"query": "SELECT ONLINE r.word, r.word AS w FROM r, s WHERE r.k = s.k"})
    assert len(few.json()["queries"][0]["rows"]) == 20 and len(few.content) < 1_000_000


def test_attack_a_million_results_a_key_are_not_all_found(api: TestClient, tmp_path: Path) -> None:
    rows = some(20_000, k=1, ts=0)
    from_file(api, tmp_path, "r", rows)
    from_file(api, tmp_path, "s", rows)
    found = shown(api, JOINED)
    assert len(found["queries"][0]["rows"]) == 20
    assert found["streams"][0]["rows"] <= 1_000  # enough rows were found long before 4 * 10^8 pairs


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Semaphore, threading.Event]]:
    """Previews say that they began, and end when they may."""
    began, may_end = threading.Semaphore(0), threading.Event()

    def slow(bound: Bound) -> Preview:
        began.release()
        assert may_end.wait(30)
        return preview(bound)

    monkeypatch.setattr(previews, "bounded", lambda who, look, *given: look(*given))
    monkeypatch.setattr(previews, "preview", slow)
    yield began, may_end
    may_end.set()


def test_attack_many_at_once_are_told_to_come_again(
    api: TestClient, generated: None, held: tuple[threading.Semaphore, threading.Event]
) -> None:
    began, may_end = held
    with ThreadPoolExecutor() as pool:
        first = [pool.submit(shown, api, QUERY) for _ in range(previews.AT_ONCE)]
        for _ in first:
            assert began.acquire(timeout=30)
        refused = api.post(URL, json={"query": QUERY})
        may_end.set()
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
        assert refused.headers["Retry-After"] == "1"
        assert all(one.result()["queries"][0]["rows"] for one in first)
    assert shown(api, QUERY)["queries"][0]["rows"]  # places are free again


def test_a_preview_that_fails_leaves_its_place_to_others(api: TestClient, tmp_path: Path) -> None:
    for name in ("r", "s"):
        from_file(api, tmp_path, name, some(20))
    path = tmp_path / "r" / "1.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:200] + bytes(len(whole) - 400) + whole[-200:])
    for _ in range(previews.AT_ONCE + 1):
        answer = api.post(URL, json={"query": JOINED})
        assert answer.status_code == 422, answer.text
    path.write_bytes(whole)
    assert shown(api, JOINED)["queries"][0]["rows"]
