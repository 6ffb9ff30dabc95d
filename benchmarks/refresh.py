"""A relation in PostgreSQL is read anew beside a job at half its highest rate: how much longer do its batches take?

python -m benchmarks.refresh                    a relation of 10,000,000 rows; about ten minutes, 10 GB of disk
python -m benchmarks.refresh --rows 100000      a smaller one; shows that it works

As a part of `python -m benchmarks` it goes onto the page.

The job is `streamjoin run`: a LEFT JOIN of a generated stream with the table, results in Parquet. First it runs as fast
as it can, to the end of some rows; then live, at half that rate. In mid-run a view is turned to another table and the
job asked to read it anew. A batch lasts from the moment its offsets are logged to its commit. In the end all results
are checked: each row of the stream is there once, with the row of the version that it names, and no row names the old
one after another has named the new one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np

from benchmarks import provenance, quiet, systems
from benchmarks.processes import kill, start
from benchmarks.scale import SLOTS, Scale
from streamjoin.relations.history import History

if TYPE_CHECKING:
    from tests.servers.postgres import PostgresServer

EXPECTED_S = 900
ROWS = 10_000_000
RISE_TARGET = 0.2
"""Of the 95th percentile of batch times, at most."""
SECONDS_TARGET = 600
NAME_LETTERS = 104
"""A row has 120 bytes with its two numbers."""
RELATION, TABLE = "c", "customers"
QUERY = (
    f"SELECT ONLINE s.id, s.k, {RELATION}.said, LENGTH({RELATION}.name) AS letters, VERSION({RELATION}) AS version "
    f"FROM s LEFT JOIN {RELATION} ON s.k = {RELATION}.id"
)
MISSES = 10
"""One in so many rows of the stream has no partner."""
WARM_BATCHES = 2
POLL_S = 0.05
START_S_MAX = 900.0
ENDS_S_MAX = 300.0
CHECKED_ROWS = 10_000_000
"""Ids are counted in parts, in little memory."""


class NotMeasuredError(Exception):
    """The job failed, or something did not come in time."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is joined.

    Args:
        rows: of the relation.
        batch_rows: of the stream in a batch, at most.
        fastest_batches: of the run that goes as fast as it can.
        warm_s, base_s, after_s: before the first batch that counts, until the relation is read anew, and how long
            batches count as beside that after the first one that has joined the new version.
    """

    rows: int
    batch_rows: int
    fastest_batches: int
    warm_s: float
    base_s: float
    after_s: float


FULL = Size(ROWS, 1_000_000, 12, 20.0, 90.0, 10.0)
QUICK = Size(2_000, 10_000, 5, 1.0, 3.0, 2.0)


@dataclass(frozen=True, slots=True)
class Batch:
    """When a batch was logged and committed, in seconds since 1970."""

    begun_s: float
    done_s: float

    @property
    def ms(self) -> float:
        """How long it took."""
        return (self.done_s - self.begun_s) * 1000


def run(scale: Scale) -> dict[str, Any]:
    """What `measured` finds; without PostgreSQL, why it was `skipped`."""
    from tests.servers.maven import ServerUnavailable  # here: these servers are for tests and benchmarks only
    from tests.servers.postgres import PostgresServer

    work = systems.folder(scale, "refresh")
    try:
        with PostgresServer() as server:
            found = measured(server, work, scale.pick(FULL, QUICK), scale.show, scale.seconds(3600.0))
    except ServerUnavailable as reason:
        return {"skipped": str(reason)}
    finally:
        shutil.rmtree(work, ignore_errors=True)  # results and versions are as large as what was joined
    return found if found["exact"] else {**found, "error": f"wrong results: {found['wrong']}"}


def measured(
    server: PostgresServer, work: Path, size: Size, show: Callable[[str], None], limit_s: float
) -> dict[str, Any]:
    """All that is found.

    Returns:
        `highest` and `rate` in rows a second, `alone` and `beside` as of `times_of`, `rise` as a share of the former,
        `seconds` from the question to the first batch that has joined the new version, `told` with each number of rows
        that was told meanwhile, `results`, and whether they are `exact`, with what is `wrong`.
    Raises:
        NotMeasuredError: the job failed, or took too long.
    """
    ends_s = time.monotonic() + limit_s
    show(f"  two tables of {size.rows:,} rows")
    make_tables(server, size.rows)
    fastest = join_file(work, "fastest", server, size, rate=1e9, rows=size.batch_rows * size.fastest_batches)
    highest = highest_rate(fastest, size, ends_s)
    shutil.rmtree(fastest.parent)
    show(f"  {highest:,.0f} rows/s at most; now half of that")
    file = join_file(work, "half", server, size, rate=max(highest / 2, 1.0))
    with Job(file) as job:
        found = refreshed(job, server, size, ends_s)
        status = job.stopped()
    if status:
        raise NotMeasuredError(f"the job ended with status {status}: {job.tail()}")
    alone, beside = found["alone"]["p95_ms"], found["beside"]["p95_ms"]
    show(f"  read in {found['seconds']:.1f} s; p95 of a batch {alone:,.0f} ms alone, {beside:,.0f} ms beside it")
    wrong = mistakes(file.parent / "results", size.rows)
    results = wrong.pop("results")
    return {
        "rows": size.rows, "highest": highest, "rate": highest / 2, **found, "rise": beside / alone - 1,
        "results": results, "exact": not any(wrong.values()) and results > 0, "wrong": wrong,
    }  # fmt: skip


def make_tables(server: PostgresServer, rows: int) -> None:
    """The relation as a view, and what it will be once it is turned: all rows say of which version they are."""
    columns = f"g::bigint AS id, %d::int AS said, rpad(md5(g::text), {NAME_LETTERS}, 'x') AS name"
    for version in (1, 2):
        of = f"SELECT {columns % version} FROM generate_series(1, {rows}) g"
        execute(server, f"CREATE TABLE {TABLE}_{version} AS {of}")
    turn(server, 1)


def turn(server: PostgresServer, version: int) -> None:
    """Have the view show a version, at once and as a whole."""
    execute(server, f"CREATE OR REPLACE VIEW {TABLE} AS SELECT * FROM {TABLE}_{version}")


def execute(server: PostgresServer, command: str) -> None:
    """One command, in a transaction of its own."""
    import psycopg

    with psycopg.connect(_url(server), autocommit=True) as connection:
        connection.execute(command.encode())


def _url(server: PostgresServer) -> str:
    return server.url.replace("+psycopg", "")


def join_file(work: Path, name: str, server: PostgresServer, size: Size, rate: float, rows: int | None = None) -> Path:
    """A join file in a folder of its own."""
    folder = work / name
    folder.mkdir()
    stream = {
        "source": "generator", "kind": "uniform.r", "rate": rate, "time": "ts", "begin": "now",
        "options": {"keys": size.rows * MISSES // (MISSES - 1) + 1}, **({} if rows is None else {"rows": rows}),
    }  # fmt: skip
    content = {
        "streams": {"s": stream},
        "relations": {RELATION: {"source": "sql", "url": _url(server), "table": TABLE}},
        "query": QUERY,
        "results": {"parquet": str(folder / "results")},
        "run": {
            "slots": SLOTS, "checkpoint": str(folder / "checkpoint"), "offsets_per_batch": size.batch_rows,
        },
    }  # fmt: skip
    file = folder / "join.yaml"
    file.write_text(json.dumps(content, indent=1))
    return file


class Job:
    """A running `streamjoin run`, which is killed when the block is left; its batches are looked at from outside."""

    def __init__(self, file: Path, *arguments: str) -> None:
        self.file, self.log = file, file.with_suffix(".log")
        self.batches: dict[int, Batch] = {}
        self._offsets = file.parent / "checkpoint" / "offsets"
        command = [sys.executable, "-m", "streamjoin", "run", str(file), *arguments]
        self._process = start(command, self.log)

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        kill(self._process)

    def until(self, holds: Callable[[], bool], what: str, ends_s: float) -> None:
        """Look at the batches until something holds.

        Raises:
            NotMeasuredError: the job ended before, or it took too long.
        """
        while not holds():
            ended = self._process.poll() is not None
            self._look()
            if ended and not holds():
                raise NotMeasuredError(f"the job ended before {what}: {self.tail()}")
            if time.monotonic() > ends_s:
                raise NotMeasuredError(f"it took too long until {what}")
            time.sleep(POLL_S)

    def ended(self, ends_s: float) -> None:
        """Wait for its end by itself.

        Raises:
            NotMeasuredError: it failed, or took too long.
        """
        self.until(lambda: self._process.poll() is not None, "its end", ends_s)
        self._look()
        if self._process.returncode:
            raise NotMeasuredError(f"the job ended with status {self._process.returncode}: {self.tail()}")

    def stopped(self) -> int:
        """Interrupt it as Ctrl-C does; the exit status."""
        os.kill(self._process.pid, signal.SIGINT)
        try:
            return self._process.wait(ENDS_S_MAX)
        except subprocess.TimeoutExpired:
            raise NotMeasuredError(f"the job does not end: {self.tail()}") from None

    def tail(self) -> str:
        """The end of what it said."""
        return self.log.read_text(errors="replace")[-1000:]

    def _look(self) -> None:
        """Spark keeps the logs of ten batches or so: this is to be called more often than they pass."""
        for entry in (self._offsets / "commits").glob("[0-9]*"):
            if (number := int(entry.name)) not in self.batches:
                try:
                    begun = (self._offsets / "offsets" / entry.name).stat()
                    self.batches[number] = Batch(begun.st_mtime, entry.stat().st_mtime)
                except FileNotFoundError:
                    continue


def highest_rate(file: Path, size: Size, ends_s: float) -> float:
    """Rows a second of a job that goes as fast as it can, from the end of its first batches to that of the last one."""
    with Job(file, "--until-end", "--quiet") as job:
        job.ended(ends_s)
    done = [batch.done_s for _, batch in sorted(job.batches.items())][: size.fastest_batches]
    if len(done) < size.fastest_batches:
        raise NotMeasuredError(f"{len(done)} batches of {size.fastest_batches} were seen")
    return (len(done) - WARM_BATCHES) * size.batch_rows / (done[-1] - done[WARM_BATCHES - 1])


def refreshed(job: Job, server: PostgresServer, size: Size, ends_s: float) -> dict[str, Any]:
    """Have the relation read anew in mid-run, and say what became of the batches."""
    history = History(job.file.parent / "checkpoint" / "relations", RELATION)
    job.until(lambda: len(job.batches) > WARM_BATCHES, "its first batches", min(ends_s, time.monotonic() + START_S_MAX))
    begins_s = time.time() + size.warm_s
    job.until(lambda: time.time() >= begins_s + size.base_s, "it was warm", ends_s)
    turn(server, 2)
    asked_s = time.time()
    history.ask()
    told: list[int] = []

    def is_joined() -> bool:
        reading = history.reading(time.time_ns() // 1_000)
        if reading is not None and reading.rows not in told:
            told.append(reading.rows)
        return any(use.version == 2 for use in history.uses())

    job.until(is_joined, "the new version was joined", ends_s)
    joined_s = next(use.used_us for use in history.uses() if use.version == 2) / 1e6
    ends_beside_s = joined_s + size.after_s
    job.until(lambda: time.time() >= ends_beside_s, "some batches had joined it", ends_s)
    batches = list(job.batches.values())
    return {
        "alone": times_of([one for one in batches if begins_s <= one.begun_s and one.done_s < asked_s]),
        "beside": times_of([one for one in batches if one.done_s >= asked_s and one.begun_s <= ends_beside_s]),
        "seconds": joined_s - asked_s, "told": told,
    }  # fmt: skip


def times_of(batches: Sequence[Batch]) -> dict[str, Any]:
    """How many, and `p50_ms`, `p95_ms`, `max_ms`."""
    if not batches:
        raise NotMeasuredError("no batch came in time; the phases are too short for this machine")
    found = [batch.ms for batch in batches]
    p50, p95 = (float(one) for one in np.percentile(found, (50, 95)))
    return {"batches": len(found), "p50_ms": p50, "p95_ms": p95, "max_ms": max(found)}


def mistakes(results: Path, rows: int) -> dict[str, int]:
    """How many results there are, and how many of them are wrong in which way.

    Returns:
        `results`; `lost` and `repeated` rows of the stream up to the last one that came out; `of_no_version`, rows with
        anything but what the version that they name has for them; `mixed`, rows that name the old version although an
        earlier one names the new one; `without_a_version`, 1 for each of both that no row names.
    """
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW found AS SELECT * FROM '{results}/*.parquet'")

        def ask(query: str) -> tuple[int, ...]:
            (row,) = connection.execute(query).fetchall()
            return tuple(int(value or 0) for value in row)

        count, last = ask("SELECT count(*), max(id) FROM found")
        different = sum(
            ask(f"SELECT count(DISTINCT id) FROM found WHERE id >= {first} AND id < {first + CHECKED_ROWS}")[0]
            for first in range(0, last + 1, CHECKED_ROWS)
        )
        there = f"k BETWEEN 1 AND {rows}"
        (other,) = ask(
            f"SELECT count(*) FROM found WHERE said IS DISTINCT FROM CASE WHEN {there} THEN version END "
            f"OR letters IS DISTINCT FROM CASE WHEN {there} THEN {NAME_LETTERS} END OR version NOT IN (1, 2)"
        )
        mixed, named = ask(
            "SELECT count(*) FILTER (version = 1 AND id > (SELECT min(id) FROM found WHERE version = 2)), "
            "count(DISTINCT version) FROM found"
        )
    return {
        "results": count, "lost": last + 1 - different, "repeated": count - different, "of_no_version": other,
        "mixed": mixed, "without_a_version": 2 - named,
    }  # fmt: skip


def lines(found: dict[str, Any]) -> Iterator[str]:
    """What the command prints."""
    yield f"{found['highest']:,.0f} rows/s at most, {found['rate']:,.0f} rows/s while it is measured"
    for name in ("alone", "beside"):
        of = found[name]
        figures = ", ".join(f"{what[:-3]} {of[what]:,.0f} ms" for what in ("p50_ms", "p95_ms", "max_ms"))
        yield f"{name}: {of['batches']:,} batches, {figures}"
    yield f"p95 {found['rise']:+.0%}; the aim is {RISE_TARGET:+.0%} at most"
    yield f"{found['rows']:,} rows read anew and joined after {found['seconds']:.1f} s; the aim is {SECONDS_TARGET:,} s"
    yield f"told meanwhile {len(found['told'])} times: {', '.join(f'{rows:,}' for rows in found['told'])} rows"
    wrong = ", ".join(f"{count:,} {what.replace('_', ' ')}" for what, count in found["wrong"].items() if count)
    yield f"{found['results']:,} results, each checked: {wrong or 'none is wrong'}"


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=given) as name:
        yield Path(name)


def main() -> int:
    """Measure and print; exit status 1 if a result is wrong."""
    from tests.servers.postgres import PostgresServer

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.refresh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=ROWS, help="of the relation")
    parser.add_argument("--work", type=Path, help="where results and versions are meanwhile")
    asked = parser.parse_args()
    print(f"commit {provenance.commit() or 'none'}; {quiet.look()}", flush=True)
    size = Size(asked.rows, FULL.batch_rows, FULL.fastest_batches, FULL.warm_s, FULL.base_s, FULL.after_s)
    with _folder(asked.work) as work, PostgresServer() as server:
        found = measured(server, work, size, lambda line: print(line.strip(), file=sys.stderr, flush=True), 3600.0)
    for line in lines(found):
        print(line)
    return 0 if found["exact"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
