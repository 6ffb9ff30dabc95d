"""Requests against a server in trouble: what is sent again, what is not, and what an error says."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from starlette.responses import JSONResponse

from streamjoin.client import (
    AnswerError,
    AsyncClient,
    ChangedMeanwhile,
    Client,
    Conflict,
    Forbidden,
    Invalid,
    NoAnswer,
    NotFound,
    RateLimited,
    StreamJoinApiError,
    Unauthenticated,
    Unavailable,
    WaitedTooLong,
)
from streamjoin.client.retry import PAUSE_S_MAX, pause_s
from streamjoin.errors import InputError
from tests.client.serve import Server
from tests.client.standin import Cut, StandIn, problem
from tests.servers.process import free_ports

pytestmark = pytest.mark.slow


def busy(retry_after: str = "0") -> object:
    return problem(503, "unavailable", "the catalog does not answer", {"Retry-After": retry_after})


def test_a_read_is_asked_again_until_it_is_answered(patient: Client, stand_in: StandIn) -> None:
    limited, proxy = problem(429, "rate_limited", "slowly", {"Retry-After": "0"}), problem(502, "x", "a proxy")
    stand_in.faults = [busy, lambda: limited, Cut, lambda: proxy]
    assert patient.streams.get("a")["version"] == 1
    assert stand_in.seen == [("GET", "/api/v1/streams/a")] * 5


def test_a_post_whose_answer_was_lost_is_done_once(patient: Client, stand_in: StandIn) -> None:
    stand_in.faults = [Cut, busy, Cut]
    assert patient.streams.create("bids", {"source": "push"})["name"] == "bids"
    assert len(stand_in.seen) == 4
    assert stand_in.made == {"bids": 1}
    patient.streams.create("bids", {"source": "push"})
    assert stand_in.made == {"bids": 2}, "another call is another request"


def test_the_same_request_that_is_still_worked_on_is_waited_for(patient: Client, stand_in: StandIn) -> None:
    stand_in.faults = [Cut, lambda: problem(409, "still_running", "it is being worked on")]
    patient.jobs.start("a")
    assert len(stand_in.seen) == 3


def seen_as(
    phase: str,
    wanted: str,
    generation: int,
    reason: str | None = None,
    *,
    batches: int = 1,
    looked: int = 0,
    version: int = 1,
) -> Callable[[], JSONResponse]:
    """A job as the platform shows it.

    Args:
        batches: the last generation that has committed one.
        looked: the one that ran last, which has found nothing to read yet; 0 if it is not known to have looked.
    """
    observed = "stopped" if (phase, generation) == ("starting", 1) else phase
    body = {"id": "job_1", "name": "j", "wanted": wanted, "observed": observed, "phase": phase, "reason": reason}
    start = {"generation": batches} if batches else None
    run = {"generation": looked or generation, "steps": {"launch": 0.1, **({"first_look": 0.1} if looked else {})}}
    told = {"generation": generation, "last_start": start, "last_run": run, "version": version}
    return lambda: JSONResponse({**body, **told})


def test_a_job_that_was_done_before_anybody_looked_has_started(patient: Client, stand_in: StandIn) -> None:
    stale, done = "reached the end", seen_as("stopped", "stopped", 2, "reached the end")
    stand_in.faults = [seen_as("starting", "running", 1, stale), seen_as("starting", "running", 2), done]
    assert patient.jobs.start("j", wait_s=3)["generation"] == 2
    stand_in.faults = [seen_as("running", "running", 1), seen_as("starting", "running", 1), done]
    assert patient.jobs.restart("j", wait_s=3)["phase"] == "stopped"
    stand_in.faults = [done]
    assert patient.jobs.wait("j", ["running"], wait_s=3, or_done=True)["phase"] == "stopped"


def test_a_job_that_is_not_to_run_any_more_is_not_waited_for(patient: Client, stand_in: StandIn) -> None:
    for reason in (None, "reached the end"):  # of the generation before
        stand_in.faults = [seen_as("starting", "running", 1, reason), seen_as("stopped", "stopped", 1, reason)]
        with pytest.raises(WaitedTooLong, match="job j is stopped and not running: it ended, or was stopped"):
            patient.jobs.start("j", wait_s=30)


def test_a_start_has_been_waited_for_once_its_first_batch_is_committed(patient: Client, stand_in: StandIn) -> None:
    begins, runs = seen_as("starting", "running", 1, batches=0), seen_as("running", "running", 2, batches=0)
    stand_in.faults = [begins, runs, runs, seen_as("running", "running", 2, batches=2)]
    assert patient.jobs.start("j", wait_s=10)["last_start"] == {"generation": 2}
    assert stand_in.faults == []
    stand_in.faults = [begins, runs, seen_as("failed", "running", 2, "a value does not fit", batches=0)]
    with pytest.raises(WaitedTooLong, match="job j failed: a value does not fit"):
        patient.jobs.start("j", wait_s=10)
    before = seen_as("running", "running", 2, batches=1)  # what another driver committed is no batch of this one
    stand_in.faults = [seen_as("running", "running", 1), before, before, before]
    with pytest.raises(WaitedTooLong, match="is running and not past its first look at what there is to read after"):
        patient.jobs.restart("j", wait_s=0.2)
    stand_in.faults = [runs]
    assert patient.jobs.wait("j", ["running"], wait_s=3)["generation"] == 2, "unless nobody asks for a batch"


def test_a_start_whose_event_is_forgotten_is_known_by_its_steps(patient: Client, stand_in: StandIn) -> None:
    def running() -> JSONResponse:
        told: dict[str, Any] = json.loads(seen_as("running", "running", 2, batches=0)().body)
        told["last_run"] = {"generation": 2, "steps": {"launch": 0.1, "first_batch": 0.9}}
        return JSONResponse(told)

    stand_in.faults = [running]
    assert patient.jobs.wait("j", ["running"], wait_s=3)["last_start"] is None
    stand_in.faults = [seen_as("starting", "running", 1, batches=0), running]
    assert patient.jobs.start("j", wait_s=1)["last_start"] is None


def test_a_start_with_nothing_to_read_is_waited_for_until_its_driver_has_looked(
    patient: Client, stand_in: StandIn
) -> None:
    begins, runs = seen_as("starting", "running", 1, batches=0), seen_as("running", "running", 2, batches=0)
    before = seen_as("running", "running", 2, batches=0, looked=1)
    stand_in.faults = [begins, before, runs, seen_as("running", "running", 2, batches=0, looked=2)]
    assert patient.jobs.start("j", wait_s=30)["generation"] == 2
    assert stand_in.faults == []
    stand_in.faults = [begins, *[runs, before] * 20]
    with pytest.raises(WaitedTooLong, match="is running and not past its first look at what there is to read after"):
        patient.jobs.start("j", wait_s=0.2)


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        (seen_as("stopped", "stopped", 1, "reached the end"), "ended, or was stopped or removed, meanwhile: reached"),
        (seen_as("failed", "running", 1, "no such file"), "job j failed: no such file"),
        (seen_as("failed", "running", 2, "no such file"), "job j failed: no such file"),
    ],
    ids=["ended", "failed", "failed with its new slots"],
)
def test_a_job_that_ends_or_fails_while_it_is_rescaled_is_not_waited_for(
    ends: Callable[[], JSONResponse], said: str, patient: Client, stand_in: StandIn
) -> None:
    stand_in.faults = [seen_as("running", "running", 1), seen_as("running", "running", 1, version=2), ends]
    with pytest.raises(WaitedTooLong, match=said):
        patient.jobs.rescale("j", 2, wait_s=30)


def test_a_job_at_rest_is_rescaled_at_once(patient: Client, stand_in: StandIn) -> None:
    stand_in.faults = [seen_as(*["stopped"] * 2, 1), *[seen_as(*["stopped"] * 2, 1, version=2)] * 2]
    assert patient.jobs.rescale("j", 2, wait_s=30)["version"] == 2


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_a_change_that_may_have_been_done_is_not_sent_again(method: str, patient: Client, stand_in: StandIn) -> None:
    stand_in.faults = [Cut]
    with pytest.raises(NoAnswer, match="does not answer"):
        patient.call(method, "/api/v1/streams/a")
    assert len(stand_in.seen) == 1


@pytest.mark.parametrize("path", ["api-keys", "sessions", "api-keys/", "sessions?x=1", "%61pi-keys"])
def test_a_key_or_login_whose_answer_was_lost_is_not_made_twice(path: str, patient: Client, stand_in: StandIn) -> None:
    stand_in.faults = [Cut]
    with pytest.raises(NoAnswer, match="does not answer"):
        patient.call("post", f"/api/v1/{path}", json={"name": "ci"})
    assert len(stand_in.seen) == 1


def test_another_post_of_any_route_is_done_once(patient: Client, stand_in: StandIn) -> None:
    stand_in.faults = [Cut, busy]
    patient.call("POST", "/api/v1/streams", json={"name": "bids", "spec": {"source": "push"}})
    assert (len(stand_in.seen), stand_in.made) == (3, {"bids": 1})


def test_rows_are_sent_again_only_under_a_name_of_their_own(patient: Client, stand_in: StandIn) -> None:
    stand_in.faults = [Cut]
    with pytest.raises(NoAnswer):
        patient.streams.push("s", [{"n": 1}])
    stand_in.faults = [Cut]
    patient.streams.push("s", [{"n": 1}], batch_id="b1")
    assert len(stand_in.seen) == 3


def test_rows_are_pushed_with_all_digits_of_their_numbers(patient: Client, stand_in: StandIn) -> None:
    price = "12345678901234567890.123456789"
    rows = [{"n": 1, "a": {"p": [Decimal(price)]}}, f'{{"p":{price}}}\n', f'{{"p": {price}}}'.encode()]
    rows += [{"p": Decimal("1E+3"), "text": f'"{price}"'}]
    patient.streams.push("s", rows)
    assert stand_in.bodies[-1].decode().splitlines() == [
        f'{{"n": 1, "a": {{"p": [{price}]}}}}', f'{{"p":{price}}}', f'{{"p": {price}}}',
        f'{{"p": 1000, "text": "\\"{price}\\""}}',
    ]  # fmt: skip
    for wrong, said in (
        ([{"p": Decimal("NaN")}], "no number in JSON"), ([{"p": {1}}], "of type set"), (['{"n":\n1}'], "one line"),
        ('{"n": 1}', "a list"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=said):
            patient.streams.push("s", wrong)
    assert len(stand_in.seen) == 1


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (401, "unauthenticated", Unauthenticated), (403, "forbidden", Forbidden), (404, "not_found", NotFound),
        (409, "conflict", Conflict), (412, "changed_meanwhile", ChangedMeanwhile), (422, "invalid", Invalid),
        (413, "too_large", Invalid), (500, "internal", StreamJoinApiError),
    ],
)  # fmt: skip
def test_a_refusal_is_a_named_error_and_final(
    status: int, code: str, kind: type[StreamJoinApiError], patient: Client, stand_in: StandIn
) -> None:
    stand_in.faults = [lambda: problem(status, code, "no such luck", request_id="req_1", hint="try less")]
    with pytest.raises(kind) as caught:
        patient.jobs.get("a")
    error = caught.value
    assert type(error) is kind
    assert (error.status, error.code, error.request_id) == (status, code, "req_1")
    assert "no such luck" in str(error) and "try less" in str(error)
    assert len(stand_in.seen) == 1


def test_a_wrong_request_is_wrong_input_and_says_where(patient: Client, stand_in: StandIn) -> None:
    places = [
        {"pointer": "/query", "detail": "no such stream", "span": {"line": 1, "column": 8}},
        {"pointer": "/run/slots", "detail": "is not a number"},
    ]
    stand_in.faults = [lambda: problem(422, "invalid_query", "the query is wrong", errors=places)]
    with pytest.raises(InputError) as caught:
        patient.jobs.create("j", "SELECT")
    assert isinstance(caught.value, Invalid)
    assert caught.value.errors == places
    assert "/query, line 1, column 8: no such stream" in str(caught.value)
    assert "/run/slots: is not a number" in str(caught.value)


def test_the_deadline_ends_all_attempts(server: Server, stand_in: StandIn) -> None:
    stand_in.faults = [busy] * 1000
    begun_s = time.monotonic()
    # The last attempt may have no time left to be answered in.
    with Client(server.host, deadline_s=3) as client, pytest.raises((Unavailable, NoAnswer)) as ended:
        client.jobs.get("a")
    assert isinstance(ended.value, NoAnswer) or "catalog" in str(ended.value)
    assert time.monotonic() - begun_s < 60
    assert len(stand_in.seen) > 1


def test_nobody_waits_longer_than_the_deadline_however_long_a_server_asks_for(
    patient: Client, stand_in: StandIn
) -> None:
    stand_in.faults = [lambda: problem(429, "rate_limited", "too many", {"Retry-After": "3600"})]
    begun_s = time.monotonic()
    with pytest.raises(RateLimited):
        patient.jobs.get("a")
    assert time.monotonic() - begun_s < 4


def test_a_host_where_nobody_listens_is_named_with_the_way_out() -> None:
    (port,) = free_ports(1)
    with Client(f"http://127.0.0.1:{port}", deadline_s=0.5) as client, pytest.raises(NoAnswer) as caught:
        client.jobs.get("a")
    assert f"127.0.0.1:{port} does not answer after" in str(caught.value)
    assert all(way in str(caught.value) for way in ("--host", "STREAMJOIN_HOST", "STREAMJOIN_PORT"))
    assert caught.value.status == 0


def test_a_server_that_comes_back_is_reached_again(server: Server, stand_in: StandIn) -> None:
    with Client(server.host, deadline_s=20) as client:
        client.jobs.get("a")
        server.stop()

        async def ask() -> dict[str, object]:
            async with AsyncClient(server.host, deadline_s=20) as other:
                asked = asyncio.create_task(other.jobs.get("a"))  # type: ignore[arg-type]
                await asyncio.sleep(0.3)
                await asyncio.to_thread(server.start)
                return await asked

        assert asyncio.run(ask())["version"] == 1
        assert client.jobs.get("a")["version"] == 1, "a pooled connection that died is replaced"


def test_an_answer_that_is_no_json_is_an_error_with_a_name(patient: Client, stand_in: StandIn) -> None:
    from starlette.responses import HTMLResponse

    stand_in.faults = [lambda: HTMLResponse("<h1>Welcome to some proxy</h1>")]
    with pytest.raises(AnswerError, match="not JSON"):
        patient.jobs.get("a")
    stand_in.faults = [lambda: HTMLResponse("<h1>teapot</h1>", 418)]
    with pytest.raises(StreamJoinApiError, match="418 and no problem document"):
        patient.jobs.get("a")
    with pytest.raises(AnswerError, match="no list"):
        next(patient.jobs.list())


def test_the_key_goes_with_every_request_and_into_no_message(patient: Client, stand_in: StandIn) -> None:
    stand_in.faults = [lambda: problem(401, "unauthenticated", "the key was revoked")]
    with pytest.raises(Unauthenticated) as caught:
        patient.jobs.get("a")
    assert stand_in.authorizations == ["Bearer sj_key"]
    assert "sj_key" not in str(caught.value) + repr(vars(caught.value))


@pytest.mark.parametrize(
    ("given", "host"),
    [
        ("https://join.example.org/", "https://join.example.org"),
        ("join.example.org:8443", "http://join.example.org:8443"),
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("::1", "http://[::1]:8000"),
    ],
)
def test_the_host_may_be_the_environments(given: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMJOIN_HOST", given)
    with Client() as client:
        assert client.host == host


def test_the_port_alone_is_one_of_this_machine_and_a_host_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMJOIN_PORT", "8123")
    for host, expected in (
        (None, "http://127.0.0.1:8123"), ("", "http://127.0.0.1:8123"),
        ("10.0.0.1", "http://10.0.0.1:8123"), ("http://10.0.0.1:9", "http://10.0.0.1:9"),
    ):  # fmt: skip
        if host is None:
            monkeypatch.delenv("STREAMJOIN_HOST", raising=False)
        else:
            monkeypatch.setenv("STREAMJOIN_HOST", host)
        with Client() as client:
            assert client.host == expected
    with Client("http://127.0.0.1:7") as client:
        assert client.host == "http://127.0.0.1:7"


@pytest.mark.parametrize("given", ["ftp://x", "http://", "http://a b", "://x"])
def test_a_host_that_is_none_is_wrong_input(given: str) -> None:
    with pytest.raises(InputError, match="STREAMJOIN_HOST"):
        Client(given)


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel"])
def test_a_key_that_cannot_be_one_is_wrong_input_and_not_shown(key: str) -> None:
    with pytest.raises(InputError) as caught:
        Client(api_key=key)
    assert key not in str(caught.value)


@pytest.mark.parametrize("name", ["../users", "a/b", "ü %2e", "?x=1#y"])
def test_a_name_never_becomes_another_path(name: str, patient: Client, stand_in: StandIn) -> None:
    patient.streams.get(name)
    assert stand_in.seen[-1][1].startswith("/api/v1/streams/")


def test_an_empty_name_is_wrong_input(patient: Client) -> None:
    with pytest.raises(InputError, match="must not be empty"):
        patient.streams.delete("")


def test_an_answer_comes_as_arrow_with_its_figures(patient: Client, stand_in: StandIn) -> None:
    stand_in.snapshots = [1, 2, 3]
    stand_in.faults = [Cut]
    answer = patient.query("j", key=1)
    assert answer.to_arrow().to_pydict() == {"n": [1, 2, 3]}
    assert list(answer) == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert len(answer) == 3
    assert list(answer.to_pandas()["n"]) == [1, 2, 3]
    assert (answer.last, answer.cursor, answer.is_complete) == ("9.0", None, True)
    assert answer.figures["blocks_read"] == 2


def test_an_answer_that_takes_long_is_waited_for(server: Server, stand_in: StandIn) -> None:
    def slowly() -> None:
        time.sleep(1.5)

    stand_in.snapshots, stand_in.truncated, stand_in.last_word = [1, 2, 3], {1}, "deleted"
    stand_in.faults = [slowly, slowly, slowly]
    with Client(server.host, timeout_s=0.5, deadline_s=1) as client:
        assert len(client.query("j")) == len(client.query("j", timeout_s=2)) == 3
        assert [asked.get("timeout_s") for asked in stand_in.asked] == [None, 2]
        assert next(iter(client.tail("j", after="0.0"))).rows == [[10], [11]], "a large snapshot is asked for"


def test_all_pages_of_an_answer_are_fetched(patient: Client, stand_in: StandIn) -> None:
    stand_in.snapshots, stand_in.page_rows = list(range(10)), 4
    stand_in.faults = [None, Cut]
    answer = patient.query("j", where="n >= 0")
    assert answer.to_arrow().to_pydict() == {"n": list(range(10))}
    assert answer.is_complete
    assert [asked.get("cursor") for asked in stand_in.asked] == [None, "4", "8"]
    assert answer.figures["blocks_read"] == 6


def test_a_limit_holds_over_pages_and_leaves_a_cursor(patient: Client, stand_in: StandIn) -> None:
    stand_in.snapshots, stand_in.page_rows = list(range(20)), 4
    answer = patient.query("j", limit=10)
    assert answer.to_arrow().to_pydict() == {"n": list(range(10))}
    assert (answer.cursor, answer.stopped_by) == ("10", "limit")
    assert [asked["limit"] for asked in stand_in.asked] == [10, 6, 2]
    rest = patient.query("j", cursor=answer.cursor)
    assert rest.to_arrow().to_pydict() == {"n": list(range(10, 20))}


def test_an_answer_without_its_end_is_not_taken_for_a_whole_one(patient: Client, stand_in: StandIn) -> None:
    stand_in.snapshots, stand_in.breaks_off = [1, 2], True
    with pytest.raises(AnswerError, match="broke off"):
        patient.query("j")


def test_an_answer_that_is_no_arrow_is_an_error_with_a_name(patient: Client, stand_in: StandIn) -> None:
    from starlette.responses import PlainTextResponse

    stand_in.faults = [lambda: PlainTextResponse("id,n\n1,2\n")]
    with pytest.raises(AnswerError, match="no Arrow stream"):
        patient.query("j")


def test_both_clients_have_the_same_methods() -> None:
    for name in ("streams", "jobs"):
        one, other = getattr(Client("http://x"), name), getattr(AsyncClient("http://x"), name)
        assert dir(one) == dir(other)
        for method in dir(one):
            if not method.startswith("_"):
                assert getattr(one, method).__doc__ == getattr(other, method).__doc__ != None  # noqa: E711


def test_pauses_grow_and_are_random() -> None:
    assert all(0.05 <= pause_s(0) <= 0.1 for _ in range(100))
    assert all(pause_s(attempt) <= PAUSE_S_MAX for attempt in range(2000))
    assert len({pause_s(3) for _ in range(20)}) > 1
    assert 7 <= pause_s(0, "7") < 7.2
