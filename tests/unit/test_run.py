"""What the runner of the stages makes of pytest's output and of the time it took so far."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests import run
from tests.run import MEASURES_NOTHING, SERVERS, STAGES, Done, Stage, clock, closing_line, left_s
from tests.servers.process import comes_true

A, B, C = (Stage(name, usual_s, ()) for name, usual_s in (("a", 100), ("b", 50), ("c", 250)))


def test_what_is_left_is_as_slow_as_what_was() -> None:
    assert left_s([], (A, B, C)) == 400
    assert left_s([Done(A, 200, 0, "")], (A, B, C)) == 600
    assert left_s([Done(A, 200, 0, ""), Done(B, 25, 0, "")], (A, B, C)) == 375
    assert clock(605.9) == "10:05"


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("..s\n2 passed, 1 skipped in 1.20s\n", "2 passed, 1 skipped in 1.20s"),
        ("==== 1 failed, 2 passed in 100.20s (0:01:40) ====\n", "1 failed, 2 passed in 100.20s (0:01:40)"),
        ("\n1 passed in 0.1s\n\nno tests ran in 0.01s", "no tests ran in 0.01s"),
        ("..Fatal Python error", "pytest did not come to its end"),
    ],
)
def test_the_line_that_counts_tests_is_found(output: str, line: str) -> None:
    assert closing_line(output) == line


def test_the_first_stage_that_fails_is_the_last(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ran: list[str] = []

    def fails_second(stage: Stage, folder: Path) -> Done:
        ran.append(stage.name)
        (folder / "of a test").mkdir(parents=True)
        return Done(stage, 61, int(len(ran) == 2), "1 passed in 61s")

    monkeypatch.setattr(run, "run", fails_second)
    assert run.main(()) == 1
    assert ran == [stage.name for stage in STAGES[:2]]
    said = capsys.readouterr().out
    assert f"stage 2 of {len(STAGES)}, {STAGES[1].name}; 0:00 so far, about " in said
    assert said.splitlines()[-1].split()[:3] == [STAGES[1].name, "failed", "1:01"]
    (left,) = tmp_path.iterdir()
    assert f"what the tests wrote is in {left}" in said
    assert comes_true(lambda: [path.name for path in left.iterdir()] == [STAGES[1].name], 60), "what passed goes"


def test_stages_go_by_their_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(run, "run", lambda stage, folder: Done(stage, 1, 0, ""))
    assert run.main(("servers", "quick")) == 0
    assert comes_true(lambda: list(tmp_path.iterdir()) == [], 60)
    assert run.main(("soon",)) == 2
    assert "there is no stage soon; stages are quick, " in capsys.readouterr().err


def test_a_stage_reads_all_files_that_have_its_tests() -> None:
    tests = Path(run.__file__).parent
    marked = [
        f"tests/{file.relative_to(tests).as_posix()}"
        for file in tests.rglob("test_*.py")
        if any(f"mark.{mark}" in file.read_text() for mark in ("spark", "services"))
    ]
    assert len(marked) > 5
    assert not [file for file in marked if not file.startswith(SERVERS)]


@pytest.mark.parametrize(
    ("marks", "stages"),
    [
        ({"services", "slow"}, {"servers"}),
        ({"spark"}, {"servers"}),
        ({"services", "slow", "alone"}, {"alone"}),
        ({"spark", "alone"}, {"alone"}),
        ({"slow"}, {"slow", "alone"}),  # by its folder
        (set(), {"quick", "parts"}),  # by its folder
    ],
)
def test_each_test_is_in_one_stage(marks: set[str], stages: set[str]) -> None:
    names = dict.fromkeys(("services", "slow", "spark", "alone"), False) | dict.fromkeys(marks, True)
    chosen = {stage.name: stage.arguments[stage.arguments.index("-m") + 1] for stage in STAGES}
    assert {name for name, expression in chosen.items() if eval(expression, {}, names)} == stages


def test_the_stage_that_runs_alone_reads_all_files_that_have_its_tests() -> None:
    tests = Path(run.__file__).parent
    marked = [
        f"tests/{file.relative_to(tests).as_posix()}"
        for file in tests.rglob("test_*.py")
        if "mark.alone" in file.read_text() and file != Path(__file__)
    ]
    assert len(marked) > 1
    assert not [file for file in marked if file.startswith(MEASURES_NOTHING)]


def test_all_tests_can_be_read_by_one_process() -> None:
    """As the soak does: outside packages, two files of one name would be one module."""
    tests = Path(run.__file__).parent
    alone = [file.name for file in tests.rglob("test_*.py") if not (file.parent / "__init__.py").exists()]
    assert len(alone) > 100
    assert sorted(set(alone)) == sorted(alone)


GROUPED = """
import os, pathlib, pytest

@pytest.mark.parametrize("number", range(8))
def test_it(number):
    pathlib.Path("ran").joinpath(os.environ["PYTEST_XDIST_WORKER"]).touch()
"""


@pytest.mark.soak
@pytest.mark.slow
def test_the_tests_of_a_file_run_in_one_process(tmp_path: Path) -> None:
    """Else each process would start the servers of each file; pytest and pytest-xdist must agree on names."""
    (tmp_path / "ran").mkdir()
    (tmp_path / "conftest.py").write_text(
        "from tests.conftest import pytest_addoption, pytest_collection_modifyitems\n"
    )
    (tmp_path / "test_grouped.py").write_text(GROUPED)
    (servers,) = (stage for stage in STAGES if stage.name == "servers")
    arguments = [one for one in servers.arguments if one in ("--dist", "loadgroup", "--no-loadscope-reorder")]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(run.__file__).parents[1])}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "8 passed" in done.stdout, done.stdout
    assert len(list((tmp_path / "ran").iterdir())) == 1
