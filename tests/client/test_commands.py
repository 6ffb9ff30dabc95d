"""The commands that use the platform: exit status 0 done, 2 wrong input, 1 failed; output that programs can read."""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from pydantic import SecretStr
from starlette.responses import JSONResponse

from backend.catalog.ids import now_us
from backend.catalog.models import Machine
from streamjoin.cli.platform.common import CELL_MAX, LAST_CELL_MAX
from streamjoin.cli.platform.jobs import added
from streamjoin.client import Client, News
from streamjoin.relations.history import History, Reading
from streamjoin.spec.job import tables_folder
from tests.client.conftest import Command
from tests.client.serve import Server
from tests.client.standin import StandIn
from tests.servers.process import free_ports

pytestmark = pytest.mark.slow

BIDS = {"source": "generator", "kind": "nexmark.bid", "rate": "1000/s", "rows": 2000, "time": "ts", "delay": "1s"}
AUCTIONS = {"source": "generator", "kind": "nexmark.auction", "rate": "100/s", "rows": 200, "time": "ts", "delay": "1s"}
JOB = """
name: {name}
streams:
  bids: {{source: generator, kind: nexmark.bid, rate: 1000/s, rows: 2000, time: ts, delay: 1s}}
  auctions: {{source: generator, kind: nexmark.auction, rate: 100/s, rows: 200, time: ts, delay: 1s}}
query: |
  SELECT ONLINE auctions.id, bids.price
  FROM auctions, bids WHERE auctions.id = bids.auction WITHIN 10 SECONDS
run: {{slots: 1}}
"""


def test_a_stream_is_tested_created_listed_shown_sampled_and_deleted(streamjoin: Command, folder: Path) -> None:
    (folder / "one.yaml").write_text(yaml.safe_dump({"name": "cli_one", "spec": BIDS}))
    (folder / "spec.json").write_text(json.dumps(BIDS))
    looked = streamjoin("streams", "test", "-f", "spec.json", "-o", "csv")
    assert "auction" in looked.out.splitlines()[0].split(",")
    assert streamjoin("streams", "create", "-f", "one.yaml", "-o", "json").json()["name"] == "cli_one"
    assert streamjoin("streams", "create", "cli_two", "-f", "-", stdin=json.dumps(BIDS)).status == 0
    listed = streamjoin("streams", "list")
    assert listed == streamjoin("streams", "ls")
    assert listed.out.splitlines()[0].split()[:2] == ["name", "spec.source"]
    assert {"cli_one", "cli_two"} <= {line.split()[0] for line in listed.out.splitlines()}
    assert yaml.safe_load(streamjoin("streams", "get", "cli_one").out)["spec"]["kind"] == "nexmark.bid"
    assert streamjoin("streams", "sample", "cli_one", "-o", "json").json()["rows"]
    changed = streamjoin("streams", "update", "cli_one", "-f", "spec.json", "--version", "1", "-o", "json")
    assert changed.json()["version"] == 2
    late = streamjoin("streams", "update", "cli_one", "-f", "spec.json", "--version", "1")
    assert late.status == 1 and "is now at version 2" in late.err
    for name in ("cli_one", "cli_two"):
        done = streamjoin("streams", "delete", name)
        assert (done.status, done.out, done.err) == (0, "", "")
    gone = streamjoin("streams", "get", "cli_one")
    assert (gone.status, gone.out) == (1, "")
    assert gone.err == 'streamjoin: there is no stream "cli_one"\n'


def test_a_relation_is_tested_created_listed_shown_changed_sampled_and_deleted(
    streamjoin: Command, folder: Path, customers: dict[str, Any]
) -> None:
    (folder / "one.yaml").write_text(yaml.safe_dump({"name": "cli_table", "spec": customers}))
    (folder / "narrow.json").write_text(json.dumps({**customers, "schema": {"id": "int64"}}))
    looked = streamjoin("relations", "test", "-f", "narrow.json", "-o", "csv")
    assert looked.out == "id\n1\n2\n3\n"
    assert streamjoin("relations", "create", "-f", "one.yaml", "-o", "json").json()["name"] == "cli_table"
    assert streamjoin("relations", "create", "cli_other", "-f", "-", stdin=json.dumps(customers)).status == 0
    listed = streamjoin("relations", "list")
    assert listed == streamjoin("relations", "ls")
    assert {"cli_table", "cli_other"} <= {line.split()[0] for line in listed.out.splitlines()}
    assert yaml.safe_load(streamjoin("relations", "get", "cli_table").out)["spec"] == customers
    changed = streamjoin("relations", "update", "cli_table", "-f", "narrow.json", "--version", "1", "-o", "json")
    assert (changed.json()["version"], changed.json()["spec"]["schema"]) == (2, {"id": "int64"})
    assert streamjoin("relations", "update", "cli_table", "-f", "narrow.json", "--version", "1").status == 1
    assert streamjoin("relations", "sample", "cli_table", "-o", "json").json()["row_count"] == 3
    for name in ("cli_table", "cli_other"):
        done = streamjoin("relations", "delete", name)
        assert (done.status, done.out, done.err) == (0, "", "")
    assert streamjoin("relations", "get", "cli_table").err == 'streamjoin: there is no relation "cli_table"\n'
    for text, said in (("spec: {}\nkeys: {}\n", "a relation's file has name, spec and secrets, not keys"),
                       ("source: csv\npath: /x\n", "a relation needs a name: streamjoin relations create"),
                       ("name: x\nspec: {source: kafka, path: x}\n", "a topic never ends")):  # fmt: skip
        wrong = streamjoin("relations", "create", "-f", "-", stdin=text)
        assert wrong.status == 2 and said in wrong.err, wrong


