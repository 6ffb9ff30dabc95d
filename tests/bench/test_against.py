"""Two commits are measured in turn, each from a worktree of its own, and nothing is left of either."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchmarks import __main__ as command
from benchmarks import (
    against,
    band,
    equi,
    equi_large,
    equi_small,
    kafka_json,
    processes,
    provenance,
    startup,
    stores,
    systems,
)
from benchmarks.against import Turn, compare, run_against, take_turns
from benchmarks.checkouts import NoCommitError, checkout
from benchmarks.processes import run
from benchmarks.provenance import DirtyError
from benchmarks.scale import Scale
from benchmarks.systems import FailedRowError, Rates
from tests.servers import kafka
from tests.servers.process import comes_true

ROOT = Path(__file__).parents[2]
GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false"]


@pytest.fixture(autouse=True)
def _interrupts_as_before() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout whose first commit, `base`, has a rate of 100, and whose second one has 98."""
    root = tmp_path / "tree"
    (root / "streamjoin").mkdir(parents=True)
    (root / "streamjoin" / "__init__.py").write_text("")
    subprocess.run([*GIT, "init", "--quiet"], cwd=root, check=True)
    commit(root, "100")
    subprocess.run([*GIT, "tag", "base"], cwd=root, check=True)
    commit(root, "98")
    return root


def commit(root: Path, rate: str) -> None:
    (root / "rate").write_text(rate)
    for words in (["add", "."], ["commit", "--quiet", "-m", rate]):
        subprocess.run([*GIT, *words], cwd=root, check=True)


def scale(folder: Path, quick: bool = True) -> Scale:
    return Scale(quick=quick, ends_s=time.monotonic() + 300, data=folder / "data", work=folder / "work")


@contextmanager
def own(scale: Scale) -> Iterator[Turn]:
    """A part with the rate that stands in the commit's file."""
    yield lambda scale: {"row": float((scale.code / "rate").read_text())}


def worktrees(root: Path) -> int:
    done = subprocess.run(["git", "worktree", "list"], cwd=root, check=True, capture_output=True, text=True)
    return len(done.stdout.splitlines()) - 1


# -- ratios -------------------------------------------------------------------------------------------------------


