"""Outer, semi and anti joins on Spark: exact by every operator, after crashes and kills, with other slots."""

from __future__ import annotations

import json
import re
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from streamjoin.errors import UnsupportedError
from streamjoin.results.question import Question
from streamjoin.spec.joinfile import load
from streamjoin.spec.prepare import bind
from streamjoin.state.store import read_manifests
from tests.conformance.loops import cut
from tests.conformance.test_outer import expected, items
from tests.conformance.test_three_streams import rows

from .command import KILLS_S_MAX, Command
from .jobs import check_same, crash, result_rows, run_spark_join, run_text, run_to_the_end, write_file
from .test_store_crashes import reader_of, rows_of

pytestmark = pytest.mark.spark

BATCHES = 5
HASH = "name: biclique, routing: hash, r_units: 3, s_units: 2"
ON = "a.k = b.k AND a.x > 10"
CASES = {
    (HASH, "FULL"): "{parquet: results}",
    ("name: matrix, rows: 2, columns: 2", "RIGHT"): "{store: sqlite, path: results.db, snapshot: {batches: 1}}",
    ("name: splitjoin, cores: 3, turn_tuples: 5", "LEFT"): "{jsonl: results.jsonl}",
    ("name: biclique, routing: random, r_units: 2, s_units: 3", "LEFT ANTI"): "{parquet: results}",
    (HASH, "LEFT SEMI"): "{parquet: results}",
}
"""By operator and kind, where results go."""

Streams = dict[str, pa.RecordBatch]


def history(seed: int, names: str = "ab") -> Streams:
    return {name: rows(10 * seed + place, 100) for place, name in enumerate(names)}


def write(given: Streams, folder: Path) -> None:
    """Every stream as one file a batch."""
    for number, pieces in enumerate(cut(list(given.values()), BATCHES)):
        for name, parts in zip(given, pieces, strict=True):
            write_file(folder / name, number, pa.Table.from_batches(parts).combine_chunks().to_batches()[0])


def text(query: str, names: str = "ab", operator: str = HASH, results: str = "{parquet: results}") -> str:
    streams = "\n".join(f"  {name}: {{source: parquet, path: {name}, time: ts, delay: 15us}}" for name in names)
    return (
        f"streams:\n{streams}\nquery: {query!r}\noperator: {{{operator}}}\nresults: {results}\n"
        "run: {checkpoint: checkpoint, files_per_batch: 1, slots: 2}\n"
    )


def write_join_file(folder: Path, content: str) -> Path:
    file = folder / "join.yaml"
    file.write_text(content)
    return file


def found_in(folder: Path, names: str) -> Counter[Any]:
    """The results, wherever they went."""
    if (folder / "results.jsonl").exists():
        lines = (folder / "results.jsonl").read_text().splitlines()
        return Counter(tuple(json.loads(line)[name] for name in names) for line in lines)
    if (folder / "results.db").exists():
        return rows_of(reader_of(folder / "join.yaml"), Question(select=tuple(names)))
    return result_rows(folder / "results")


@pytest.mark.parametrize(
    ("operator", "kind"),
    [pytest.param(*case, marks=[] if case[1] == "FULL" else [pytest.mark.soak]) for case in CASES],
)
def test_every_operator_gives_them_exactly_through_crashes_and_other_slots(
    operator: str, kind: str, session: SparkSession, tmp_path: Path
) -> None:
    given = history(2)
    write(given, tmp_path)
    query = f"SELECT ONLINE {items(kind)} FROM a {kind} JOIN b ON {ON} WITHIN 20 MICROSECONDS"
    file = write_join_file(tmp_path, text(query, operator=operator, results=CASES[operator, kind]))
    crash(session, file, "batch.before_commit:2", 2)
    crash(session, file, "batch.after_commit:2", 3)
    run_to_the_end(session, file, 1)
    wanted = expected(given, [(kind, ON)], (20, 20))
    assert wanted.total() > 20
    check_same(found_in(tmp_path, "a" if "I" in kind.split()[-1] and kind != "RIGHT" else "ab"), wanted)


@pytest.mark.soak
@pytest.mark.kills
@pytest.mark.timeout(KILLS_S_MAX)
@pytest.mark.parametrize("place", ["unit.before_manifest:8", "unit.after_manifest:12"])
def test_a_job_killed_between_a_match_and_its_notice_goes_on_exactly(
    place: str, session: SparkSession, tmp_path: Path
) -> None:
    given = history(3)
    write(given, tmp_path)
    query = f"SELECT ONLINE {items('FULL')} FROM a FULL JOIN b ON {ON} WITHIN 20 MICROSECONDS"
    file = write_join_file(tmp_path, text(query))
    name, _, visit = place.partition(":")
    with Command(file, "--until-end", "--quiet", failpoints=f"{name}:kill:{visit}") as command:
        assert command.exit_status() == -signal.SIGKILL, command.output()
    run_to_the_end(session, file, 3)
    check_same(found_in(tmp_path, "ab"), expected(given, [("FULL", ON)], (20, 20)))


