"""Rows that are missing from results: counted once, kept within bounds, and shown page by page."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from streamjoin import failpoints
from streamjoin.durable import temporary_beside
from streamjoin.errors import StateError
from streamjoin.intake import rejected
from streamjoin.intake.deadletter import BAD_VALUE, NO_TIME, DeadLetter, write_dead_letters
from streamjoin.intake.rejected import Counts, Taken, add, as_rows, file_of, lines, page, read_head


def letters_of(batch: int, count: int, reason: str, stream: str = "r", text: str = "x") -> list[DeadLetter]:
    return [
        DeadLetter(stream, f"{batch}.csv", at, reason, "why", f"{text}{batch}.{at}".encode(), "line")
        for at in range(count)
    ]


def put_aside(folder: Path, batch: int, piece: str, letters: list[DeadLetter]) -> Taken:
    """What a task leaves."""
    file = file_of(folder, batch, piece)
    write_dead_letters(file, letters, batch, batch * 1_000_000)
    rows: Counts = {}
    for letter in letters:
        by_reason = rows.setdefault(letter.stream, {})
        by_reason[letter.reason] = by_reason.get(letter.reason, 0) + 1
    return Taken(file, rows)


def commit(folder: Path, batch: int, *pieces: list[DeadLetter]) -> None:
    """What a driver does with what the tasks left, a file for each of `pieces`."""
    taken = [put_aside(folder, batch, f"0-{number}:0", letters) for number, letters in enumerate(pieces)]
    counts: Counts = {}
    for letter in (letter for letters in pieces for letter in letters):
        by_reason = counts.setdefault(letter.stream, {})
        by_reason[letter.reason] = by_reason.get(letter.reason, 0) + 1
    add(folder, batch, counts, taken, sync=False)


def texts(rows: list[dict[str, Any]]) -> list[str]:
    return [row["record"] for row in rows]


def test_rows_come_newest_first_page_after_page_and_none_twice(tmp_path: Path) -> None:
    commit(tmp_path, 0, letters_of(0, 3, NO_TIME))
    commit(tmp_path, 2, letters_of(2, 2, BAD_VALUE), letters_of(2, 1, NO_TIME, "s"))
    seen: list[dict[str, Any]] = []
    has_more = True
    while has_more:
        before = seen[-1]["id"] if seen else None
        rows, has_more = page(tmp_path, 2, before=before)
        seen += rows
        commit(tmp_path, len(seen) + 10, letters_of(99, 1, NO_TIME))  # what comes meanwhile moves no page
    assert texts(seen) == ["x2.0", "x2.1", "x2.0", "x0.2", "x0.1", "x0.0"]
    assert {row["batch"] for row in seen} == {0, 2}


@pytest.mark.parametrize(
    ("stream", "reason", "want"),
    [
        ("r", None, ["x1.0", "x0.1", "x0.0"]),
        (None, NO_TIME, ["s1.0", "x0.1", "x0.0"]),
        ("s", NO_TIME, ["s1.0"]),
        ("s", BAD_VALUE, []),
        ("x", None, []),
    ],
)
def test_rows_of_a_stream_or_a_reason(stream: str | None, reason: str | None, want: list[str], tmp_path: Path) -> None:
    commit(tmp_path, 0, letters_of(0, 2, NO_TIME))
    commit(tmp_path, 1, letters_of(1, 1, NO_TIME, "s", "s"), letters_of(1, 1, BAD_VALUE))
    found, has_more = page(tmp_path, 10, stream=stream, reason=reason)
    assert sorted(texts(found)) == sorted(want) and not has_more
    assert sum(row["kept"] for row in as_rows(read_head(tmp_path), stream, reason)) == len(want)
    downloaded = b"".join(lines(tmp_path, stream=stream, reason=reason)).splitlines()
    assert sorted(json.loads(line)["record"] for line in downloaded) == sorted(want)


@pytest.mark.parametrize("place", ["rejected.before_head", "rejected.after_head"])
def test_batch_that_is_done_again_by_other_tasks_counts_once(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(tmp_path, 0, letters_of(0, 2, NO_TIME))
    monkeypatch.setattr(failpoints, "_points", {place: ("raise", 1)})
    monkeypatch.setattr(failpoints, "_reached", {})
    letters = letters_of(1, 5, NO_TIME)
    with pytest.raises(failpoints.FailpointError):
        commit(tmp_path, 1, letters)
    monkeypatch.setattr(failpoints, "_points", {})
    # With another number of slots the same rows come as other pieces.
    commit(tmp_path, 1, letters[:2], letters[2:])
    assert read_head(tmp_path).counts == {"r": {NO_TIME: 7}}
    assert texts(page(tmp_path, 10)[0]) == ["x1.4", "x1.3", "x1.2", "x1.1", "x1.0", "x0.1", "x0.0"]
    assert not list((tmp_path / "batches").iterdir())


def test_what_a_task_that_was_killed_had_begun_is_removed_once_its_batch_is_done(tmp_path: Path) -> None:
    batches = tmp_path / "batches"
    for batch in range(3):
        # Nobody is left to give it its name.
        temporary = temporary_beside(file_of(tmp_path, batch, "0-7:0"))
        batches.mkdir(exist_ok=True)
        temporary.write_bytes(b'{"reason": "no')
    commit(tmp_path, 1, letters_of(1, 2, NO_TIME))
    assert list(batches.iterdir()) == [temporary], "its task may be at work"
    commit(tmp_path, 2, letters_of(2, 2, NO_TIME))
    assert not list(batches.iterdir())
    assert read_head(tmp_path).counts == {"r": {NO_TIME: 4}}


def test_rows_of_a_batch_that_was_not_committed_are_not_seen(tmp_path: Path) -> None:
    commit(tmp_path, 0, letters_of(0, 1, NO_TIME))
    put_aside(tmp_path, 1, "0-0:0", letters_of(1, 4, NO_TIME))
    assert read_head(tmp_path).counts == {"r": {NO_TIME: 1}}
    assert texts(page(tmp_path, 10)[0]) == ["x0.0"]


def test_rows_that_are_only_counted_have_no_lines(tmp_path: Path) -> None:
    add(tmp_path, 3, {"r": {"late": 4}, "s": {}}, [], sync=False)
    add(tmp_path, 3, {"r": {"late": 4}, "s": {}}, [], sync=False)
    assert [(row["rows"], row["kept"]) for row in as_rows(read_head(tmp_path))] == [(4, 0)]
    assert page(tmp_path, 5) == ([], False)


def test_batches_that_miss_nothing_write_nothing(tmp_path: Path) -> None:
    add(tmp_path / "dead-letters", 1, {"r": {}, "s": {"late": 0}}, [], sync=False)
    assert not list(tmp_path.iterdir())


def test_the_oldest_rows_are_dropped_and_stay_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejected, "SEGMENT_BYTES", 1_000)
    monkeypatch.setattr(rejected, "KEPT_BYTES_MAX", 5_000)
    for batch in range(30):
        commit(tmp_path, batch, letters_of(batch, 4, NO_TIME))
    [counted] = as_rows(read_head(tmp_path))
    assert counted["rows"] == 120 and 12 < counted["kept"] < 40
    files = list(tmp_path.glob("*.jsonl"))
    assert sum(file.stat().st_size for file in files) <= 5_000 and len(files) < 7
    shown, has_more = page(tmp_path, 1_000)
    assert len(shown) == counted["kept"] and not has_more
    assert shown[0]["record"] == "x29.3"
    assert page(tmp_path, 5, before="1-300") == ([], False)  # the page before had a row that is dropped by now


def test_a_page_of_long_rows_ends_early(tmp_path: Path) -> None:
    commit(tmp_path, 0, letters_of(0, 40, NO_TIME, text="y" * 100_000))
    rows, has_more = page(tmp_path, 40)
    assert has_more and 10 <= len(rows) < 20


@pytest.mark.parametrize("id", ["", "1", "1-", "-1", "a-b", "1-2-3", "\u0661-\u0661", "../1-2"])
def test_an_id_that_is_none_is_said_to_be(id: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a row id"):
        page(tmp_path, 5, before=id)


def test_damaged_head_names_itself_and_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "kept.json").write_text("{")
    with pytest.raises(StateError, match=r"kept\.json is damaged; remove the folder"):
        read_head(tmp_path)


@pytest.mark.parametrize(
    "record",
    [
        b"\x1b[2J\x1b]0;gone\x07", b"<img src=x onerror=alert(1)>", b'{"reason": "late", "stream": "s", "',
        b"\xed\xa0\x80 a lone surrogate", "\u2028 \x85 lines that are none, \x9b2J".encode(), b"\xff" * 10, None,
        b"z" * (10 << 20),
    ],
)  # fmt: skip
def test_attack_no_text_breaks_lines_or_passes_for_another_row(record: bytes | None, tmp_path: Path) -> None:
    name = b"folder/\xff\n.csv".decode("utf-8", "surrogateescape")
    commit(tmp_path, 0, letters_of(0, 1, NO_TIME))
    commit(tmp_path, 1, [DeadLetter("r", name, 1, BAD_VALUE, "why", record, "line").cut()])
    [row] = page(tmp_path, 5, reason=BAD_VALUE)[0]
    assert json.dumps(row, ensure_ascii=False).encode()
    assert not any(0x7F <= ord(letter) <= 0x9F for letter in b"".join(lines(tmp_path)).decode())
    assert "\\udcff" in row["source"]
    assert page(tmp_path, 5, stream="s") == ([], False) and len(page(tmp_path, 5)[0]) == 2
    assert sum(file.stat().st_size for file in tmp_path.glob("*.jsonl")) < 200_000
    assert row.get("truncated", False) is (record is not None and len(record) > 1 << 20)


@pytest.mark.parametrize("piece_bytes", [1, 150, 1_000, 1 << 20])
def test_rows_are_the_same_however_small_the_pieces_that_are_read(
    piece_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rejected, "PIECE_BYTES", piece_bytes)
    monkeypatch.setattr(rejected, "SEGMENT_BYTES", 1_000)
    for batch in range(6):
        commit(tmp_path, batch, letters_of(batch, 4, NO_TIME, text="é" * (batch * 50)))
    with open(tmp_path / "000000002.jsonl", "ab") as file:  # of a driver that died, or is at work
        file.write(b'{"reason": "no_time", "stream": "r", "record": "unknown"}\n')
    want = [f"{'é' * (batch * 50)}{batch}.{at}" for batch in range(6) for at in range(4)]
    assert [json.loads(line)["record"] for line in b"".join(lines(tmp_path)).splitlines()] == want
    shown, has_more = page(tmp_path, 5)
    while has_more:
        rows, has_more = page(tmp_path, 5, before=shown[-1]["id"])
        shown += rows
    assert texts(shown) == want[::-1]


def test_a_place_between_two_rows_is_no_place_to_go_on(tmp_path: Path) -> None:
    commit(tmp_path, 0, letters_of(0, 2, NO_TIME))
    second, first = (int(row["id"].split("-")[1]) for row in page(tmp_path, 2)[0])
    for place in (first + 1, second - 1, second + 1, 10**9, 10**30):
        with pytest.raises(ValueError, match="begin again without it"):
            page(tmp_path, 2, before=f"1-{place}")


def test_neither_a_page_nor_a_download_holds_what_is_kept(tmp_path: Path) -> None:
    commit(tmp_path, 0, letters_of(0, 4_000, NO_TIME, text="y" * 4_000))
    size = (tmp_path / "000000001.jsonl").stat().st_size
    tracemalloc.start()
    try:
        assert sum(map(len, lines(tmp_path))) == size
        assert len(page(tmp_path, 20)[0]) == 20
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert size > 15 << 20 and peak < 3 << 20
