"""`run.master` and what belongs to it: what is refused, and which place each part of a join lies in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamjoin.cli.planning import explain
from streamjoin.errors import InputError
from streamjoin.spec.joinfile import JoinFile, of_content
from streamjoin.spec.prepare import bind
from streamjoin.spec.reach import places

MASTER = "spark://there:7077"


def file(
    base: Path = Path("/base"), results: Any = None, queries: Any = None, relation: str = "t.csv", **run: Any
) -> JoinFile:
    asked: dict[str, Any] = {"query": "SELECT ONLINE a.x FROM a, b WHERE a.x = b.x WITHIN 1 SECONDS"}
    content = {
        "streams": {
            "a": {"source": "csv", "path": "a.csv", "time": "ts"},
            "b": {"source": "kafka", "servers": "broker:9092", "topic": "b", "format": "json", "time": "ts",
                  "schema": {"x": "int64", "ts": "timestamp"}},
        },
        "relations": {"t": {"source": "csv", "path": relation}},
        **(asked | {"results": results or {"discard": True}} if queries is None else {"queries": queries}),
        "run": {"checkpoint": "state", **run},
    }  # fmt: skip
    return of_content(content, base=base)


def refused(**run: Any) -> InputError:
    with pytest.raises(InputError) as found:
        file(**run)
    assert "\n" not in str(found.value) and len(str(found.value)) < 300
    return found.value


@pytest.mark.parametrize(
    "master",
    ["local", "yarn", MASTER, "spark://10.0.0.1:7077,b-2.example.org:7077", "spark://[::1]:7077", "k8s://https://api:6443",
     "k8s://http://127.0.0.1:8001", "k8s://api"],
)  # fmt: skip
def test_masters_are_taken(master: str) -> None:
    image = {"spark.kubernetes.container.image": "streamjoin:1"} if master.startswith("k8s") else {}
    found = file(master=master, spark=image)
    assert (found.cluster is None) == (master == "local")


@pytest.mark.parametrize(
    ("master", "says"),
    [
        ("spark://there", "is not a master; write local, spark://host:port, yarn or k8s://host:port"),
        ("spark://the re:7077", "is not a master"),
        (" yarn", "is not a master"),
        ("YARN", "is not a master"),
        ("yarn\n", "is not a master"),
        ("", "is not a master"),
        ("mesos://there:5050", "is not a master"),
        ("sc://there:15002", "is not a master"),
        ("local-cluster[2,1,1024]", "is not a master"),
        (f"{MASTER},", "is not a master"),
        ("spark://there:70770", "has a port above 65535"),
        ("spark://there:0", "has a port above 65535, or 0"),
        ("local[4]", "says how many threads, which is run.slots here; write local"),
        ("local[*]", "says how many threads"),
        (7077, "is not a master"),
        ({"host": "there"}, "is not a master"),
    ],
)
def test_what_is_no_master_is_refused(master: Any, says: str) -> None:
    wrong = refused(master=master)
    assert wrong.field == "run.master" and says in wrong.message


@pytest.mark.parametrize("master", ["spark://me:hunter2@there:7077", "k8s://https://there?token=hunter2", "x hunter2@"])
def test_attack_a_secret_in_a_master_is_refused_and_not_repeated(master: str) -> None:
    wrong = refused(master=master)
    assert wrong.field == "run.master" and "hunter2" not in str(wrong) and "secrets" in wrong.message


@pytest.mark.parametrize(
    ("run", "field", "says"),
    [
        ({"executors": {"min": 3, "max": 2}}, "run.executors.min", "is 3, and max is 2"),
        ({"executors": {"min": 0}}, "run.executors.min", "1"),
        ({"executors": {"cores": 2.5}}, "run.executors.cores", ""),
        ({"executors": {"memory": "4"}}, "run.executors.memory", "write a whole number and m or g, such as 4g"),
        ({"executors": {"memory": "4 GB"}}, "run.executors.memory", "such as 4g"),
        ({"executors": {"memory": "400m"}}, "run.executors.memory", "need 450m or more"),
        ({"executors": {"disk": 1}}, "run.executors.disk", ""),
        ({"executors": 4}, "run.executors", ""),
        ({"driver_host": "me:7077"}, "run.driver_host", "without a port"),
        ({"driver_host": "a b"}, "run.driver_host", "is not a host"),
        ({"driver_host": ""}, "run.driver_host", "is not a host"),
        ({"shared": "yes"}, "run.shared", ""),
        ({"spark": {"spark.master": "yarn"}}, "run.spark.spark.master", "write run.master"),
        ({"spark": {"spark.driver.host": "me"}}, "run.spark.spark.driver.host", "write run.driver_host"),
        ({"spark": {"spark.submit.deployMode": "cluster"}}, "run.spark.spark.submit.deployMode", "client"),
        (
            {"executors": {"cores": 2}, "spark": {"spark.executor.cores": 3}},
            "run.spark.spark.executor.cores", "says what run.executors says, too; write cores there",
        ),
        (
            {"executors": {}, "spark": {"spark.dynamicAllocation.enabled": False}},
            "run.spark.spark.dynamicAllocation.enabled", "write min and max there",
        ),
        ({"master": "local", "executors": {}}, "run.executors", "run.master is local"),
        ({"master": "local", "driver_host": "me"}, "run.driver_host", "run.master is local"),
        ({"master": "k8s://there"}, "run.spark", "has no spark.kubernetes.container.image"),
    ],
)  # fmt: skip
def test_fields_that_contradict_are_refused(run: dict[str, Any], field: str, says: str) -> None:
    wrong = refused(**{"master": MASTER, **run})
    assert wrong.field == field and says in wrong.message


def test_slots_are_as_many_as_all_executors_work_on() -> None:
    assert file(master=MASTER, executors={"max": 5, "cores": 4}).slots == 20
    assert file(master=MASTER, executors={"max": 5, "cores": 4}, slots=3).slots == 3
    assert file(master=MASTER, executors={"max": 10_000, "cores": 4}).slots == 4096
    assert file(master=MASTER, executors={"cores": 4}).slots == file().slots
    executors = file(master=MASTER, executors={"min": 2, "cores": 4}).run.executors
    assert executors is not None
    assert (executors.most(17), executors.most(3)) == (5, 2)


def lies(found: JoinFile) -> dict[str, tuple[str, bool, bool]]:
    return {place.what: (place.where, place.of_executors, place.is_local) for place in places(found)}


def test_every_part_has_a_place_and_those_who_touch_it() -> None:
    assert lies(file(results={"parquet": "out"})) == {
        "checkpoint": ("/base/state", True, True),
        "state": ("/base/state/state", True, True),
        "rejected rows": ("/base/state/dead-letters", True, True),
        "relations as read": ("/base/state/relations", True, True),
        "stream a": ("/base/a.csv", True, True),
        "stream b": ("broker:9092", True, False),
        "relation t": ("/base/t.csv", False, True),
        "results": ("/base/out", True, True),
    }
    of_jsonl = lies(file(results={"jsonl": "-"}))
    assert of_jsonl["results"] == ("standard output", False, False)
    assert of_jsonl["results before they are committed"] == ("/base/state/staged-results", True, True)
    assert lies(file(results={"store": "sqlite", "path": "r.db"}))["results"] == ("/base/r.db", True, True)
    cassandra = {"store": "cassandra", "hosts": ["one", "two"]}
    assert lies(file(results=cassandra))["results"] == ("one,two", True, False)
    text = "SELECT ONLINE a.x FROM a, b WHERE a.x = b.x WITHIN 1 SECONDS"
    several = places(file(queries={"q": {"query": text, "results": {"parquet": "q"}}}))
    assert [place.field for place in several if place.what == "results of q"] == ["queries.q.results.parquet"]


def test_explain_says_where_each_part_lies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("ts,x\n2026-01-01T00:00:00Z,1\n")
    path = tmp_path / "join.yaml"
    path.write_text(f"""\