@pytest.mark.soak
def test_they_follow_one_another_and_what_waits_is_given_at_the_end(session: SparkSession, tmp_path: Path) -> None:
    given = history(4, "abc")
    write(given, tmp_path)
    joins = [("FULL", ON), ("LEFT", "a.k = c.k AND c.x > 10")]
    written = " ".join(f"{kind} JOIN {name} ON {on}" for (kind, on), name in zip(joins, "bc", strict=True))
    query = f"SELECT ONLINE {items('FULL', 'LEFT')} FROM a {written} WITHIN 20 MICROSECONDS"
    file = write_join_file(tmp_path, text(query, "abc"))
    crash(session, file, f"batch.before_commit:{BATCHES + 1}", 2)  # the first of those after the end of input
    run_to_the_end(session, file, 3)
    check_same(found_in(tmp_path, "abc"), expected(given, joins, (20, 20, 20)))
    for stage in (0, 1):
        for _, state in read_manifests(tmp_path / "checkpoint" / "state", stage):
            assert all(clock.ended for clock in state.clocks)


@pytest.mark.soak
def test_groups_are_made_of_rows_without_a_partner_too(session: SparkSession, tmp_path: Path) -> None:
    given = history(5)
    write(given, tmp_path)
    query = (
        "SELECT ONLINE WINDOW_START() AS since, COUNT(*) AS n, COUNT(b.id) AS matched FROM a LEFT JOIN b ON "
        f"{ON} WITHIN 20 MICROSECONDS GROUP BY TUMBLE(100 MICROSECONDS)"
    )
    run_text(session, text(query), tmp_path)
    pairs = expected(given, [("LEFT", ON)], (20, 20), chosen="GREATEST(a.ts, b.ts), b.id")
    wanted: dict[int, list[int]] = {}
    for (at_us, other), many in pairs.items():
        counts = wanted.setdefault(at_us // 100 * 100, [0, 0])
        counts[0] += many
        counts[1] += many * (other is not None)
    found = {since.microsecond: [n, matched] for since, n, matched in result_rows(tmp_path / "results")}
    assert found == wanted and len(wanted) > 3


@pytest.mark.soak
def test_the_run_of_the_readme(tmp_path: Path) -> None:
    """The two files, the join file, the results and the summary stand in README.md, and so they are."""
    page = (Path(__file__).parents[2] / "README.md").read_text()
    text = page.split("**Orders without a payment**")[1].split("**Groups in windows")[0]
    for name in ("orders.csv", "payments.csv"):
        (tmp_path / name).write_text(text.split(f"$ cat {name}\n")[1].split("```")[0].split("$")[0])
    (tmp_path / "paid.yaml").write_text(text.split("```yaml\n")[1].split("```")[0])
    with Command(tmp_path / "paid.yaml", "--until-end", "--report", str(tmp_path / "report.json")) as command:
        assert command.exit_status() == 0, command.output()
        said = command.output()
    for line in re.findall(r"^(?:4 results from orders 3, payments 3 tuples|given as unmatched.*)", text, re.MULTILINE):
        assert line in said
    rows = (tmp_path / "paid.jsonl").read_text()
    assert sorted(rows.splitlines()) == sorted(text.split("$ cat paid.jsonl\n")[1].split("```")[0].splitlines())
    told = json.loads((tmp_path / "report.json").read_text())
    assert [told[name] for name in ("open_rows", "unmatched_rows", "late_after_final")] == [0, 2, 0]


def test_what_cannot_be_is_refused_in_a_sentence(tmp_path: Path) -> None:
    query = f"SELECT ONLINE {items('LEFT')} FROM a LEFT JOIN b ON a.k = b.k WITHIN 20 MICROSECONDS"
    write(history(6), tmp_path)
    for content, words in {
        text(query, operator="name: handshake"): "choose biclique, matrix or splitjoin",
        text(query.replace("LEFT", "ANTI").replace(", b.id AS b", ""), operator="name: spark"): "no LEFT ANTI JOIN",
        text(query, operator="name: splitjoin, ordering: total"): "leave operator.ordering out",
        text(query).replace("delay: 15us", "shed: {threshold: 10, capacity: 20}", 1): "leave shed out",
    }.items():
        with pytest.raises(UnsupportedError, match=words):
            bind(load(write_join_file(tmp_path, content))).job()
    for kind in ("RIGHT", "FULL", "LEFT ANTI"):
        content = text(f"SELECT ONLINE {items(kind)} FROM a {kind} JOIN b ON a.k = b.k WITHIN 20 MICROSECONDS")
        before, _, after = content.rpartition("delay: 15us")
        shed = "shed: {threshold: 10, capacity: 20}"
        for either in (content.replace("delay: 15us", shed, 1), before + shed + after):
            with pytest.raises(UnsupportedError, match="leave shed out"):
                bind(load(write_join_file(tmp_path, either))).job()


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["FULL", "LEFT SEMI"])
def test_sparks_own_join_gives_no_other_pairs(kind: str, session: SparkSession, tmp_path: Path) -> None:
    """It drops what it takes for late, whose partners it gives as unmatched, and keeps back what its watermark has not
    reached. (Its full outer join takes NULL for equal to NULL, so there is none.)"""
    given = {
        name: one.set_column(2, "k", one.column("k").fill_null(5 + place))
        for place, (name, one) in enumerate(history(7).items())
    }
    write(given, tmp_path)
    query = f"SELECT ONLINE {items(kind)} FROM a {kind} JOIN b ON {ON} WITHIN 20 MICROSECONDS"
    run_spark_join(session, text(query, operator="name: spark"), tmp_path)
    found, wanted = result_rows(tmp_path / "results"), expected(given, [(kind, ON)], (20, 20))
    matched = Counter({row: many for row, many in found.items() if None not in row})
    assert not matched - wanted and matched.total() > 20
    assert (matched != found) == (kind == "FULL")
