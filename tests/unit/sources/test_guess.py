"""Guessing the columns of folders as people have them."""

from __future__ import annotations

import gzip
import re
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.errors import InputError, QueryError
from streamjoin.intake.dialect import Dialect
from streamjoin.plan.schema import StreamSchema, check_schema
from streamjoin.query import plan_query
from streamjoin.sources.guess import first_schema
from streamjoin.sources.nesting import depth_of

OBJECT = b'{"id": 1, "k": "x"}\n'


@pytest.mark.parametrize("nothing", [b"", b"\n\n", gzip.compress(b"")], ids=["nothing", "empty lines", "gzip"])
@pytest.mark.parametrize(("format", "content"), [("csv", b"id,k\n1,x\n"), ("jsonl", OBJECT)])
def test_empty_files_do_no_harm_wherever_they_are(format: str, content: bytes, nothing: bytes, tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"part-{number}").write_bytes(content if number == 5 else nothing)
    assert first_schema(format, tmp_path) == pa.schema([("id", pa.int64()), ("k", pa.string())])


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_empty_files_alone_ask_for_a_schema(format: str, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"part-{number}").write_bytes(b"")
    with pytest.raises(InputError, match="part-0 is empty, so its columns are unknown; give a schema"):
        first_schema(format, tmp_path)


