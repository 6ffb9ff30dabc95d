"""A stream and a relation joined by Spark's own join, broadcast and shuffled: the rows and the table are as ours."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from streamjoin.explain.compare.plot import draw
from streamjoin.explain.compare.table import comparison_text
from streamjoin.spark import compare
from streamjoin.spark.baseline import join
from streamjoin.spec.changed import with_operator
from streamjoin.spec.joinfile import parse
from streamjoin.spec.prepare import bind
from tests.conformance.semistream import in_duckdb
from tests.conformance.test_relations import BATCHES, DATA, KINDS, QUERIES

from .jobs import check_same, result_rows, run_spark_join
from .test_relations import write_relation, write_streams

pytestmark = pytest.mark.spark

OURS = ("lookup", "ssbj")
THEIRS = ("spark-broadcast", "spark-shuffled")
TEXTS = {
    **{name: QUERIES[name][0] for name in ("equality", "relation first", "equality and band", "NULL is NULL", "band")},
    **{
        name: KINDS[name].replace("SELECT", "SELECT ONLINE", 1)
        for name in (
            "left", "left, a condition on each side", "left, then WHERE", "right, the relation first", "semi", "anti",
        )
    },
}  # fmt: skip
"""Keys come several times on both sides, are NULL on both, and each side has some that the other has not."""
WITHOUT_EQUALITY = ("band",)
ALWAYS = ("equality", "left, a condition on each side")
"""Run each time; the others with the soak."""


def content(query: str, source: str = "parquet", extra: str = "", operator: str = "name: auto") -> str:
    """A join file of the stream a and the relation c, with a file of the stream in each batch."""
    return f"""\
streams:
  a: {{source: parquet, path: a, time: ts, delay: 15us}}
relations:
  c: {{source: {source}, path: c{extra}}}
query: {query!r}
operator: {{{operator}}}
results: {{parquet: results}}
run: {{checkpoint: checkpoint, files_per_batch: 1, slots: 2}}
"""


def wanted(query: str) -> Counter[Any]:
    spelled = query.replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI")
    return in_duckdb(spelled, DATA["a"], DATA["c"])


def physical(frame: DataFrame, checkpoint: Path) -> str:
    """The plan of the last batch as Spark ran it."""
    written = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = written.trigger(availableNow=True).start()
    query.awaitTermination()
    return str(query._jsq.explainInternal(False))


@pytest.fixture
def given(tmp_path: Path, session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stream and the relation in the folder, and the session of all tests in place of one of its own."""
    monkeypatch.setattr(compare, "open_session", lambda file: session)
    monkeypatch.setattr(session, "stop", lambda: None)
    write_streams(tmp_path, "a")
    write_relation(tmp_path, "c", DATA["c"])
    return tmp_path


@pytest.mark.parametrize(
    "text", [pytest.param(text, marks=[] if text in ALWAYS else [pytest.mark.soak]) for text in TEXTS]
)
def test_spark_gives_the_rows_that_duckdb_gives(text: str, session: SparkSession, given: Path) -> None:
    query = TEXTS[text]
    for name in THEIRS[: 1 if text in WITHOUT_EQUALITY else 2]:
        place = given / name
        place.mkdir()
        for folder in "ac":
            (place / folder).symlink_to(given / folder)
        report = run_spark_join(session, content(query, operator=f"name: {name}"), place)
        check_same(result_rows(place / "results"), wanted(query))
        assert (report["operator"], report["results"]) == (name, wanted(query).total())
        assert (report["batches"], report["tuples_in"]) == (BATCHES, {"a": DATA["a"].num_rows})
    assert wanted(query).total() > 5


