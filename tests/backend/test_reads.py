"""Routes that are read often: they answer as FastAPI's own would, and do little twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, cast

import pytest
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi import Path as InPath
from fastapi.testclient import TestClient
from starlette.routing import Match

from backend import problems
from backend.api.reads import ReadRoute, ReadsFirst
from backend.api.shapes import Limit, StartingAfter
from backend.auth.actor import Actor, Viewer
from backend.catalog.database import Catalog
from backend.context import Context, InContext
from backend.jobs.joinfile import result_spec
from backend.results import recent
from backend.results.blocks import Blocks, KeepingReader
from backend.results.recent import Memory
from backend.settings import Settings
from streamjoin.results.stores.redis import RedisStore
from streamjoin.results.stores.store import BlockKey, Store
from tests.backend.matrix import add_person, new_app
from tests.backend.results_job import Committer, add_job, settings_in
from tests.catalogs import migrated


async def shown(
    context: InContext,
    actor: Viewer,
    request: Request,
    id: Annotated[str, InPath(max_length=5)],
    limit: Limit = 50,
    starting_after: StartingAfter = None,
) -> Response:
    """What came in."""
    assert isinstance(context, Context)
    assert isinstance(actor, Actor)
    return Response(f"{request.url.path} {actor.name} {id!r} {limit!r} {starting_after!r}", media_type="text/plain")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """The same endpoint twice: below /usual as FastAPI does it, below /read as a `ReadRoute`."""
    app = FastAPI()
    settings = Settings(data=tmp_path_factory.mktemp("data"), auth="off")
    app.state.context = Context(settings, Catalog(settings.catalog))
    problems.install(app)
    for prefix, kind in (("/usual", {}), ("/read", {"route_class": ReadRoute})):
        router = APIRouter(prefix=prefix, **cast(Any, kind))
        router.add_api_route("/{id}", shown, methods=["GET"], response_class=Response)
        app.include_router(router)
    app.router.routes.insert(0, ReadsFirst([cast(ReadRoute, router.routes[0])]))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client
    app.state.context.catalog.close()


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ("a", 200), ("a?limit=7", 200), ("a?limit=007", 200), ("a?limit=3&limit=4", 200),
        ("a?starting_after=", 200), ("a?starting_after=x%20y", 200), ("%C3%A9?limit=200", 200),
        ("a?limit=", 422), ("a?limit=x", 422), ("a?limit=0", 422), ("a?limit=201", 422), ("a?limit=1.5", 422),
        ("sixsix", 422), ("sixsix?limit=x&starting_after=" + "y" * 101, 422),
    ],
)  # fmt: skip
def test_it_answers_as_any_other_route(both: TestClient, asked: str, status: int) -> None:
    usual, read = both.get(f"/usual/{asked}"), both.get(f"/read/{asked}")
    assert usual.status_code == read.status_code == status
    assert usual.text.replace("/usual", "/read") == read.text
    assert usual.headers["content-type"] == read.headers["content-type"]


def test_reads_are_found_before_fastapi_looks(both: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    async def looked(*_: Any) -> None:
        raise AssertionError("FastAPI looked through its routes")

    monkeypatch.setattr(ReadRoute, "handle", looked)
    assert both.get("/read/a").status_code == 200
    for method in ("post", "head", "delete"):  # which it leaves to FastAPI
        with pytest.raises(AssertionError):
            getattr(both, method)("/read/a")
    assert both.get("/read/a/b").status_code == both.get("/read/").status_code == 404


@pytest.mark.parametrize("method", ["POST", "HEAD", "DELETE", "OPTIONS", "PATCH"])
def test_other_methods_are_refused_as_anywhere(both: TestClient, method: str) -> None:
    usual, read = both.request(method, "/usual/a"), both.request(method, "/read/a")
    assert usual.status_code == read.status_code == 405
    assert usual.headers["allow"] == read.headers["allow"] == "GET"


def test_the_platforms_reads_are_among_them(tmp_path: Path) -> None:
    app = new_app(Settings(data=tmp_path, redis_url="redis://127.0.0.1:1/0", auth="off"))
    first = app.router.routes[0]
    assert isinstance(first, ReadsFirst)
    for path in ("/api/v1/jobs/a/results", "/api/v1/jobs/a:b/snapshots"):
        for method, match in (("GET", Match.FULL), ("POST", Match.NONE), ("HEAD", Match.NONE)):
            scope = {"type": "http", "method": method, "path": path, "root_path": ""}
            assert first.matches(scope)[0] is match
    assert first.matches({"type": "websocket", "path": "/api/v1/jobs/a/results"})[0] is Match.NONE
    assert first.matches({"type": "http", "method": "GET", "path": "/api/v1/jobs/a", "root_path": ""})[0] is Match.NONE


def test_it_is_described_as_any_other_route(both: TestClient) -> None:
    paths = both.get("/openapi.json").json()["paths"]
    usual, read = (paths[f"/{prefix}/{{id}}"]["get"] for prefix in ("usual", "read"))
    assert [parameter["name"] for parameter in read["parameters"]] == ["id", "limit", "starting_after"]
    assert {**read, "operationId": ""} == {**usual, "operationId": ""}


def test_it_takes_nothing_that_it_would_not_give() -> None:
    async def wrong(body: dict[str, Any]) -> Response:
        return Response()

    with pytest.raises(TypeError, match="wrong: a read has no argument such as body"):
        APIRouter(route_class=ReadRoute).add_api_route("/x", wrong, methods=["GET"], response_class=Response)


def test_who_may_not_ask_is_told_so_first(tmp_path: Path) -> None:
    app = new_app(Settings(data=tmp_path, redis_url="redis://127.0.0.1:1/0", auth="on"))
    person = add_person(app.state.context, "ann", "viewer")
    with TestClient(app, base_url="http://127.0.0.1") as api:
        for path in ("snapshots?limit=0", "results?limit=0"):
            assert api.get(f"/api/v1/jobs/none/{path}").status_code == 401
            assert api.get(f"/api/v1/jobs/none/{path}", headers=person.headers).status_code == 422
            assert api.post(f"/api/v1/jobs/none/{path}", headers=person.headers).status_code == 405


class HeadOnly:
    """A memory that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.there: set[str] = set()

    def head(self, job: str) -> bytes | None:
        self.asked.append(job)
        return b"{}" if job in self.there else None


