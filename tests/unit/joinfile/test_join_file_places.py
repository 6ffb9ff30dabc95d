"""Files and folders that streams are read from: what is not there, what never ends, what is of another format."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from streamjoin.errors import InputError
from streamjoin.sources import filelog
from streamjoin.spec.joinfile import of_content
from streamjoin.state.root import ObjectRoot

from .conftest import GOOD, PAYMENTS, Try

Refusal = Callable[..., str]
COLUMNS = {"ts": "timestamp", "id": "int64", "k": "int64"}


@pytest.fixture
def refusal(validate: Try) -> Refusal:
    def refuse(path: Path | str, source: str = "csv", **fields: object) -> str:
        stream = {"source": source, "path": str(path), "time": "ts", **fields}
        with pytest.raises(InputError) as refused:
            validate({"streams/orders": stream})
        assert refused.value.field == "streams.orders.path"
        return refused.value.message

    return refuse


def test_path_that_is_not_there_is_named(refusal: Refusal, tmp_path: Path) -> None:
    assert refusal(tmp_path / "no") == f"{tmp_path / 'no'} does not exist"
    assert refusal(tmp_path / "no", schema=COLUMNS) == f"{tmp_path / 'no'} does not exist"


def test_pattern_that_nothing_matches_needs_a_schema(refusal: Refusal, tmp_path: Path) -> None:
    assert refusal(tmp_path / "*.csv").endswith("*.csv has no files yet, so its columns are unknown; give a schema")


@pytest.mark.timeout(60)
def test_pipe_and_devices_are_refused_without_reading(refusal: Refusal, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/null")):
        assert refusal(path) == f"{path} is neither a file nor a folder"
        assert refusal(path, schema=COLUMNS) == f"{path} is neither a file nor a folder"


@pytest.mark.timeout(60)
def test_pipes_in_a_folder_are_not_its_files(refusal: Refusal, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "1.csv")
    (tmp_path / "2.csv").symlink_to("/dev/zero")
    assert "has no files yet" in refusal(tmp_path)


def test_empty_folder_needs_a_schema(refusal: Refusal, validate: Try, tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"{tmp_path} has no files yet, so its columns are unknown; give a schema"
    validate({"streams/orders": {"source": "csv", "path": str(tmp_path), "time": "ts", "schema": COLUMNS}})


def test_hidden_files_and_files_in_folders_do_not_count(refusal: Refusal, tmp_path: Path) -> None:
    (tmp_path / ".1.csv").write_text(PAYMENTS)
    (tmp_path / "_2.csv").write_text(PAYMENTS)
    (tmp_path / "2026").mkdir()
    (tmp_path / "2026" / "1.csv").write_text(PAYMENTS)
    assert refusal(tmp_path).endswith(
        f"give a schema; for files in its folders, such as 2026, write path: {tmp_path}/**/*"
    )


def test_links_in_a_circle_are_refused(refusal: Refusal, tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    assert refusal(tmp_path / "circle").endswith("cannot be read: Too many levels of symbolic links")


def test_overlong_path_is_refused_in_a_short_message(refusal: Refusal) -> None:
    assert len(refusal("x" * 5_000)) < 300


def test_unreadable_folder_says_why(refusal: Refusal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(folder: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(filelog.os, "scandir", denied)
    assert refusal(tmp_path) == f"{tmp_path} cannot be read: Permission denied"


@pytest.mark.parametrize("path", ["", " ", "a\0b", "a\nb"])
def test_path_that_cannot_be_one_is_refused(path: str, refusal: Refusal) -> None:
    assert "empty" in refusal(path) or "characters that no path should have" in refusal(path)


@pytest.mark.parametrize("source", ["csv", "jsonl"])
def test_empty_text_file_needs_a_schema(source: str, refusal: Refusal, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    assert refusal(path, source) == f"{path} is empty, so its columns are unknown; give a schema"


def test_a_file_of_a_header_alone_is_said_to_have_no_rows(tmp_path: Path, validate: Try) -> None:
    (tmp_path / "a.csv").write_text("ts,id,k,price\n")
    stream = {"source": "csv", "path": str(tmp_path / "a.csv"), "time": "ts"}
    with pytest.raises(InputError, match="the file has a header and no rows; give a schema") as refused:
        validate({"streams/orders": stream})
    assert refused.value.field == "streams.orders.time"
    typed = {"ts": "timestamp", "id": "int64", "k": "int64", "price": "float64"}
    validate({"streams/orders": {**stream, "schema": typed}})
    (tmp_path / "a.csv").write_text("ts,id,k,price\nnoon,1,1,2\n")
    with pytest.raises(InputError, match='column "ts" is string, such as "noon"; an event time is'):
        validate({"streams/orders": stream})


@pytest.mark.parametrize("text", ["01.02.2026", "02/01/2026 10:00", "2026-1-31 12:00"])
@pytest.mark.parametrize("source", ["csv", "jsonl", "parquet"])
def test_a_time_that_is_written_otherwise_is_named_with_the_form_that_is_read(
    source: str, text: str, tmp_path: Path, validate: Try
) -> None:
    table = pa.table(
        {"ts": [None, "2026-01-31T12:00:00Z", text], "id": [1, 2, 3], "k": [1, 2, 3], "price": [1.5, 2, 3]}
    )
    path = tmp_path / f"a.{source}"
    match source:
        case "csv":
            pyarrow.csv.write_csv(table, path)
        case "jsonl":
            path.write_text("\n".join(map(json.dumps, table.to_pylist())))
        case _:
            pq.write_table(table, path)
    with pytest.raises(InputError) as refused:
        validate({"streams/orders": {"source": source, "path": str(path), "time": "ts"}})
    assert refused.value.field == "streams.orders.time"
    assert refused.value.message == (
        f'column "ts" is string, such as "{text}"; an event time is a timestamp, a date or an integer with '
        "time_unit; texts such as 2026-01-31T12:00:00Z or 2026-01-31 are times with ts: timestamp in a schema, and no "
        "others are"
    )


@pytest.mark.parametrize("source", ["parquet", "arrow"])
@pytest.mark.parametrize("content", [b"", b"ts,id\n1,2\n", b"PAR1garbagePAR1", b"ARROW1\0\0garbage", b"\0" * 100])
def test_file_of_another_format_is_refused(source: str, content: bytes, refusal: Refusal, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert f"{path} cannot be read as {source}" in refusal(path, source)


def test_text_of_another_format_is_refused(refusal: Refusal, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(PAYMENTS)
    assert f"{path} does not begin as jsonl" in refusal(path, "jsonl")


@pytest.mark.parametrize("header", ["ts,k,k", "ts,k,__v,k"])
def test_a_column_that_is_there_twice_is_refused_where_the_query_names_it(
    header: str, validate: Try, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_text(header + "\n" + ",".join("1" * len(header.split(","))) + "\n")
    with pytest.raises(InputError, match=r'column "orders\.k" is there twice, which no stream can have'):
        validate({"streams/orders": {"source": "csv", "path": str(path), "time": "ts"}})


def test_columns_of_no_stream_type_are_left_out(validate: Try, tmp_path: Path) -> None:
    path = tmp_path / "1.parquet"
    rows = {"ts": pa.array([0], pa.timestamp("ns")), "id": pa.array([1], pa.int16()), "k": pa.array([1], pa.uint32()),
            "list": pa.array([[1]]), "struct": pa.array([{"a": 1}])}  # fmt: skip
    pq.write_table(pa.table(rows), path)
    plan = validate({"streams/orders": {"source": "parquet", "path": str(path), "time": "ts"}}).plan
    assert plan.streams[0].columns.names == ["ts", "id", "k", "struct.a"]
    for name, message in (
        ("list", r'column "orders.list" is list<.*>, which no stream can have'),
        ("LIST", r'column "orders.LIST" is list<.*>, which no stream can have'),
        ("struct", '"orders.struct" is a struct; name a field of it, such as orders.struct.a'),
        ("lists", 'there is no column "orders.lists"'),
    ):
        query = f"SELECT ONLINE orders.{name} FROM orders, payments WHERE orders.k = payments.k"
        with pytest.raises(InputError, match=message):
            validate({"streams/orders": {"source": "parquet", "path": str(path), "time": "ts"}, "query": query})


def test_places_that_may_not_be_written_to_are_refused_before_the_run(
    validate: Try, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamjoin.spec.places.os.access", lambda path, mode: False)
    with pytest.raises(InputError, match="cannot be written to") as refused:
        validate({"results": {"parquet": "out/pairs"}})
    assert refused.value.field == "results.parquet"
    assert refused.value.message.startswith(str(folder))


TOPIC = {
    "source": "kafka", "servers": "127.0.0.1:9", "topic": "t", "format": "avro", "time": "ts",
    "schema": {"k": "int64", "ts": "timestamp"},
}  # fmt: skip
ELSEWHERE: list[tuple[dict[str, object], str, str]] = [
    ({"results": {"parquet": "s3://key:secret@b/out"}}, "results.parquet", '"s3://b/out" is a URI, and results are '
     "written to folders of this machine; mount the place"),
    ({"results": {"jsonl": " gs://b/out.jsonl"}}, "results.jsonl", "or keep them in a store on servers"),
    ({"results": {"store": "sqlite", "path": "s3://b/r.db"}}, "results.path", "the store is one file of this machine"),
    ({"run/checkpoint": "s3://b/x"}, "run.checkpoint", "name one, and keep state at such a place with run.state"),
    ({"run/state": "s3://b/x", "run/cache": {"path": "s3://b/c"}}, "run.cache.path", "a cache is a folder of each"),
    ({"streams/orders/path": "s3://b/orders"}, "streams.orders.path", "files are read from folders of this machine"),
    ({"streams/orders/path": "hdfs://host:9000/*.csv"}, "streams.orders.path", "mount the place and name its folder"),
    ({"relations": {"c": {"source": "csv", "path": "s3://b/c"}}}, "relations.c.path", "files are read from folders"),
    ({"streams/orders": {**TOPIC, "avro_schema": "s3://b/order.avsc"}}, "streams.orders.avro_schema",
     '"s3://b/order.avsc" is a URI, and it is read from a file of this machine; mount the place'),
    ({"streams/orders": {**TOPIC, "avro_schema": "file:///o.avsc"}}, "streams.orders.avro_schema", 'alone, "/o.avsc"'),
    ({"streams/orders": {**TOPIC, "avro_schema": " "}}, "streams.orders.avro_schema", "is empty; name a file"),
    ({"streams/orders/path": "file:///data/orders"}, "streams.orders.path", 'write the path alone, "/data/orders"'),
    ({"run/checkpoint": "file://nas/x"}, "run.checkpoint", '"file://nas/x" is a URI, and a checkpoint is'),
    ({"run/state": "file://nas/joins"}, "run.state", "names a host before the path; mount its folder, and write"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "field", "message"), ELSEWHERE)
def test_uris_are_taken_for_no_folders_of_this_machine(
    changes: dict[str, object], field: str, message: str, validate: Try
) -> None:
    with pytest.raises(InputError) as refused:
        validate(changes)
    assert refused.value.field == field and message in refused.value.message
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("state", "found"),
    [("elsewhere", "elsewhere"), ("file:///mnt/states", "/mnt/states"), ("/mnt/states", "/mnt/states")],
)
def test_a_state_in_a_folder_is_a_path(state: str, found: str, tmp_path: Path) -> None:
    file = of_content({**GOOD, "run": {"state": state}}, base=tmp_path)
    assert file.states == tmp_path / found


def test_a_state_in_a_store_has_a_cache(tmp_path: Path) -> None:
    run = {"state": "s3://bucket/job/", "cache": {"path": "cache", "size": "2 GiB"}}
    found = of_content({**GOOD, "run": run}, base=tmp_path).states
    assert found == ObjectRoot("s3://bucket/job", tmp_path / "cache", 2 << 30)
    bare = of_content({**GOOD, "run": {"state": "gs://bucket/job"}}, base=tmp_path).states
    assert isinstance(bare, ObjectRoot) and bare.cache_bytes == 20 << 30 and bare.cache is None
    assert of_content(GOOD, base=tmp_path).states is None


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (
            "s4://key:secret@bucket/x",
            "s4://bucket/x cannot be opened: there is no store of s4://; a URI begins with s3",
        ),
        ("http://x/y", "there is no store of http://"),
        ("hdfs://x/y", "may keep a part of what is written"),
        ("s3://", "names no bucket; write s3://bucket/job"),
        ("s3:///x", "names no bucket"),
        ("gs://key:secret@/x", "names no bucket; write gs://bucket/job"),
        ("s3://?region=x", "names no bucket"),
        ("data/orders", "data/orders is where stream orders comes from; name a folder of its own"),
        ("state", "state is in the checkpoint, where other things lie; leave run.state out"),
        ("state/offsets", "offsets is in the checkpoint, where other things lie"),
        (".", "is in it; name a folder of its own"),
        ("out", "out is where results go; name a folder of its own"),
        ("data/orders/1.csv", "1.csv is a file; state is a folder, or a URI"),
    ],
)
def test_a_place_that_can_keep_no_state_is_refused_before_the_run(state: str, message: str, validate: Try) -> None:
    with pytest.raises(InputError) as refused:
        validate({"run/state": state, "results": {"parquet": "out"}})
    assert refused.value.field == "run.state" and message in refused.value.message
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("state", ["state/state", "elsewhere", "s3://a_bucket", "abfss://container@account.dfs.x/a"])
def test_a_place_that_can_keep_state_is_not(state: str, validate: Try) -> None:
    validate({"run/state": state, "results": {"parquet": "out"}})
