"""One query of a job is followed while others begin: who follows has each of its rows once, and nobody else's."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from streamjoin.results.reader import Reader
from streamjoin.spec.joinfile import load
from streamjoin.spec.outputs import store_job, store_spec
from tests.servers.process import ServerProcess

from .test_bundles import Found, streams, write
from .test_starting_queries import BASE, NEW, alone, batch_of, go_on, job_of, since

TAIL_S_MAX = 300.0
NAMES = {"ab": ("a", "ax", "b", "bx"), "bc": ("b", "c", "cx"), "left": ("a", "b"), "near": ("a", "b")}
"""The columns of the queries' results, in their order."""


def stored(folder: Path, queries: Mapping[str, str], apart: str = "") -> Path:
    """The job's file, with all results in one store; those of `apart` are in another."""
    path = job_of(folder, queries)
    text = path.read_text()
    for name in queries:
        store = "other.db" if name == apart else "results.db"
        kept = f"{{store: sqlite, path: {store}, snapshot: {{batches: 1}}}}"
        text = text.replace(f"{{parquet: job/{name}}}", kept)
    path.write_text(text)
    return path


class Tail(ServerProcess):
    """`streamjoin tail` of one query of a join file, as somebody has it in another window."""

    def __init__(self, file: Path, query: str, *arguments: str) -> None:
        self.query = query
        command = [sys.executable, "-m", "streamjoin.cli.commands", "tail", str(file), "--of", query, *arguments]
        super().__init__(f"tail of {query}", command, file.with_name(f"{query}.log"))

    def rows(self) -> Found:
        """All that it has shown so far."""
        *lines, _ = self.output().split("\n")
        shown = [json.loads(line) for line in lines if line.startswith("{")]
        assert all(set(row) == set(NAMES[self.query]) for row in shown)
        return Found(tuple(row[name] for name in NAMES[self.query]) for row in shown)


def last_snapshot(file: Path, query: str) -> str:
    one = load(file).of(query)
    return str(Reader(store_spec(one).open(), store_job(one)).refresh().state.last)


@pytest.mark.slow
@pytest.mark.parametrize("apart", ["", "left"], ids=["one store", "a store of its own"])
def test_who_follows_a_query_has_its_rows_once_while_others_begin(apart: str, tmp_path: Path) -> None:
    write(tmp_path, streams(97))
    go_on(stored(tmp_path, BASE), 2)
    file = stored(tmp_path, BASE | {"left": NEW["left"]}, apart)
    # What the second batch brought becomes visible with the third.
    with Tail(file, "ab", "--after", last_snapshot(file, "ab")) as old, Tail(file, "left") as new:
        new.wait_for_output("waiting: ", TAIL_S_MAX)  # it has not begun, and others of the file have
        go_on(file, 3)
        go_on(stored(tmp_path, BASE | {name: NEW[name] for name in ("left", "near")}, apart))
        every = alone(tmp_path, "ab-alone", BASE["ab"])
        wanted = {
            old: Found({row: n for row, n in every.items() if max(batch_of(row[0]), batch_of(row[2])) >= 1}),
            new: since(alone(tmp_path, "left-alone", NEW["left"]), 2),
        }
        for tail, rows in wanted.items():
            tail.wait_until(lambda tail=tail, rows=rows: tail.rows().total() >= rows.total(), "shows less", TAIL_S_MAX)  # type: ignore[misc]
            assert rows and tail.rows() == rows, tail.name
