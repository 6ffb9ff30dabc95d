"""Of queries that share stored tuples beside other parts some end: the rest goes on, and others start over them."""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.errors import InputError, UnsupportedError
from streamjoin.plan.sharing import key_text
from streamjoin.results.answer import ask
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.spark import driver, requerying
from streamjoin.spark.requerying import requery
from streamjoin.spec.job import IDENTITY_FILE, order_of, recorded
from streamjoin.spec.joinfile import load
from streamjoin.spec.outputs import store_job, store_spec
from tests.servers.objects import folder_root

from .alone import run_alone
from .test_bundles import Found, bound, rows_in, streams, write
from .test_starting_queries import alone, batch_of, file_of, go_on, since

HEAD = "SELECT ONLINE a.id AS a, b.id AS b FROM a, b WHERE"
REACH = "WITHIN 60 MICROSECONDS"
BOTH = f"{HEAD} a.k = b.k AND a.x = b.x {REACH}"
ONE = f"{HEAD} a.k = b.k {REACH}"
LEFT = "SELECT ONLINE a.id AS a, b.id AS b FROM a LEFT JOIN b ON a.k = b.k WITHIN 10 MICROSECONDS"
HASH = "operator: {name: biclique, routing: hash, r_units: 2, s_units: 2}\n"


def few_values(seed: int) -> list[pa.RecordBatch]:
    """Streams where x is one of three, as two rows with the same k often have."""
    return [
        rows.set_column(3, "x", pa.array([x % 3 for x in rows.column("x").to_pylist()], pa.int64()))
        for rows in streams(seed)
    ]


def job_of(folder: Path, queries: Mapping[str, str], stopped: Sequence[str] = (), extra: str = HASH) -> Path:
    return file_of(folder, "job", queries, stopped, extra)


def check(folder: Path, queries: Mapping[str, str], ended: Mapping[str, int], extra: str = HASH) -> None:
    """Each query gave what it gives alone, to its end or until so many batches were done; keys are like first ids."""
    for name, query in queries.items():
        every = alone(folder, f"{name}-alone", query, extra)
        until = ended.get(name, 99)
        wanted = Counter({row: n for row, n in every.items() if max(batch_of(i) for i in row if i is not None) < until})
        got = rows_in(folder / "job" / name)
        assert wanted and got == wanted, f"{name}: {wanted - got} missing, {got - wanted} too many"


@pytest.mark.parametrize(
    ("queries", "stopped"),
    [
        ({"both": BOTH, "one": ONE}, "one"),
        ({"one": ONE, "both": BOTH}, "one"),
        ({"both": BOTH, "one": ONE, "again": BOTH.replace("60", "30")}, "one"),
        ({"both": BOTH, "none": f"{HEAD} a.x < b.x AND ABS(a.k - b.k) < 2 {REACH}"}, "none"),
        ({"one": ONE, "other": ONE.replace("a.", "l.").replace("b.", "r.").replace("a, b", "a AS l, b AS r")}, "one"),
        ({"swapped": f"{HEAD} a.x = b.x AND a.k = b.k {REACH}", "both": BOTH}, "swapped"),
    ],
    ids=["fewer keys", "the first one", "two are left", "no key", "other names", "another order of keys"],
)
def test_those_left_are_routed_as_all_were_at_every_later_start(
    queries: Mapping[str, str], stopped: str, tmp_path: Path
) -> None:
    extra = HASH if "none" not in queries else HASH.replace("routing: hash, ", "")
    write(tmp_path, few_values(71))
    queries = {**queries, "left": LEFT}
    plans = [
        go_on(job_of(tmp_path, queries, ended, extra), until).job.plan.parts[0].plan
        for ended, until in (([], 1), ([stopped], 2), ([stopped], 3), ([stopped], None))
    ]
    assert len({tuple(map(key_text, plan.predicate.equalities)) for plan in plans}) == 1
    check(tmp_path, queries, {stopped: 1}, extra)
    found = recorded(tmp_path / "job-checkpoint")
    assert found is not None and found.order == tuple(queries)


