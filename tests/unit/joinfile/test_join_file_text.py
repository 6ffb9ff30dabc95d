"""What is no join file at all: text, YAML, the file itself."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamjoin.errors import InputError
from streamjoin.settings.text import read_yaml
from streamjoin.spec.joinfile import FILE_BYTES_MAX, load, of_content, parse


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the join file is empty; it needs streams and query"),
        ("# only a comment\n", "the join file is empty"),
        ("null", "the join file is empty"),
        ("- a\n- b", r"a join file is a mapping with streams and query or queries, .*, not \['a', 'b'\]"),
        ("plain text", 'not "plain text"'),
        ("!!set {a, b}", "a join file is a mapping"),
        ("!!omap [a: 1]", "a join file is a mapping"),
        ("streams:\n\t- b", r"line 2, column 1: found character '\\t' that cannot start any token"),
        ("streams: [1,", "line 1, column 13: expected the node content"),
        ("a: b: c", "line 1, column 5: mapping values are not allowed here"),
        ("query: 'open", "line 1, column 13: found unexpected end of stream"),
        ("a: 1\nb:\n  c: 1\n  c: 2", 'line 4, column 3: "c" is given twice'),
        ("a: 1\n'a': 2", 'line 2, column 1: "a" is given twice'),
        ("a: &x [1]\nb: *x", "line 2, column 4: a join file has no aliases"),
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]", "line 2, column 8: a join file has no aliases"),
        ("a: 1\n---\nb: 2", "line 2, column 1: but found another document"),
        ("a: !!python/object/apply:os.system [ls]", "line 1, column 4: could not determine a constructor"),
        ("a: 1\nb: \0", r"line 2, column 4: a text file has no character U\+0000"),
        ("[a]: 1", "line 1, column 1: a name is a plain text"),
        ("streams:\n  {a: 1}: 2", "line 2, column 3: a name is a plain text"),
        ("query: 2026-02-30", 'line 1, column 8: "2026-02-30" cannot be read: .*; put a text into quotes'),
        ("query: !!int x", 'line 1, column 8: "x" cannot be read'),
        ("[" * 20_000, "nested too deeply"),
        ("{a: " * 5_000, "nested too deeply"),
        ("a: [" + "1," * 200_000 + "]", "line 1, column 99999: more than 50000 names and values are too many"),
    ],
    ids=lambda given: given[:60],
)
def test_what_is_no_join_file_is_refused_with_line_and_column(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        parse(text)
    assert refused.value.field is None


def test_a_number_as_a_name_is_refused_where_the_content_is_no_text() -> None:
    with pytest.raises(InputError, match="5 is not a name; names are texts, so put it into quotes") as refused:
        of_content({"streams": {5: {}}, "query": "SELECT ONLINE 1"})
    assert refused.value.field == "streams"


@pytest.mark.parametrize("number", ["0x" + "f" * 5000, "0" + "7" * 6000, ":".join(["59"] * 3000), "-0x" + "f" * 5000])
@pytest.mark.parametrize("place", ["run: {slots: %s}", "run: {checkpoint: [%s]}", "query: {a: %s}", "results: %s"])
def test_attack_a_number_that_python_does_not_show_is_refused_all_the_same(number: str, place: str) -> None:
    with pytest.raises(InputError, match="thousands of digits"):
        of_content(read_yaml("streams: {a: {source: csv, path: a.csv, time: ts}}\n" + place % number))


def test_byte_order_mark_before_the_text_is_ignored(tmp_path: Path, text_of: Callable[[Any], str]) -> None:
    path = tmp_path / "join.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + text_of({}).encode())
    assert set(load(path).streams) == {"orders", "payments"}


def test_name_and_folder_of_the_file_are_those_of_the_join(tmp_path: Path, text_of: Callable[[Any], str]) -> None:
    path = tmp_path / "pairs.yaml"
    path.write_text(text_of({"run/checkpoint": None}).replace("checkpoint: null", "slots: 1").replace("slots: 2\n", ""))
    file = load(path)
    assert file.resolve("data") == tmp_path / "data"
    assert file.checkpoint == tmp_path / ".streamjoin" / "pairs"


def refused(path: Path) -> str:
    with pytest.raises(InputError) as found:
        load(path)
    return str(found.value)


def test_missing_file_is_named(tmp_path: Path) -> None:
    assert refused(tmp_path / "no.yaml") == f"there is no file {tmp_path / 'no.yaml'}"


def test_folder_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path) == f"{tmp_path} is a folder; a join file is a short text"


def test_file_larger_than_one_mebibyte_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "join.yaml"
    path.write_text("# " + "x" * FILE_BYTES_MAX)
    assert "is larger than 1 MiB" in refused(path)


def test_binary_file_is_refused_with_the_first_wrong_byte(tmp_path: Path) -> None:
    path = tmp_path / "join.yaml"
    path.write_bytes(b"PAR1\x15\x04\xff\xfe")
    assert "is not text: byte 6 is not UTF-8" in refused(path)


@pytest.mark.timeout(60)
def test_pipe_and_endless_device_are_refused_without_reading(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        assert refused(path) == f"{path} is no file; a join file is a short text"


def test_links_in_a_circle_and_overlong_names_are_refused(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    assert re.search("cannot be read: Too many levels", refused(tmp_path / "circle"))
    assert "cannot be read: File name too long" in refused(tmp_path / ("x" * 5_000))
    assert len(refused(tmp_path / ("x" * 5_000))) < 300
    assert "cannot be read" in refused(Path("a\0b"))


def test_unreadable_file_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "join.yaml"
    path.write_text("streams: {}")

    def denied(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", denied)
    assert refused(path) == f'"{path}" cannot be read: Permission denied'


def test_names_are_the_texts_that_they_are() -> None:
    file = parse(
        """
        streams:
          orders: {source: csv, path: o, time: ts, csv: {delimiter: ";", header: false, names: ["on", k, ts], null: NA}}
          no: {source: csv, path: p, time: ts, schema: {on: int64, 2026-01-01: int64, 7: string, ts: timestamp}}
        query: SELECT ONLINE orders.k FROM orders, no WHERE orders.k = no."on"
        results: {discard: true}
        """
    )
    dialect = file.streams["orders"].csv
    assert dialect is not None and dialect.null == "NA"
    assert list(file.streams["no"].schema_ or {}) == ["on", "2026-01-01", "7", "ts"]