def test_relations_of_a_job_s_file_are_registered_where_they_are_missing(
    streamjoin: Command, customers: dict[str, Any]
) -> None:
    job = JOB.format(name="cli tables") + yaml.safe_dump({"relations": {"cli_beside": customers}})
    made = streamjoin("jobs", "create", "-f", "-", "-o", "json", stdin=job)
    assert (made.status, made.json()["relations"]) == (0, []), made.err
    assert streamjoin("relations", "get", "cli_beside", "-o", "json").json()["spec"] == customers
    query = "SELECT ONLINE bids.price FROM bids, cli_beside WHERE bids.bidder = cli_beside.id"
    checked = streamjoin("jobs", "validate", "-f", "-", stdin=yaml.safe_dump({"query": query}))
    assert checked.status == 0
    assert checked.out.startswith("this is right: bids joins relation cli_beside, by lookup")


def test_a_relation_that_is_being_read_is_told_with_its_versions(
    streamjoin: Command, platform: Server, customers: dict[str, Any]
) -> None:
    assert streamjoin("relations", "create", "cli_read", "-f", "-", stdin=json.dumps(customers)).status == 0
    query = "SELECT ONLINE bids.price FROM bids JOIN cli_read ON bids.bidder = cli_read.id"
    job = yaml.safe_dump({"name": "cli reader", "query": query})
    id = streamjoin("jobs", "create", "-f", "-", "-o", "json", stdin=job).json()["id"]
    history = History(tables_folder(platform.app.state.context.settings.checkpoint_folder(id, 0)), "cli_read")
    assert "so far" not in streamjoin("relations", "versions", "cli_read").out
    history.folder.mkdir(parents=True)
    history.reads(Reading(1, 1_200_000, now_us()))
    told = streamjoin("relations", "versions", "cli_read").out
    assert "relation cli_read in cli reader: reading version 1: 1,200,000 rows so far" in told
    with Client(platform.host) as client:
        (known,) = client.relations.versions("cli_read")
    assert (known["reading_version"], known["reading_rows"]) == (1, 1_200_000)


def test_lists_are_narrowed(streamjoin: Command) -> None:
    def named(*asked: str) -> list[str]:
        return [item["name"] for item in streamjoin(*asked, "-o", "json").json()]

    streamjoin("streams", "create", "cli_narrow", "-f", "-", stdin=json.dumps(BIDS))
    streamjoin("jobs", "create", "-f", "-", stdin=JOB.format(name="cli narrow"))
    assert "cli_narrow" in named("streams", "ls", "--source", "generator")
    assert named("streams", "ls", "--source", "push") == named("streams", "ls", "--since", "2999-01-01") == []
    assert "cli narrow" in named("jobs", "ls", "--phase", "stopped")
    assert "cli narrow" not in named("jobs", "ls", "--phase", "failed")
    wrong = streamjoin("jobs", "ls", "--phase", "gone")
    assert wrong.status == 2 and "phase" in wrong.err


