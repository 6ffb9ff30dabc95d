"""A relation that only queries join which have ended is not read any more, whatever becomes of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin import failpoints
from streamjoin.cli.commands import app
from streamjoin.errors import InputError
from streamjoin.relations.versions import Versions
from streamjoin.spark.driver import Driver
from streamjoin.spec.job import ENDED_COLUMNS, IDENTITY_FILE
from tests.failing import failing_at

from .alone import run_alone
from .test_bundles import DISORDER_US, bound, rows_in, streams, write

TEXT = """\
streams:
  a: {{source: parquet, path: a, time: ts, time_unit: us, delay: {delay}us}}
  b: {{source: parquet, path: b, time: ts, time_unit: us, delay: {delay}us}}
relations:
  rates: {{source: parquet, path: rates, refresh: 1s}}
  names: {{source: parquet, path: names, refresh: 1s}}
queries:
  pairs: {{query: "SELECT ONLINE a.id AS a, b.id AS b FROM a, b WHERE a.k = b.k WITHIN 20 MICROSECONDS",
           results: {{parquet: out/pairs}}}}
  rated: {{query: "SELECT ONLINE a.id AS a, rates.rate FROM a LEFT JOIN rates ON a.k = rates.k",
           results: {{parquet: out/rated}}{stopped}}}
  both: {{query: "SELECT ONLINE b.id AS b, names.name{more} FROM b LEFT JOIN names ON b.k = names.k{joined}",
          results: {{parquet: out/both}}}}
run: {{checkpoint: checkpoint, files_per_batch: 1, slots: 2}}
"""


def join_file(folder: Path, *, stopped: bool, is_shared: bool) -> Path:
    path = folder / "join.yaml"
    path.write_text(
        TEXT.format(
            delay=DISORDER_US, stopped=", stopped: true" if stopped else "",
            more=", rates.rate" if is_shared else "",
            joined=" LEFT JOIN rates ON b.k = rates.k" if is_shared else "",
        )
    )  # fmt: skip
    return path


def tables(folder: Path, version: int) -> None:
    keys = list(range(6))
    for name, column in (("rates", "rate"), ("names", "name")):
        (folder / name).mkdir(exist_ok=True)
        there = [100 * version + key for key in keys]
        pq.write_table(pa.table({"k": keys, column: there}), folder / name / "0.parquet")


def numbers(job: Driver) -> dict[str, list[int]]:
    return {name: Versions(job.job.tables, name).numbers() for name in ("rates", "names")}


@pytest.mark.slow
@pytest.mark.parametrize("dies", [False, True], ids=["stopped", "killed in a batch"])
@pytest.mark.parametrize("is_shared", [False, True], ids=["of it alone", "of another query, too"])
def test_a_relation_of_queries_that_have_ended_is_not_read(is_shared: bool, dies: bool, tmp_path: Path) -> None:
    write(tmp_path, streams(80))
    tables(tmp_path, 1)
    job = run_alone(bound(join_file(tmp_path, stopped=False, is_shared=is_shared)), lambda batch: batch < 2)
    assert numbers(job) == {"rates": [1], "names": [1]}
    if dies:  # the batch is done again with the query that has ended meanwhile
        with failing_at("batch.before_commit"), pytest.raises(failpoints.FailpointError):
            run_alone(bound(tmp_path / "join.yaml"))
    tables(tmp_path, 2)
    path = join_file(tmp_path, stopped=True, is_shared=is_shared)
    job = run_alone(bound(path))
    assert numbers(job)["names"][-1] == 2
    assert numbers(job)["rates"][-1] == (2 if is_shared else 1)
    stages = Versions(job.job.tables, "rates").load(numbers(job)["rates"][-1]).stages
    assert len(stages) == 1
    assert set(job.progress.relations) == ({"rates", "names"} if is_shared else {"names"})
    run_alone(bound(path))  # a start later nothing changes any more
    given = rows_in(tmp_path / "out" / "both")
    assert len(given) == 90 and {row[1] // 100 for row in given if row[1] is not None} == {1, 2}
    ended = rows_in(tmp_path / "out" / "rated")
    assert 0 < len(ended) < 90 and {row[1] // 100 for row in ended if row[1] is not None} == {1}


@pytest.mark.slow
def test_a_change_that_was_taken_back_leaves_the_query_its_relation(tmp_path: Path) -> None:
    """The start that was killed has read the relation for those queries that it would have had."""
    write(tmp_path, streams(81))
    tables(tmp_path, 1)
    run_alone(bound(join_file(tmp_path, stopped=False, is_shared=True)), lambda batch: batch < 2)
    tables(tmp_path, 2)
    with failing_at("requery.before_note"), pytest.raises(failpoints.FailpointError):
        run_alone(bound(join_file(tmp_path, stopped=True, is_shared=True)))
    path = join_file(tmp_path, stopped=False, is_shared=True)
    job = run_alone(bound(path))
    assert numbers(job)["rates"][-1] == 3
    for name in ("rated", "both"):
        given = rows_in(tmp_path / "out" / name)
        assert len(given) == 90 and {row[1] // 100 for row in given if row[1] is not None} == {1, 2}


def test_a_relation_of_queries_that_have_ended_may_go_and_may_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, streams(20))
    tables(tmp_path, 1)
    run_alone(bound(join_file(tmp_path, stopped=False, is_shared=False)), lambda batch: batch < 1)
    path = join_file(tmp_path, stopped=True, is_shared=False)
    run_alone(bound(path), lambda batch: batch < 3)
    (file,) = (tmp_path / "rates").iterdir()
    pq.write_table(pa.table({"k": ["x"], "said": ["y"]}), file)  # nothing of what the query named
    run_alone(bound(path), lambda batch: batch < 4)
    shutil.rmtree(tmp_path / "rates")
    app(["validate", str(path)], result_action="return_value")
    assert "names: " in (said := capsys.readouterr().out) and "rates: " not in said
    job = run_alone(bound(path))
    assert set(job.progress.relations) == {"names"}
    # Where another query joins it from now on, it is looked at.
    text = path.read_text()
    again = '  again: {query: "SELECT ONLINE b.id AS b, RATES.rate FROM b JOIN RATES ON b.k = RATES.k"}\nrun:'
    path.write_text(text.replace("run:", again))
    with pytest.raises(InputError, match="rates does not exist"):
        bound(path)
    path.write_text(text)
    record = tmp_path / "checkpoint" / IDENTITY_FILE
    known = json.loads(record.read_text())
    assert known.pop(ENDED_COLUMNS) == {"rates": {"k": "int64", "rate": "int64"}}
    record.write_text(json.dumps(known))  # as checkpoints were written once
    with pytest.raises(InputError, match="rates does not exist"):
        bound(path)
    tables(tmp_path, 2)
    run_alone(bound(path))
