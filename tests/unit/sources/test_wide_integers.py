"""Integers beyond int64 keep their digits where columns are guessed, and bytes that are no text spoil no column."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from streamjoin.intake.dialect import PLAIN
from streamjoin.sources.text_guess import WIDE_INTEGER, infer_schema

TWINS = ["18446744073709551615", "18446744073709551614", "5"]
"""As float64 the first two are one number."""


def guessed(folder: Path, format: str, text: str | bytes) -> pa.Schema:
    path = folder / f"a.{format}"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return infer_schema(path, format, PLAIN)


@pytest.mark.parametrize(
    ("numbers", "kind"),
    [
        (TWINS, WIDE_INTEGER),
        (["-9223372036854775809", "1"], WIDE_INTEGER),
        (["9223372036854775807", "-9223372036854775808"], pa.int64()),
        ([*TWINS, "0.5"], pa.float64()),
        (["1e3", "7"], pa.float64()),
        (["1" * 45, "7"], WIDE_INTEGER),  # which becomes a bad record
    ],
)
@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_guesses(tmp_path: Path, format: str, numbers: list[str], kind: pa.DataType) -> None:
    if format == "csv":
        text = "id,v\n" + "".join(f"{number},x\n" for number in numbers)
    else:
        text = "".join(f'{{"id": {number}, "v": "x"}}\n' for number in numbers)
    assert guessed(tmp_path, format, text) == pa.schema([("id", kind), ("v", pa.string())])


def test_fields_of_structs(tmp_path: Path) -> None:
    text = "".join(f'{{"s": {{"id": {number}, "x": 0.5}}}}\n' for number in TWINS)
    assert guessed(tmp_path, "jsonl", text).field("s").type == pa.struct([("id", WIDE_INTEGER), ("x", pa.float64())])


def test_a_byte_that_is_no_text_makes_no_column_binary_and_leaves_no_stack(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = guessed(tmp_path, "csv", b"id,v\n1,caf\xe9\n2,caf\xe9,more\n3,ok\n")
    assert found == pa.schema([("id", pa.int64()), ("v", pa.string())])
    assert capfd.readouterr().err == ""
