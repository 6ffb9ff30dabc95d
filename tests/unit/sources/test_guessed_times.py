"""A column that is guessed to be of times is one whose texts the decoder of records reads."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pytest

from streamjoin.intake.dialect import PLAIN
from streamjoin.intake.records import decoder
from streamjoin.plan.types import TIMESTAMP, TIMESTAMP_NS
from streamjoin.sources.text_guess import infer_schema

TIMES = ["", "T12", " 12", "T12:30", " 12:30", "T12:30:15", "T12:30:15.5", "T12:30:15.1234567", "T1230", "T123015"]
SPELLINGS = [
    date + time + zone
    for date, time, zone in itertools.product(["2026-01-31", "9999-12-31"], TIMES, ["", "Z", "+02", "+0200", "-02:00"])
]


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_whatever_is_guessed_to_be_a_time_is_read_as_one(format: str, tmp_path: Path) -> None:
    guessed = 0
    for text in SPELLINGS:
        path = tmp_path / "a"
        record = f'{{"at": "{text}"}}' if format == "jsonl" else f"{text},x"
        path.write_text(f"{record}\n" if format == "jsonl" else f"at,v\n{record}\n")
        found = infer_schema(path, format, PLAIN)
        kind = found.field("at").type
        if not pa.types.is_timestamp(kind):
            continue
        guessed += 1
        schema = pa.schema(
            [found.field("at").with_type(TIMESTAMP_NS if kind.unit == "ns" else TIMESTAMP), *list(found)[1:]]
        )
        read = decoder("json" if format == "jsonl" else "csv", schema).decode(pa.array([record.encode()], pa.binary()))
        assert not read.bad, (text, read.bad)
    assert guessed > 20