@pytest.mark.parametrize(
    ("header", "delimiter", "what", "other"),
    [
        ("ts;k;v", ",", "2 semicolons", ";"),
        ('"ts";"k"', ",", "1 semicolon", ";"),
        ("ts\tk\tv\tw", ",", "3 tabs", r"\t"),
        ("ts|k", ",", "1 vertical bar", "|"),
        ("ts,k,v", ";", "2 commas", ","),
    ],
)
def test_files_with_another_delimiter_are_refused_with_it(
    header: str, delimiter: str, what: str, other: str, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text(f"{header}\n{header}\n")
    said = f'{what} in it; where these are between columns set csv: {{delimiter: "{other}"}}, else give the name'
    with pytest.raises(InputError, match=re.escape(f"a.csv: its first line is one column with {said}")) as refused:
        first_schema("csv", tmp_path, Dialect(delimiter))
    assert refused.value.field == "csv.delimiter"
    assert first_schema("csv", tmp_path, Dialect(delimiter, names=("all",))).names == ["all"]


@pytest.mark.parametrize("content", ["message\na;b\n", '"a, b"\nx\n', "a;b,c\n1,2\n"])
def test_a_delimiter_that_is_no_other_is_part_of_a_name_or_value(content: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(content)
    assert first_schema("csv", tmp_path).names in (["message"], ["a, b"], ["a;b", "c"])


def test_reserved_names_are_left_out_and_a_query_that_names_one_hears_why(tmp_path: Path) -> None:
    # As pandas writes an index, and MongoDB the version of a document.
    rows = pa.table({"id": [1], "ts": [1], "__index_level_0__": [7], "_id": ["x"]})
    pq.write_table(rows, tmp_path / "a.parquet")
    (tmp_path / "b.jsonl").write_bytes(b'{"id": 1, "ts": 1, "__v": 0, "at": {"__typename": "x"}}\n')
    parquet = first_schema("parquet", tmp_path / "a.parquet")
    json = first_schema("jsonl", tmp_path / "b.jsonl")
    assert (parquet.names, json.names) == (["id", "ts", "_id"], ["id", "ts", "at.__typename"])
    for schema in (parquet, json):
        check_schema(schema)
    schemas = {"a": StreamSchema("a", parquet, "ts"), "b": StreamSchema("b", json, "ts")}
    with pytest.raises(QueryError, match=r'column "b\.__v": names that begin with two underscores are reserved'):
        plan_query("SELECT ONLINE a.id FROM a, b WHERE a.id = b.__v", schemas)


def test_a_name_that_is_there_twice_is_left_out_and_a_query_that_names_it_hears_why(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"id,n,ts,n,,\n1,2,3,4,,\n")
    found = first_schema("csv", tmp_path / "a.csv")
    assert found.names == ["id", "ts"]
    check_schema(found)
    schemas = {name: StreamSchema(name, found, "ts") for name in "ab"}
    with pytest.raises(QueryError, match=r'column "b\.n" is there twice, which no stream can have'):
        plan_query("SELECT ONLINE a.id FROM a, b WHERE a.id = b.n", schemas)


@pytest.mark.parametrize("content", [b"[" + OBJECT + b"," + OBJECT + b"]", b"\n [\n" + OBJECT + b"]\n"])
def test_a_json_array_is_refused_with_the_way_out(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(
        InputError, match=r"a\.json is one JSON array; write its objects one a line, without the brackets"
    ):
        first_schema("jsonl", tmp_path / "a.json")


def test_an_arrow_stream_is_told_from_a_damaged_file(tmp_path: Path) -> None:
    rows = pa.table({"id": [1]})
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as file, pa.ipc.new_stream(file, rows.schema) as writer:
        writer.write_table(rows)
    with pytest.raises(InputError, match=r"a\.arrow is an Arrow stream; write it as an Arrow file"):
        first_schema("arrow", tmp_path / "a.arrow")
    for content in (b"", b"ARRO", b"ARROW1 and nothing else"):
        (tmp_path / "b.arrow").write_bytes(content)
        with pytest.raises(InputError, match=r"b\.arrow cannot be read as arrow"):
            first_schema("arrow", tmp_path / "b.arrow")


@pytest.mark.parametrize(
    "deep",
    [
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        "\n[" * 100_000 + "]" * 100_000,  # Arrow reads across lines
    ],
)
def test_attack_a_value_nested_100_000_deep_ends_no_process(tmp_path: Path, deep: str) -> None:
    path = tmp_path / "deep.jsonl"
    path.write_text(f'{{"id": {deep}}}\n')
    with pytest.raises(InputError, match=r"nested more than 60 deep.*give a schema"):
        first_schema("jsonl", path)
    path.write_text(f'{{"id": 1}}\n{{"id": {deep}}}\n]]]]\n{{"id": 2}}\n')
    assert first_schema("jsonl", path) == pa.schema([("id", pa.int64())])  # a deep record costs itself only
    path.write_text(f'{{"id": "\n{"]" * 200_000}\n{{"id": {deep}}}\n')  # what is wrong before it hides nothing
    with pytest.raises(InputError, match="does not begin as jsonl"):
        first_schema("jsonl", path)


def test_brackets_in_texts_nest_nothing(tmp_path: Path) -> None:
    assert depth_of(b'{"a": "[[[[\\"[[[", "b": [[1], []]}\n{"c": {}}') == 3
    assert depth_of(b'{"a": "\n[[1]]\n') == 3 and depth_of(b"]]]]{[") == 2 and depth_of(b"") == depth_of(b"1") == 0
    path = tmp_path / "texts.jsonl"
    path.write_text(f'{{"id": "{"[{" * 1000}", "deep": {"[" * 50}1{"]" * 50}}}\n')
    assert first_schema("jsonl", path).field("id").type == pa.string()


@pytest.mark.slow
def test_attack_100_000_columns_are_refused_at_once(tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(100_000)]
    (tmp_path / "a.csv").write_text(f"{','.join(names)}\n{'1,' * 99_999}1\n")
    (tmp_path / "a.jsonl").write_text("".join(f'{{"{name}":1}}\n' for name in names[:60_000]))
    inside = ",".join(f'"{name}":1' for name in names[:90_000])
    (tmp_path / "b.jsonl").write_text(f'{{"a": {{{inside}}}}}\n')
    for name, count in (("a.csv", 100_000), ("a.jsonl", 60_000), ("b.jsonl", 90_000)):
        assert_refused(tmp_path / name, name[2:], count)


@pytest.mark.slow
@pytest.mark.parametrize("files", [1, 2])
def test_attack_parquet_files_of_20_000_columns_are_refused_at_once(files: int, tmp_path: Path) -> None:
    for number in range(files):
        value = pa.array([1.5 if number else 1])
        pq.write_table(pa.table({f"c{at}": value for at in range(20_000)}), tmp_path / f"{number}.parquet")
    assert_refused(tmp_path, "parquet", 20_000)


def assert_refused(path: Path, format: str, count: int) -> None:
    begun = time.process_time()  # Arrow reads in threads of its own
    with pytest.raises(InputError, match=f"a stream may have 1000 columns at most, this one has {count}; give it"):
        check_schema(first_schema(format, path))
    assert time.process_time() - begun < 5  # quadratic in columns it takes minutes


def test_1_000_columns_have_their_types(tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(1_000)]
    line = ",".join(f'"{name}":{number}.5' for number, name in enumerate(names))
    (tmp_path / "a.csv").write_text(f"{','.join(names)}\n{','.join(['2.5'] * 1_000)}\n")
    (tmp_path / "b.csv").write_text(
        f"{','.join(names)}{',' * 999}\n{','.join(['2.5'] * 1_999)}\n"
    )  # as spreadsheets do
    (tmp_path / "a.jsonl").write_text(f"{{{line}}}\n" * 3)
    (tmp_path / "b.jsonl").write_text("".join(f'{{"{name}":2.5,"__v":[{{"x{name}":1}}]}}\n' for name in names))
    for name in ("a.csv", "b.csv", "a.jsonl", "b.jsonl"):
        found = first_schema(name[2:], tmp_path / name)
        assert found.names == names and {field.type for field in found} == {pa.float64()}, name
        check_schema(found)


@pytest.mark.slow
def test_attack_many_objects_and_many_fields_are_guessed_from_as_many_as_there_is_room_for(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    wide = "".join(f'{{"c{number}":1}}\n' for number in range(1_000))
    path.write_text("{}\n" * 300_000 + wide)
    begun = time.process_time()
    assert len(first_schema("jsonl", path)) == 1_000
    assert time.process_time() - begun < 5  # 3e8 cells take minutes
    path.write_text('{"a":1}{"b":2}\n{"a":3}\n')  # Arrow reads two objects
    assert first_schema("jsonl", path).names == ["a", "b"]
    inside = ",".join(f'"c{number}":1' for number in range(50_000))
    path.write_text(f'{{"a":1,"list":[{{{inside}}}]}}\n')
    with pytest.raises(InputError, match="objects have 50002 fields, those inside of others among them; give a schema"):
        first_schema("jsonl", path)