def test_passwords_of_a_job_s_file_are_registered_as_secrets(streamjoin: Command, platform: Server) -> None:
    platform.app.state.context.settings.secret_key = SecretStr("a key of this test and of nobody else")
    entry = {"source": "kafka", "servers": "127.0.0.1:9", "topic": "t", "format": "json", "time": "ts",
             "schema": {"ts": "timestamp"}, "client": {"sasl.username": "kim", "sasl.password": "canary"}}  # fmt: skip
    table = {"source": "sql", "url": "postgresql://kim:canary@127.0.0.1:9/x", "table": "t"}
    job = {
        "name": "cli locked", "streams": {"cli_locked": entry, "cli_more": {**entry, "topic": "u"}},
        "relations": {"cli_table": table},
        "query": "SELECT ONLINE cli_locked.ts FROM cli_locked, cli_more WHERE cli_locked.ts = cli_more.ts "
        "WITHIN 1 SECONDS",
    }  # fmt: skip
    made = streamjoin("jobs", "create", "-f", "-", "-o", "json", stdin=json.dumps(job))
    assert made.status == 0, made.err
    kept = streamjoin("streams", "get", "cli_locked", "-o", "json")
    assert (kept.json()["spec"]["client"], kept.json()["has_secrets"]) == ({"sasl.username": "kim"}, True)
    seen = streamjoin("relations", "get", "cli_table", "-o", "json")
    assert (seen.json()["spec"]["url"], seen.json()["has_secrets"]) == ("postgresql://kim@127.0.0.1:9/x", True)
    assert "canary" not in kept.out + seen.out


def test_a_job_goes_through_its_life(streamjoin: Command, folder: Path) -> None:
    (folder / "job.yaml").write_text(JOB.format(name="cli job"))
    made = streamjoin("jobs", "create", "-f", "job.yaml", "-o", "json")
    assert made.json()["phase"] == "stopped", made.err
    again = streamjoin("jobs", "create", "-f", "job.yaml")
    assert again.status == 1 and "already" in again.err
    assert "this is right" in streamjoin("jobs", "validate", "-f", "job.yaml").out
    assert "biclique" in streamjoin("jobs", "explain", "-f", "job.yaml").out
    assert "operators" in streamjoin("jobs", "explain", "-f", "-", "-o", "json", stdin=JOB.format(name="x")).json()
    assert "a preview from samples, not a result" in streamjoin("jobs", "preview", "-f", "job.yaml").out
    previewed = streamjoin("jobs", "preview", "-f", "-", "-o", "json", stdin=JOB.format(name="x")).json()
    assert len(previewed["queries"][0]["rows"]) == 20
    assert streamjoin("jobs", "rescale", "cli job", "2", "-o", "json").json()[0]["run"]["slots"] == 2
    assert "starting" in streamjoin("jobs", "start", "cli job").out
    waited = streamjoin("jobs", "restart", "cli job", "--wait", "--timeout", "0.6")
    assert waited.status == 1 and "is starting and not running after 0.6 s" in waited.err
    assert streamjoin("jobs", "stop", "cli job", "--wait", "-o", "json").json()[0]["phase"] == "stopped"
    events = [
        row["kind"] for row in csv.DictReader(io.StringIO(streamjoin("jobs", "events", "cli job", "-o", "csv").out))
    ]
    assert events[0] == "job.created" and len(events) > 3
    assert len(streamjoin("jobs", "events", "cli job", "--limit", "2", "-o", "json").json()) == 2
    assert streamjoin("jobs", "logs", "cli job").out == ""
    assert "cli job" in [job["name"] for job in streamjoin("jobs", "ls", "-o", "json").json()]
    assert yaml.safe_load(streamjoin("jobs", "get", "cli job").out)["wanted"] == "stopped"
    assert streamjoin("jobs", "delete", "cli job").status == 0


def test_a_job_is_changed_once_it_was_seen_what_that_does(streamjoin: Command, folder: Path) -> None:
    (folder / "job.yaml").write_text(JOB.format(name="cli change"))
    streamjoin("jobs", "create", "-f", "job.yaml")
    (folder / "change.yaml").write_text("run: {slots: 2}\n")
    shown = streamjoin("jobs", "update", "cli change", "-f", "change.yaml", "--dry-run")
    assert [line.split() for line in shown.out.splitlines()] == [
        ["field", "before", "after", "effect"], ["run.slots", "1", "2", "keeps_state"],
    ]  # fmt: skip
    assert streamjoin("jobs", "get", "cli change", "-o", "json").json()["version"] == 1
    whole = streamjoin("jobs", "update", "cli change", "-f", "change.yaml", "--dry-run", "-o", "json").json()
    assert whole["starts_anew"] is False
    (changed,) = streamjoin("jobs", "update", "cli change", "-f", "change.yaml", "--version", "1", "-o", "json").json()
    assert (changed["version"], changed["run"]) == (2, {"slots": 2})
    late = streamjoin("jobs", "update", "cli change", "-f", "change.yaml", "--version", "1")
    assert late.status == 1 and "is now at version 2" in late.err
    wrong = streamjoin("jobs", "update", "cli change", "-f", "-", stdin="slots: 3")
    assert (wrong.status, "not slots" in wrong.err) == (2, True)
    for option in ((), ("--dry-run",)):
        bad = streamjoin("jobs", "update", "cli change", "-f", "-", *option, stdin="operator: {name: magic}")
        assert bad.status == 2 and "magic" in bad.err
    streamjoin("jobs", "delete", "cli change")


