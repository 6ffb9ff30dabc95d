"""How records of a topic are written: an Avro schema may be in a file, for jobs and for looks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from backend.streams import sample
from streamjoin.errors import InputError
from streamjoin.explain import sampling
from streamjoin.explain.sampling import look
from streamjoin.sources.topic import Newest
from streamjoin.spark.run import topics_of
from streamjoin.spec.joinfile import parse
from streamjoin.spec.prepare import Bound, bind

SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}, {"name": "ts", "type": "long"}]}
RECORDS = pa.array([bytes([2, 4]), bytes([4, 6])], pa.binary())
WAYS = [SCHEMA, json.dumps(SCHEMA), "schema.avsc"]
STREAM = {"source": "kafka", "servers": "127.0.0.1:9", "topic": "t", "format": "avro", "time": "ts", "rows_per_s": 5,
          "schema": {"id": "int64", "ts": "int64"}}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With the file of a schema in it; brokers answer with `RECORDS`."""
    (tmp_path / "schema.avsc").write_text(json.dumps(SCHEMA))
    monkeypatch.setattr(sampling, "newest", lambda *_, **__: Newest(RECORDS, 5.0, ""))
    monkeypatch.setattr(sample, "newest_values", lambda *_: RECORDS)
    return tmp_path


def bound(folder: Path, avro: Any) -> Bound:
    content = {
        "streams": {name: STREAM | {"avro_schema": avro} for name in "ab"},
        "query": "SELECT ONLINE a.id AS a FROM a, b WHERE a.id = b.id WITHIN 10 SECONDS",
        "results": {"parquet": "out"}, "run": {"checkpoint": "ck"},
    }  # fmt: skip
    return bind(parse(json.dumps(content), base=folder))


@pytest.mark.parametrize("avro", WAYS)
def test_a_job_and_looks_read_an_avro_schema_wherever_it_is(avro: Any, folder: Path) -> None:
    found = look(bound(folder, avro))
    assert found.unknown == {}
    assert [rows and rows.to_pylist() for rows in found.rows] == [[{"id": 1, "ts": 2}, {"id": 2, "ts": 3}]] * 2
    (topic, _) = topics_of(bound(folder, avro)).values()
    assert topic.avro_schema == (SCHEMA if avro == SCHEMA else json.dumps(SCHEMA))
    given = str(folder / avro) if avro == "schema.avsc" else avro
    tested = sample.look_at(STREAM | {"avro_schema": given})
    assert (tested.rows.num_rows, tested.bad) == (2, {})


def test_a_file_that_cannot_be_read_is_named_with_its_field(folder: Path) -> None:
    for name, content in (("lacking.avsc", None), ("bytes.avsc", b"\xff")):
        if content is not None:
            (folder / name).write_bytes(content)
        with pytest.raises(InputError, match=rf"{name} cannot be read") as wrong:
            topics_of(bound(folder, name))
        assert wrong.value.field == "streams.a.avro_schema"
        assert f"{name} cannot be read" in look(bound(folder, name)).unknown["a"]
        with pytest.raises(InputError, match=rf"{name} cannot be read") as wrong:
            sample.look_at(STREAM | {"avro_schema": str(folder / name)})
        assert wrong.value.field == "avro_schema"
