"""Questions and tails against the real API, over results that are really committed."""

from __future__ import annotations

import asyncio
import faulthandler
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from pathlib import Path
from typing import Any, TypeVar

import pytest

from backend.catalog.database import Catalog
from backend.settings import Settings
from streamjoin.client import AsyncClient, Client, Expired, Invalid, News, NotFound
from tests.backend.live_server import LiveServer, live_settings
from tests.backend.results_job import Committer, add_job, make_app, settings_in
from tests.client.serve import Server, serve

pytestmark = pytest.mark.slow

SNAPSHOTS = 60
FOLLOW_S_MAX = 300.0

T = TypeVar("T")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_in(tmp_path)


@pytest.fixture
def results(settings: Settings, tmp_path: Path) -> Iterator[Server]:
    """The app with a job `matches` that has no results yet."""
    with serve(make_app(settings)) as server:
        yield server


def committer_of(settings: Settings) -> Committer:
    catalog = Catalog(settings.catalog)
    try:
        return Committer(settings, add_job(catalog))
    finally:
        catalog.close()


@pytest.fixture
def driver(results: Server, settings: Settings) -> Iterator[Committer]:
    """Commits the job's results."""
    driver = committer_of(settings)
    yield driver
    driver.close()


@pytest.fixture
def client(results: Server) -> Iterator[Client]:
    with Client(results.host, deadline_s=20) as client:
        yield client


def numbers(news: list[News]) -> list[int]:
    return [row["n"] for item in news for row in item]


def test_an_answer_has_all_rows_and_says_how_far_it_goes(client: Client, driver: Committer) -> None:
    ids = [driver.commit(20) for _ in range(5)]
    answer = client.query("matches")
    assert sorted(answer.to_arrow()["n"].to_pylist()) == sorted(driver.numbers)
    assert (answer.last, answer.cursor, answer.is_complete) == (ids[-1], None, True)
    assert answer.figures["blocks_read"] == 5
    assert {row["n"] for row in client.query("matches", where="n < 10", select=["n"])} == set(range(10))
    assert len(client.query("matches", key=7)) == sum(number % 50 == 7 for number in driver.numbers)
    assert list(client.query("matches", aggregate="count", after=ids[2])) == [{"count": 40}]
    assert list(client.query("matches", upto=ids[0]).to_pandas()["n"]) == list(range(20))
    assert [snapshot["id"] for snapshot in client.jobs.snapshots("matches")] == ids[::-1]


def test_an_answer_with_a_limit_goes_on_at_its_cursor(client: Client, driver: Committer) -> None:
    for _ in range(4):
        driver.commit(25)
    got, cursor = [], None
    while True:
        answer = client.query("matches", limit=30, cursor=cursor)
        got += [row["n"] for row in answer]
        cursor = answer.cursor
        if cursor is None:
            break
        assert len(answer) == 30 and answer.stopped_by == "limit"
    assert sorted(got) == sorted(driver.numbers)


def test_a_question_that_is_wrong_says_where(client: Client, driver: Committer) -> None:
    driver.commit()
    with pytest.raises(Invalid, match="prize"):
        client.query("matches", where="prize > 3")
    with pytest.raises(Invalid):
        client.query("matches", cursor="no cursor")
    with pytest.raises(NotFound):
        client.query("nothing")
    with pytest.raises(NotFound):
        next(client.tail("nothing"))
    with pytest.raises(Invalid, match="prize"):
        next(client.tail("matches", where="prize > 3"))


def test_a_tail_gets_what_is_committed_from_now_on(client: Client, driver: Committer) -> None:
    driver.commit()
    tail = client.tail("matches", select=["n"])
    first: list[News] = []
    reading = threading.Thread(target=lambda: first.append(next(tail)))
    reading.start()
    ids = []
    while reading.is_alive():
        ids.append(driver.commit(3))
        time.sleep(0.05)
    assert first[0].snapshot in ids
    begun = ids.index(first[0].snapshot)
    rest = [next(tail) for _ in ids[begun + 1 :]]
    assert [news.snapshot for news in first + rest] == ids[begun:]
    assert first[0].columns == ({"name": "n", "type": "int64"},)


def test_a_tail_begins_behind_an_answer_without_gap_or_overlap(client: Client, driver: Committer) -> None:
    for _ in range(3):
        driver.commit()
    answer = client.query("matches")
    ids = [driver.commit() for _ in range(3)]
    tail = client.tail("matches", after=answer.last)
    news = [next(tail) for _ in ids]
    assert sorted([row["n"] for row in answer] + numbers(news)) == sorted(driver.numbers)


