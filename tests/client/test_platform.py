"""The clients against the real app: what can be done without a worker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamjoin.client import (
    AsyncClient,
    ChangedMeanwhile,
    Client,
    Conflict,
    Invalid,
    NoAnswer,
    NotFound,
    WaitedTooLong,
)
from tests.client.serve import Server

pytestmark = pytest.mark.slow

BIDS = {"source": "generator", "kind": "nexmark.bid", "rate": "1000/s", "rows": 2000, "time": "ts", "delay": "1s"}
AUCTIONS = {"source": "generator", "kind": "nexmark.auction", "rate": "100/s", "rows": 200, "time": "ts", "delay": "1s"}
QUERY = "SELECT ONLINE auctions.id, bids.price FROM auctions, bids WHERE auctions.id = bids.auction WITHIN 10 SECONDS"


@pytest.fixture(scope="module")
def streams(platform: Server) -> None:
    """The two that `QUERY` joins."""
    with Client(platform.host) as client:
        client.streams.create("bids", BIDS)
        client.streams.create("auctions", AUCTIONS)


def test_a_stream_is_registered_looked_at_changed_and_removed(client: Client) -> None:
    made = client.streams.create("one", BIDS)
    assert client.streams.get("one") == client.streams.get(made["id"]) == made
    sample = client.streams.sample("one")
    assert "auction" in [column["name"] for column in sample["columns"]]
    assert sample["rows"] and sample["skew"]
    assert client.streams.test(AUCTIONS)["rows"]
    changed = client.streams.change("one", spec={**BIDS, "rate": "10/s"}, version=made["version"])
    assert changed["version"] == made["version"] + 1
    with pytest.raises(ChangedMeanwhile):
        client.streams.change("one", spec=BIDS, version=made["version"])
    assert client.streams.change("one", spec=BIDS)["version"] == changed["version"] + 1
    client.streams.delete("one")
    with pytest.raises(NotFound, match='no stream "one"'):
        client.streams.get("one")


def test_files_are_uploaded_page_by_page_and_read(client: Client) -> None:
    names = [f"day-{number:03}.csv" for number in range(103)]
    for name in names:
        assert client.uploads.add(name, b"id,at\n1,5\n")["path"] == f"upload:{name}"
    assert [one["name"] for one in client.uploads.list()] == names
    assert client.streams.test({"source": "csv", "path": "upload:day-00?.csv", "time": "at"})["rows_seen"] == 10
    with pytest.raises(Conflict, match="with other content"):
        client.uploads.add(names[0], b"id,at\n")
    for name in names:
        client.uploads.delete(name)
    with pytest.raises(NotFound, match="day-000"):
        client.uploads.delete(names[0])


def test_files_to_read_are_listed_page_by_page(client: Client) -> None:
    (root,) = client.files()
    folder = Path(root["path"]) / "many"
    folder.mkdir()
    for number in range(203):
        (folder / f"{number:03}.jsonl").write_text("{}\n")
    assert [entry["name"] for entry in client.files(str(folder))] == [f"{number:03}.jsonl" for number in range(203)]
    with pytest.raises(Invalid, match="none of the folders"):
        list(client.files("/etc"))


def test_a_relation_is_registered_looked_at_changed_and_removed(client: Client, customers: dict[str, Any]) -> None:
    made = client.relations.create("one", customers)
    assert client.relations.get("one") == client.relations.get(made["id"]) == made
    seen = client.relations.sample("one")
    assert (seen["rows"], seen["row_count"], seen["files"]) == ([[1, "Ada"], [2, "Bob"], [3, "Bob"]], 3, 1)
    assert client.relations.test(customers) == seen
    narrow = {**customers, "schema": {"id": "int64"}}
    changed = client.relations.change("one", spec=narrow, version=made["version"])
    assert (changed["version"], changed["spec"]) == (2, narrow)
    with pytest.raises(ChangedMeanwhile):
        client.relations.change("one", spec=customers, version=made["version"])
    assert client.relations.change("one", spec=customers)["version"] == 3
    assert "one" in [relation["name"] for relation in client.relations.list()]
    with pytest.raises(Conflict, match='there is a relation "one" already'):
        client.streams.create("one", BIDS)
    with pytest.raises(ChangedMeanwhile):
        client.relations.delete("one", version=made["version"])
    client.relations.delete("one")
    with pytest.raises(NotFound, match='no relation "one"'):
        client.relations.get("one")
    with pytest.raises(Invalid, match="a relation has no time"):
        client.relations.create("one", {**customers, "time": "ts"})


def test_a_list_is_read_page_after_page(client: Client, streams: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamjoin.client.calls.asking.PAGE", 2)
    for number in range(5):
        client.streams.create(f"page_{number}", BIDS)
    names = [stream["name"] for stream in client.streams.list()]
    assert [name for name in names if name.startswith("page_")] == [f"page_{number}" for number in range(4, -1, -1)]
    assert len(names) == len(set(names)) >= 7


def test_rows_that_are_pushed_twice_under_one_name_are_there_once(client: Client) -> None:
    schema = {"id": "int64", "ts": "timestamp"}
    client.streams.create("pushed", {"source": "push", "schema": schema, "time": "ts"})
    rows = [{"id": 1, "ts": "2026-01-01T00:00:00Z"}, {"id": 2, "ts": "2026-01-01T00:00:01Z"}]
    assert client.streams.push("pushed", rows, batch_id="b1") == {"rows": 2, "duplicate": False}
    assert client.streams.push("pushed", rows, batch_id="b1") == {"rows": 2, "duplicate": True}


def test_a_query_is_checked_and_explained(client: Client, streams: None) -> None:
    right = client.jobs.validate(QUERY)
    assert right["valid"] and [column["name"] for column in right["columns"]] == ["id", "price"]
    wrong = client.jobs.validate(QUERY.replace("price", "prize"))
    assert not wrong["valid"] and wrong["diagnostics"][0]["span"]["line"] == 1
    assert "biclique" in client.jobs.explain(QUERY, operator={"name": "biclique"})["text"]
    with pytest.raises(Invalid) as caught:
        client.jobs.explain(QUERY.replace("price", "prize"))
    assert caught.value.errors[0]["span"]["line"] == 1


def test_a_query_shows_some_rows_before_a_job_is_made(client: Client, streams: None) -> None:
    found = client.jobs.preview(QUERY, results={"select": ["price"]})
    (only,) = found["queries"]
    assert [column["name"] for column in only["columns"]] == ["price"] and len(only["rows"]) == 20
    assert {one["name"] for one in found["streams"]} == {"auctions", "bids"} and found["text"].startswith("a preview")
    with pytest.raises(Invalid) as caught:
        client.jobs.preview(QUERY.replace("price", "prize"))
    assert caught.value.errors[0]["span"]["line"] == 1


def test_a_job_goes_through_its_life_as_far_as_no_worker_is_needed(client: Client, streams: None) -> None:
    job = client.jobs.create("wins", QUERY, run={"slots": 1})
    assert (job["wanted"], job["observed"], job["streams"]) == ("stopped", "stopped", ["auctions", "bids"])
    with pytest.raises(Conflict, match="already"):
        client.jobs.create("wins", QUERY)
    assert client.jobs.diff("wins", run={"slots": 2})["changes"]
    assert client.jobs.rescale("wins", 2, wait_s=5)["run"]["slots"] == 2
    assert client.jobs.change("wins", run={"slots": 1})["run"]["slots"] == 1
    assert client.jobs.start("wins")["phase"] == "starting"
    with pytest.raises(WaitedTooLong, match="is starting and not running after"):
        client.jobs.start("wins", wait_s=0.6)
    assert client.jobs.stop("wins", wait_s=5)["phase"] == "stopped"
    assert "job.created" in [event["kind"] for event in client.jobs.events("wins")]
    assert "stream.created" in [event["kind"] for event in client.events()]
    assert client.jobs.metrics("wins") == {"points": []}
    assert client.jobs.logs("wins") == ""
    client.jobs.delete("wins")


def test_what_others_changed_meanwhile_is_neither_started_nor_stopped_nor_removed(
    client: Client, streams: None
) -> None:
    seen = client.jobs.create("ours", QUERY, run={"slots": 1})["version"]
    client.jobs.change("ours", run={"slots": 2})  # by somebody else
    jobs = client.jobs
    for act in (jobs.start, jobs.stop, jobs.restart, jobs.delete):
        with pytest.raises(ChangedMeanwhile, match="job ours is now at version"):
            act("ours", version=seen)
    with pytest.raises(ChangedMeanwhile):
        jobs.rescale("ours", 4, version=seen)
    job = jobs.get("ours")
    assert (job["wanted"], job["run"]["slots"]) == ("stopped", 2)
    jobs.delete("ours", version=job["version"])
    stream = client.streams.create("other", BIDS)
    client.streams.change("other", spec=AUCTIONS, version=stream["version"])
    with pytest.raises(ChangedMeanwhile):
        client.streams.delete("other", version=stream["version"])
    client.streams.delete("other", version=stream["version"] + 1)


def test_rows_that_are_missing_are_counted_listed_and_downloaded(
    client: Client, streams: None, put_aside: Callable[..., None]
) -> None:
    job = client.jobs.create("lossy", QUERY)
    assert (client.jobs.rejected_counts("lossy"), list(client.jobs.rejected("lossy"))) == ([], [])
    put_aside(job["id"], 1, "malformed", *(f"{{{at}" for at in range(250)))
    put_aside(job["id"], 2, "no_time", "1,")
    found = [(row["reason"], row["rows"], row["kept"]) for row in client.jobs.rejected_counts("lossy")]
    assert found == [("malformed", 250, 250), ("no_time", 1, 1)]
    rows = list(client.jobs.rejected("lossy"))
    assert [row["record"] for row in rows] == ["1,", *(f"{{{at}" for at in reversed(range(250)))]
    assert (rows[0]["source"], rows[0]["unit"], rows[0]["position"]) == ("1.csv", "line", 1)
    assert [row["record"] for row in client.jobs.rejected("lossy", reason="no_time")] == ["1,"]
    assert list(client.jobs.rejected("lossy", stream="auctions")) == []
    assert next(client.jobs.rejected("lossy", before=rows[6]["id"])) == rows[7]
    lines = b"".join(client.jobs.download_rejected("lossy")).splitlines()
    assert [json.loads(line)["record"] for line in lines] == [row["record"] for row in rows[::-1]]
    assert len(b"".join(client.jobs.download_rejected("lossy", format="csv", reason="no_time")).splitlines()) == 2
    with pytest.raises(Invalid, match="reasons are malformed"):
        list(client.jobs.download_rejected("lossy", reason="bad"))
    with pytest.raises(NotFound):
        list(client.jobs.download_rejected("nobody"))
    with Client("http://127.0.0.1:1") as nowhere, pytest.raises(NoAnswer, match="does not answer"):
        list(nowhere.jobs.download_rejected("lossy"))
    client.jobs.delete("lossy")


def test_the_asynchronous_client_does_the_same(platform: Server, streams: None, customers: dict[str, Any]) -> None:
    async def play() -> None:
        async with AsyncClient(platform.host) as client:
            made = await client.streams.create("other", BIDS)
            both = await asyncio.gather(client.streams.get("other"), client.streams.get(made["id"]))
            assert both[0] == both[1] == made
            assert "other" in [stream["name"] async for stream in client.streams.list()]
            await client.streams.delete("other")
            with pytest.raises(NotFound):
                await client.streams.get("other")
            table = await client.relations.create("other", customers)
            assert [relation async for relation in client.relations.list()] == [table]
            assert (await client.relations.sample("other"))["row_count"] == 3
            await client.relations.delete("other")
            assert (await client.call("get", "/livez")) == {"status": "alive"}

    asyncio.run(play())


def test_shapes_are_those_of_the_api(client: Client) -> None:
    from streamjoin.client import shapes

    schemas = client.call("GET", "/api/v1/openapi.json")["components"]["schemas"]
    pairs = {
        "StreamOut": shapes.Stream, "SampleOut": shapes.Sample, "Pushed": shapes.Pushed, "JobOut": shapes.Job,
        "Diagnostics": shapes.Diagnostics, "Explanation": shapes.Explanation, "Diff": shapes.Diff,
        "RelationOut": shapes.Relation, "RelationSampleOut": shapes.RelationSample, "EventOut": shapes.Event,
        "Metrics": shapes.Metrics, "Place": shapes.Place,
    }  # fmt: skip
    for name, shape in pairs.items():
        assert shape.__annotations__.keys() <= schemas[name]["properties"].keys(), name


def test_a_stream_that_a_job_uses_stays(client: Client, streams: None) -> None:
    client.jobs.create("user of bids", QUERY)
    with pytest.raises(Conflict, match="user of bids"):
        client.streams.delete("bids")


def test_bodies_that_are_wrong_are_named_by_their_field(client: Client, tmp_path: Path) -> None:
    with pytest.raises(Invalid) as caught:
        client.streams.create("bad", {"source": "csv", "path": str(tmp_path / "nothing"), "time": "ts", "dealy": "1s"})
    assert "dealy" in json.dumps(caught.value.errors)