ORDERS = "ts,id,price\n2026-01-01T00:00:00Z,1,5\n2026-01-01T00:00:01Z,2,7\n"
SEVERAL = """
name: {name}
streams:
  {name}_orders:   {{source: csv, path: orders.csv, time: ts, delay: 1s}}
  {name}_payments: {{source: csv, path: orders.csv, time: ts, delay: 1s}}
queries:
  pairs:
    query: SELECT ONLINE o.id FROM {name}_orders AS o, {name}_payments AS p WHERE o.id = p.id WITHIN 5 SECONDS
    results: {{jsonl: pairs.jsonl}}
  alone:
    query: SELECT ONLINE o.id FROM {name}_orders AS o LEFT SEMI JOIN {name}_payments AS p ON o.id = p.id WITHIN 5 HOURS
    results: {{parquet: alone}}
run: {{checkpoint: state, slots: 2}}
"""


@pytest.fixture
def join_file(platform: Server) -> Callable[[str], Path]:
    """A join file with two queries, beside its data in a folder that the platform may read."""

    def write(name: str) -> Path:
        folder = platform.app.state.context.settings.allowed_paths[0] / name
        folder.mkdir()
        (folder / "orders.csv").write_text(ORDERS)
        (folder / "join.yaml").write_text(SEVERAL.format(name=name))
        return folder / "join.yaml"

    return write


def names_there(platform: Server) -> set[str]:
    with Client(platform.host) as client:
        return {entry["name"] for entry in (*client.streams.list(), *client.relations.list())}


def test_a_join_file_of_several_queries_is_a_job_and_changes_it(
    streamjoin: Command, join_file: Callable[[str], Path]
) -> None:
    path = join_file("whole")
    for looked in ("validate", "explain", "preview"):
        missing = streamjoin("jobs", looked, "-f", str(path))
        assert (missing.status, missing.out) == (2, "")
        assert "stream whole_orders, stream whole_payments are not registered yet" in missing.err
        assert "streamjoin streams create whole_orders -f FILE" in missing.err
    made = streamjoin("jobs", "create", "-f", str(path), "-o", "json")
    assert made.status == 0, made.err
    assert "alone" in made.json()["queries"] and "o.id = p.id" in made.json()["query"]
    assert "streamjoin: note: queries.alone.results.parquet is not taken: the platform" in made.err
    assert "run.checkpoint is not taken" in made.err
    spec = streamjoin("streams", "get", "whole_orders", "-o", "json").json()["spec"]
    assert spec["path"] == str(path.parent / "orders.csv")
    assert "this is right" in streamjoin("jobs", "validate", "-f", str(path)).out
    same = streamjoin("jobs", "update", "whole", "-f", str(path), "--dry-run")
    assert (same.status, same.out.split()) == (0, ["field", "before", "after", "effect"]), same
    path.write_text(path.read_text().replace("slots: 2", "slots: 3"))
    changed = streamjoin("jobs", "update", "whole", "-f", str(path), "-o", "json")
    assert changed.json()[0]["run"]["slots"] == 3, changed.err
    path.write_text(path.read_text().replace("delay: 1s", "delay: 2s"))
    for command in (("update", "whole", "--dry-run"), ("validate",)):
        other = streamjoin("jobs", *command, "-f", str(path))
        assert other.status == 2 and "stream whole_orders is registered with another delay" in other.err
        assert "streamjoin streams update whole_orders" in other.err
    streamjoin("jobs", "delete", "whole")


def test_what_a_job_that_is_refused_registered_is_gone_again(
    streamjoin: Command, platform: Server, join_file: Callable[[str], Path]
) -> None:
    path = join_file("part")
    good = path.read_text()
    closed = good.replace("payments: {source: csv, path: orders.csv", "payments: {source: csv, path: ../../closed.csv")
    (path.parent / "closed.yaml").write_text(closed)
    refused = streamjoin("jobs", "create", "-f", str(path.parent / "closed.yaml"))
    assert refused.status != 0 and "streams.part_payments: " in refused.err, refused
    assert not {name for name in names_there(platform) if name.startswith("part")}
    path.write_text(good.replace("SELECT ONLINE o.id FROM", "SELECT ONLINE o.none FROM", 1))
    assert "none" in streamjoin("jobs", "create", "-f", str(path)).err
    assert not {name for name in names_there(platform) if name.startswith("part")}
    path.write_text(good)
    assert streamjoin("jobs", "create", "-f", str(path)).status == 0
    again = streamjoin("jobs", "create", "-f", str(path))
    assert again.status == 1 and "already" in again.err
    assert {"part_orders", "part_payments"} <= names_there(platform)
    streamjoin("jobs", "delete", "part")