def test_a_filter_leaves_snapshots_out_and_the_tail_still_moves_on(client: Client, driver: Committer) -> None:
    driver.commit()
    for _ in range(4):
        driver.commit()
    tail = client.tail("matches", after="oldest", where="n >= 3000000")
    assert numbers([next(tail), next(tail)]) == [*range(3_000_000, 3_000_010), *range(4_000_000, 4_000_010)]


def begin(act: Callable[[], T]) -> Future[T]:
    """Do it in a thread that nobody has to wait for."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(act())
        except BaseException as failure:
            future.set_exception(failure)

    threading.Thread(target=run, daemon=True).start()
    return future


def follow_while(
    act: Callable[[], object], host: str, count: int, slow_s: float = 0.0
) -> tuple[list[News], list[News]]:
    """What a blocking and an asynchronous tail get of `count` snapshots from the oldest on, while `act` goes on.

    Raises:
        Exception: what the first of the three that failed raised; none of them is waited for then.
    """
    got: tuple[list[News], list[News]] = ([], [])

    def block() -> None:
        with Client(host, deadline_s=60) as client:
            for news in client.tail("matches", after="oldest"):
                got[0].append(news)
                time.sleep(slow_s)
                if len(got[0]) == count:
                    return

    async def collect() -> None:
        async with AsyncClient(host, deadline_s=60) as client:
            async for news in client.tail("matches", after="oldest"):
                got[1].append(news)
                if len(got[1]) == count:
                    return

    three: list[Future[Any]] = [begin(act), begin(block), begin(lambda: asyncio.run(collect()))]
    done, still = wait(three, FOLLOW_S_MAX, FIRST_EXCEPTION)
    for each in done:
        each.result()
    if still:
        faulthandler.dump_traceback(all_threads=True)
        last = [news[-1].snapshot if news else None for news in got]
        pytest.fail(f"after {FOLLOW_S_MAX:g} s {list(map(len, got))} of {count} snapshots had come, to {last}")
    return got


@pytest.mark.soak
@pytest.mark.services
def test_tails_lose_and_repeat_nothing_while_the_api_is_killed_again_and_again(tmp_path: Path) -> None:
    settings = live_settings(tmp_path)
    server = LiveServer(settings, tmp_path / "api.log", {"heartbeat_s": 0.5})
    driver = committer_of(settings)
    ids: list[str] = []

    def commit_and_kill() -> None:
        nonlocal server
        for number in range(SNAPSHOTS):
            ids.append(driver.commit(5))
            time.sleep(0.05)
            if number % 20 == 10:
                server.kill()
                server = LiveServer(settings, tmp_path / "api.log", {"heartbeat_s": 0.5})

    try:
        for got in follow_while(commit_and_kill, server.url, SNAPSHOTS):
            assert [news.snapshot for news in got] == ids
            assert numbers(got) == driver.numbers
            assert not any(news.dropped for news in got)
    finally:
        driver.close()
        server.kill()


@pytest.mark.soak
@pytest.mark.services
def test_a_slow_reader_of_large_snapshots_gets_every_row(tmp_path: Path) -> None:
    settings = live_settings(tmp_path)
    limits = {"queue_snapshots": 2, "queue_bytes": 100_000, "part_bytes": 2_000, "snapshot_bytes": 20_000}
    server = LiveServer(settings, tmp_path / "api.log", limits)
    driver = committer_of(settings)
    try:
        for got in follow_while(lambda: [driver.commit(2_000) for _ in range(12)], server.url, 12, 0.1):
            assert sorted(numbers(got)) == sorted(driver.numbers)
            assert all(len(news.rows) == 2_000 for news in got)
    finally:
        driver.close()
        server.kill()


def test_a_tail_from_a_place_that_retention_removed_says_so(results: Server, settings: Settings) -> None:
    catalog = Catalog(settings.catalog)
    driver = Committer(settings, add_job(catalog), retain_us=1)
    catalog.close()
    first = driver.commit()
    for _ in range(5):
        time.sleep(0.01)
        driver.commit()
    with Client(results.host, deadline_s=10) as client, pytest.raises(Expired, match="no longer kept"):
        next(client.tail("matches", after=first))
    driver.close()
