"""One-time questions over HTTP: by time, by key, in every format, with limits that are stated and errors with names."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.catalog.models import Job
from backend.context import Context
from backend.problems import Problem
from backend.results import frames
from backend.results.answers import Answerer
from backend.results.blocks import Blocks
from backend.results.holding import Holding
from backend.results.limits import Limits
from backend.results.places import KNOWN_S, Place
from backend.results.question import QueryIn
from backend.results.readers import Readers
from backend.results.recent import Memory
from backend.results.service import service_of
from backend.results.slots import Slots
from backend.results.writers import META, NdjsonWriter, ParquetWriter
from backend.settings import Settings
from streamjoin.results.stores.sqlite import SqliteStore
from streamjoin.results.stores.store import StoreDownError
from tests.backend.results_job import KEYS, SCHEMA, SPAN_US, Committer, add_job, make_app, rows, settings_in
from tests.servers.process import comes_true

pytestmark = pytest.mark.slow

BATCHES = 8
ROWS = 500


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return settings_in(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def app(settings: Settings) -> FastAPI:
    return make_app(settings)


@pytest.fixture(scope="module")
def api(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="module")
def context(app: FastAPI) -> Context:
    context = app.state.context
    assert isinstance(context, Context)
    return context


@pytest.fixture(scope="module")
def job(settings: Settings, context: Context) -> Job:
    """Eight snapshots of 500 rows."""
    job = add_job(context.catalog)
    committer = Committer(settings, job)
    for _ in range(BATCHES):
        committer.commit(ROWS)
    committer.close()
    return job


def snapshot(commit: int) -> str:
    """The id of the snapshot of a commit: each takes two batches."""
    return f"{2 * commit + 1}.0"


def ask(api: TestClient, job: Job, **question: Any) -> dict[str, Any]:
    """A JSON answer."""
    answer = api.post("/api/v1/queries", json={"job": job.id, **question})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert isinstance(found, dict)
    return found


def numbers(answer: dict[str, Any]) -> list[int]:
    return sorted(row[0] for row in answer["rows"])


def in_batches(*batches: int) -> list[int]:
    return sorted(n for batch in batches for n in rows(batch, ROWS).column("n").to_pylist())


def test_all_rows_come_with_schema_key_and_the_last_snapshot(api: TestClient, job: Job) -> None:
    answer = ask(api, job)
    assert [column["name"] for column in answer["schema"]] == ["n", "price", "name", "sent_us"]
    assert answer["key"] == {"name": "a.auction", "type": "int64"}
    assert (answer["job"], answer["job_name"]) == (job.id, "matches")
    assert numbers(answer) == in_batches(*range(BATCHES))
    assert answer["rows_given"] == BATCHES * ROWS and answer["blocks_read"] == answer["blocks_stored"] > 0
    assert (answer["truncated"], answer["stopped_by"], answer["cursor"]) == (False, None, None)
    assert answer["limits"]["rows"] == Limits().rows_default
    assert "latest event time" in answer["time"]


def test_a_job_is_found_by_its_name_too(api: TestClient, job: Job) -> None:
    assert api.post("/api/v1/queries", json={"job": job.name, "limit": 1}).json()["job"] == job.id


def test_a_query_beside_the_own_one_is_asked_with_the_longest_names_that_there_may_be(api: TestClient) -> None:
    longest = f"{'j' * 100}:{'q' * 63}"
    for name, status in ((longest, 404), (longest + "q", 422)):
        assert api.post("/api/v1/queries", json={"job": name}).status_code == status
        for what in ("results", "stream", "snapshots"):
            assert api.get(f"/api/v1/jobs/{name}/{what}").status_code == status, what
    assert frames.Subscription.model_validate({"job": longest}).job == longest


def test_a_time_range_includes_both_ends_and_reads_only_its_blocks(api: TestClient, job: Job) -> None:
    answer = ask(api, job, **{"from": 2 * SPAN_US, "to": "1970-01-01T00:00:02.999999Z"})
    assert numbers(answer) == in_batches(2)
    assert answer["blocks_read"] < answer["blocks_stored"]
    assert numbers(ask(api, job, **{"from": 2 * SPAN_US, "to": 2 * SPAN_US})) == in_batches(2)[:1]


@pytest.mark.parametrize("given", [7, "7"])
def test_a_key_is_found_in_every_snapshot(api: TestClient, job: Job, given: Any) -> None:
    answer = ask(api, job, key=given)
    assert numbers(answer) == [n for n in in_batches(*range(BATCHES)) if n % KEYS == 7]


def test_a_key_range_a_filter_and_columns_go_together(api: TestClient, job: Job) -> None:
    answer = ask(api, job, key_from=3, key_to=4, where="price > 20", select=["price", "n"])
    assert [column["name"] for column in answer["schema"]] == ["price", "n"]
    want = sorted(n for n in in_batches(*range(BATCHES)) if n % KEYS in (3, 4) and n % 100 / 4 > 20)
    assert sorted(row[1] for row in answer["rows"]) == want


@pytest.mark.parametrize("question", [{}, {"key": 7}, {"key_from": 5, "key_to": 30}, {"where": "price > 3"}])
def test_pages_are_the_whole_answer(api: TestClient, job: Job, question: dict[str, Any]) -> None:
    whole = numbers(ask(api, job, **question))
    got: list[int] = []
    cursor: str | None = None
    pages = 0
    while pages == 0 or cursor:
        answer = ask(api, job, **question, limit=37, **({"cursor": cursor} if cursor else {}))
        assert len(answer["rows"]) <= 37
        assert answer["truncated"] == (answer["cursor"] is not None)
        got += [row[0] for row in answer["rows"]]
        cursor, pages = answer["cursor"], pages + 1
    assert sorted(got) == whole and pages >= len(whole) // 37


def test_snapshots_can_be_bounded_and_an_answer_goes_on_after_the_last(api: TestClient, job: Job) -> None:
    first = ask(api, job, upto=snapshot(3))
    rest = ask(api, job, after=first["last_snapshot"])
    assert first["last_snapshot"] == snapshot(3)
    assert sorted(numbers(first) + numbers(rest)) == in_batches(*range(BATCHES))


def test_aggregates_come_in_place_of_rows(api: TestClient, job: Job) -> None:
    answer = ask(api, job, aggregate="count, sum(price)", by=["name"])
    assert [column["name"] for column in answer["schema"]] == ["name", "count", "sum_price"]
    assert sum(row[1] for row in answer["rows"]) == BATCHES * ROWS
    assert ask(api, job, aggregate="count", **{"from": SPAN_US, "to": 2 * SPAN_US - 1})["rows"] == [[ROWS]]


def test_every_format_has_the_same_rows(api: TestClient, job: Job) -> None:
    want = in_batches(*range(BATCHES))

    def get(format: str) -> bytes:
        answer = api.post("/api/v1/queries", json={"job": job.id, "format": format})
        assert answer.status_code == 200 and answer.headers["Streamjoin-Last-Snapshot"]
        assert answer.headers["Streamjoin-Results"]
        return answer.content

    assert sorted(json.loads(line)["n"] for line in get("ndjson").splitlines()) == want
    lines = get("csv").decode().splitlines()
    assert lines[0] == '"n","price","name","sent_us"'
    assert sorted(int(line.split(",")[0]) for line in lines[1:]) == want
    table = pa.ipc.open_stream(get("arrow")).read_all()
    assert sorted(table["n"].to_pylist()) == want and "__key" not in table.schema.names
    file = pq.ParquetFile(io.BytesIO(get("parquet")))
    assert sorted(file.read()["n"].to_pylist()) == want
    assert json.loads(file.metadata.metadata[META])["rows_given"] == BATCHES * ROWS


def test_where_an_answer_was_cut_off_stands_in_every_format(api: TestClient, job: Job) -> None:
    def get(format: str) -> Any:
        return api.post("/api/v1/queries", json={"job": job.id, "format": format, "limit": 5})

    cursor = get("json").json()["cursor"]
    assert get("csv").headers["Streamjoin-Cursor"] == get("csv").headers["streamjoin-cursor"] == cursor
    assert get("csv").headers["Streamjoin-Stopped-By"] == "limit"
    assert json.loads(get("ndjson").text.splitlines()[-1])["$end"]["cursor"] == cursor
    assert get("csv").text.splitlines()[-1].startswith("# cut off: ")
    reader = pa.ipc.open_stream(get("arrow").content)
    metas = [reader.read_next_batch_with_custom_metadata()[1] for _ in range(2)]
    assert json.loads(metas[-1][META])["cursor"] == cursor
    assert json.loads(pq.read_metadata(io.BytesIO(get("parquet").content)).metadata[META])["cursor"] == cursor


def test_the_twin_for_the_command_line_takes_the_format_from_the_header(api: TestClient, job: Job) -> None:
    url = f"/api/v1/jobs/{job.name}/results?key=7&select=n,name&limit=3"
    assert len(api.get(url).json()["rows"]) == 3
    assert api.get(url, headers={"Accept": "text/csv"}).text.startswith('"n","name"\n')
    lines = api.get(url + "&format=ndjson", headers={"Accept": "text/csv"}).text.splitlines()
    assert list(json.loads(lines[0])) == ["n", "name"]
    assert api.get(f"/api/v1/jobs/{job.id}/results?aggregate=count").json()["rows"] == [[BATCHES * ROWS]]
    assert api.get(f"/api/v1/jobs/{job.id}/results?from=yesterday").json()["code"] == "invalid"


@pytest.mark.parametrize(
    ("question", "status", "said"),
    [
        ({"job": "nobody"}, 404, "there is no job"),
        ({"from": 5, "to": 4}, 422, "ends before it begins"),
        ({"key_from": 5, "key_to": 4}, 422, "key range is empty"),
        ({"key": "seven"}, 422, "keys are int64"),
        ({"key": 7.5}, 422, "keys are int64"),
        ({"key": True}, 422, "keys are int64"),
        ({"key": 7, "key_from": 1}, 422, "not for both"),
        ({"cursor": "abc"}, 422, "not a cursor"),
        ({"where": "price >"}, 422, ""),
        ({"where": "prise > 1"}, 422, "prise"),
        ({"where": "(" * 5000 + "price" + ")" * 5000 + " > 1"}, 422, ""),
        ({"select": ["__key"]}, 422, "no result column"),
        ({"select": []}, 422, "select"),
        ({"limit": 0}, 422, "limit"),
        ({"limit": 10**9}, 422, "limit"),
        ({"from": "yesterday"}, 422, "is not a timestamp"),
        ({"after": "x"}, 422, "not a snapshot id"),
        ({"aggregate": "median(price)"}, 422, "not an aggregate"),
        ({"aggregate": "sum(name)"}, 422, "of numbers"),
        ({"aggregate": "count", "limit": 1}, 422, "leave select, limit and cursor out"),
        ({"format": "xml"}, 422, "format"),
        ({"jop": 1}, 422, "jop"),
        ({"timeout_s": -1}, 422, "timeout_s"),
    ],
)
def test_a_wrong_question_is_a_problem_with_the_way_out(
    api: TestClient, job: Job, question: dict[str, Any], status: int, said: str
) -> None:
    answer = api.post("/api/v1/queries", json={"job": job.id, **question})
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert said in answer.json()["detail"]
    assert str(job.id) not in answer.json()["detail"] or "jop" not in question


def test_a_mistake_in_a_condition_is_pointed_at(api: TestClient, job: Job) -> None:
    answer = api.post("/api/v1/queries", json={"job": job.id, "where": "prise > 1"}).json()
    assert answer["errors"][0]["pointer"] == "/where" and "prise" in answer["detail"]


@pytest.mark.parametrize("named", ["select", "by"])
def test_attack_a_column_is_asked_for_once(api: TestClient, job: Job, named: str) -> None:
    posted = api.post("/api/v1/queries", json={"job": job.id, named: ["n", *["price"] * 999]})
    got = api.get(f"/api/v1/jobs/{job.id}/results?{named}=n,price,price")
    told = {"pointer": f"/{named}", "detail": '"price" is given twice; ask for it once'}
    for answer in (posted, got):
        assert (answer.status_code, answer.json().get("errors")) == (422, [told]), answer.text


def test_a_cursor_of_another_question_is_refused(api: TestClient, job: Job) -> None:
    cursor = ask(api, job, limit=5)["cursor"]
    answer = api.post("/api/v1/queries", json={"job": job.id, "cursor": cursor, "where": "price > 1"})
    assert (answer.status_code, "another query" in answer.json()["detail"]) == (422, True)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff", b"[" * 10_000])
def test_what_is_no_question_at_all_is_refused(api: TestClient, body: bytes) -> None:
    answer = api.post("/api/v1/queries", content=body, headers={"content-type": "application/json"})
    assert 400 <= answer.status_code < 500 and answer.json()["code"] in ("bad_request", "invalid")


def test_a_job_without_results_says_so(api: TestClient, context: Context) -> None:
    job = add_job(context.catalog, "fresh")
    for answer in (
        api.post("/api/v1/queries", json={"job": "fresh"}),
        api.get(f"/api/v1/jobs/{job.id}/results"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
        assert "no results yet" in answer.json()["detail"] and "/" not in answer.json()["detail"]


def test_a_query_without_results_is_named_and_a_stopped_one_is_said_to_be_so(api: TestClient, context: Context) -> None:
    job = add_job(context.catalog, "mixed")
    with context.catalog.begin() as session:
        found = session.get_one(Job, job.id)
        further = {"un": {"query": "Q", "stopped": False}, "off": {"query": "Q", "stopped": True}}
        found.spec = replace(found.spec, queries=further)
        found.version += 1
    said = {name: api.post("/api/v1/queries", json={"job": f"mixed:{name}"}) for name in further}
    assert [answer.status_code for answer in said.values()] == [409, 409]
    assert said["un"].json()["detail"] == 'query "un" of job "mixed" has no results yet'
    assert said["off"].json()["detail"] == 'query "off" of job "mixed" is stopped and has no results'
    assert '"stopped": false' in said["off"].json()["hint"]


def test_results_of_another_store_file_are_not_named(api: TestClient, context: Context, settings: Settings) -> None:
    job = add_job(context.catalog, "broken")
    path = settings.job_folder(job.id) / "results.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no database, " * 100)
    answer = api.post("/api/v1/queries", json={"job": job.id})
    assert answer.status_code == 503 and answer.headers["Retry-After"]
    assert "results.db" not in answer.text and str(settings.data) not in answer.text


def test_snapshots_are_listed_newest_first_in_pages(api: TestClient, job: Job) -> None:
    url = f"/api/v1/jobs/{job.id}/snapshots"
    found: list[dict[str, Any]] = []
    page = api.get(url, params={"limit": 3})
    while True:
        found += page.json()["data"]
        if not page.json()["has_more"]:
            break
        page = api.get(page.links["next"]["url"])
    assert [one["id"] for one in found] == [snapshot(batch) for batch in reversed(range(BATCHES))]
    newest = found[0]
    assert newest["rows"] == ROWS and newest["bytes"] > 0 and newest["blocks"] > 0 and not newest["late"]
    assert newest["time_min"] == "1970-01-01T00:00:07.000000Z"
    assert api.get(url, params={"starting_after": "x"}).status_code == 422


def test_snapshots_can_be_listed_while_a_job_is_changed(api: TestClient, context: Context, settings: Settings) -> None:
    job = add_job(context.catalog, "changing")
    url = f"/api/v1/jobs/{job.id}/snapshots"

    def listed() -> list[str]:
        answer = api.get(url)
        assert answer.status_code == 200, answer.text
        return [one["id"] for one in answer.json()["data"]]

    assert listed() == []
    committer = Committer(settings, job)
    first = committer.commit()
    committer.close()
    assert listed() == [first]
    # A restart with another definition over its state takes nothing away; beginning anew does.
    for incarnation, want in ((0, [first]), (1, [])):
        with context.catalog.begin() as session:
            changed = session.get_one(Job, job.id)
            changed.spec = changed.spec.with_slots(1 + incarnation)
            changed.incarnation, changed.version = incarnation, changed.version + 1
        time.sleep(KNOWN_S)
        assert listed() == want
    committer = Committer(settings, changed)
    again = committer.commit()
    committer.close()
    assert listed() == [again]


def test_a_snapshot_with_late_results_is_marked(api: TestClient, context: Context, settings: Settings) -> None:
    job = add_job(context.catalog, "late")
    committer = Committer(settings, job)
    committer.commit(late=True)
    committer.commit()
    committer.close()
    assert [one["late"] for one in api.get("/api/v1/jobs/late/snapshots").json()["data"]] == [True, False]


def test_a_large_integer_is_a_text_and_what_is_no_number_is_counted(
    api: TestClient, context: Context, settings: Settings
) -> None:
    job = add_job(context.catalog, "exact")
    committer = Committer(settings, job)
    content = rows(0, 2).set_column(0, SCHEMA.field("n"), pa.array([2**53 + 1, 5]))
    committer.commit(content=content.set_column(1, SCHEMA.field("price"), pa.array([float("nan"), 1.5])))
    committer.close()
    answer = ask(api, job)
    assert sorted(map(str, (row[0] for row in answer["rows"]))) == ["5", str(2**53 + 1)]
    assert sorted(row[1] is None for row in answer["rows"]) == [False, True] and answer["not_finite"] == 1
    assert ask(api, job, where=f"n = {2**53 + 1}")["rows"][0][0] == str(2**53 + 1)


def test_after_a_job_began_anew_its_earlier_results_are_not_its_results(
    api: TestClient, context: Context, settings: Settings
) -> None:
    job = add_job(context.catalog, "anew")
    committer = Committer(settings, job)
    committer.commit(3)
    committer.close()
    assert len(ask(api, job)["rows"]) == 3
    with context.catalog.begin() as session:
        row = session.get(Job, job.id)
        assert row is not None
        row.incarnation, row.version = 1, 2
    assert comes_true(lambda: api.post("/api/v1/queries", json={"job": job.id}).status_code == 409, 5)


# What is read, and when reading stops: without a server.


HOLDING = Holding(1 << 20, 1 << 20, 1 << 20)


class CountedStore(SqliteStore):
    """Counts blocks, and fails on demand."""

    blocks = 0
    is_down = False

    def get_blocks(self, job: str, keys: Any) -> Any:
        if self.is_down:
            raise StoreDownError(f"{self.path} is away")
        self.blocks += len(keys)
        yield from super().get_blocks(job, keys)


class Asked:
    """An answerer over one job with many blocks, and its store."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.settings = settings_in(folder)
        app = make_app(self.settings)
        job = add_job(app.state.context.catalog)
        committer = Committer(self.settings, job)
        for _ in range(200):
            committer.commit(50)
        committer.close()
        self.store = CountedStore(dict(committer.sink.spec.settings)["path"])
        place = Place(job.id, job.name, committer.sink.spec, job.results_name)
        places: Any = type("Fixed", (), {"find": lambda self, name: place})()
        self.readers = Readers(Memory(None), lambda spec: self.store)
        self.answerer = Answerer(places, self.readers, limits, Slots(limits.answers, limits.answers), HOLDING)
        self.question = QueryIn(job=job.id, format="ndjson")


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    monkeypatch.setattr("backend.results.answers.PIECE_BYTES", 1)
    return Asked(tmp_path, Limits(answers=2))