def test_rows_that_are_missing_are_counted_shown_in_pages_and_all_at_once(
    streamjoin: Command, folder: Path, put_aside: Callable[..., None]
) -> None:
    (folder / "job.yaml").write_text(JOB.format(name="cli lossy"))
    job = streamjoin("jobs", "create", "-f", "job.yaml", "-o", "json").json()
    put_aside(job["id"], 1, "malformed", "a", "b")
    put_aside(job["id"], 2, "no_time", "\x1b[2Jc")
    counted = streamjoin("jobs", "rejected", "cli lossy").out.splitlines()
    assert counted[0].split() == ["stream", "reason", "rows", "kept", "meaning"] and len(counted) == 3
    assert [row["reason"] for row in streamjoin(
        "jobs", "rejected", "cli lossy", "--reason", "no_time", "-o", "json").json()] == ["no_time"]  # fmt: skip
    shown = streamjoin("jobs", "rejected", "cli lossy", "--rows", "--limit", "2").out
    assert "1.csv, line 1" in shown and "\x1b" not in shown and len(shown.splitlines()) == 3
    rows = streamjoin("jobs", "rejected", "cli lossy", "--rows", "--limit", "2", "-o", "json").json()
    assert [row["record"] for row in rows] == ["\x1b[2Jc", "b"]
    rest = streamjoin("jobs", "rejected", "cli lossy", "--rows", "--before", rows[-1]["id"], "-o", "json").json()
    assert [row["record"] for row in rest] == ["a"]
    lines = streamjoin("jobs", "rejected", "cli lossy", "-o", "ndjson").out.splitlines()
    assert [json.loads(line)["record"] for line in lines] == ["a", "b", "\x1b[2Jc"]
    for more in ((), ("--rows",)):
        unknown = streamjoin("jobs", "rejected", "cli lossy", *more, "--stream", "nope")
        assert unknown.status == 2 and 'reads no stream "nope"; it reads auctions, bids' in unknown.err
    wrong = streamjoin("jobs", "rejected", "cli lossy", "--rows", "--before", "1-1")
    assert wrong.status == 2 and "begin again without it" in wrong.err
    streamjoin("jobs", "delete", "cli lossy")


def test_rows_are_pushed_from_a_file_of_lines(streamjoin: Command, folder: Path) -> None:
    spec = {"source": "push", "schema": {"id": "int64", "ts": "int64"}, "time": "ts"}
    streamjoin("streams", "create", "cli_pushed", "-f", "-", stdin=json.dumps(spec))
    (folder / "rows.jsonl").write_text('{"id": 1, "ts": 5}\n\n{"id": 2, "ts": 6}\n')
    pushed = streamjoin("streams", "push", "cli_pushed", "-f", "rows.jsonl", "--batch-id", "b1")
    assert pushed.json() == {"rows": 2, "duplicate": False}
    text = (folder / "rows.jsonl").read_text()
    again = streamjoin("streams", "push", "cli_pushed", "-f", "-", "--batch-id=b1", stdin=text)
    assert again.json() == {"rows": 2, "duplicate": True}
    other = streamjoin("streams", "push", "cli_pushed", "-f", "-", "--batch-id=b1", stdin='{"id": 1, "ts": 5}')
    assert other.status == 2 and "b1" in other.err
    for text, said in (('{"id": 1}\n[1]\n', "line 2: this is no JSON object"), ("{", "standard input, line 1")):
        wrong = streamjoin("streams", "push", "cli_pushed", "-f", "-", stdin=text)
        assert (wrong.status, said in wrong.err) == (2, True), wrong
    missing = streamjoin("streams", "push", "cli_pushed", "-f", "nothing.jsonl")
    assert (missing.status, missing.err) == (2, "streamjoin: nothing.jsonl: No such file or directory\n")
    streamjoin("streams", "delete", "cli_pushed")


def test_rows_that_are_pushed_keep_all_digits_of_their_numbers(
    results: StandIn, command: Command, folder: Path
) -> None:
    lines = ['{"price":12345678901234567890.123456789}', '{"price": 1.10, "name": "\u00e9"}']
    (folder / "rows.jsonl").write_bytes(codecs.BOM_UTF8 + f"{lines[0]}\r\n\n{lines[1]}".encode())
    assert command("streams", "push", "s", "-f", "rows.jsonl").status == 0
    assert results.bodies == ["".join(f"{line}\n" for line in lines).encode()]


