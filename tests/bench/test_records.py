"""The comparison of record decoders is between readers that read the same, and prints a line for each block."""

from __future__ import annotations

import pyarrow as pa
import pytest

from benchmarks.records import __main__ as command
from benchmarks.records.by_fastavro import FastavroDecoder
from benchmarks.records.by_msgspec import MsgspecDecoder
from benchmarks.records.inputs import Input, avro_inputs, json_inputs
from streamjoin.intake.records import Decoded, decoder

JSON = json_inputs(50)
AVRO = avro_inputs(50)


@pytest.mark.parametrize("given", JSON, ids=lambda given: given.name)
def test_msgspec_reads_the_same_rows_and_the_same_bad_records(given: Input) -> None:
    command.check_same(given, decoder("json", given.schema), MsgspecDecoder(given.schema))


@pytest.mark.parametrize("given", AVRO, ids=lambda given: given.name)
def test_fastavro_reads_the_same_rows_and_the_same_bad_records(given: Input) -> None:
    assert given.avro is not None
    ours = decoder("avro", given.schema, avro_schema=given.avro)
    command.check_same(given, ours, FastavroDecoder(given.schema, given.avro))


def test_fields_that_are_missing_null_or_twice_are_told_apart_with_msgspec() -> None:
    records = [
        b"{}", b'{"id":1}', b'{"id":1,"id":2}', b'{"id":null}', b'{"user":"id","id":3}', rb'{"\u0069d":1,"id":2}',
        b'{"x":{"id":1},"id":2}', b'{"id":9223372036854775808}', None,
    ]  # fmt: skip
    flat = JSON[0]
    given = Input("hand-made", pa.array(records, pa.binary()), flat.schema)
    read = MsgspecDecoder(flat.schema).decode(given.values)
    assert read.positions.tolist() == [0, 1, 3, 4, 6]
    command.check_same(given, decoder("json", flat.schema), MsgspecDecoder(flat.schema))


def test_readers_that_differ_are_not_compared() -> None:
    given = JSON[0]

    class Forgetful:
        def decode(self, values: pa.Array) -> Decoded:
            return decoder("json", given.schema).decode(values.slice(1))

    with pytest.raises(AssertionError, match="do not read the same"):
        command.check_same(given, decoder("json", given.schema), Forgetful())


def test_every_block_has_a_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["records", "--quick"])
    assert command.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 + len(JSON) + 1 + len(AVRO) + 1
    assert all(" to " in line for line in lines[3:])
