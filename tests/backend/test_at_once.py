"""Short questions are answered in the event loop, where nothing is waited for; all others in a thread, and the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.api import snapshots
from backend.api.shapes import Page
from backend.api.snapshots import SnapshotOut
from backend.catalog.database import Catalog
from backend.jobs.joinfile import result_spec
from backend.problems import Problem
from backend.results import at_once, places
from backend.results.answers import Answerer, Running
from backend.results.holding import Holding
from backend.results.limits import Limits
from backend.results.places import Places
from backend.results.question import QueryIn
from backend.results.readers import Readers
from backend.results.recent import Memory
from backend.results.service import Service
from backend.results.slots import Slots
from streamjoin.results.stores.sqlite import SqliteStore
from streamjoin.results.stores.store import BlockKey, StoreDownError
from tests.backend.results_job import SPAN_US, Committer, add_job, make_app, settings_in
from tests.catalogs import migrated

SNAPSHOTS = 12
ANSWERS = 3


class Counted(SqliteStore):
    """Counts what is read but heads, and fails on demand."""

    read = 0
    is_locked = False

    def head(self, job: str) -> bytes | None:
        if self.is_locked:
            raise StoreDownError("locked")
        return super().head(job)

    def get_records(self, job: str, first: str, last: str) -> Iterator[tuple[str, bytes]]:
        self.read += 1
        return super().get_records(job, first, last)

    def get_blocks(self, job: str, keys: Any) -> Iterator[tuple[BlockKey, bytes]]:
        self.read += 1
        yield from super().get_blocks(job, keys)


class Asked:
    """An answerer over one job of a few snapshots."""

    def __init__(self, folder: Path) -> None:
        settings = settings_in(folder)
        migrated(settings)
        self.catalog = Catalog(settings.catalog)
        self.job = add_job(self.catalog)
        self.committer = Committer(settings, self.job)
        for _ in range(SNAPSHOTS):
            self.committer.commit(100)
        self.store = Counted(dict(result_spec(settings, self.job).settings)["path"])
        self.readers = Readers(Memory(None), lambda spec: self.store)
        self.answerer = Answerer(
            Places(settings, self.catalog),
            self.readers,
            Limits(),
            Slots(ANSWERS, ANSWERS),
            Holding(1 << 30, 1 << 30, 1 << 30),
        )

    def close(self) -> None:
        """Let go."""
        self.readers.close()
        self.committer.close()
        self.catalog.close()

    def question(self, **values: Any) -> QueryIn:
        """About the job."""
        return QueryIn.model_validate({"job": self.job.id, **values})

    def at_once(self, asked: QueryIn) -> bytes | None:
        """The answer, in this thread; nothing but the head may be read for it."""
        read = self.store.read
        found = self.answerer.at_once(asked)
        assert self.store.read == read
        if found is None:
            return None
        running, first = found
        return first + rest_of(running)

    def in_thread(self, asked: QueryIn) -> bytes:
        """The answer as threads give it."""
        return rest_of(self.answerer.answer(asked))


def rest_of(running: Running) -> bytes:
    body = b""
    while running.end is None:
        body += running.step()
    running.close()
    return body


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    monkeypatch.setattr(places, "KNOWN_S", 1000.0)
    found = Asked(tmp_path)
    yield found
    found.close()


SHORT: list[dict[str, Any]] = [
    {"key": 7, "limit": 5}, {"key": "7"}, {"key": 49, "select": ["n"]}, {"key": 10**6},
    {"from": 2 * SPAN_US, "to": 2 * SPAN_US + 300_000}, {"to": 100_000, "limit": 3, "format": "ndjson"},
    {"from": 10**15}, {"key": 7, "after": "1.0", "upto": "6.0", "format": "csv"}, {"limit": 1},
]  # fmt: skip


@pytest.mark.parametrize("values", SHORT)
def test_what_is_in_memory_is_answered_at_once_and_as_in_a_thread(asked: Asked, values: dict[str, Any]) -> None:
    question = asked.question(**values)
    assert asked.at_once(question) is None  # nothing is known yet
    expected = asked.in_thread(question)
    assert asked.at_once(question) == expected
    assert asked.in_thread(question) == expected


def test_attack_what_many_columns_make_long_is_answered_in_a_thread(asked: Asked) -> None:
    rows = at_once.CELLS // 2

    def question(rows: int, *columns: str) -> QueryIn:
        return asked.question(limit=rows, select=columns)

    asked.in_thread(question(rows + 1, "n", "price"))
    assert asked.at_once(question(rows + 1, "n", "price")) is None
    for short in (question(rows + 1, "n"), question(rows, "n", "price")):
        assert asked.at_once(short) == asked.in_thread(short)


def test_it_goes_on_where_an_earlier_answer_ended(asked: Asked) -> None:
    asked.in_thread(asked.question(key=7))
    begun = asked.answerer.at_once(asked.question(key=7, limit=4))
    assert begun is not None and begun[0].end is not None
    more = asked.question(key=7, limit=4, cursor=begun[0].end["cursor"])
    assert asked.at_once(more) == asked.in_thread(more)


def test_a_new_snapshot_is_read_in_a_thread_and_seen_by_the_next_answer(asked: Asked) -> None:
    question = asked.question(key=7, limit=1000)
    asked.in_thread(question)
    before = asked.at_once(question)
    asked.committer.commit(100)
    assert asked.at_once(question) is None
    after = asked.in_thread(question)
    assert before is not None and len(after) > len(before)
    assert asked.at_once(question) == after


@pytest.mark.parametrize(
    "values",
    [
        {"key": 7, "where": "n > 3"}, {"aggregate": "count"}, {"by": ["name"]}, {"key_from": 1, "limit": 1},
        {"key_to": 1, "limit": 1}, {"limit": 1, "format": "arrow"}, {"limit": 1, "format": "parquet"},
        {"from": 0, "to": 6 * SPAN_US},
    ],
)  # fmt: skip
def test_what_takes_long_is_not_answered_at_once(asked: Asked, values: dict[str, Any]) -> None:
    question = asked.question(**values)
    asked.in_thread(question)
    assert asked.at_once(question) is None
    assert asked.in_thread(question)


@pytest.mark.parametrize(("name", "value"), [("BLOCKS_READ", 2), ("BLOCKS_STORED", SNAPSHOTS - 1), ("STORES", ())])
def test_nor_what_looks_at_much(asked: Asked, monkeypatch: pytest.MonkeyPatch, name: str, value: Any) -> None:
    question = asked.question(key=7)
    asked.in_thread(question)
    assert asked.at_once(question) is not None
    monkeypatch.setattr(at_once, name, value)
    assert asked.at_once(question) is None
    assert asked.in_thread(question)  # for which nothing is kept back


def test_blocks_that_are_not_in_memory_are_read_in_a_thread(asked: Asked) -> None:
    asked.in_thread(asked.question(key=7, limit=2))
    last = asked.question(**{"from": (SNAPSHOTS - 1) * SPAN_US, "to": SNAPSHOTS * SPAN_US, "limit": 2})
    assert asked.at_once(last) is None
    expected = asked.in_thread(last)
    assert asked.at_once(last) == expected


def test_a_store_that_is_locked_is_waited_for_in_a_thread(asked: Asked) -> None:
    question = asked.question(key=7)
    asked.in_thread(question)
    asked.store.is_locked = True
    assert asked.at_once(question) is None
    with pytest.raises(Problem, match="does not answer"):
        asked.in_thread(question)


def test_what_is_wrong_with_a_question_is_said_at_once(asked: Asked) -> None:
    asked.in_thread(asked.question(key=7))
    for values, told in (({"key": "x"}, "not a key of this join"), ({"select": ["none"]}, "no result column")):
        with pytest.raises(Problem, match=told):
            asked.at_once(asked.question(**values))


def test_what_was_begun_in_vain_gives_all_back(asked: Asked) -> None:
    short, long = asked.question(key=7, limit=1), asked.question(limit=1000)
    asked.in_thread(long)
    for _ in range(ANSWERS * 3):
        assert asked.at_once(long) is None
        assert asked.at_once(short) is not None
    held = [asked.answerer.answer(long) for _ in range(ANSWERS)]
    with pytest.raises(Problem, match="answers are being read"):
        asked.at_once(short)
    for running in held:
        running.close()
    assert sum(map(len, asked.readers._idle.values())) == 1


def test_who_changed_the_job_is_heard_within_a_moment(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    question = asked.question(key=7, limit=1)
    asked.in_thread(question)
    assert asked.at_once(question) is not None
    monkeypatch.setattr(places, "KNOWN_S", 0.0)
    assert asked.at_once(question) is None


def test_the_api_wakes_no_thread_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: Any) -> None:
        raise AssertionError("a thread was asked")

    monkeypatch.setattr(places, "KNOWN_S", 1000.0)
    app = make_app(settings := settings_in(tmp_path))
    job = add_job(app.state.context.catalog)
    committer = Committer(settings, job)
    committer.commit(100)
    committer.close()
    path = f"/api/v1/jobs/{job.id}/results?key=7&limit=1"
    with TestClient(app, base_url="http://127.0.0.1") as api:
        first = api.get(path)
        monkeypatch.setattr(Service, "run", refused)
        monkeypatch.setattr(Service, "step", refused)
        again = api.get(path)
        posted = api.post("/api/v1/queries", json={"job": job.id, "key": 7, "limit": 1})
    assert first.status_code == again.status_code == posted.status_code == 200
    assert first.content == again.content == posted.content
    names = ("streamjoin-rows", "streamjoin-cursor", "streamjoin-last-snapshot", "content-type", "content-length")
    assert [first.headers[name] for name in names] == [again.headers[name] for name in names]


def test_pages_of_snapshots_are_the_same_at_once_and_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_threads: list[str] = []
    page = snapshots._page

    def counted(service: Service, id: str, limit: int, after: str | None) -> Any:
        in_threads.append(id)
        return page(service, id, limit, after)

    monkeypatch.setattr(snapshots, "_page", counted)
    monkeypatch.setattr(places, "KNOWN_S", 1000.0)
    monkeypatch.setattr(snapshots, "SHOWN_MAX", 5)
    app = make_app(settings := settings_in(tmp_path))
    job = add_job(app.state.context.catalog)
    committer = Committer(settings, job)
    ids = [committer.commit(10, late=number == 3) for number in range(8)]
    base = f"/api/v1/jobs/{job.id}/snapshots"
    asked = [base, f"{base}?limit=3", f"{base}?limit=3&starting_after={ids[5]}", f"{base}?starting_after={ids[0]}"]
    with TestClient(app, base_url="http://127.0.0.1") as api:
        assert api.get(base).status_code == 200 and len(in_threads) == 1
        here = [api.get(path) for path in asked]
        assert len(in_threads) == 1
        monkeypatch.setattr(snapshots, "_at_once", lambda *_: None)
        there = [api.get(path) for path in asked]
        assert len(in_threads) == 5
        monkeypatch.undo()
        committer.commit(10)
        assert len(api.get(base).json()["data"]) == 9  # a new one is seen
    committer.close()
    assert [answer.json() for answer in here] == [answer.json() for answer in there]
    assert [answer.headers.get("link") for answer in here] == [answer.headers.get("link") for answer in there]
    for answer in here:
        page_of = Page[SnapshotOut].model_validate(answer.json())
        assert answer.text == page_of.model_dump_json()
    assert [one["id"] for one in here[0].json()["data"]] == ids[::-1]
    assert [one["late"] for one in here[0].json()["data"]].count(True) > 0
    assert here[1].headers["link"] == f'<{base}?limit=3&starting_after={ids[5]}>; rel="next"'
    assert here[2].headers["link"] == f'<{base}?limit=3&starting_after={ids[2]}>; rel="next"'
    assert "link" not in here[0].headers