def test_machines_are_listed(streamjoin: Command, platform: Server) -> None:
    machines = [Machine(name=name, folder="a", seen_at_us=now_us(), free_bytes=5) for name in ("right", "left")]
    with platform.app.state.context.catalog.begin() as session:
        session.add_all(machines)
    listed = streamjoin("machines", "-o", "json").json()
    assert [(one["name"], one["takes_jobs"]) for one in listed] == [("left", True), ("right", True)]
    assert "free_bytes" in streamjoin("machines").out


def test_files_are_uploaded_listed_and_removed(streamjoin: Command, folder: Path) -> None:
    (folder / "my orders.csv").write_text("id,at\n1,5\n")
    added = streamjoin("uploads", "add", "my orders.csv", "-o", "json")
    assert (added.status, added.json()["path"], added.json()["format"]) == (0, "upload:my orders.csv", "csv")
    unnamed = streamjoin("uploads", "add", "-", stdin="id,at\n")
    assert unnamed.status == 2 and "--name" in unnamed.err
    assert streamjoin("uploads", "add", "-", "--name", "other.csv", stdin="id,at\n").status == 0
    assert streamjoin("uploads", "add", "-", "--name", "other.csv", stdin="id,at\n").status == 0
    refused = streamjoin("uploads", "add", "-", "--name", "other.csv", stdin="id\n")
    assert refused.status != 0 and "already, with other content" in refused.err
    assert [one["name"] for one in streamjoin("uploads", "ls", "-o", "json").json()] == ["my orders.csv", "other.csv"]
    spec = {"source": "csv", "path": "upload:my orders.csv", "time": "at"}
    streamjoin("streams", "create", "cli_uploaded", "-f", "-", stdin=json.dumps(spec))
    refused = streamjoin("uploads", "rm", "my orders.csv")
    assert refused.status != 0 and "stream cli_uploaded" in refused.err
    streamjoin("streams", "delete", "cli_uploaded")
    for name in ("my orders.csv", "other.csv"):
        assert streamjoin("uploads", "rm", name).status == 0
    assert streamjoin("uploads", "ls", "-o", "json").json() == []
    missing = streamjoin("uploads", "add", "nothing.csv")
    assert (missing.status, missing.err) == (2, "streamjoin: nothing.csv: No such file or directory\n")


def test_files_that_may_be_read_are_listed(streamjoin: Command, platform: Server) -> None:
    (root,) = platform.app.state.context.settings.allowed_paths
    (root / "listed.csv").write_text("id\n")
    assert [entry["path"] for entry in streamjoin("files", "-o", "json").json()] == [str(root)]
    listed = streamjoin("files", str(root), "-o", "json").json()  # a table cuts long paths
    assert str(root / "listed.csv") in [entry["path"] for entry in listed]
    refused = streamjoin("files", "/etc")
    assert refused.status == 2 and "STREAMJOIN_ALLOWED_PATHS" in refused.err


def test_any_route_can_be_called(streamjoin: Command) -> None:
    assert streamjoin("call", "GET", "/api/v1/config").json()["auth"] == "off"
    assert yaml.safe_load(streamjoin("call", "GET", "config", "-o", "yaml").out)["auth"] == "off"
    found = streamjoin("call", "POST", "streams/test", "-f", "-", stdin=json.dumps({"spec": BIDS})).json()
    assert found["rows"]
    missing = streamjoin("call", "GET", "nothing/here")
    assert (missing.status, "there is no /api/v1/nothing/here" in missing.err) == (1, True)
    wrong = streamjoin("call", "POST", "streams", "-f", "-", stdin="name: x")
    assert wrong.status == 2 and "spec" in wrong.err
    streamjoin("streams", "create", "cli_called", "-f", "-", stdin=json.dumps(BIDS))
    gone = streamjoin("call", "DELETE", "streams/cli_called")
    assert (gone.status, gone.out, gone.err) == (0, "", "")