streams:
  a: {{source: csv, path: a.csv, time: ts}}
  b: {{source: csv, path: b.csv, time: ts}}
query: SELECT ONLINE a.x FROM a, b WHERE a.x = b.x WITHIN 1 SECONDS
results: {{jsonl: out}}
run: {{checkpoint: state, master: "{MASTER}", shared: true}}
""")
    explain(path)
    table = capsys.readouterr().out.partition(f"\n\ntasks run on {MASTER}\n\n")[2]
    assert [line.split("  ")[0] for line in table.splitlines()] == [
        "part", "checkpoint", "state", "rejected rows", "stream a", "stream b", "results before they are committed",
        "results",
    ]  # fmt: skip
    assert table.splitlines()[-1].split()[1:] == ["driver", f"{tmp_path}/out"]
    explain(path, output="json")
    told = json.loads(capsys.readouterr().out)
    assert told["master"] == MASTER and told["places"][0] == {
        "what": "checkpoint", "where": f"{tmp_path}/state", "of_executors": True, "field": "run.checkpoint",
        "is_local": True,
    }  # fmt: skip
    explain(path, set=["run.master=local"])
    assert "where it lies" not in capsys.readouterr().out


def test_a_place_that_executors_would_not_find_is_refused_before_anything_is_looked_at(tmp_path: Path) -> None:
    with pytest.raises(InputError) as wrong:
        bind(file(tmp_path, master=MASTER))  # whose files are not even there
    assert wrong.value.field == "run.checkpoint"
    assert wrong.value.message == (
        f"checkpoint would lie in {tmp_path}/state, a folder of this machine alone, and executors of {MASTER} could "
        "not reach it; mount the folder at the same path on all its machines and set run.shared: true (on a platform "
        "STREAMJOIN_SPARK_SHARED=true), or set run.master: local"
    )
    for run in ({"master": MASTER, "shared": True}, {}):
        with pytest.raises(InputError, match=r"a\.csv"):
            bind(file(tmp_path, **run))


def test_executors_need_no_folder_for_a_state_in_a_store() -> None:
    found = lies(file(state="s3://key:secret@bucket/job"))
    assert found["state"] == ("s3://bucket/job", True, False)
    assert found["checkpoint"] == ("/base/state", False, True)
    assert found["rejected rows"] == ("/base/state/dead-letters", False, True)
    assert lies(file(state="/mnt/states"))["state"] == ("/mnt/states", True, True)


@pytest.mark.parametrize(
    ("state", "lies_there"),
    [("s3://key:secret@bucket/job", "s3://bucket/job"), ("elsewhere", "{0}/elsewhere"), ("state/state", ""), ("", "")],
)
def test_explain_says_so_without_a_cluster_where_state_is_elsewhere(
    state: str, lies_there: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("ts,x\n2026-01-01T00:00:00Z,1\n")
    content = {
        "streams": {name: {"source": "csv", "path": f"{name}.csv", "time": "ts"} for name in "ab"},
        "query": "SELECT ONLINE a.x FROM a, b WHERE a.x = b.x WITHIN 1 SECONDS",
        "run": {"checkpoint": "state", **({"state": state} if state else {})},
    }
    (tmp_path / "join.yaml").write_text(json.dumps(content))
    explain(tmp_path / "join.yaml")
    text = capsys.readouterr().out
    explain(tmp_path / "join.yaml", output="json")
    told = json.loads(capsys.readouterr().out)
    table = text.partition("\n\ntasks run on this machine\n\n")[2].splitlines()
    if not lies_there:
        assert table == [] and "places" not in told
        return
    (line,) = [line for line in table if line.startswith("state ")]
    assert line.endswith(lies_there.format(tmp_path)) and "driver, tasks" in line
    assert told["master"] == "local" and "secret" not in text
    assert {one["what"]: one["where"] for one in told["places"]}["state"] == lies_there.format(tmp_path)