def test_the_first_rows_leave_before_the_last_block_is_read(asked: Asked) -> None:
    running = asked.answerer.answer(asked.question)
    assert running.step()
    assert 0 < asked.store.blocks < 200
    while running.end is None:
        running.step()
    assert asked.store.blocks == 200 == running.end["blocks_read"]


def test_an_answer_that_nobody_waits_for_is_read_no_further(asked: Asked) -> None:
    running = asked.answerer.answer(asked.question)
    running.step()
    read = asked.store.blocks
    running.abandon()
    while running.step():
        pass
    assert asked.store.blocks == read
    running.close()
    running.close()
    assert asked.answerer.slots.taken == 0


def test_attack_an_answer_that_is_given_up_while_it_binds_holds_no_second_thread(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ends = threading.Event(), threading.Event()

    def bind(*given: Any) -> None:
        begun.set()
        ends.wait(60)

    monkeypatch.setattr("backend.results.answers.bound_condition", bind)
    running = asked.answerer.answer(asked.question)
    thread = threading.Thread(target=running.step, daemon=True)
    thread.start()
    assert begun.wait(60)
    running.close()  # waits for nothing, and what it holds is given back where the step ends
    assert not ends.is_set() and thread.is_alive() and asked.answerer.slots.taken == 1
    ends.set()
    thread.join(60)
    assert asked.answerer.slots.taken == 0 and running.end is None


def test_time_and_bytes_end_an_answer_and_it_says_so(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    running = asked.answerer.answer(QueryIn(job="x", where="n < 0", timeout_s=1e-6))
    body = b""
    while running.end is None:
        body += running.step()
    answer = json.loads(body)
    assert (answer["rows"], answer["truncated"], answer["stopped_by"]) == ([], True, "time")
    assert answer["limits"]["seconds"] == 1e-6
    monkeypatch.setattr("backend.results.answers.PIECE_BYTES", 1 << 16)
    small = Answerer(asked.answerer.places, asked.readers, Limits(bytes=1000), Slots(1, 1), HOLDING)
    running = small.answer(QueryIn(job="x"))
    body = b""
    while running.end is None:
        body += running.step()
    answer = json.loads(body)
    assert answer["stopped_by"] == "bytes" and 0 < answer["rows_given"] < 10_000


def test_attack_who_reads_slowly_holds_an_answer_no_longer_than_its_time(asked: Asked) -> None:
    running = asked.answerer.answer(QueryIn(job="x", format="ndjson", timeout_s=30))
    assert running.step()  # the first piece; blocks that were read are kept, and no more need be asked of the store
    running._watch.ends_s = 0.0  # time has passed
    body = b""
    while running.end is None:
        body += running.step()
    assert running.end["stopped_by"] == "time" and running.end["rows_given"] < 10_000


def test_attack_a_parquet_answer_of_wide_rows_leaves_while_it_is_read() -> None:
    writer = ParquetWriter()
    wide = pa.RecordBatch.from_pydict({"text": ["x" * 100_000] * 10})
    writer.begin(wide.schema, {})
    left = [len(writer.write(wide)) for _ in range(40)]
    assert sum(map(bool, left)) >= 2 and writer._size < 17 << 20


def test_too_many_answers_at_once_are_refused(asked: Asked) -> None:
    both = [asked.answerer.answer(asked.question) for _ in range(2)]
    with pytest.raises(Problem) as told:
        asked.answerer.answer(asked.question)
    assert told.value.code == "rate_limited" and told.value.headers == {"Retry-After": "1"}
    for running in both:
        running.close()
    asked.answerer.answer(asked.question).close()


def test_rows_of_many_small_blocks_are_written_in_one_go(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backend.results.answers.PIECE_S", 1000.0)
    written: list[int] = []

    class Counted(NdjsonWriter):
        def write(self, batch: pa.RecordBatch) -> bytes:
            written.append(batch.num_rows)
            return super().write(batch)

    running = asked.answerer.answer(QueryIn(job="x", key=7, format="ndjson"), Counted())
    body = b""
    while running.end is None:
        body += running.step()
    assert [json.loads(line)["n"] for line in body.splitlines()] == [number * 1_000_000 + 7 for number in range(200)]
    assert written == [64, 64, 64, 8]  # a row of each block


def test_what_was_found_before_a_failure_is_in_the_answer(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backend.results.answers.PIECE_S", 1000.0)
    monkeypatch.setattr("backend.results.answers.TOGETHER", 130)
    asked.readers.blocks.bytes_max = 0
    running = asked.answerer.answer(asked.question)
    body = running.step()
    assert len(body.splitlines()) == 150  # of three blocks; the fourth came with them
    asked.store.is_down = True
    while running.end is None:
        body += running.step()
    *found, end = map(json.loads, body.splitlines())
    assert len(found) == 200 and end["$end"]["stopped_by"] == "error"


def test_a_store_that_fails_before_the_first_row_is_503_and_later_stands_in_the_answer(asked: Asked) -> None:
    asked.readers.blocks.bytes_max = 0  # what is kept could be given all the same
    running = asked.answerer.answer(asked.question)
    running.step()
    asked.store.is_down = True
    rest = b""
    while running.end is None:
        rest += running.step()
    last = json.loads(rest.splitlines()[-1])["$end"]
    assert last["error"]["code"] == "unavailable" and "results.db" not in str(last)
    with pytest.raises(Problem) as told:
        asked.answerer.answer(asked.question).step()
    assert told.value.status == 503 and told.value.headers == {"Retry-After": "2"}
    with pytest.raises(Problem, match="does not answer"):
        asked.answerer.answer(QueryIn(job="x", aggregate="count")).step()


def test_an_aggregate_that_takes_too_long_says_what_to_do(asked: Asked) -> None:
    with pytest.raises(Problem, match="timeout_s") as told:
        asked.answerer.answer(QueryIn(job="x", aggregate="count", timeout_s=1e-6)).step()
    assert told.value.code == "invalid"


def test_a_block_that_was_read_is_not_read_again_and_blocks_are_bounded(asked: Asked) -> None:
    def whole() -> int:
        running = asked.answerer.answer(asked.question)
        body = b""
        while running.end is None:
            body += running.step()
        return len(body.splitlines())

    assert whole() == 10_000
    read = asked.store.blocks
    assert whole() == 10_000 and asked.store.blocks == read


def test_kept_blocks_are_bounded_and_the_last_used_stay(asked: Asked) -> None:
    with asked.readers.lent(asked.answerer.places.find("x")) as opened:
        opened.durable.refresh()
        refs = [ref for snapshot in opened.durable.snapshots() for ref in snapshot.blocks][:40]
        read = list(opened.durable.rows(refs))
    kept = Blocks(bytes_max=10 * read[0][1].nbytes)
    for ref, content in read:
        kept.put("j", ref, content)
        assert kept.get("j", refs[0]) is not None and kept.size <= kept.bytes_max
    assert kept.get("j", refs[1]) is None and kept.get("other", refs[0]) is None
    assert kept.get("j", replace(refs[0], hash_sum=1)) is None  # the same key in results that began anew


def test_a_key_that_is_nowhere_reads_only_keys(asked: Asked) -> None:
    for _ in range(2):
        running = asked.answerer.answer(QueryIn(job="x", key=10**6))
        while running.end is None:
            running.step()
        assert running.end["rows_given"] == 0


def test_readers_are_kept_and_shared_one_at_a_time(asked: Asked) -> None:
    place = asked.answerer.places.find("x")
    one, two = asked.readers.take(place), asked.readers.take(place)
    assert one is not two
    asked.readers.give(one)
    assert asked.readers.take(place) is one
    asked.readers.give(one)
    asked.readers.give(two)


def test_who_lets_go_of_an_answer_that_has_ended_stops_nobody_else(asked: Asked) -> None:
    ended = asked.answerer.answer(QueryIn(job="x", limit=1))
    while ended.end is None:
        ended.step()
    opened = asked.readers.take(asked.answerer.places.find("x"))
    assert opened is ended._opened, "it is the next one's now"
    ended.abandon()
    opened.watch.check()
    ended.close()
    opened.watch.check()
    assert sum(rows.num_rows for _, rows in opened.durable.rows(opened.durable.snapshots()[5].blocks)) == 50


def test_the_app_gives_all_readers_back(app: FastAPI, api: TestClient, job: Job) -> None:
    service = service_of(app.state.context)
    for question in ({}, {"where": "nope > 1"}, {"limit": 1}, {"job": "nobody"}):
        api.post("/api/v1/queries", json={"job": job.id, **question})
    assert service.answerer.slots.taken == 0