def test_a_wrong_query_has_its_place_and_exit_status_2(streamjoin: Command, platform: Server) -> None:
    wrong = JOB.format(name="cli wrong").replace("bids.price", "bids.prize")
    streamjoin("jobs", "create", "-f", "-", stdin=JOB.format(name="cli streams"))
    checked = streamjoin("jobs", "validate", "-f", "-", stdin=wrong)
    assert checked.status == 2
    assert checked.out.startswith("line 1, column 28: ") and "prize" in checked.out
    beside = yaml.safe_load(JOB.format(name="x"))
    beside["queries"] = {"dear": {"query": beside["query"].replace("bids.price", "bids.prize")}}
    checked = streamjoin("jobs", "validate", "-f", "-", stdin=yaml.safe_dump(beside))
    assert checked.out.startswith("queries.dear.query, line 1, column 28: "), checked.out
    created = streamjoin("jobs", "create", "-f", "-", stdin=wrong)
    assert created.status == 2 and "prize" in created.err
    with Client(platform.host) as client:
        assert "cli wrong" not in [job["name"] for job in client.jobs.list()]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must hold fields"),
        ("- a\n- b\n", "must hold fields"),
        ("a: [1\n", "line 2, column 1: this is neither YAML nor JSON"),
        ("a: &x 1\nb: *x\n", "alias"),
        ("name: x\nqueyr: SELECT\n", "not queyr"),
        ("name: x\n", "needs a query"),
        ("query: SELECT 1\n", "needs a name"),
        ("x: " + "[" * 20_000, "nested more than 64 deep"),
        ("x" * (2 << 20), "larger than"),
    ],
)
def test_a_file_that_is_wrong_is_named_before_anything_is_asked(text: str, said: str, command: Command) -> None:
    done = command("jobs", "create", "-f", "-", "--host", "http://127.0.0.1:1", stdin=text)
    assert done.status == 2, done
    assert said in done.err and done.out == ""


def test_a_file_that_is_not_there_is_wrong_input(command: Command, folder: Path) -> None:
    done = command("streams", "create", "x", "-f", "nothing.yaml")
    assert (done.status, done.err) == (2, "streamjoin: nothing.yaml: No such file or directory\n")


@pytest.mark.parametrize(
    "arguments",
    [["jobs", "start"], ["jobs", "rescale", "a", "many"], ["streams", "ls", "-o", "xml"], ["watch"], ["jobs", "fly"]],
)
def test_arguments_that_are_wrong_have_exit_status_2(arguments: list[str], command: Command) -> None:
    assert command(*arguments).status == 2


def test_a_platform_that_is_not_there_is_said_to_be_so_soon(command: Command) -> None:
    (port,) = free_ports(1)
    done = command("jobs", "ls", "--host", f"127.0.0.1:{port}")
    assert done.status == 1 and done.out == ""
    assert f"http://127.0.0.1:{port} does not answer" in done.err and done.err.count("\n") == 1