@pytest.mark.parametrize("stopped", ["both", "one", "again"])
def test_a_checkpoint_that_has_forgotten_who_ended_goes_on(stopped: str, tmp_path: Path) -> None:
    """Versions before wrote an order without it."""
    write(tmp_path, few_values(72))
    queries = {"both": BOTH, "one": ONE, "again": BOTH.replace("60", "30"), "left": LEFT}
    go_on(job_of(tmp_path, queries), 1)
    go_on(job_of(tmp_path, queries, [stopped]), 2)
    path = tmp_path / "job-checkpoint" / IDENTITY_FILE
    known = json.loads(path.read_text())
    known["queries"]["order"].remove(stopped)
    path.write_text(json.dumps(known))
    job = go_on(job_of(tmp_path, queries, [stopped])).job
    assert order_of(job.plan) == tuple(queries)
    check(tmp_path, queries, {stopped: 1})


WIDE = ONE.replace("a.id AS a", "a.id AS a, a.k AS ak, b.k AS bk")
LOW = f"{HEAD} a.k = b.k AND a.x < 1 {REACH}"
AGAIN = LEFT.replace("10", "30")


@pytest.mark.parametrize(
    ("first", "stopped", "new"),
    [
        ({"wide": WIDE, "low": LOW}, "wide", AGAIN),
        ({"low": LOW.replace("a.id AS a", "a.id AS a, a.k AS ak, b.k AS bk"), "wide": WIDE}, "low",
         LOW.replace("60", "30")),
        ({"one": ONE, "low": LOW}, "one", AGAIN),
        ({"x": ONE.replace("a.id AS a", "a.id AS a, a.x AS x"), "one": ONE}, "x",
         AGAIN.replace("a.id AS a", "a.id AS a, a.x AS x")),
    ],
    ids=["only it has all", "only it has left some out", "its index has the keys", "only it stores a column"],
)  # fmt: skip
def test_a_query_starts_over_what_one_stores_that_ends_with_this_start(
    first: Mapping[str, str], stopped: str, new: str, tmp_path: Path
) -> None:
    write(tmp_path, few_values(73))
    queries = {**first, "left": LEFT}
    go_on(job_of(tmp_path, queries), 2)
    go_on(job_of(tmp_path, {**queries, "new": new}, [stopped]), 3)
    go_on(job_of(tmp_path, {**queries, "new": new}, [stopped]))
    check(tmp_path, queries, {stopped: 2})
    wanted = since(alone(tmp_path, "new-alone", new, HASH), 2)
    got = rows_in(tmp_path / "job" / "new")
    assert wanted and got == wanted, f"{wanted - got} missing, {got - wanted} too many"


BC = "SELECT ONLINE b.id AS b, c.id AS c FROM b, c WHERE b.k = c.k WITHIN 60 MICROSECONDS"
TWO_PAIRS = {"wide": WIDE, "low": LOW, "bc": BC, "few": BC.replace("b.k = c.k", "b.k = c.k AND b.x < 1"), "left": LEFT}
NEW = {
    "again": AGAIN,
    "three": "SELECT ONLINE a.id AS a, b.id AS b, c.id AS c FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k "
    "WITHIN 25 MICROSECONDS",
}
ENDED = ["wide", "few"]


class Killed(BaseException):
    """The process ends here."""


def second(folder: Path) -> Path:
    """The job of two shared parts with its second start: of each one query ends, and others start over all of them."""
    return job_of(folder, TWO_PAIRS | NEW, ENDED)


def check_both(folder: Path, whole: Mapping[str, Found]) -> None:
    """Each query gave what it should; `whole` is what it gives alone."""
    for name, every in whole.items():
        wanted = since(every, 2) if name in NEW else every - since(every, 2) if name in ENDED else every
        got = rows_in(folder / "job" / name)
        assert wanted and got == wanted, f"{name}: {wanted - got} missing, {got - wanted} too many"


