"""A tail loses nothing and repeats nothing, whatever happens to its connection."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from starlette.websockets import WebSocket

from streamjoin.client import (
    AnswerError,
    AsyncClient,
    Client,
    Conflict,
    Expired,
    News,
    NoAnswer,
    NotFound,
    Unauthenticated,
)
from tests.client.serve import Server
from tests.client.standin import StandIn
from tests.servers.process import comes_true

pytestmark = pytest.mark.slow


async def close_1012(socket: WebSocket) -> None:
    await socket.close(1012, "the server restarts")


async def close_1013(socket: WebSocket) -> None:
    await socket.close(1013, "too slow")


async def fail(socket: WebSocket) -> None:
    raise ConnectionAbortedError("a mistake in the middle")


async def say_unavailable(socket: WebSocket) -> None:
    body = {"status": 503, "code": "unavailable", "detail": "the store does not answer"}
    await socket.send_json({"type": "error", "id": "1", "payload": body})
    await socket.send_json({"type": "complete", "id": "1", "payload": {"reason": "failed"}})


CUTS: list[Callable[[WebSocket], Any]] = [close_1012, close_1013, fail, say_unavailable]


def ids(news: list[News]) -> list[str]:
    return [item.snapshot for item in news]


def expected(last: int) -> list[str]:
    return [f"{number}.0" for number in range(1, last + 1)]


def test_every_snapshot_comes_once_with_its_rows(patient: Client, stand_in: StandIn) -> None:
    stand_in.snapshots, stand_in.last_word = [1, 2, 3], "deleted"
    news = list(patient.tail("j", after="oldest", where="n > 7", select=["n"]))
    assert ids(news) == expected(3)
    assert [list(item) for item in news[:2]] == [[{"n": 10}, {"n": 11}], [{"n": 20}, {"n": 21}]]
    assert news[0].columns == ({"name": "n", "type": "int64"},)
    asked = {"job": "j", "where": "n > 7", "select": ["n"], "from": "oldest", "backpressure": "disconnect"}
    assert stand_in.subscribed == [asked]


@pytest.mark.parametrize("cut", CUTS)
def test_a_tail_goes_on_where_its_connection_ended(
    cut: Callable[[WebSocket], Any], patient: Client, stand_in: StandIn
) -> None:
    stand_in.snapshots, stand_in.last_word = list(range(1, 11)), "deleted"
    stand_in.cuts = [(0, cut), (1, cut), (4, cut), (2, cut)]
    assert ids(list(patient.tail("j", after="oldest"))) == expected(10)
    assert [asked["from"] for asked in stand_in.subscribed] == ["oldest", "oldest", "1.0", "5.0", "7.0"]


def test_the_asynchronous_tail_goes_on_as_well(server: Server, stand_in: StandIn) -> None:
    stand_in.snapshots, stand_in.last_word = list(range(1, 11)), "deleted"
    stand_in.cuts = [(2, cut) for cut in CUTS]

    async def collect() -> list[News]:
        async with AsyncClient(server.host, deadline_s=5) as client:
            return [news async for news in client.tail("j", after="oldest")]

    assert ids(asyncio.run(collect())) == expected(10)


def test_a_tail_survives_a_restart_of_the_server(server: Server, stand_in: StandIn) -> None:
    stand_in.snapshots = [1, 2]
    with Client(server.host, deadline_s=20) as client:
        tail = client.tail("j", after="oldest")
        got = [next(tail), next(tail)]
        server.stop()
        stand_in.snapshots += [3, 4]
        starting = threading.Timer(0.5, server.start)
        starting.start()
        got += [next(tail), next(tail)]
        starting.join()
        tail.close()  # type: ignore[attr-defined]
    assert ids(got) == expected(4)


@contextmanager
def once_subscribed(stand_in: StandIn, act: Callable[[], None]) -> Iterator[None]:
    """Do something in another thread, a moment after somebody has subscribed."""

    def run() -> None:
        assert comes_true(lambda: bool(stand_in.subscribed), 60)
        time.sleep(0.2)
        act()

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join()


def test_without_a_place_to_begin_only_what_is_new_comes(patient: Client, stand_in: StandIn) -> None:
    stand_in.snapshots = [1, 2, 3]
    stand_in.cuts = [(0, close_1012)]

    def commit() -> None:
        stand_in.snapshots.append(4)

    tail = patient.tail("j")
    with once_subscribed(stand_in, commit):
        assert next(tail).snapshot == "4.0"
    assert [asked["from"] for asked in stand_in.subscribed] == ["now", "3.0"]


def test_of_a_job_without_results_the_first_one_is_new(patient: Client, stand_in: StandIn) -> None:
    tail = patient.tail("j")
    with once_subscribed(stand_in, lambda: stand_in.snapshots.append(1)):
        assert next(tail).snapshot == "1.0"


def test_what_a_slow_reader_was_spared_is_asked_for_again(patient: Client, stand_in: StandIn) -> None:
    stand_in.snapshots, stand_in.last_word = list(range(1, 8)), "deleted"
    stand_in.drop_after = [3]
    assert ids(list(patient.tail("j", after="oldest"))) == expected(7)
    assert [asked["from"] for asked in stand_in.subscribed] == ["oldest", "3.0"]


def test_a_reader_that_allows_it_is_told_what_was_left_out(patient: Client, stand_in: StandIn) -> None:
    stand_in.snapshots, stand_in.last_word = list(range(1, 8)), "deleted"
    stand_in.drop_after = [3]
    news = list(patient.tail("j", after="oldest", skip=True))
    assert ids(news) == ["1.0", "2.0", "3.0", "5.0", "6.0", "7.0"]
    assert [item.dropped for item in news] == [0, 0, 0, 1, 0, 0]


def test_a_slow_reader_gets_everything(patient: Client, stand_in: StandIn) -> None:
    stand_in.snapshots, stand_in.last_word = list(range(1, 200)), "deleted"
    got = []
    for news in patient.tail("j", after="oldest"):
        got.append(news)
        if len(got) % 50 == 0:
            time.sleep(0.1)
    assert ids(got) == expected(199)


def test_a_reader_that_was_busy_for_longer_than_the_deadline_goes_on(server: Server, stand_in: StandIn) -> None:
    stand_in.snapshots, stand_in.last_word = [1, 2, 3], "deleted"
    stand_in.cuts = [(1, close_1012)]
    got = []
    with Client(server.host, deadline_s=0.5) as client:
        for news in client.tail("j", after="oldest"):
            got.append(news)
            time.sleep(1)
    assert ids(got) == expected(3)


def test_a_key_that_opens_nothing_ends_the_tail(patient: Client, stand_in: StandIn) -> None:
    stand_in.refuse = 4401
    with pytest.raises(Unauthenticated):
        next(patient.tail("j", after="oldest"))


def test_a_job_that_is_not_there_ends_the_tail(patient: Client, stand_in: StandIn) -> None:
    async def say_not_found(socket: WebSocket) -> None:
        body = {"status": 404, "code": "not_found", "detail": 'there is no job "j"'}
        await socket.send_json({"type": "error", "id": "1", "payload": body})
        await socket.send_json({"type": "complete", "id": "1", "payload": {"reason": "failed"}})

    stand_in.cuts, stand_in.snapshots = [(0, say_not_found)], [1]
    with pytest.raises(NotFound, match='no job "j"'):
        next(patient.tail("j", after="oldest"))


def test_a_snapshot_in_several_frames_comes_once_and_whole(patient: Client, stand_in: StandIn) -> None:
    stand_in.snapshots, stand_in.last_word = list(range(1, 8)), "deleted"
    stand_in.in_parts = {2, 5}
    stand_in.cuts = [(1.5, close_1012), (3.5, fail)]
    news = list(patient.tail("j", after="oldest"))
    assert ids(news) == expected(7)
    assert [item.rows for item in news] == [[[n * 10], [n * 10 + 1]] for n in range(1, 8)]
    assert [asked["from"] for asked in stand_in.subscribed] == ["oldest", "1.0", "4.0"]


def test_the_rest_of_a_snapshot_that_is_too_large_is_fetched(patient: Client, stand_in: StandIn) -> None:
    stand_in.snapshots, stand_in.last_word = list(range(1, 5)), "deleted"
    stand_in.truncated = {3}
    news = list(patient.tail("j", after="1.0", where="n > 0"))
    assert [item.rows for item in news] == [[[n * 10], [n * 10 + 1]] for n in range(2, 5)]
    question = {"job": "j", "where": "n > 0", "after": "2.0", "upto": "3.0", "format": "json"}
    assert stand_in.asked == [question, {**question, "cursor": "1"}]


@pytest.mark.parametrize("in_time", [1, 2, 3])
def test_the_rest_of_a_snapshot_that_is_read_slowly_is_fetched_in_smaller_pages(
    in_time: int, patient: Client, stand_in: StandIn
) -> None:
    stand_in.snapshots, stand_in.last_word = [1, 2, 3], "deleted"
    stand_in.truncated, stand_in.in_time = {3}, in_time
    if in_time == 1:  # a half of it is nothing
        with pytest.raises(AnswerError, match=r"not one row of snapshot 3\.0 came in time"):
            list(patient.tail("j", after="2.0"))
        return
    assert [item.rows for item in patient.tail("j", after="2.0")] == [[[30], [31]]]


def test_a_tail_whose_place_is_no_longer_kept_says_so(patient: Client, stand_in: StandIn) -> None:
    stand_in.snapshots, stand_in.last_word = [5], "resync"
    tail = patient.tail("j", after="4.0")
    assert next(tail).snapshot == "5.0"
    with pytest.raises(Expired, match=r"follows snapshot 5\.0 of j is no longer kept"):
        next(tail)


def test_after_a_job_began_anew_its_new_results_follow(patient: Client, stand_in: StandIn) -> None:
    stand_in.snapshots, stand_in.last_word = [1, 2], "deleted"
    stand_in.last_words = ["restarted"]
    assert ids(list(patient.tail("j", after="1.0"))) == ["2.0", "1.0", "2.0"]
    assert [asked["from"] for asked in stand_in.subscribed] == ["1.0", "oldest"]


ELSEWHERE = {"status": 409, "code": "conflict", "subcode": "other_results", "detail": "snapshot 2.0 is older than all"}


def test_attack_after_a_job_began_anew_while_nobody_listened_its_new_results_follow(
    patient: Client, stand_in: StandIn
) -> None:
    stand_in.snapshots, stand_in.errors = [1, 2], [ELSEWHERE]
    stand_in.last_words, stand_in.last_word = ["resync"], "deleted"
    assert ids(list(patient.tail("j", after="1.0"))) == ["2.0", "1.0", "2.0"]
    assert [asked["from"] for asked in stand_in.subscribed] == ["1.0", "oldest"]


def test_who_goes_on_says_which_results_the_place_is_of(patient: Client, stand_in: StandIn) -> None:
    stand_in.snapshots, stand_in.results = [1, 2, 3], "j-1"
    stand_in.last_words, stand_in.last_word = ["closing", "restarted"], "deleted"
    list(patient.tail("j", after="1.0"))
    assert [(asked["from"], asked.get("results")) for asked in stand_in.subscribed] == [
        ("1.0", None), ("3.0", "j-1"), ("oldest", None),
    ]  # fmt: skip


def test_a_place_is_of_the_results_that_are_named(patient: Client, stand_in: StandIn) -> None:
    stand_in.snapshots, stand_in.results, stand_in.last_word = [1, 2, 3], "j-1", "deleted"
    answer = patient.query("j")
    assert answer.results == "j-1"
    news = list(patient.tail("j", after="1.0", results=answer.results))
    assert [(item.snapshot, item.results) for item in news] == [("2.0", "j-1"), ("3.0", "j-1")]
    assert [(asked["from"], asked.get("results")) for asked in stand_in.subscribed] == [("1.0", "j-1")]
    list(patient.tail("j", after="1.0"))
    assert "results" not in stand_in.subscribed[-1]


def test_attack_a_place_of_the_callers_own_in_other_results_is_refused(patient: Client, stand_in: StandIn) -> None:
    stand_in.errors, stand_in.last_word = [ELSEWHERE], "resync"
    with pytest.raises(Conflict, match="is older than all"):
        next(patient.tail("j", after="2.0"))


def test_a_tail_that_hears_nothing_gives_up_at_the_deadline(stand_in: StandIn, server: Server) -> None:
    stand_in.refuse = 1013
    begun_s = time.monotonic()
    with Client(server.host, deadline_s=0.5) as client, pytest.raises(NoAnswer, match=r"not heard of for 0\.5 s"):
        next(client.tail("j", after="oldest"))
    assert time.monotonic() - begun_s < 5


def test_leaving_a_tail_closes_its_connection(server: Server, stand_in: StandIn) -> None:
    stand_in.snapshots = [1]

    async def leave() -> None:
        async with AsyncClient(server.host) as client:
            tail = client.tail("j", after="oldest")
            async for _ in tail:
                break
            await tail.aclose()  # type: ignore[attr-defined]

    asyncio.run(leave())
    assert comes_true(lambda: not server.server.server_state.connections, 60)