@pytest.fixture
def results(server: Server, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """The stand-in with results of one job, which is where commands go."""
    monkeypatch.setenv("STREAMJOIN_HOST", server.host)
    stand_in.snapshots, stand_in.last_word = [1, 2, 3], "deleted"
    return stand_in


def test_an_answer_is_shown_in_every_format(results: StandIn, command: Command, folder: Path) -> None:
    assert command("ask", "j", "--from", "2026-01-01", "--where", "n > 0").out.split() == ["n", "1", "2", "3"]
    assert results.asked[0] == {"job": "j", "from": "2026-01-01", "where": "n > 0", "format": "arrow"}
    assert command("ask", "j", "-o", "json").json() == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert command("ask", "j", "-o", "csv").out == '"n"\n1\n2\n3\n'
    assert [json.loads(line) for line in command("ask", "j", "-o", "ndjson").out.splitlines()] == [
        {"n": 1}, {"n": 2}, {"n": 3},
    ]  # fmt: skip


def test_an_answer_may_have_more_time(results: StandIn, command: Command) -> None:
    assert command("ask", "j", "--timeout", "300").out.split() == ["n", "1", "2", "3"]
    assert results.asked[-1]["timeout_s"] == 300


def test_an_answer_that_is_not_all_says_so(results: StandIn, command: Command) -> None:
    done = command("ask", "j", "--limit", "2", "-o", "json")
    assert done.json() == [{"n": 1}, {"n": 2}]
    assert done.err == "there may be more: --cursor 2\n"
    assert command("ask", "j", "--limit", "2", "--quiet").err == ""


def test_a_watch_shows_each_row_once(results: StandIn, command: Command) -> None:
    done = command("watch", "j", "--after", "1.0")
    assert [json.loads(line)["n"] for line in done.out.splitlines()] == [20, 21, 30, 31]
    assert done.err == ""
    done = command("watch", "j", "--after", "oldest", "--snapshots", "1", "-o", "csv")
    assert done.out == "n\n10\n11\n"


def test_a_watch_in_csv_names_columns_that_change_and_has_words_of_its_own_for_none(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = [tuple({"name": name, "type": "bool"} for name in names) for names in (("a", "b"), ("a", "b"), ("c",))]
    rows: list[list[list[Any]]] = [[[True, None]], [[False, 1.5]], [["x"], [{"y": [True]}]]]
    news = [News(f"{at}.0", columns[at], rows[at]) for at in range(3)]
    monkeypatch.setattr(Client, "tail", lambda *_, **__: iter(news))
    assert command("watch", "j", "-o", "csv").out == 'a,b\ntrue,\nfalse,1.5\n\nc\nx\n"{""y"": [true]}"\n'


def test_a_watch_says_of_which_results_its_place_is(results: StandIn, command: Command) -> None:
    assert command("watch", "j", "--after", "2.0", "--results", "j-7", "--snapshots", "1").status == 0
    assert results.subscribed[-1]["results"] == "j-7"


def test_a_log_that_is_followed_shows_what_was_added() -> None:
    assert added("", "a\n") == "a\n"
    assert added("a\n", "a\nb\n") == "b\n"
    assert added("0123456789", "56789ab") == "56789ab"  # too little is left to know
    old = "".join(f"line {number}\n" for number in range(2000))
    assert added(old, old[500:] + "new\n") == "new\n"


def test_a_table_cuts_what_is_long_and_shows_nothing_that_moves_the_cursor(
    streamjoin: Command, platform: Server
) -> None:
    from streamjoin.cli.platform.common import show

    with pytest.MonkeyPatch.context() as patch:
        shown = io.StringIO()
        patch.setattr(sys, "stdout", shown)
        show([{"a": "x" * 500, "b": "\x1b[2J\n", "c": {"d": [1, True]}, "e": None}], "table", ("a", "b", "c.d", "e"))
    head, row = shown.getvalue().splitlines()
    assert head.split() == ["a", "b", "c.d", "e"]
    assert "\x1b" not in row and len(row.split()[0]) == CELL_MAX and "[1, true]" in row


def test_the_last_column_of_a_table_has_room_for_what_an_event_says(capsys: pytest.CaptureFixture[str]) -> None:
    from streamjoin.cli.platform.common import show

    steps = ", ".join(f"{step} 1234.5 s" for step in ("launch", "process", "spark", "state", "first batch"))
    said = f"generation 1 committed its first batch 1234.5 s after the start: {steps}"
    show([{"kind": "job.first_batch", "message": said}, {"message": "x" * 500}], "table", ("kind", "message"))
    _, row, long = capsys.readouterr().out.splitlines()
    assert row == f"job.first_batch  {said}" and len(long.split()[0]) == LAST_CELL_MAX


def test_the_command_itself_reads_standard_input_and_is_quiet_for_programs(platform: Server, folder: Path) -> None:
    environment = os.environ | {"STREAMJOIN_HOST": platform.host}

    def run(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "streamjoin", *arguments], input=stdin, capture_output=True, env=environment,
            timeout=60, check=False,
        )  # fmt: skip

    made = run("streams", "create", "piped", "-f", "-", "-o", "json", stdin=json.dumps(BIDS).encode())
    assert (made.returncode, made.stderr) == (0, b"")
    assert json.loads(made.stdout)["name"] == "piped"
    missing = run("jobs", "get", "nothing", "-o", "json")
    assert (missing.returncode, missing.stdout) == (1, b"")
    assert missing.stderr == b'streamjoin: there is no job "nothing"\n'
    assert run("jobs", "get").returncode == 2


def test_the_help_of_every_command_starts_without_the_clients_packages() -> None:
    program = (
        "import sys; from streamjoin.cli import commands as cli; sys.argv = ['streamjoin', *sys.argv[1:]]\n"
        "try: cli.main()\n"
        "finally: assert not {'httpx2', 'websockets', 'fastapi', 'sqlalchemy'} & sys.modules.keys()"
    )
    for arguments in (["--help"], ["jobs", "create", "--help"], ["doctor", "--help"]):
        done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("encoding", "shown"), [("ascii", rb"caf\u00e9 \u20ac"), ("latin-1", b"caf\xe9 \\u20ac")])
def test_letters_that_a_terminal_has_not_are_written_in_others(
    encoding: str, shown: bytes, results: StandIn, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    results.faults = [lambda: JSONResponse({"id": "str_1", "name": "caf\u00e9 \u20ac \U0001f600"})]
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding, write_through=True))
    done = command("streams", "get", "s", "-o", "json")
    assert (done.status, done.err) == (0, "") and shown in out.getvalue()
    found = json.loads(out.getvalue().decode(encoding))
    assert found["name"] == "caf\u00e9 \u20ac \U0001f600", "and it is JSON"


def test_arrow_goes_out_as_it_came(results: StandIn, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    class Binary:
        buffer = io.BytesIO()

        def flush(self) -> None: ...

    monkeypatch.setattr(sys, "stdout", Binary())
    command("ask", "j", "-o", "arrow")
    assert pa.ipc.open_stream(Binary.buffer.getvalue()).read_all().to_pydict() == {"n": [1, 2, 3]}
