"""Streams of files: what is read, what becomes a dead letter, and what stops the job by name."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamjoin.errors import InputError, RunError
from streamjoin.intake.deadletter import DeadLetter
from streamjoin.intake.dialect import Dialect
from streamjoin.sources import FileSource, fileread, files, lines, texts
from streamjoin.sources.files import FORMATS
from streamjoin.sources.relation import Relation
from streamjoin.sources.source import first_rows

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int64()), ("s", pa.string())])


def source(format: str, path: Path, schema: pa.Schema | None = SCHEMA, files_per_batch: int = 10) -> FileSource:
    found = FileSource("orders", format, path, path.parent / "log.jsonl", files_per_batch, schema)
    found.freeze(0)
    return found


def read(
    format: str, path: Path, schema: pa.Schema | None = SCHEMA, columns: Sequence[str] = ("k", "s"), tasks: int = 1
) -> tuple[list[dict[str, Any]], list[DeadLetter]]:
    """All rows and dead letters of a file or folder."""
    rows: list[dict[str, Any]] = []
    letters: list[DeadLetter] = []
    found = source(format, path, schema)
    for part in found.reads({"files": 0}, {"files": len(found.log.files)}, tasks):
        for batch, bad in part.rows(columns):
            batch.validate(full=True)
            assert batch.schema.names == list(columns)
            rows += batch.to_pylist()
            letters += bad
    return rows, letters


def written(path: Path, format: str, table: pa.Table) -> Path:
    if format == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    return path


# ---- offsets ----------------------------------------------------------------------------------------------------


def test_a_batch_takes_so_many_files_and_no_more_than_there_were(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for number in range(5):
        (data / f"{number}.csv").write_text("k\n1\n")
    found = source("csv", data, files_per_batch=2)
    (data / "5.csv").write_text("k\n1\n")
    offsets = [found.initial()]
    while (offset := found.latest(offsets[-1], 0)) != offsets[-1]:
        offsets.append(offset)
    assert [offset["files"] for offset in offsets] == [0, 2, 4, 5]
    assert [found.backlog(offset) for offset in offsets] == [5, 3, 1, 0]


def test_live_source_sees_new_files_and_never_goes_back(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    found = FileSource("orders", "csv", data, tmp_path / "log", 10, SCHEMA)
    assert found.latest({"files": 0}, 0) == {"files": 0}
    (data / "1.csv").write_text("k\n1\n")
    first = found.latest({"files": 0}, 0)
    assert first["files"] == 1
    (data / "1.csv").unlink()
    assert found.latest(first, 0) == first
    # Of a version that did not say how files are grouped.
    assert found.latest({"files": 1}, 0) == {"files": 1}


def test_a_batch_takes_files_by_their_size_unless_their_number_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BATCH_BYTES", 5 * files.FILE_BYTES_MIN)
    data = tmp_path / "data"
    data.mkdir()
    sizes = [0, 1, 2, 3, 4, 9 * files.FILE_BYTES_MIN, 2 * files.FILE_BYTES_MIN, 3 * files.FILE_BYTES_MIN, 5]
    for number, size in enumerate(sizes):
        (data / f"{number}.jsonl").write_bytes(b"\n" * size)
    found = FileSource("orders", "jsonl", data, tmp_path / "log", schema=SCHEMA)
    found.freeze(0)
    offsets = [found.initial()]
    while (offset := found.latest(offsets[-1], 0)) != offsets[-1]:
        offsets.append(offset)
    assert [offset["files"] for offset in offsets] == [0, 5, 6, 8, 9]


def test_files_that_end_periods_are_read_one_by_one_and_others_together(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for number in range(3):
        (data / f"{number}.csv").write_text("k\n1\n" if number != 1 else "")
    for alone, read in ((True, [0, 1, 2]), (False, [2])):
        found = FileSource("orders", "csv", data, tmp_path / f"log {alone}", schema=SCHEMA, alone=alone)
        end = found.latest(found.initial(), 0)
        assert [one.file for one in found.reads(found.initial(), end, 1)] == read
        # What was logged decides, whatever the join file says by now.
        other = FileSource("orders", "csv", data, tmp_path / f"log {alone}", schema=SCHEMA, alone=not alone)
        other.latest(other.initial(), 0)
        assert [one.file for one in other.reads(other.initial(), end, 1)] == read


def grouped(data: Path, tasks: int = 4, start: int = 0) -> list[Any]:
    found = source("csv", data)
    return list(found.reads({"files": start}, {"files": len(found.log.files), files.GROUPING: 1}, tasks))


def test_small_files_are_read_together_whatever_the_number_of_tasks(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for number in range(5):
        padding = "" if number != 3 else "x" * files.GROUP_BYTES
        (data / f"{number}.csv").write_text(f"k,s\n{number},{padding}\nbad,\n{number + 10},a\n")
    for tasks in (1, 2, 100):
        reads = grouped(data, tasks)
        assert [(part.name, part.identity) for part in reads] == [
            ("000000000:000000000000", "0-2"),
            ("000000003:000000000000", "3:3.csv"),
            ("000000004:000000000000", "4:4.csv"),
        ]
    [(rows, letters)] = reads[0].rows(["k"])
    assert rows["k"].to_pylist() == [0, 10, 1, 11, 2, 12]
    assert [(letter.source, letter.position) for letter in letters] == [(f"{n}.csv", 1) for n in range(3)]
    assert [reads[0].place(position) for position in (0, 1, 2, 5)] == [
        ("0.csv", 0, "record"), ("0.csv", 2, "record"), ("1.csv", 0, "record"), ("2.csv", 2, "record")
    ]  # fmt: skip
    assert reads[1].place(1) == ("3.csv", 1, "record")
    # A batch that was planned before groups were is repeated file by file.
    before = source("csv", data).reads({"files": 0}, {"files": 5}, 2)
    assert [part.identity for part in before] == [f"{number}:{number}.csv" for number in range(5)]


def test_blocks_of_a_group_are_of_bounded_size_and_lose_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fileread, "BLOCK_ROWS", 7)
    data = tmp_path / "data"
    data.mkdir()
    for number, count in enumerate([3, 0, 9, 1, 1, 1, 20, 2]):
        (data / f"{number}.csv").write_text("k,s\n" + "1,a\nx,b\n" * count)
    [part] = grouped(data)
    # Where no column is wanted, no record is wrong.
    for columns, good, bad in ((["k", "s"], 37, 37), ([], 74, 0)):
        sizes = [(rows.num_rows, len(letters)) for rows, letters in part.rows(columns)]
        assert [sum(count) for count in zip(*sizes, strict=True)] == [good, bad]
        assert max(rows for rows, _ in sizes) <= 7


def test_broken_file_of_a_group_stops_the_job_by_its_own_name(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for number in range(3):
        (data / f"{number}.csv").write_text("k,s\n1,a\n" if number != 1 else "other\n1\n")
    [part] = grouped(data)
    with pytest.raises(RunError, match=r"1\.csv has none of the columns"):
        list(part.rows(["k"]))


def test_an_empty_file_of_a_group_is_passed_over(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for number in range(3):
        (data / f"{number}.csv").write_text("k,s\n1,a\n" if number != 1 else "")
    [part] = grouped(data)
    assert sum(rows.num_rows for rows, _ in part.rows(["k"])) == 2


def test_a_replay_reads_the_same_under_the_same_names(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for name in ("b", "c"):
        (data / f"{name}.csv").write_text(f"k,s\n1,{name}\n")
    first = [(part.name, part.identity) for part in source("csv", data).reads({"files": 0}, {"files": 2}, 4)]
    (data / "a.csv").write_text("k,s\n1,a\n")
    again = [(part.name, part.identity) for part in source("csv", data).reads({"files": 0}, {"files": 2}, 4)]
    assert first == again == [("000000000:000000000000", "0:b.csv"), ("000000001:000000000000", "1:c.csv")]


@pytest.mark.parametrize("tasks", [1, 2, 3, 7, 100])
def test_row_groups_are_read_apart_with_the_positions_they_have_together(tasks: int, tmp_path: Path) -> None:
    path = tmp_path / "1.parquet"
    pq.write_table(pa.table({"k": range(50)}), path, row_group_size=8)
    found = source("parquet", path, None)
    places = []
    reads = found.reads({"files": 0}, {"files": 1}, tasks)
    for part in reads:
        at = part.position
        for rows, _ in part.rows(["k"]):
            places += [(at + row, value) for row, value in enumerate(rows["k"].to_pylist())]
            at += rows.num_rows
    assert places == [(row, row) for row in range(50)]
    assert len({part.name for part in reads}) == len(reads) == min(tasks, 7)
    assert [part.name for part in reads] == sorted(part.name for part in reads)
    assert len({part.identity for part in reads}) == 1


def test_parts_are_of_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fileread, "BLOCK_ROWS", 7)
    (tmp_path / "1.csv").write_text("k,s\n" + "1,a\nx,b\n" * 50)
    parts = [part.rows(["k"]) for part in source("csv", tmp_path / "1.csv").reads({"files": 0}, {"files": 1}, 1)]
    sizes = [(rows.num_rows, len(bad)) for rows, bad in parts[0]]
    assert sum(rows for rows, _ in sizes) == sum(bad for _, bad in sizes) == 50
    assert max(rows for rows, _ in sizes) == 7


# ---- text -------------------------------------------------------------------------------------------------------


def test_bad_csv_record_is_a_dead_letter_with_file_place_and_reason(tmp_path: Path) -> None:
    path = tmp_path / "1.csv"
    path.write_bytes(b"ts,k,s\n,1,a\n,x,b\n\n,3\n,4,d,e\n,5,\xff\n,6,f\n")
    rows, letters = read("csv", path)
    assert rows == [{"k": 1, "s": "a"}, {"k": 6, "s": "f"}]
    assert [(letter.stream, letter.source, letter.position) for letter in letters] == [
        ("orders", "1.csv", place) for place in (1, 2, 3, 4)
    ]
    assert letters[0].record == b",x,b\n"
    assert 'field "k"' in letters[0].detail
    assert 'field "s" is missing' in letters[1].detail
    assert "more than 3 CSV fields" in letters[2].detail
    assert "not valid UTF-8" in letters[3].detail


@pytest.mark.parametrize("tail", ["", "\r\n", "\n\n\n"])
@pytest.mark.parametrize("chunk_bytes", [16, 1 << 20])
def test_kept_letters_name_the_line_that_an_editor_shows(
    tail: str, chunk_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "CHUNK_BYTES", chunk_bytes)
    path = tmp_path / "1.csv"
    text = '\nts,k,s\n,x,b\n\n,3,"two\nlines"\n,y,"three\n\nlines"\n,z,c\n,7,g\n\n\n,bad,d' + tail
    path.write_bytes(text.encode())
    [part] = source("csv", path, schema=pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("s", pa.string())])).reads(
        {"files": 0}, {"files": 1}, 1
    )
    letters = [letter for _, bad in part.rows(["k", "s"]) for letter in bad]
    shown = text.split("\n")
    found = part.located(letters)
    assert [letter.unit for letter in found] == ["line"] * 4
    assert [shown[letter.position - 1][:3] for letter in found] == [",x,", ",y,", ",z,", ",ba"]
    # Rows that were read, but have no time, are placed beside them.
    assert [part.place(position)[1] for position in (0, 1)] == [1, 4]


def test_bad_json_record_is_a_dead_letter_with_file_place_and_reason(tmp_path: Path) -> None:
    path = tmp_path / "1.jsonl"
    good = [{"k": 1, "s": "a"}, {"k": 2, "s": None, "more": {"x": [1]}}, {"s": "no k"}]
    bad = [
        "nonsense",
        '{"k": 1',
        '{"k": "1.5"}',
        '{"k": 1, "k": 2}',
        "[1]",
        '{"k": 1e400}',
        "{}}",
        '{"k":' + "[" * 1000,
    ]
    texts = [json.dumps(good[0]), *bad, json.dumps(good[1]), "", json.dumps(good[2])]
    path.write_text("\n".join(texts), encoding="utf-8-sig")
    rows, letters = read("jsonl", path)
    assert rows == [{"k": 1, "s": "a"}, {"k": 2, "s": None}, {"k": None, "s": "no k"}]
    assert [letter.position for letter in letters] == list(range(1, 1 + len(bad)))
    assert [(letter.record or b"").decode().strip() for letter in letters] == bad
    assert all(letter.detail and "\n" not in letter.detail for letter in letters)


GOOD_CSV = st.tuples(st.integers(-(2**63), 2**63 - 1), st.text('ab,"\n\r é\0', max_size=6)).map(
    lambda pair: (pair, f'"","{pair[0]}","{pair[1].replace(chr(34), chr(34) * 2)}"\n'.encode())
)
BAD_CSV = st.sampled_from([
    b",x,a\n", b",1\n", b",1,a,b\n", b"zz,1,a\n", b",1,\xff\n", b",99999999999999999999,a\n", b',1,"a"b\n',
    b"1\n", b",1.5,\n", b'5" pipe\n',
])  # fmt: skip
OPEN_QUOTE = st.sampled_from([b"", b'"\n', b',1,"a\n', b',"1,a\n'])


@pytest.mark.slow
@given(st.lists(GOOD_CSV | BAD_CSV, max_size=20), OPEN_QUOTE, st.lists(GOOD_CSV | BAD_CSV, max_size=20), st.booleans())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_bad_csv_records_never_cost_a_good_one(
    tmp_path: Path, before: list[Any], open_quote: bytes, after: list[Any], ends: bool
) -> None:
    records = [*before, *([open_quote] if open_quote else []), *after]
    path = tmp_path / "1.csv"
    path.unlink(missing_ok=True)
    (tmp_path / "log.jsonl").unlink(missing_ok=True)
    content = b"ts,k,s\n" + b"".join(record if isinstance(record, bytes) else record[1] for record in records)
    path.write_bytes(content if ends or not records else content.removesuffix(b"\n"))
    good = [{"ts": None, "k": record[0][0], "s": record[0][1]} for record in records if not isinstance(record, bytes)]
    for chunk_bytes in (1 << 20, 5):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lines, "CHUNK_BYTES", chunk_bytes)
            rows, letters = read("csv", path, columns=("ts", "k", "s"))
        assert rows == good
        assert [letter.position for letter in letters] == [
            place for place, record in enumerate(records) if isinstance(record, bytes)
        ]


GOOD_JSON = st.fixed_dictionaries({"k": st.integers(-(2**63), 2**63 - 1), "s": st.none() | st.text(max_size=6)})
BAD_JSON = st.sampled_from(
    ["x", "{", '{"k": true}', '{"k": 1.5}', '{"ts": "yesterday"}', '"{', "[]", '{"s": "\\ud800"}']
)


@pytest.mark.slow
@given(st.lists(GOOD_JSON | BAD_JSON, max_size=30), st.booleans())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_bad_json_records_never_cost_a_good_one(
    tmp_path: Path, records: list[dict[str, Any] | str], ascii_only: bool
) -> None:
    path = tmp_path / "1.jsonl"
    (tmp_path / "log.jsonl").unlink(missing_ok=True)
    texts = [record if isinstance(record, str) else json.dumps(record, ensure_ascii=ascii_only) for record in records]
    path.write_bytes("\n".join(texts).encode("utf-8", "surrogatepass"))
    rows, letters = read("jsonl", path, columns=("ts", "k", "s"))
    good = [record for record in records if not isinstance(record, str) and _is_text(record["s"])]
    assert rows == [{"ts": None, **record} for record in good]
    assert len(letters) + len(rows) == len(records)


def _is_text(value: str | None) -> bool:
    return value is None or not any(0xD800 <= ord(letter) <= 0xDFFF for letter in value)


def test_columns_come_by_name_and_in_any_order(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "1.csv").write_text("ts,k,s\n,1,a\n")
    (data / "2.csv").write_text("more,s,k\nnot a number,b,2\n")
    (data / "3.csv").write_text('\n\ufeff"k","s"\r\n3,c\r\n'.replace("\n\ufeff", "\ufeff"))
    assert read("csv", data) == ([{"k": 1, "s": "a"}, {"k": 2, "s": "b"}, {"k": 3, "s": "c"}], [])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1,a\n2,b\n", r"2\.csv has none of the columns ts, k, s; it has 1, a"),
        ("k,s,k\n1,a,2\n", r'2\.csv has the column "k" twice'),
        ("PAR1\0\1\2", r"2\.csv has none of the columns"),
        ("k;s\n1;a\n", r"one column with 1 semicolon in it; write it with the delimiter of the files before"),
    ],
)
def test_csv_file_with_another_header_stops_the_job_by_name(content: str, message: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "1.csv").write_text("k,s\n1,a\n")
    (data / "2.csv").write_text(content)
    with pytest.raises(RunError, match=message):
        read("csv", data)


def test_a_file_whose_column_names_are_not_utf8_is_read_once_it_was_written_anew(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "1.csv").write_text("k,s\n1,a\n")
    (data / "2.csv").write_bytes("k,s,Gr\u00f6\u00dfe\n2,\u00fc,5\n".encode("latin-1"))
    with pytest.raises(RunError, match=r"2\.csv cannot be read: its line of column names is not UTF-8; write the file"):
        read("csv", data)
    assert (tmp_path / "log.jsonl").exists(), "the batch is logged, and will be repeated"
    (data / "2.csv").write_bytes((data / "2.csv").read_bytes().decode("latin-1").encode())
    assert read("csv", data) == ([{"k": 1, "s": "a"}, {"k": 2, "s": "\u00fc"}], [])


def test_csv_file_with_another_delimiter_than_the_first_says_what_to_set(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "1.csv").write_text("k\ts\n1\ta\n")
    said = r"one column with 1 tab in it; where these are between columns set csv: \{delimiter: \"\\t\"\}"
    with pytest.raises(RunError, match=said):
        read("csv", data)


@pytest.mark.parametrize("format", ["parquet", "arrow", "jsonl", "jsonl.gz", "csv"])
def test_a_file_may_be_called_anything_that_a_file_system_takes(format: str, tmp_path: Path) -> None:
    given, data = pa.table({"k": pa.array([1, 2]), "s": ["a", "b"]}), tmp_path / "data"
    data.mkdir()
    folder = Path(os.fsdecode(os.fsencode(data) + b"/n=caf\xc3\xa9/\xff=1"))
    folder.mkdir(parents=True)
    path = Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9." + format.encode()))
    if format in ("parquet", "arrow"):
        written(tmp_path / "plain", format, given)
        (tmp_path / "plain").rename(path)
    else:
        text = "k,s\n1,a\n1\n2,b\n" if format == "csv" else '{"k": 1, "s": "a"}\n{\n{"k": 2, "s": "b"}\n'
        path.write_bytes(gzip.compress(text.encode()) if format == "jsonl.gz" else text.encode())
    kind = format.removesuffix(".gz")
    rows, _ = read(kind, data, None, columns=("k", "s", "n"), tasks=4)
    assert rows == [{"k": 1, "s": "a", "n": "café"}, {"k": 2, "s": "b", "n": "café"}]
    table = Relation("t", kind, (path,), pa.schema([("k", pa.int64())]), data)
    assert table.about_rows() is None if format == "jsonl.gz" else table.about_rows() in (2, 3)
    assert table.origin() and sum(block.num_rows for block, _ in table.blocks(["k"])) == 2
    path.write_bytes(b"\xff")
    with pytest.raises((RunError, InputError)) as wrong:
        read(kind, path, None)
    assert "caf\\udce9" in str(wrong.value).encode().decode()


NAMES = [f"c{number}" for number in range(1_200)]
WIDE, TOO_WIDE = ",".join(NAMES[:900]), ",".join(NAMES)
UNASKED = [
    ("__index,k,s", "0,1,a"), (",k,s", "0,1,a"), ("k,s,,", "1,a,,"), ("n,k,n,s", "0,1,x,a"), ("k,s,__x,__x", "1,a,,"),
    ("k,s," + WIDE, "1,a," + WIDE),
]  # fmt: skip


@pytest.mark.parametrize(
    ("header", "record", "schema"),
    [
        *((*written, schema) for written in UNASKED for schema in (SCHEMA, None)),
        ("k,s," + TOO_WIDE, "1,a," + TOO_WIDE, SCHEMA),  # without a schema these are too many columns for a stream
    ],
)
def test_fields_of_a_csv_file_that_nobody_asked_for_may_be_called_anything(
    header: str, record: str, schema: pa.Schema | None, tmp_path: Path
) -> None:
    data = tmp_path / "1.csv"
    data.write_text(f"{header}\n{record}\n{record},more\n")
    rows, letters = read("csv", data, schema)
    assert rows == [{"k": 1, "s": "a"}]
    assert [(letter.reason, letter.position) for letter in letters] == [("malformed", 1)]
    assert read("csv", data, schema, columns=())[1] == letters


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_no_value_makes_a_record_bad_where_no_column_is_asked_for(format: str, tmp_path: Path) -> None:
    data = tmp_path / f"1.{format}"
    records = ["k,s,ts", "1,a,", "x,,never", "1"] if format == "csv" else ['{"k": "x"}', '{"ts": 1, "\\u006b": 2}', "{"]
    data.write_text("\n".join(records))
    found = source(format, data)
    (part,) = found.reads({"files": 0}, {"files": 1}, 1)
    ((rows, letters),) = part.rows([])
    assert (rows.num_rows, rows.num_columns, [letter.reason for letter in letters]) == (2, 0, ["malformed"])


@pytest.mark.parametrize(
    ("dialect", "content", "schema"),
    [
        (Dialect(";"), "k;s\n1;a,b\n2;\n", None),
        (Dialect(";", names=("k", "s"), header=False), "1;a,b\n2;\n", None),
        (Dialect(";", names=("k", "s")), "first;second\n1;a,b\n2;\n", None),
        (Dialect(";", header=False), "1;a,b\n2;\n", pa.schema([("k", pa.int64()), ("s", pa.string())])),
        (Dialect("\t", "'", "NA"), "k\ts\n1\t'a,b'\n2\tNA\n", None),
        (Dialect(",", "'"), "s,k\n'a,b',1\n,2\n", None),
    ],
)
def test_csv_of_other_dialects_is_guessed_and_read(
    dialect: Dialect, content: str, schema: pa.Schema | None, tmp_path: Path
) -> None:
    (tmp_path / "1.csv").write_text(content)
    found = FileSource("orders", "csv", tmp_path / "1.csv", tmp_path / "log", schema=schema, csv=dialect)
    found.freeze(0)
    [part] = found.reads(found.initial(), found.latest(found.initial(), 0), 1)
    [(rows, letters)] = part.rows(["k", "s"])
    assert not letters
    assert rows.to_pylist() == [{"k": 1, "s": "a,b"}, {"k": 2, "s": None}]


@pytest.mark.parametrize("format", ["csv", "jsonl"])
@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_empty_text_file_has_no_rows(format: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / f"1.{format}").write_bytes(content)
    assert read(format, tmp_path / f"1.{format}") == ([], [])


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_rows_count_also_where_no_column_is_wanted(format: str, tmp_path: Path) -> None:
    path = tmp_path / "1"
    path.write_text("k\n1\nx\n" if format == "csv" else '{"k": 1}\n{"k": 2\n')
    [part] = source(format, path, pa.schema([("k", pa.int64())])).reads({"files": 0}, {"files": 1}, 1)
    assert sum(rows.num_rows for rows, _ in part.rows([])) == (2 if format == "csv" else 1)


# ---- Parquet and Arrow ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_columns_of_binary_files_come_by_name(format: str, tmp_path: Path) -> None:
    table = pa.table({"more": [[1]], "s": pa.array(["a"]).dictionary_encode(), "k": pa.array([1], pa.int32())})
    assert read(format, written(tmp_path / "1", format, table)) == ([{"k": 1, "s": "a"}], [])


def kept(folder: Path, format: str, name: str, rows: dict[str, list[Any]]) -> None:
    """A file of any format."""
    folder.mkdir(exist_ok=True)
    if format in ("parquet", "arrow"):
        written(folder / name, format, pa.table(rows))
        return
    records = pa.table(rows).to_pylist()
    lines = [json.dumps(record) for record in records]
    if format == "csv":
        lines = [",".join(rows), *(",".join(map(str, record.values())) for record in records)]
    (folder / name).write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("format", FORMATS)
def test_columns_that_older_files_lack_are_null(format: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    kept(data, format, "1", {"k": [1, 2]})
    kept(data, format, "2", {"s": ["a"], "k": [3]})
    kept(data, format, "3", {"s": ["b"]})
    assert read(format, data) == (
        [{"k": 1, "s": None}, {"k": 2, "s": None}, {"k": 3, "s": "a"}, {"k": None, "s": "b"}], []
    )  # fmt: skip
    assert read(format, data, columns=["ts"]) == ([{"ts": None}] * 4, [])


@pytest.mark.parametrize("format", ["parquet", "arrow", "jsonl"])
def test_fields_of_structs_are_read_alone(format: str, tmp_path: Path) -> None:
    kept(tmp_path / "data", format, "1", {"k": [1, 2], "p": [{"x": 5, "at": {"y": "a"}}, None]})
    kept(tmp_path / "data", format, "2", {"p": [{"at": {"y": "b"}, "more": 1}], "k": [3]})
    for columns in (["p.at.y", "k", "p.x"], ["p.x"]):
        rows, letters = read(format, tmp_path / "data", None, columns)
        want = [
            {"p.at.y": "a", "k": 1, "p.x": 5},
            {"p.at.y": None, "k": 2, "p.x": None},
            {"p.at.y": "b", "k": 3, "p.x": None},
        ]
        assert rows == [{name: row[name] for name in columns} for row in want]
        assert not letters


@pytest.mark.parametrize("format", FORMATS)
def test_columns_whose_names_differ_by_case_only_are_read_apart(format: str, tmp_path: Path) -> None:
    kept(tmp_path / "data", format, "1", {"k": [1], "K": [2]})
    assert read(format, tmp_path / "data", None, ["K"]) == ([{"K": 2}], [])
    assert read(format, tmp_path / "data", None, ["k", "K"]) == ([{"k": 1, "K": 2}], [])


@pytest.mark.parametrize("format", FORMATS)
def test_columns_are_guessed_from_several_files(format: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    for number in range(9):
        rows: dict[str, list[Any]] = {"k": [1.5 if number == 4 else 1]}
        kept(data, format, str(number), rows | ({"s": ["a"]} if number == 8 else {}))
    if format == "jsonl":
        (data / "6").write_bytes(b"")
    found = source(format, data, None)
    assert [(field.name, str(field.type)) for field in found.schema] == [("k", "double"), ("s", "string")]
    assert not read(format, data, None, ["k", "s"])[1]


def test_file_of_something_else_has_no_part_in_the_guess_and_is_named_when_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("ts,k\n2026-01-01T00:00:00Z,1\n")
    (tmp_path / "2.csv").write_text("a,b\n1,2\n")
    source = FileSource("orders", "csv", tmp_path, tmp_path.parent / "log.jsonl")
    assert source.schema.names == ["ts", "k"]
    reads = source.reads(source.initial(), source.latest(source.initial(), 0), 1)
    with pytest.raises(RunError, match=r"2\.csv has none of the columns ts, k; it has a, b"):
        [rows for read in reads for rows in read.rows(["ts", "k"])]


def test_dead_letter_of_a_value_that_was_not_guessed_says_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("k\n1\n1.5\n")
    _, [letter] = read("csv", tmp_path / "1.csv", pa.schema([("k", pa.int64())]), ["k"])
    assert letter.detail.endswith("where this is no mistake give the column another type in the stream's schema")


@pytest.mark.parametrize("format", [format for format in FORMATS if format != "jsonl"])
def test_file_with_none_of_the_columns_stops_the_job_by_name(format: str, tmp_path: Path) -> None:
    kept(tmp_path / "data", format, "1", {"a": [1], "b": [2]})
    with pytest.raises(RunError, match="1 has none of the columns ts, k, s; it has a, b"):
        read(format, tmp_path / "data")


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_damaged_binary_file_stops_the_job_by_name(format: str, tmp_path: Path) -> None:
    table = pa.table({"k": range(20_000), "s": ["x" * (row % 50) for row in range(20_000)]})
    path = written(tmp_path / "1", format, table)
    whole = path.read_bytes()
    for content in (b"", whole[: len(whole) // 2], whole[:-1], b"\0" * len(whole), whole[4:]):
        path.write_bytes(content)
        (tmp_path / "log.jsonl").unlink(missing_ok=True)
        with pytest.raises(RunError, match=r"1 (cannot be read|is damaged)"):
            read(format, path)


def test_parquet_file_with_a_page_overwritten_stops_the_job_by_name(tmp_path: Path) -> None:
    path = tmp_path / "1"
    pq.write_table(
        pa.table({"k": range(20_000), "s": ["x"] * 20_000}), path, compression="snappy", use_dictionary=False
    )
    whole = bytearray(path.read_bytes())
    whole[30:4_000] = bytes(range(256)) * 15 + bytes(130)
    path.write_bytes(whole)
    with pytest.raises(RunError, match=r"1 (cannot be read|is damaged)"):
        read("parquet", path)


def test_empty_binary_files_have_no_rows(tmp_path: Path) -> None:
    table = pa.table({"k": pa.array([], pa.int64()), "s": pa.array([], pa.string())})
    for format in ("parquet", "arrow"):
        (tmp_path / "log.jsonl").unlink(missing_ok=True)
        assert read(format, written(tmp_path / format, format, table), tasks=4) == ([], [])


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_type_that_changes_in_a_later_file_fits_exactly_or_stops_the_job_by_name(format: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for number, kind in enumerate((pa.int32(), pa.int8(), pa.int64(), pa.float64(), pa.uint64())):
        written(data / str(number), format, pa.table({"k": pa.array([number], kind)}))
    schema = pa.schema([("k", pa.int32())])
    assert [row["k"] for row in read(format, data, schema, ("k",))[0]] == [0, 1, 2, 3, 4]
    written(data / "5", format, pa.table({"k": pa.array([2**40], pa.int64())}))
    with pytest.raises(RunError, match='data/5, column "k": Integer value 1099511627776 not in range'):
        read(format, data, schema, ("k",))


@pytest.mark.parametrize("line", [b"\n", b"{}x\n", b" "])
def test_attack_a_look_at_an_archive_reads_no_more_than_a_beginning(
    line: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "SAMPLED_BYTES", 1 << 16)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl.gz").write_bytes(gzip.compress(line * (32 << 20), 1))
    taken = 0
    chunk = texts._Rest.read

    def counted(self: Any, size: int, /) -> bytes:
        nonlocal taken
        part: bytes = chunk(self, size)
        taken += len(part)
        return part

    monkeypatch.setattr(texts._Rest, "read", counted)
    schema = pa.schema([("a", pa.int64())])
    source = FileSource("s", "jsonl", tmp_path / "in", tmp_path / "log", schema=schema)
    rows, letters = first_rows(source, schema, 100)
    assert (rows.num_rows, len(letters) <= 1 << 16) == (0, True)
    assert taken < 1 << 20
