"""Each bad record has a reason in a word, by which bad records are counted."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest

from streamjoin.intake.deadletter import BAD_VALUE, MALFORMED, TOMBSTONE
from streamjoin.intake.records import decoder

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string())])


def arrow_record() -> bytes:
    out = io.BytesIO()
    batch = pa.RecordBatch.from_pydict({"a": ["x"], "b": ["y"]})
    with pa.ipc.new_stream(out, batch.schema) as writer:
        writer.write(batch)
    return out.getvalue()


@pytest.mark.parametrize(
    ("format", "record", "reason"),
    [
        ("json", b'{"a": "x"}', BAD_VALUE),
        ("json", b'{"a": 1', MALFORMED),
        ("json", b'{"a": 1, "a": 1}', MALFORMED),
        ("json", None, TOMBSTONE),
        ("csv", b"x,y", BAD_VALUE),
        ("csv", b"1", MALFORMED),
        ("csv", b"1,y,2", MALFORMED),
        ("csv", None, TOMBSTONE),
        ("arrow", arrow_record(), BAD_VALUE),
        ("arrow", b"nonsense", MALFORMED),
        ("arrow", None, TOMBSTONE),
    ],
)
def test_bad_records_have_a_reason_in_a_word(format: str, record: bytes | None, reason: str) -> None:
    [bad] = decoder(format, SCHEMA).decode(pa.array([record], pa.binary())).bad
    assert bad.reason == reason
