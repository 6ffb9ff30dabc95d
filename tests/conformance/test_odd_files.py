"""Files as people have them, however they are called and whatever is in them: a job ends, and is right."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.spec.joinfile import load
from streamjoin.spec.prepare import bind
from tests.conformance.alone import run_alone

QUERY = "SELECT ONLINE r.id AS r, s.id AS s FROM r, s WHERE r.k = s.k WITHIN 1 MINUTE"
BEGIN_US = 1_704_067_200_000_000
ROWS = pa.table({"id": [1, 2], "k": [1, 2], "ts": pa.array([BEGIN_US, BEGIN_US], pa.timestamp("us"))})


def pairs(folder: Path, source: str, path: str, time: str = "ts", query: str = QUERY) -> list[dict[str, int]]:
    """The pairs of a job whose stream `r` reads `path`; its state and its results are in `folder`."""
    pq.write_table(ROWS, folder / "s.parquet")
    streams = {name: {"source": "parquet", "path": "s.parquet", "time": "ts"} for name in "rs"}
    streams["r"] |= {"source": source, "path": path, "time": time}
    content = {"streams": streams, "query": query, "results": {"jsonl": "out.jsonl"}, "run": {"checkpoint": "state"}}
    (folder / "join.yaml").write_text(json.dumps(content))
    run_alone(bind(load(folder / "join.yaml")))
    return sorted(map(json.loads, (folder / "out.jsonl").read_text().splitlines()), key=str)


def letters(folder: Path) -> list[dict[str, object]]:
    """The rows that were put aside."""
    files = sorted((folder / "state/dead-letters").glob("[0-9]*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.mark.parametrize("source", ["parquet", "jsonl"])
def test_a_file_whose_name_is_no_utf8_is_joined(source: str, tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    path = os.fsencode(tmp_path / "r") + b"/caf\xe9." + source.encode()
    if source == "parquet":
        pq.write_table(ROWS, tmp_path / "r.parquet")
        os.rename(tmp_path / "r.parquet", path)
    else:
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(f'{{"id": {k}, "k": {k}, "ts": "2024-01-01T00:00:00"}}\n' for k in (1, 2)) + "{\n")
    assert pairs(tmp_path, source, "r") == [{"r": 1, "s": 1}, {"r": 2, "s": 2}]
    assert [letter["source"] for letter in letters(tmp_path)] == ([] if source == "parquet" else ["caf\\udce9.jsonl"])


@pytest.mark.parametrize(
    ("time", "days", "shown"),
    [
        ("ts", 2_147_483_647, 2_147_483_647),
        ("ts", -2_147_483_648, -2_147_483_648),
        ("ts", 2_932_897, 2_932_897),  # the first day of the year 10000
        ("ts", 19_723, "2024-01-01"),
        ("until", 2_147_483_647, 2_147_483_647),
    ],
)
def test_a_date_that_no_calendar_has_is_shown_as_days_in_the_row_that_is_put_aside(
    time: str, days: int, shown: int | str, tmp_path: Path
) -> None:
    at = pa.array([None, BEGIN_US], pa.timestamp("us"))
    dates = pa.array([days, 19_723], pa.int32()).cast(pa.date32())
    pq.write_table(ROWS.set_column(2, "ts", at).append_column("until", dates), tmp_path / "r.parquet")
    query = QUERY.replace("s.id AS s", "s.id AS s, r.until AS until")
    assert [row["s"] for row in pairs(tmp_path, "parquet", "r.parquet", time, query)] == [2]
    assert [json.loads(str(letter["record"]))["until"] for letter in letters(tmp_path)] == [shown]