@pytest.mark.soak
@pytest.mark.parametrize("text", ["equality", "left"])
def test_both_count_what_ours_count_in_one_table(text: str, given: Path) -> None:
    file = parse(content(TEXTS[text]), base=given)
    rows = list(compare.compare_file(file, (*OURS, *THEIRS)))
    assert [(row["operator"], row.get("error")) for row in rows] == [(name, None) for name in (*OURS, *THEIRS)]
    assert {row["results"] for row in rows} == {wanted(TEXTS[text]).total()}
    for row in rows:
        assert row["tuples_in"] == {"a": DATA["a"].num_rows} and row["batches"] >= BATCHES
        assert row["tuples_per_second"] > 0 < row["latency_ms"]["p50"] <= row["latency_ms"]["max"]
        assert not any(row["late"].values())
    shown = comparison_text(rows)
    assert "differ" not in shown and all(re.search(rf"^{name} .* 0$", shown, re.MULTILINE) for name in THEIRS)
    draw(rows, given / "compare.svg", "a title")
    assert all(name in (given / "compare.svg").read_text() for name in THEIRS)
    assert not (given / "checkpoint").exists() and not (given / "results").exists()


@pytest.mark.soak
def test_the_relation_is_broadcast_or_both_sides_are_shuffled(session: SparkSession, given: Path) -> None:
    bound = bind(parse(content(TEXTS["left"]), base=given))
    broadcast, shuffled = (physical(join(session, with_operator(bound, name)), given / name) for name in THEIRS)
    assert "BroadcastHashJoin" in broadcast and "SortMergeJoin" not in broadcast and "hashpartitioning" not in broadcast
    assert "SortMergeJoin" in shuffled and shuffled.count("hashpartitioning(k") == 2 and "Broadcast" not in shuffled


@pytest.mark.soak
def test_columns_of_csv_are_read_by_name_and_what_cannot_be_read_is_no_row(session: SparkSession, given: Path) -> None:
    """Spark itself takes the columns of a given schema by their place, and a damaged record for one of NULLs."""
    (given / "c" / "0.parquet").unlink()
    (given / "c" / "1.parquet").unlink()
    (given / "c" / "0.csv").write_text("name,k,id\none,1,10\nnone,,11\ntwo,2,12\nbad,x,13\n")
    query = "SELECT ONLINE a.id, c.id AS c, c.name FROM a LEFT JOIN c ON a.k IS NOT DISTINCT FROM c.k"
    schema = ", schema: {id: int64, k: int64, name: string}"
    file = parse(content(query, "csv", schema), base=given)
    rows = list(compare.compare_file(file, ()))  # which are compared unless somebody names others
    assert [(row["operator"], row.get("error")) for row in rows] == [(name, None) for name in ("lookup", *THEIRS)]
    assert len({row["results"] for row in rows}) == 1 and rows[0]["results"] == DATA["a"].num_rows
    run_spark_join(session, content(query, "csv", schema, f"name: {THEIRS[0]}"), given)
    found = result_rows(given / "results")
    keys = DATA["a"].column("k").to_pylist()
    assert {row[1:] for row in found} == {(10, "one"), (11, "none"), (12, "two"), (None, None)}
    assert sum(many for row, many in found.items() if row[1] == 11) == keys.count(None) > 0


@pytest.mark.soak
def test_csv_files_with_columns_in_another_order_are_no_other_values(given: Path) -> None:
    for number, lines in enumerate(("k,id\n1,2\n", "id,k\n2,1\n")):
        (given / "c" / f"{number}.parquet").unlink()
        (given / "c" / f"{number}.csv").write_text(lines)
    query = "SELECT ONLINE a.id, c.id AS c FROM a LEFT JOIN c ON a.k = c.k"
    ours, *theirs = compare.compare_file(parse(content(query, "csv"), base=given), ("lookup", *THEIRS))
    ones = DATA["a"].column("k").to_pylist().count(1)
    assert ours["results"] == DATA["a"].num_rows + ones and ones > 1
    for row in theirs:
        assert row["failed"] and re.search(r"FAILED_READ_FILE.*/c/1\.csv", row["error"]), row


