"""Text files as people have them: other encodings and archives are read, and damage is never a silent loss."""

from __future__ import annotations

import codecs
import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from streamjoin.errors import InputError, RunError
from streamjoin.sources import lines
from streamjoin.sources.files import FileSource
from streamjoin.sources.guess import first_schema
from streamjoin.sources.texts import head_of, is_plain, opened

TEXT = "k,s\n1,é😀\n2,b\n"
ROWS = [{"k": 1, "s": "é😀"}, {"k": 2, "s": "b"}]
MARKED = {
    "utf-8": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE, "utf-32-be": codecs.BOM_UTF32_BE,
}  # fmt: skip


def zstd(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as packed:
        packed.write(content)
    return bytes(sink.getvalue().to_pybytes())


PACKED = {"gz": gzip.compress, "zst": zstd}


def rows(format: str, path: Path) -> list[dict[str, object]]:
    """All rows of a file or folder; there are no dead letters."""
    found = FileSource("orders", format, path, path.parent / "log.jsonl", 10)
    found.freeze(0)
    every: list[dict[str, object]] = []
    for read in found.reads({"files": 0}, {"files": len(found.log.files)}, 1):
        for batch, letters in read.rows(found.schema.names):
            assert not letters
            every += batch.to_pylist()
    return every


def content(path: Path, size: int = 1 << 20) -> bytes:
    with opened(path) as text:
        return b"".join(iter(lambda: text.read(size), b""))


@pytest.mark.parametrize("encoding", MARKED)
@pytest.mark.parametrize("size", [1, 2, 3, 1 << 20])
def test_text_with_a_byte_order_mark_is_read_as_its_encoding(encoding: str, size: int, tmp_path: Path) -> None:
    path = tmp_path / "1.csv"
    path.write_bytes(MARKED[encoding] + TEXT.encode(encoding))
    assert content(path, size) == TEXT.encode()


@pytest.mark.parametrize("encoding", MARKED)
def test_every_encoding_with_a_mark_gives_the_same_rows(encoding: str, tmp_path: Path) -> None:
    csv, json = tmp_path / "1.csv", tmp_path / "1.jsonl"
    csv.write_bytes(MARKED[encoding] + TEXT.encode(encoding))
    json.write_bytes(MARKED[encoding] + '{"k": 1, "s": "é😀"}\n{"k": 2, "s": "b"}'.encode(encoding))
    assert rows("csv", csv) == ROWS
    (tmp_path / "log.jsonl").unlink()
    assert rows("jsonl", json) == ROWS


@pytest.mark.parametrize(
    "begin",
    [gzip.compress(b"x", mtime=0), b"PK\x03\x04", codecs.BOM_UTF16_LE, '{"k": 1}\n'.encode("utf-16-be"), b"\0x"],
    ids=["gzip", "zip", "UTF-16 with a mark", "UTF-16", "a zero"],
)
def test_attack_a_posted_file_is_read_as_utf8_whatever_it_begins_with(begin: bytes, tmp_path: Path) -> None:
    # What the platform calls files of posted rows.
    path = tmp_path / "rows_01kb2m8zqv3c4d5e6f7g8h9j0k.jsonl"
    path.write_bytes(begin + b'\n{"k": 1, "s": "b"}\n')
    assert is_plain(path)
    schema = pa.schema([("k", pa.int64()), ("s", pa.string())])
    read = FileSource("orders", "jsonl", path, tmp_path / "log.jsonl", 10, schema).sample(10)
    assert read is not None
    ((batch, letters),) = read.rows(["k", "s"])
    assert batch.to_pylist() == [{"k": 1, "s": "b"}] and {letter.reason for letter in letters} == {"malformed"}


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_refused_with_the_way_out(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "1.csv"
    path.write_bytes(TEXT.encode(encoding))
    with pytest.raises(RunError, match=r"1\.csv looks like UTF-16 without a byte order mark; write it as UTF-8"):
        content(path)
    with pytest.raises(InputError, match="looks like UTF-16"):
        first_schema("csv", path)


@pytest.mark.parametrize("broken", [b"a\0\x00\xd8", b"a\0b"])
def test_text_that_is_not_what_its_mark_says_stops_the_job_by_name(broken: bytes, tmp_path: Path) -> None:
    path = tmp_path / "1.csv"
    path.write_bytes(codecs.BOM_UTF16_LE + broken)
    with pytest.raises(RunError, match=r"1\.csv is not the UTF-16-LE text that its byte order mark says"):
        content(path)


@pytest.mark.parametrize("suffix", PACKED)
@pytest.mark.parametrize("named", [True, False])
def test_archives_are_read_by_name_and_by_first_bytes(suffix: str, named: bool, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    ending = f".{suffix}" if named else ""
    (data / f"1.csv{ending}").write_bytes(PACKED[suffix](TEXT.encode()))
    (data / f"2.csv{ending}").write_bytes(PACKED[suffix](codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le")))
    (data / "3.csv").write_text(TEXT)
    assert rows("csv", data) == ROWS * 3


@pytest.mark.parametrize("suffix", PACKED)
def test_archive_of_several_members_is_read_to_its_end(suffix: str, tmp_path: Path) -> None:
    pack = PACKED[suffix]
    path = tmp_path / f"1.jsonl.{suffix}"
    path.write_bytes(pack(b'{"k": 1}\n{"k"') + pack(b"") + pack(b": 2}\n") + pack(b'{"k": 3}'))
    assert rows("jsonl", path) == [{"k": 1}, {"k": 2}, {"k": 3}]


def test_zeros_behind_a_gzip_archive_are_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "1.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"k": 1}\n') + b"\0" * 512 + gzip.compress(b'{"k": 2}\n') + b"\0" * 70_000)
    assert rows("jsonl", path) == [{"k": 1}, {"k": 2}]


@pytest.mark.parametrize("suffix", PACKED)
@pytest.mark.parametrize("harm", ["cut", "last byte", "garbage behind", "changed", "empty", "plain"])
def test_damaged_archive_stops_the_job_by_name(
    suffix: str, harm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "CHUNK_BYTES", 1 << 12)
    text = b"".join(b'{"k": %d}\n' % number for number in range(20_000))
    whole = PACKED[suffix](text)
    middle = len(whole) // 2
    path = tmp_path / f"1.jsonl.{suffix}"
    path.write_bytes({
        "cut": whole[:middle], "last byte": whole[:-1], "garbage behind": whole + b"garbage!",
        "changed": whole[:middle] + bytes(255 - byte for byte in whole[middle : middle + 9]) + whole[middle + 9 :],
        "empty": b"", "plain": text,
    }[harm])  # fmt: skip
    with pytest.raises(RunError, match=rf"1\.jsonl\.{suffix} is damaged"):
        list(lines.records_of(str(path)))


@pytest.mark.parametrize("begin", [b"BZh91AY&SY", b"\xfd7zXZ\0", b"PK\x03\x04", b"\x04\x22\x4d\x18"])
def test_other_archives_are_refused_with_the_way_out(begin: bytes, tmp_path: Path) -> None:
    path = tmp_path / "1.jsonl"
    path.write_bytes(begin + b"1234")
    with pytest.raises(RunError, match="which is not read; pack it with gzip or zstd, or not at all"):
        content(path)


def test_head_is_cut_or_whole(tmp_path: Path) -> None:
    path = tmp_path / "1"
    path.write_bytes(gzip.compress(b"12345"))
    assert [head_of(path, size) for size in (4, 5, 6)] == [(b"1234", True), (b"12345", False), (b"12345", False)]
