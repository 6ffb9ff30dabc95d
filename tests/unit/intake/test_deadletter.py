"""Dead letters: what a line holds, and that a file is whole or not there."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from streamjoin.intake.deadletter import BAD_VALUE, RECORD_BYTES_MAX, DeadLetter, write_dead_letters


def letter(record: bytes | None, position: int = 7) -> DeadLetter:
    return DeadLetter("orders", "orders/3", position, BAD_VALUE, 'field "a": the text is no int64', record, "offset")


def written(path: Path, *letters: DeadLetter) -> list[dict[str, Any]]:
    write_dead_letters(path, letters, 4, 1_767_225_600_000_000)
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_text_record_is_one_line_of_text(tmp_path: Path) -> None:
    assert written(tmp_path / "letters.jsonl", letter('{"a":\n"é"}'.encode()), letter(b"x", 8)) == [
        {"reason": "bad_value", "stream": "orders", "batch": 4, "at_us": 1_767_225_600_000_000, "source": "orders/3",
         "position": position, "unit": "offset", "detail": 'field "a": the text is no int64', "record": record}
        for position, record in ((7, '{"a":\n"é"}'), (8, "x"))
    ]  # fmt: skip


def test_other_bytes_are_base64(tmp_path: Path) -> None:
    [found] = written(tmp_path / "letters.jsonl", letter(b"\xff\x00"))
    assert base64.b64decode(found["record_base64"]) == b"\xff\x00"
    assert "record" not in found


def test_tombstone_has_no_record(tmp_path: Path) -> None:
    [found] = written(tmp_path / "letters.jsonl", letter(None))
    assert found["record"] is None


def test_record_of_64_kib_is_whole_and_one_byte_more_is_cut(tmp_path: Path) -> None:
    whole, cut = written(
        tmp_path / "letters.jsonl", letter(b"x" * RECORD_BYTES_MAX), letter(b"x" * (RECORD_BYTES_MAX + 1))
    )
    assert "truncated" not in whole
    assert cut["truncated"] is True
    assert whole["record"] == cut["record"] == "x" * RECORD_BYTES_MAX


def test_cut_through_a_character_leaves_text(tmp_path: Path) -> None:
    [found] = written(tmp_path / "letters.jsonl", letter(b"x" * (RECORD_BYTES_MAX - 2) + "😀😀".encode()))
    assert found["record"] == "x" * (RECORD_BYTES_MAX - 2)


def test_long_record_of_other_bytes_is_base64_and_cut(tmp_path: Path) -> None:
    [found] = written(tmp_path / "letters.jsonl", letter(b"\xff" * (RECORD_BYTES_MAX + 1)))
    assert base64.b64decode(found["record_base64"]) == b"\xff" * RECORD_BYTES_MAX
    assert found["truncated"] is True


def test_replay_puts_the_same_bytes_in_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "letters.jsonl"
    write_dead_letters(path, [letter(b"a"), letter(b"b")], 4, 0)
    first = path.read_bytes()
    write_dead_letters(path, [letter(b"a"), letter(b"b")], 4, 0)
    assert path.read_bytes() == first
    assert list(path.parent.iterdir()) == [path]


def test_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "letters.jsonl"
    write_dead_letters(path, [letter(b"old")], 4, 0)

    def full(descriptor: int) -> None:
        raise OSError("disk is full")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="disk is full"):
        write_dead_letters(path, [letter(b"new")], 4, 0)
    assert b"old" in path.read_bytes()
    assert list(tmp_path.iterdir()) == [path]