def test_a_job_that_the_memory_lacks_is_asked_for_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    store = HeadOnly()
    store.there.add("has")
    memory = Memory(cast(RedisStore, store))
    assert [memory.has("lacks") for _ in range(5)] == [False] * 5
    assert [memory.has("has") for _ in range(2)] == [True] * 2
    assert store.asked == ["lacks", "has", "has"]
    monkeypatch.setattr(recent, "KNOWN_MAX", 1)
    store.there.add("lacks")
    assert not memory.has("another")  # what was known is let go, so that it does not grow without end
    assert memory.has("lacks")
    monkeypatch.setattr(recent, "ABSENT_S", 0.0)
    memory = Memory(cast(RedisStore, store))
    assert not memory.has("third")
    store.there.add("third")
    assert memory.has("third")


class Counting:
    """A store that counts the blocks it was asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.blocks = 0

    def get_blocks(self, job: str, keys: Sequence[BlockKey]) -> Iterator[tuple[BlockKey, bytes]]:
        self.blocks += len(keys)
        yield from self._store.get_blocks(job, keys)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def test_who_has_enough_in_the_blocks_that_are_kept_causes_no_fetch(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    migrated(settings)
    catalog = Catalog(settings.catalog)
    job = add_job(catalog)
    committer = Committer(settings, job)
    for _ in range(6):
        committer.commit(10)
    store = Counting(result_spec(settings, job).open())
    reader = KeepingReader(cast(Store, store), job.results_name, blocks=Blocks())
    reader.refresh()
    refs = reader.index().refs
    first = [batch.column("n").to_pylist() for _, batch in islice(reader.rows(refs), 3)]
    assert store.blocks == 4  # as many as come at first, of which one was not looked at
    store.blocks = 0
    assert [batch.column("n").to_pylist() for _, batch in islice(reader.rows(refs), 3)] == first
    assert store.blocks == 0
    assert [number for _, batch in reader.rows(refs) for number in batch.column("n").to_pylist()] == committer.numbers
    assert store.blocks == 3
    reader.store.close()
    committer.close()
    catalog.close()
