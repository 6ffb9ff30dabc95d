"""Text files cut into records: every byte is in one record, and a broken record costs no other."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamjoin.errors import InputError, RunError
from streamjoin.intake.dialect import Dialect
from streamjoin.intake.records import decoder
from streamjoin.sources import lines
from streamjoin.sources.columns import stream_schema
from streamjoin.sources.lines import read_header, records_of
from streamjoin.sources.text_guess import infer_schema


def records(path: Path, content: bytes, *, quoted: bool = False) -> list[bytes]:
    """The records of a file, the same whatever the size of a chunk."""
    path.write_bytes(content)
    found: list[list[bytes]] = []
    for chunk_bytes in (1 << 20, 1, 2, 3, 7):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lines, "CHUNK_BYTES", chunk_bytes)
            texts: list[bytes] = []
            for first, part in records_of(str(path), Dialect() if quoted else None):
                assert first == len(texts)
                part.validate(full=True)
                texts += part.to_pylist()
        found.append(texts)
    assert all(texts == found[0] for texts in found)
    return found[0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"\n", []),
        (b"\n\r\n\n", []),
        (b"a", [b"a"]),
        (b"a\n", [b"a\n"]),
        (b"a\nb", [b"a\n", b"b"]),
        (b"a\r\nb\r\n", [b"a\r\n", b"b\r\n"]),
        (b"a\n\n\r\nb", [b"a\n", b"b"]),
        (b"\r\r\n", [b"\r\r\n"]),
        (b"\xef\xbb\xbfa\nb", [b"a\n", b"b"]),
        (b"\xef\xbb\xbf", []),
        (b"a\n\xef\xbb\xbfb", [b"a\n", b"\xef\xbb\xbfb"]),
        (b"\0\n\0\0", [b"\0\n", b"\0\0"]),
        (b'"a\nb"', [b'"a\n', b'b"']),
        (b" \n", [b" \n"]),
    ],
)
def test_lines_are_records(content: bytes, expected: list[bytes], path: Path) -> None:
    assert records(path, content) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"h", []),
        (b"h\n", []),
        (b"h\n1", [b"1"]),
        (b"h\r\n1\r\n\r\n2", [b"1\r\n", b"2"]),
        (b"\n\nh\n1\n", [b"1\n"]),
        (b"\xef\xbb\xbfh\n1\n", [b"1\n"]),
        (b'"h\nh"\n1\n', [b"1\n"]),
        (b'h\n"a\nb",1\n2,2\n', [b'"a\nb",1\n', b"2,2\n"]),
        (b'h\n1,"a\r\n\r\nb"\r\n2\n', [b'1,"a\r\n\r\nb"\r\n', b"2\n"]),
        (b'h\n"a""\n"",\nb",1\n2\n', [b'"a""\n"",\nb",1\n', b"2\n"]),
        (b'h\n""\n"",""\n""""\n', [b'""\n', b'"",""\n', b'""""\n']),
        (b'h\n"a\nb"', [b'"a\nb"']),
        (b'h\n"a\nb",1', [b'"a\nb",1']),
    ],
)
def test_quotes_protect_line_breaks_and_the_header_is_left_out(
    content: bytes, expected: list[bytes], path: Path
) -> None:
    assert records(path, content, quoted=True) == expected


@pytest.mark.parametrize(
    ("bad", "cut"),
    [
        (b'1,5" pipe\n', [b'1,5" pipe\n']),
        (b'1,say "hi\n', [b'1,say "hi\n']),
        (b'1,"open\n', [b'1,"open\n']),
        (b'"\n', [b'"\n']),
        (b'1,"a"b\n', [b'1,"a"b\n']),
        (b'1,"a\nb"c\n', [b'1,"a\n', b'b"c\n']),
        (b'1, "a\n', [b'1, "a\n']),
    ],
)
def test_record_with_wrong_quotes_ends_with_its_line(bad: bytes, cut: list[bytes], path: Path) -> None:
    assert records(path, b"h\n0,x\n" + bad + b'2,y\n3,"z\nz"\n', quoted=True) == [
        b"0,x\n", *cut, b"2,y\n", b'3,"z\nz"\n',
    ]  # fmt: skip
    assert records(path, b"h\n0,x\n" + bad + b"2,y\n3,z", quoted=True) == [b"0,x\n", *cut, b"2,y\n", b"3,z"]
    assert records(path, b"h\n" + bad.removesuffix(b"\n"), quoted=True)[0] == cut[0].removesuffix(
        b"\n" * (len(cut) == 1)
    )


def test_quote_that_stays_open_too_long_protects_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "RECORD_BYTES_MAX", 1_000)
    content = b'h\n1,"open\n' + b"2,x\n" * 1_000
    assert records(path, content, quoted=True) == [b'1,"open\n', *[b"2,x\n"] * 1_000]


def test_record_that_is_too_large_stops_the_job_by_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "RECORD_BYTES_MAX", 1 << 20)
    monkeypatch.setattr(lines, "CHUNK_BYTES", 1 << 19)
    path.write_bytes(b"a\n" + b"x" * (4 << 20))
    with pytest.raises(RunError, match="file: a record is larger than 1 MiB"):
        list(records_of(str(path)))


def test_long_line_is_one_record(path: Path) -> None:
    line = b"x" * (20 << 20)
    path.write_bytes(b"a\n" + line + b"\nb\n")
    assert [len(text) for _, part in records_of(str(path)) for text in part.to_pylist()] == [
        2, len(line) + 1, 2,
    ]  # fmt: skip


def test_file_that_is_not_there_stops_the_job_by_name(path: Path) -> None:
    with pytest.raises(RunError, match="file cannot be read"):
        list(records_of(str(path)))


@given(st.lists(st.sampled_from([b"a", b'"', b",", b"\n", b"\r\n", b'""', b"\xff", b"\0"])).map(b"".join))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("quoted", [False, True])
def test_no_byte_is_lost_or_moved(quoted: bool, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    found = records(path, b"h\n" + content, quoted=quoted)[0 if quoted else 1 :]
    place = 0
    for record in found:
        begin = content.index(record, place)
        assert not content[place:begin].strip(b"\r\n")
        place = begin + len(record)
        assert record.strip(b"\r\n") or b"\r\r" in record
    assert not content[place:].strip(b"\r\n")


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (b"a,b\n1,2\n", ["a", "b"]),
        (b"a,b", ["a", "b"]),
        (b"\xef\xbb\xbfa,b\r\n", ["a", "b"]),
        (b"\n\na,b\n", ["a", "b"]),
        (b'"a b","c,d","e""f","g\nh"\n', ["a b", "c,d", 'e"f', "g\nh"]),
        (b"a,b\n\xff\xfe\n", ["a", "b"]),
        (b"a\n" + b"\xff" * 5_000, ["a"]),
        (",é\n".encode(), ["", "é"]),
        (b"", []),
        (b"\n\r\n", []),
    ],
)
def test_first_record_of_a_csv_file_names_its_columns(content: bytes, names: list[str], path: Path) -> None:
    path.write_bytes(content)
    assert read_header(path, Dialect()) == names


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,\xff\n", "cannot be read: its line of column names"),
        (b'a,"b\n1,2\n', "cannot be read: its line of column names"),
    ],
)
def test_csv_file_without_column_names_is_refused(content: bytes, message: str, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(RunError, match=message):
        read_header(path, Dialect())


def test_columns_are_inferred_from_the_first_megabyte(path: Path) -> None:
    path.write_bytes(b"ts,k,s,at\n" + b'2026-01-01T00:00:00Z,1,"a\nb",12:30:00\n' * 40_000 + b"x,x,x,x\n")
    assert [str(field.type) for field in infer_schema(path, "csv")] == [
        "timestamp[s, tz=UTC]",
        "int64",
        "string",
        "string",
    ]


@pytest.mark.parametrize("place", [0.51, 1.0])
@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_numbers_are_as_wide_as_the_middle_and_the_end_of_a_long_file_need(
    format: str, place: float, path: Path
) -> None:
    def line(a: str, b: str) -> bytes:
        return (f"{a},{b}\n" if format == "csv" else f'{{"a": {a}, "b": "{b}"}}\n').encode()

    before = [line("1", "x" * 80)] * 30_000
    before.insert(int(place * len(before)) - (10 if place == 1 else 0), line("1.5", "y"))
    path.write_bytes((b"a,b\n" if format == "csv" else b"") + b"".join(before) + (b"bad\n" if format == "csv" else b""))
    assert [str(field.type) for field in infer_schema(path, format)] == ["double", "string"]


def test_middle_of_a_file_is_not_looked_at_where_a_record_may_begin_anywhere(path: Path) -> None:
    path.write_bytes(b"a,b\n" + b'1,"\n1.5,2\n"\n' * 300_000)
    assert [str(field.type) for field in infer_schema(path, "csv")] == ["int64", "string"]


def test_bad_line_does_not_spoil_what_is_inferred_of_a_csv_file(path: Path) -> None:
    path.write_bytes(b"a,b\n1,2\n1\n1,2,3\n3,4\n")
    assert infer_schema(path, "csv").names == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        (b'{"a": 1}\n{"a":\n{"a": 2}\n', "a: int64"),
        (b'{"a": 1, "b": "x"}\n{"a": "n/a", "b": "y"}\n{"a": 2.5, "b": null}\n', "a: double\nb: string"),
        (b'{"a": 1}\n{"a": "x"}\n', "a: int64"),  # of equally many the first
        (b'{"a": "x"}\n{"a": 1}\n{"a": "y"}\n', "a: string"),
        (b'[1]\n{"a": true}\n{"a": 1}\n{"a": false}\n', "a: bool"),
        (
            b'{"a": {"b": 1}}\n{"a": {"b": "x"}}\n{"a": 3}\n{"a": {"b": 2}}\n',
            "a: struct<b: int64>\n  child 0, b: int64",
        ),
        (b'{"a": 1, "a": 2}\n{"a": 1}\n', "a: int64"),
        (b'{"a": 1}\n' + b'{"a": ' * 100_000 + b'\n{"a": 2}\n', "a: int64"),
    ],
)
def test_json_lines_that_differ_do_not_spoil_what_is_inferred_of_the_others(
    content: bytes, columns: str, path: Path
) -> None:
    path.write_bytes(content)
    assert str(infer_schema(path, "jsonl")) == columns


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["0x1F", "0x2a"], "string"),
        (["12", " 0X2A"], "string"),
        (["2024-01-01 00", "2024-01-01T01"], "string"),
        (["2024-01-01 00:00", "2024-01-01 01"], "string"),
        (["2024-01-01 00Z", "2024-01-01 01+02"], "string"),
        (["2024-01-01 00:00", "2024-01-01 01:00"], "timestamp[us, tz=UTC]"),
        (["10", "7"], "int64"),
    ],
)
def test_a_csv_column_is_guessed_to_be_what_it_is_read_as(texts: list[str], kind: str, path: Path) -> None:
    path.write_text("k,a\n" + "".join(f"1,{text}\n" for text in texts))
    found = stream_schema(infer_schema(path, "csv"))
    assert str(found.field("a").type) == kind
    records = pa.array([f"1,{text}".encode() for text in texts], pa.binary())
    assert decoder("csv", found).decode(records).bad == []


@pytest.mark.parametrize("content", [b'{"a":\n[1]\n', b"null\n", b"1\n"])
def test_a_json_file_without_any_object_asks_for_a_schema(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"does not begin as jsonl: .*; give a schema"):
        infer_schema(path, "jsonl")


@pytest.mark.parametrize(
    "first", [b"null", b"\n \n null", b"\tnull\r", b"null null", b'null{"a": "x"}', b"null,", b"nullnull"]
)
def test_attack_a_null_before_all_objects_ends_no_process(first: bytes, path: Path) -> None:
    # Arrow's reader ends its process where the first value of a text is null.
    path.write_bytes(first + b'\n{"a": 1}\n')
    assert str(infer_schema(path, "jsonl")) == "a: int64"


def test_attack_a_null_first_in_the_middle_of_a_file_ends_no_process(path: Path) -> None:
    blanks = b" " * 1000 + b"\n"
    path.write_bytes((b'{"a": 1}' + blanks) * 1100 + (b"null" + blanks) * 3000 + b'{"a": 1.5}\n' * 3)
    assert str(infer_schema(path, "jsonl")) == "a: double"


@pytest.mark.parametrize("bytes_max", [0, 3, 4, 7, 100])
def test_of_a_beginning_only_whole_records_are_read(bytes_max: int, path: Path) -> None:
    path.write_bytes(b"1\n22\n333")
    whole = [b"1\n", b"22\n", b"333"][: {0: 0, 3: 1, 4: 1, 7: 2, 100: 3}[bytes_max]]
    assert [one for _, part in records_of(str(path), bytes_max=bytes_max) for one in part.to_pylist()] == whole


def test_mark_of_byte_order_does_not_spoil_what_is_inferred(path: Path) -> None:
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\n')
    assert infer_schema(path, "jsonl").names == ["a"]
    path.write_bytes(b"\xef\xbb\xbfa\n1\n")
    assert infer_schema(path, "csv").names == ["a"]


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["2026-01-01T00:00:00.000000Z", None, "2026-01-01T00:00:00.5Z"], "timestamp[us, tz=UTC]"),
        (["2026-01-01T00:00:00+02:00"], "timestamp[us, tz=UTC]"),
        (["2026-01-01 00:00:00"], "timestamp[us, tz=UTC]"),
        (["2026-01-01 00:00:00.5", "2026-01-01T00:00"], "timestamp[us, tz=UTC]"),
        (["2026-01-01T00:00:00.123456789Z", "2026-01-01T00:00:00.5Z"], "timestamp[ns, tz=UTC]"),
        (["2026-01-01T00:00:00.12345678901Z"], "timestamp[ns, tz=UTC]"),
        (["2026-01-01 00:00:00.123456789", "2026-01-01 00:00:00"], "timestamp[ns, tz=UTC]"),
        (["2026-01-01T00:00:00.123456000Z"], "timestamp[us, tz=UTC]"),
        (["2026-01-01T00:00:00.123456789Z", "9999-12-31T23:59:59Z"], "timestamp[us, tz=UTC]"),
        (["9999-12-31 23:59:59.999"], "timestamp[us, tz=UTC]"),
        (["2026-01-01T00:00:00Z", "later"], "string"),
        (["2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00.5"], "string"),
        (["2026-13-01T00:00:00Z"], "string"),
        (["2026-01-01Z"], "string"),
        (["", "2026-01-01T00:00:00Z"], "string"),
    ],
)
def test_times_in_json_are_recognised_by_their_texts(texts: list[str | None], kind: str, path: Path) -> None:
    path.write_text("".join(json.dumps({"t": text, "in": {"t": text}}) + "\n" for text in texts))
    found = stream_schema(infer_schema(path, "jsonl"))
    assert [str(found.field(name).type) for name in ("t", "in.t")] == [kind, kind]


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["2026-01-01T00:00:00.123456789Z", ""], "timestamp[ns, tz=UTC]"),
        (["2026-01-01T00:00:00.5Z", "9999-12-31T23:59:59.999Z"], "timestamp[us, tz=UTC]"),
        (["2026-01-01 00:00:00.5", "", "0001-01-01 00:00:00.5"], "timestamp[us, tz=UTC]"),
        (["2026-01-01 00:00:00.5", "later"], "string"),
    ],
)
def test_times_in_csv_are_times_also_beyond_the_years_of_nanoseconds(texts: list[str], kind: str, path: Path) -> None:
    path.write_text("t,n\n" + "".join(f"{text},1\n" for text in texts))
    assert str(stream_schema(infer_schema(path, "csv")).field("t").type) == kind


def test_what_is_no_text_is_said_to_be_none_and_leaves_no_stack(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path.write_bytes(bytes(range(256)) * 10)
    with pytest.raises(InputError, match=r"is not UTF-8 text from byte 129 on; save it as UTF-8$"):
        infer_schema(path, "csv")
    assert capfd.readouterr().err == ""


def test_zeros_and_strange_bytes_far_behind_cost_no_column(path: Path) -> None:
    rows = [b"%d,word" % number for number in range(400_000)]
    rows[205_000] = b"\0,\xff"
    path.write_bytes(b"id,word\n" + b"\n".join(rows) + b"\n")
    assert infer_schema(path, "csv").names == ["id", "word"]