def test_a_part_is_the_median_of_its_pairs_and_a_pair_the_geometric_mean_of_its_rows() -> None:
    found = compare([({"a": 2.0, "b": 8.0}, {"a": 1.0, "b": 1.0}), ({"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 1.0})] * 2)
    assert found.ratios == pytest.approx([4.0, 1.0, 4.0, 1.0])
    assert found.median == pytest.approx(2.5)
    assert found.rows == {"a": [2.0, 1.0, 2.0, 1.0], "b": [8.0, 1.0, 8.0, 1.0]}


def test_rows_that_one_commit_does_not_have_are_left_out() -> None:
    found = compare([({"a": 1.0, "new": 9.0}, {"a": 2.0, "old": 9.0})])
    assert found.rows == {"a": [0.5]}
    with pytest.raises(ValueError, match="no row in common"):
        compare([({"new": 1.0}, {"old": 1.0})])


@pytest.mark.parametrize(("ratio", "enough"), [(0.97, True), (0.969, False), (1.2, True)])
def test_a_ratio_of_97_per_cent_is_enough(ratio: float, enough: bool) -> None:
    found = against.Compared([ratio, 0.5, 2.0], {"row": [ratio, 0.5, 2.0]})
    assert found.fast_enough is enough
    assert f"median {ratio:.3f}, from 0.500 to 2.000  {'yes' if enough else 'NO'}" in against.table(
        "h", "b", 3, {"part": found}
    )


def test_turns_alternate_and_toy_sizes_before_them_are_not_counted(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    taken: list[tuple[bool, str]] = []

    @contextmanager
    def own(scale: Scale) -> Iterator[Turn]:
        def turn(given: Scale) -> Rates:
            assert given.quick == scale.quick
            taken.append((given.quick, given.code.name))
            return {"row": 1000.0 if given.quick else 3.0 if given.code == ours else 2.0}

        yield turn

    found = take_turns(own, scale(tmp_path, quick=False), ours, theirs, pairs=3)
    assert taken == [
        (True, "ours"), (True, "theirs"),
        (False, "ours"), (False, "theirs"), (False, "theirs"), (False, "ours"), (False, "ours"), (False, "theirs"),
    ]  # fmt: skip
    assert found.ratios == pytest.approx([1.5, 1.5, 1.5])


def test_a_run_that_failed_or_was_cut_off_has_no_rate() -> None:
    assert systems.rates({"a": {"error": None, "rate": 2.0}}, "rate") == {"a": 2.0}
    with pytest.raises(FailedRowError, match="b: it broke"):
        systems.rates({"a": {"rate": 2.0}, "b": {"error": "it broke", "rate": 1.0}}, "rate")
    with pytest.raises(FailedRowError, match="b: no rate, the run was cut off"):
        systems.rates({"b": {"error": None, "rate": None}}, "rate")


def test_a_store_that_is_not_there_has_no_row_and_answers_are_a_rate() -> None:
    asked = {"p50_ms": 4.0}
    found = stores.rates_of({"a": {"rows_per_second": 7.0, "key": asked, "time": asked}, "b": {"skipped": "no jars"}})
    assert found == {"a, rows in": 7.0, "a, a key": 250.0, "a, one second": 250.0}


# -- worktrees ----------------------------------------------------------------------------------------------------


def test_each_commit_runs_from_its_own_worktree_and_none_is_left(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / "rate").write_text("1")  # neither commit's
    seen: list[Path] = []

    @contextmanager
    def watched(given: Scale) -> Iterator[Turn]:
        with own(given) as turn:

            def noted(scale: Scale) -> Rates:
                seen.append(scale.code)
                return turn(scale)

            yield noted

    assert run_against("base", ["part"], 3, scale(tmp_path), own={"part": watched}, root=tree) == 0
    assert "median 0.980, from 0.980 to 0.980  yes" in capsys.readouterr().out
    assert len(set(seen)) == 2
    assert tree not in seen
    assert not any(code.parent.exists() for code in seen)
    assert worktrees(tree) == 0


def test_a_slower_commit_and_a_failed_part_are_told_by_the_exit_status(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tree, "96")
    assert run_against("base", ["part"], 1, scale(tmp_path), own={"part": own}, root=tree) == 1
    assert "median 0.960, from 0.960 to 0.960  NO" in capsys.readouterr().out

    @contextmanager
    def broken(scale: Scale) -> Iterator[Turn]:
        raise FailedRowError("it broke")
        yield

    commit(tree, "100")
    assert run_against("base", ["bad", "part"], 1, scale(tmp_path), own={"bad": broken, "part": own}, root=tree) == 1
    told = capsys.readouterr().out
    assert "FAILED: FailedRowError: it broke" in told
    assert "median 1.000" in told
    assert worktrees(tree) == 0


def test_a_worktree_goes_when_what_used_it_fails(tree: Path) -> None:
    def fail() -> None:
        with checkout("base", tree) as code:
            seen.append(code)
            assert (code / "rate").read_text() == "100"
            (code / "left").write_text("something")
            raise KeyboardInterrupt

    seen: list[Path] = []
    with pytest.raises(KeyboardInterrupt):
        fail()
    assert not seen[0].parent.exists()
    assert worktrees(tree) == 0


def test_a_worktree_goes_that_git_was_still_making(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really = subprocess.run

    def interrupted(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        done: subprocess.CompletedProcess[str] = really(command, **options)  # type: ignore[call-overload]
        if "add" in command:
            really(["git", "worktree", "lock", command[-2]], cwd=tree, check=True)
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(subprocess, "run", interrupted)
    with pytest.raises(KeyboardInterrupt), checkout("base", tree):
        pass
    monkeypatch.undo()
    assert worktrees(tree) == 0


def test_a_commit_that_is_not_there_is_named(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(NoCommitError, match="no commit nowhere here"):
        run_against("nowhere", ["part"], 1, scale(tmp_path), own={"part": own}, root=tree)
    with checkout(None, tree) as code:
        assert code == tree


def test_programs_run_as_the_checkout_has_them(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(tmp_path)]))
    against.check_imports(tree)
    ask = [sys.executable, "-c", "import os; print(os.environ['PYTHONPATH'], os.getcwd())"]
    ended = run(ask, limit_s=30, log=tmp_path / "log", code=tree)
    assert ended.tail.split() == [os.pathsep.join([str(tree), str(tmp_path)]), str(tree)]
    shutil.rmtree(tree / "streamjoin")
    with pytest.raises(against.WrongCodeError, match="do not import the StreamJoin there"):
        against.check_imports(tree)


INTERRUPTED = """
import sys, time
from contextlib import contextmanager
from pathlib import Path
from benchmarks.against import run_against
from benchmarks.processes import run
from benchmarks.scale import Scale

place = Path(sys.argv[1])

@contextmanager
def own(scale):
    def turn(scale):
        told = "import os, pathlib, time; pathlib.Path(%r).write_text(str(os.getpid())); time.sleep(300)"
        run([sys.executable, "-c", told % str(place / "pid")], limit_s=300, log=place / "log", code=scale.code)
        return {"row": 1.0}
    yield turn

scale = Scale(quick=True, ends_s=time.monotonic() + 300, data=place, work=place)
run_against("base", ["part"], 1, scale, own={"part": own}, root=place / "tree")
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_no_worktree_and_no_process(tree: Path, tmp_path: Path, number: signal.Signals) -> None:
    before = "from benchmarks.baselines.termination import exit_on_terminate; exit_on_terminate()\n"
    process = processes.start([sys.executable, "-c", before + INTERRUPTED, str(tmp_path)], tmp_path / "outer.log")
    try:
        assert comes_true(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "", 120)
        pid = int((tmp_path / "pid").read_text())
        assert worktrees(tree) == 2
        codes = [str(line) for line in _places(tree)]
        process.send_signal(number)
        if number == signal.SIGINT:  # an impatient one
            comes_true(lambda: _again(process), 60)
        assert process.wait(60) != 0
    finally:
        processes.kill(process)
    assert not psutil.pid_exists(pid)
    assert worktrees(tree) == 0
    assert not any(Path(code).parent.exists() for code in codes)


def _again(process: subprocess.Popen[bytes]) -> bool:
    process.send_signal(signal.SIGINT)
    return process.poll() is not None


def _places(tree: Path) -> list[str]:
    done = subprocess.run(["git", "worktree", "list"], cwd=tree, check=True, capture_output=True, text=True)
    return [line.split()[0] for line in done.stdout.splitlines()[1:]]


# -- the parts, with other programs in place of Spark ---------------------------------------------------------------


RIGHT = 7
TOY_ROWS = {
    "equi_large": equi_large.QUICK.rows_in, "equi_small": equi_small.QUICK.rows_in, "band": 2 * 5 * (1 << 13),
    "kafka_json": 2 * 3 * 4096,
}  # fmt: skip


@pytest.fixture
def wrong() -> set[str]:
    """Rows that lose a result."""
    return set()


@pytest.fixture
def ran(wrong: set[str], monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, str, Any]]:
    """What `systems.own` was asked for: code, row, the join file. 16 M rows warm up; then one takes a millisecond.

    A run reads and finds as much as `toy` says of its part, and the DataFrame counts nothing.
    """
    asked: list[tuple[Path, str, Any]] = []

    def own(given: Scale, work: Path, name: str, joins: list[Any], **_: Any) -> list[dict[str, Any]]:
        asked.append((given.code, name, joins[0]))
        results = None if name.endswith("dataframe") else RIGHT - (name in wrong)
        report = {"error": None, "batch_rows": [1 << 24, 1], "batch_ms": [1.0, 1.0], "results": results}
        return [{**report, "rows_in": TOY_ROWS[work.name]}]

    monkeypatch.setattr(systems, "own", own)
    for module in (equi, kafka_json):
        monkeypatch.setattr(module, "count_and_hash", lambda data, window_us: (RIGHT, 0))
    return asked


class Broker:
    """Takes records and forgets them."""

    servers = "127.0.0.1:1"
    told: list[str]

    def __enter__(self) -> Broker:
        return self

    def __exit__(self, *_: object) -> None:
        self.told.append("closed")

    def create_topic(self, name: str, partitions: int) -> None:
        self.told.append(name)

    def produce(self, name: str, records: Iterator[bytes], partition: int) -> None:
        assert next(records)


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """`Broker` in place of a real one."""
    monkeypatch.setattr(Broker, "told", [], raising=False)
    monkeypatch.setattr(kafka, "KafkaBroker", Broker)
    monkeypatch.setattr(kafka, "spark_connector_jars", lambda: "some.jar")


@pytest.mark.parametrize(
    ("part", "rows"),
    [
        ("equi_large", ["streamjoin-driver", "streamjoin-dataframe"]),
        ("equi_small", ["streamjoin-driver", "streamjoin-dataframe"]),
        ("band", ["biclique", "matrix", "splitjoin-total"]),
        ("kafka_json", ["streamjoin-driver"]),
    ],
)
@pytest.mark.usefixtures("broker")
def test_our_rows_alone_run_by_the_code_of_the_checkout(
    part: str, rows: list[str], ran: list[tuple[Path, str, Any]], tmp_path: Path
) -> None:
    toy = scale(tmp_path)
    with against.OWN[part](toy) as turn:
        for code in (tmp_path / "ours", tmp_path / "theirs"):
            assert dict(turn(replace(toy, code=code))) == dict.fromkeys(rows, 1000.0)
    assert [(code.name, name) for code, name, _ in ran] == [(code, row) for code in ("ours", "theirs") for row in rows]
    assert all(join["operator"]["name"] != "spark" for _, _, join in ran)
    assert Broker.told == (["r", "s", "closed"] if part == "kafka_json" else [])


@pytest.mark.parametrize(
    ("part", "row"),
    [("equi_large", "streamjoin-driver"), ("equi_small", "streamjoin-driver"), ("band", "matrix"),
     ("kafka_json", "streamjoin-driver")],
)  # fmt: skip
@pytest.mark.usefixtures("broker")
def test_a_commit_that_loses_rows_is_not_fast_enough(
    part: str, row: str, wrong: set[str], ran: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    toy = scale(tmp_path)
    with against.OWN[part](toy) as turn:
        turn(toy)
        wrong.add(row)
        with pytest.raises(FailedRowError, match=f"{row}: 6 results, and 7 are right"):
            turn(toy)
        wrong.clear()
        monkeypatch.setitem(TOY_ROWS, part, 5)
        with pytest.raises(FailedRowError, match=r"it read 5 of .* cannot be checked"):
            turn(toy)


def test_band_joins_that_all_lose_rows_are_other_than_the_first_run(
    wrong: set[str], ran: list[Any], tmp_path: Path
) -> None:
    toy = scale(tmp_path)
    with against.OWN["band"](toy) as turn:
        turn(toy)
        wrong.update(band.OPERATORS)
        with pytest.raises(FailedRowError, match="biclique: 6 results, and 7 are right"):
            turn(toy)


COMMITS = """
import json, pathlib, sys, time
place = pathlib.Path(json.loads(pathlib.Path(sys.argv[1]).read_text())["run"]["checkpoint"]) / "offsets" / "commits"
place.mkdir(parents=True, exist_ok=True)
time.sleep(0.1)
for batch in range(len(list(place.iterdir())), 1000):
    time.sleep(0.02)
    (place / str(batch)).write_text("")
"""


def test_starts_and_recoveries_are_of_the_code_of_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[Path] = []

    def start(command: list[str], log: Path, code: Path) -> subprocess.Popen[bytes]:
        assert command[1:4] == ["-m", "streamjoin", "run"]
        used.append(code)
        return processes.start([sys.executable, "-c", COMMITS, command[4]], log)

    monkeypatch.setattr(startup, "start", start)
    toy = replace(scale(tmp_path), code=tmp_path / "theirs")
    with startup.own(toy) as turn:
        rates = turn(toy)
    assert list(rates) == [
        f"{size}, {what}" for size in ("small", "large") for what in ("first batch", "recovery", "batch")
    ]
    assert all(rate > 0 for rate in rates.values())
    # Nothing is committed within 0.1 s of a start; what was there before it is no recovery.
    assert all(rate < 10 for row, rate in rates.items() if not row.endswith(", batch"))
    assert used == [toy.code] * 4


@pytest.mark.parametrize("left", [{"stores": {"sqlite": {"skipped": "none"}}}, {"error": "it broke"}, None])
def test_a_turn_of_stores_is_the_part_of_the_checkout(
    left: dict[str, Any] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(command: list[str], *, limit_s: float, log: Path, code: Path) -> processes.Ended:
        assert code == tmp_path / "theirs"
        assert command[1:5] == ["-m", "benchmarks", "--only", "stores"]
        assert "--quick" in command
        out = Path(command[command.index("--out") + 1])
        out.mkdir(parents=True)
        log.write_text("the end of its output")
        if left is not None:
            (out / "stores.json").write_text(json.dumps(left))
        return processes.Ended(1, 1.0, False, {}, log)

    monkeypatch.setattr(stores, "run_program", run)
    toy = replace(scale(tmp_path), code=tmp_path / "theirs")
    with stores.own(toy) as turn:
        if left and "stores" in left:
            assert turn(toy) == {}
        else:
            with pytest.raises(FailedRowError, match="it broke" if left else "the end of its output"):
                turn(toy)


# -- the command --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--own"], "go together"),
        (["--against", "HEAD"], "go together"),
        (["--own", "--against", "HEAD", "--only", "index"], "--own has no part index; it has equi_large, equi_small"),
        (["--own", "--against", "HEAD", "--pairs", "0"], "at least one"),
    ],
)
def test_what_makes_no_sense_is_refused(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", *words])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_dirty_tree_is_refused_and_an_unknown_commit_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def dirty() -> str:
        raise DirtyError("the tree is not commit abc")

    monkeypatch.setattr(command, "exit_on_terminate", lambda: None)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--own", "--against", "nowhere", "--out", str(tmp_path)])
    monkeypatch.setattr(provenance, "require_clean", dirty)
    assert command.main() == 1
    assert "the tree is not commit abc" in capsys.readouterr().err
    monkeypatch.setattr(provenance, "require_clean", lambda: "abc")
    assert command.main() == 1
    assert "there is no commit nowhere" in capsys.readouterr().err


def test_every_part_that_must_not_get_slower_is_there() -> None:
    assert list(against.OWN) == ["equi_large", "equi_small", "band", "kafka_json", "stores", "startup"]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.soak
def test_toy_sizes_of_a_commit_against_itself(tmp_path: Path) -> None:
    """The worktrees are of HEAD: what is not committed is not tested."""

    def turns(part: str) -> against.Compared:
        toy = scale(tmp_path)
        with checkout("HEAD") as ours, checkout("HEAD") as theirs:
            return take_turns(against.OWN[part], toy, ours, theirs, pairs=1)

    assert list(turns("equi_large").rows) == ["streamjoin-driver", "streamjoin-dataframe"]
    assert {row.partition(",")[0] for row in turns("startup").rows} == {"small", "large"}
