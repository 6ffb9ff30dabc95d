"""What must not change while a checkpoint is used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamjoin.joinfile import parse
from streamjoin.prepare import bind
from streamjoin.spark.checkpoint import identity

FILE = """
streams:
  a: {source: generator, kind: band.r, time: ts}
  b: {source: generator, kind: band.s, time: ts}
queries:
  near: {query: "SELECT ONLINE a.x FROM a, b WHERE ABS(a.x - b.a) < 5 WITHIN 1 SECOND", results: NEAR}
  same: {query: "SELECT ONLINE a.x FROM a, b WHERE a.x = b.a WITHIN 1 SECOND", results: SAME}
"""
STORE, FOLDER = "{store: sqlite, path: results.db}", "{parquet: pairs}"


def of(folder: Path, text: str = FILE, near: str = STORE, same: str = FOLDER) -> dict[str, Any]:
    return identity(bind(parse(text.replace("NEAR", near).replace("SAME", same), base=folder)).job())


@pytest.mark.parametrize(
    ("before", "after"),
    [("near:", "close:"), ("< 5", "< 6"), ("a.x = b.a WITHIN 1", "a.x = b.a WITHIN 2"), ("  same:", "  # same:")],
)
def test_queries_of_one_job_belong_to_its_checkpoint(before: str, after: str, tmp_path: Path) -> None:
    assert of(tmp_path) == of(tmp_path)
    assert of(tmp_path) != of(tmp_path, FILE.replace(before, after))


def test_what_each_query_keeps_of_a_tuple_belongs_to_it(tmp_path: Path) -> None:
    assert of(tmp_path) != of(tmp_path, near=FOLDER, same=STORE)
    assert of(tmp_path) == of(tmp_path, same="{jsonl: pairs.jsonl}")