@pytest.mark.soak
@pytest.mark.parametrize("path", ["c", "c/k=*", "c/*/*.parquet"])
def test_names_of_folders_are_columns_of_a_relation(path: str, given: Path) -> None:
    rows = pq.read_table(given / "c").to_pylist()
    shutil.rmtree(given / "c")
    for k in {row["k"] for row in rows} - {None}:
        (given / "c" / f"k={k}").mkdir(parents=True)
        ids = [row["id"] for row in rows if row["k"] == k]
        pq.write_table(pa.table({"id": ids}), given / "c" / f"k={k}" / "0.parquet")
    text = content(TEXTS["equality"].replace("c.name", "c.k AS c_k")).replace("path: c", f"path: {path!r}")
    reports = list(compare.compare_file(parse(text, base=given), ("lookup", *THEIRS)))
    assert [report.get("error") for report in reports] == [None] * 3
    assert {report["results"] for report in reports} == {wanted(TEXTS["equality"]).total()}


@pytest.mark.soak
def test_a_relation_that_is_too_large_to_be_broadcast_is_said_and_the_others_run(
    session: SparkSession, given: Path
) -> None:
    session.conf.set("spark.sql.maxBroadcastTableSize", "1k")
    try:
        rows = list(compare.compare_file(parse(content(TEXTS["equality"]), base=given), ()))
    finally:
        session.conf.unset("spark.sql.maxBroadcastTableSize")
    assert [row["operator"] for row in rows] == ["lookup", *THEIRS]
    assert [row.get("failed") for row in rows] == [None, True, None]
    assert re.fullmatch(
        r"the relation is too large to be broadcast: it takes [\d.]+ \w+, and Spark broadcasts 1024.0 B at most",
        rows[1]["error"],
    )
    assert rows[0]["results"] == rows[2]["results"] == wanted(TEXTS["equality"]).total()


@pytest.mark.soak
def test_a_row_without_a_time_is_joined_by_neither(given: Path) -> None:
    (given / "a" / "000000.parquet").unlink()
    (given / "times").mkdir()
    lines = ['{"ts": 5, "id": 1, "k": 1}', '{"ts": null, "id": 2, "k": 1}', '{"ts": 6, "id": 3, "k": null}']
    (given / "times" / "0.jsonl").write_text("\n".join(lines))
    text = content(TEXTS["left"]).replace("source: parquet, path: a", "source: jsonl, path: times")
    rows = list(compare.compare_file(parse(text, base=given), ("lookup", *THEIRS)))
    assert [row.get("error") for row in rows] == [None] * 3
    ones = DATA["c"].column("k").to_pylist().count(1)
    assert [row["results"] for row in rows] == [ones + 1] * 3 and ones > 1


@pytest.mark.parametrize(
    ("query", "extra", "reasons"),
    [
        (TEXTS["band"], "", (None, "this condition has no equality; spark-broadcast needs none")),
        pytest.param(TEXTS["equality"].replace("c.name", "VERSION(c)"), "", ("leave VERSION(c) out",) * 2,
                     marks=pytest.mark.soak),
        pytest.param(TEXTS["equality"], ", refresh: 10min", ("relation c has refresh; leave it out",) * 2,
                     marks=pytest.mark.soak),
        pytest.param(TEXTS["equality"].replace("c.name", "COUNT(*)") + " GROUP BY a.id, c.id, TUMBLE(1 SECONDS)", "",
                     ("gives pairs here, without groups",) * 2, marks=pytest.mark.soak),
        pytest.param(TEXTS["equality"].replace("c.name", "ROUND(c.x) AS n"), "",
                     ("ROUND is not part of the comparison with Spark's own join",) * 2, marks=pytest.mark.soak),
    ],
)  # fmt: skip
def test_what_they_cannot_run_is_said_and_the_others_run(
    query: str, extra: str, reasons: tuple[str | None, ...], given: Path
) -> None:
    rows = list(compare.compare_file(parse(content(query, "parquet", extra), base=given), ("lookup", *THEIRS)))
    assert "error" not in rows[0] and rows[0]["results"] > 0
    for row, reason in zip(rows[1:], reasons, strict=True):
        assert (row.get("error") is None) == (reason is None)
        assert reason is None or (reason in row["error"] and row["failed"] is False)