def renamed(folder: Path, moved: int | None = None) -> list[str]:
    """Files that the second start's change of the state renames, in their order; it is killed after so many."""
    real, found = os.replace, list[str]()

    def stops(source: Any, target: Any) -> None:
        if len(found) == moved:
            raise Killed
        found.append(Path(target).name)
        real(source, target)

    def change(*given: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "replace", stops)
            requery(*given)

    write(folder, few_values(74))
    go_on(job_of(folder, TWO_PAIRS), 2)
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Killed):
        patch.setattr(driver, "requery", change)
        go_on(second(folder), 2)
    return found


def alone_each(folder: Path) -> dict[str, Found]:
    return {name: alone(folder, f"{name}-alone", query, HASH) for name, query in (TWO_PAIRS | NEW).items()}


@pytest.mark.slow
def test_a_start_with_which_some_end_and_others_start_is_killed_anywhere(tmp_path: Path) -> None:
    """It is all of the change or nothing of it, whichever file comes next."""
    files = renamed(tmp_path)
    noted = files.index("rewrite.json")
    assert files[noted:] == ["rewrite.json", *["2.json"] * 8, "job.json"]
    whole = alone_each(tmp_path)
    for moved in (0, noted // 2, noted, noted + 1, noted + 3, noted + 5, len(files) - 1):
        folder = tmp_path / str(moved)
        folder.mkdir()
        assert renamed(folder, moved) == files[:moved]
        if moved > noted:
            with pytest.raises(InputError, match="have changed since the join file was read"):
                go_on(job_of(folder, TWO_PAIRS), 3)
        elif moved:
            go_on(job_of(folder, TWO_PAIRS), 2)
        go_on(second(folder), 3)
        assert not (folder / "job-checkpoint" / "state" / "rewrite.json").exists()
        go_on(second(folder))
        check_both(folder, whole)


def test_state_in_a_store_of_objects_becomes_another_in_one_step(tmp_path: Path) -> None:
    write(tmp_path, few_values(75))
    root = folder_root(tmp_path / "store")
    run_alone(bound(job_of(tmp_path, TWO_PAIRS)), lambda batch: batch < 2, root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(requerying, "failpoint", killed_before_note)
        with pytest.raises(Killed):
            run_alone(bound(second(tmp_path)), lambda batch: batch < 3, root)
    run_alone(bound(second(tmp_path)), lambda batch: batch < 3, root)
    run_alone(bound(second(tmp_path)), None, root)
    check_both(tmp_path, alone_each(tmp_path))


def killed_before_note(name: str) -> None:
    if name == "requery.before_note":
        raise Killed


def test_a_start_that_is_refused_has_not_completed_the_results_of_who_ends(tmp_path: Path) -> None:
    given = few_values(76)
    given[2] = given[2].slice(0, 2)  # c has come less far than b, for which tuples of a are stored
    write(tmp_path, given)
    late = NEW["three"].replace("25", "59")

    def stored(queries: Mapping[str, str], stopped: Sequence[str] = ()) -> Path:
        path = job_of(tmp_path, queries, stopped)
        place = "{store: sqlite, path: wide.db, snapshot: {batches: 99}}"
        path.write_text(path.read_text().replace("{parquet: job/wide}", place))
        return path

    def shown() -> int:
        wide = load(tmp_path / "job.yaml").of("wide")
        return sum(rows.num_rows for rows in ask(Reader(store_spec(wide).open(), store_job(wide)), Question()))

    go_on(stored(TWO_PAIRS), 3)
    known = (tmp_path / "job-checkpoint" / IDENTITY_FILE).read_bytes()
    with pytest.raises(UnsupportedError, match="this needs them from"):
        go_on(stored({**TWO_PAIRS, "late": late}, ["wide"]))
    assert shown() == 0 and (tmp_path / "job-checkpoint" / IDENTITY_FILE).read_bytes() == known
    go_on(stored(TWO_PAIRS, ["wide"]), 3)
    every = alone(tmp_path, "wide-alone", WIDE, HASH)
    assert shown() == (every - since(every, 3)).total() > 0
    go_on(stored(TWO_PAIRS, ["wide"]))
    assert rows_in(tmp_path / "job" / "low") == alone(tmp_path, "low-alone", LOW, HASH)
