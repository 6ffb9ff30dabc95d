"""Pages of figures say when and at which commit they were measured, and are what their JSON gives."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import machine, provenance, quiet, summary
from benchmarks.curves import __main__ as curves_command
from benchmarks.page import page
from benchmarks.provenance import DirtyError
from benchmarks.quiet import BusyError, Others, Sample

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
IDLE = Others(0.02, ())
BUSY = Others(0.55, ((7, "java", 1.0), (9, "cc1plus", 0.1)))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with one commit."""
    root = tmp_path / "tree"
    (root / "docs").mkdir(parents=True)
    (root / "code.py").write_text("a = 1\n")
    (root / "docs" / "benchmarks.md").write_text("one\n")
    (root / ".gitignore").write_text("out/\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false"]
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "first"]):
        subprocess.run([*git, *words], cwd=root, check=True)
    return root


def part(begun: str, commit: str, *, is_quiet: bool = True, **found: Any) -> dict[str, Any]:
    described = {
        "part": "index",
        "quick": False,
        "begun": begun,
        "busy_before": 0.01,
        "quiet": is_quiet,
        "seconds": 1.0,
    }
    return {**described, "machine": {**machine.describe(), "commit": commit}, **found}


# -- pages --------------------------------------------------------------------------------------------------------


def test_every_page_that_says_it_is_written_by_the_benchmarks_is_one_that_these_tests_write_again() -> None:
    pages = {
        str(file.relative_to(DOCS)) for file in DOCS.rglob("*.md") if re.search(r"`python -m benchmarks", _head(file))
    }
    evaluated = {f"evaluation/{name}.md" for name in ("splitjoin", "handshake", "ssbj", "psp", "bistream")}
    assert pages == {"benchmarks.md", *evaluated}


def _head(file: Path) -> str:
    """Its beginning, if it says who writes it."""
    text = file.read_text()[:1500]
    return text if "do not edit" in text else ""


def test_the_page_of_benchmarks_is_what_its_figures_give() -> None:
    results = json.loads((DOCS / "benchmarks.json").read_text())
    plots = {file.stem: file.name for file in (DOCS / "benchmarks").glob("*.png")}
    assert page(results, plots) == (DOCS / "benchmarks.md").read_text(), "run python -m benchmarks --page"


@pytest.mark.slow
def test_the_plots_are_what_the_figures_give(tmp_path: Path) -> None:
    (tmp_path / "benchmarks.json").write_bytes((DOCS / "benchmarks.json").read_bytes())
    summary.write_page(tmp_path)
    assert (tmp_path / "benchmarks.md").read_text() == (DOCS / "benchmarks.md").read_text()
    ours, theirs = ({file.name: file for file in (docs / "benchmarks").iterdir()} for docs in (tmp_path, DOCS))
    assert set(ours) == set(theirs)
    for name, file in ours.items():
        drawn, kept = matplotlib.image.imread(file), matplotlib.image.imread(theirs[name])
        assert drawn.shape == kept.shape, name
        assert np.abs(drawn - kept).mean() < 0.01, f"run python -m benchmarks --page: {name} is old"


def test_each_part_says_when_and_at_which_commit_it_was_measured() -> None:
    results = {
        "index": part("2026-01-02T03:04:05+00:00", "abc", error="none"),
        "band": part("2026-01-03T03:04:05+00:00", "def-dirty", error="none"),
    }
    results["index"]["machine"]["pyspark"] = "0.1"
    text = page(results, {})
    assert "Measured 2026-01-02 03:04 UTC at commit abc. With Spark 0.1." in text
    assert "Measured 2026-01-03 03:04 UTC at commit def, with changes that were not committed.\n" in text


def test_other_memory_is_told_where_a_reader_would_see_it() -> None:
    results = {name: part("2026-01-02T03:04:05+00:00", "abc", error="none") for name in ("index", "band", "outer")}
    for (name, one), memory_bytes in zip(results.items(), (24 << 30, 64 << 30, (24 << 30) + 40_000), strict=True):
        one["begun"] = f"2026-01-0{3 if name == 'index' else 2}T03:04:05+00:00"
        one["machine"]["memory_bytes"] = memory_bytes
    text = page(results, {})
    assert text.count(" With memory 64 GiB.") == text.count(" With memory") == 1 and ", 24 GiB, " in text


def test_a_page_does_not_invent_when_it_was_measured() -> None:
    assert provenance.said(None, None) == "Measured before parts said when and at which commit."
    assert provenance.said("2026-01-02T03:04:05+00:00", "").endswith("at a commit that was not written down.")
    assert provenance.said(None, "abc") == "Measured on a day that was not written down at commit abc."
    for name in ("splitjoin.md", "handshake.md"):
        results = json.loads((DOCS / "evaluation" / "curves.json").read_text())
        told = " ".join((DOCS / "evaluation" / name).read_text().split())
        assert provenance.said(results.get("begun"), results.get("commit")) in told


def test_the_page_says_which_commits_are_not_in_the_history_any_more(tree: Path, tmp_path: Path) -> None:
    def text(root: Path) -> str:
        summary.note_commits(docs, root)
        return page(json.loads((docs / "benchmarks.json").read_text()), {})

    docs = tmp_path / "docs"
    docs.mkdir()
    begun = "2026-01-02T03:04:05+00:00"
    commits = {"index": provenance.commit(tree), "band": "5a4697d", "memory": "1585fae-dirty", "asof": ""}
    (docs / "benchmarks.json").write_text(json.dumps({name: part(begun, commit) for name, commit in commits.items()}))
    told = text(tree)
    assert f"at commit {commits['index']}.\n" in told
    assert "at commit 5a4697d (not in this repository's history any more).\n" in told
    assert "at commit 1585fae (not in this repository's history any more), with changes" in told
    assert "at a commit that was not written down.\n" in told
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth=1", tree.as_uri(), shallow], check=True)
    assert text(shallow) == text(tmp_path) == told


def test_figures_in_docs_stay_until_there_are_newer_ones_of_a_commit(tmp_path: Path) -> None:
    out, docs = tmp_path / "out", tmp_path / "docs"
    out.mkdir()
    docs.mkdir()
    kept = {"index": part("2026-01-02T00:00:00+00:00", "old"), "band": part("2026-01-02T00:00:00+00:00", "old")}
    (docs / "benchmarks.json").write_text(json.dumps(kept))

    def after(**found: Any) -> str:
        (out / "index.json").write_text(json.dumps(part(**found)))
        summary.write_summary(out, docs, published=True)
        written = json.loads((docs / "benchmarks.json").read_text())
        assert written["band"]["machine"]["commit"] == "old"
        commit: str = written["index"]["machine"]["commit"]
        return commit

    assert after(begun="2026-01-03T00:00:00+00:00", commit="new-dirty") == "old"
    assert after(begun="2026-01-03T00:00:00+00:00", commit="") == "old"
    assert after(begun="2026-01-03T00:00:00+00:00", commit="new", is_quiet=False) == "old"
    assert after(begun="2026-01-01T00:00:00+00:00", commit="older") == "old"
    assert after(begun="2026-01-03T00:00:00+00:00", commit="new") == "new"


def test_a_part_that_failed_takes_no_figures_out_of_docs(tmp_path: Path) -> None:
    out, docs = tmp_path / "out", tmp_path / "docs"
    out.mkdir()
    docs.mkdir()

    def after(kept: dict[str, Any], **found: Any) -> Any:
        (docs / "benchmarks.json").write_text(json.dumps({"index": kept}))
        (out / "index.json").write_text(json.dumps(part("2026-01-03T00:00:00+00:00", "new", **found)))
        summary.write_summary(out, docs, published=True)
        return json.loads((docs / "benchmarks.json").read_text())["index"]["machine"]["commit"]

    measured, failed = (
        part("2026-01-02T00:00:00+00:00", "old", **found) for found in ({"probes": {}}, {"error": "it broke"})
    )
    assert after(measured, error="no java") == "old"
    assert after(measured, error="one of them broke", probes={}) == "new"
    assert after(failed, error="no java") == "new"


# -- the tree -----------------------------------------------------------------------------------------------------


def test_a_clean_tree_is_its_commit_and_pages_and_ignored_files_do_not_count(tree: Path) -> None:
    (tree / "docs" / "benchmarks.md").write_text("another\n")
    (tree / "docs" / "benchmarks").mkdir()
    (tree / "docs" / "benchmarks" / "new.png").write_text("a picture")
    (tree / "out").mkdir()
    (tree / "out" / "index.json").write_text("{}")
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tree, check=True, capture_output=True, text=True).stdout
    assert head.startswith(provenance.require_clean(tree))


@pytest.mark.parametrize("name", ["code.py", "new.py", "docs/api.md"])
def test_a_tree_that_differs_from_its_commit_is_refused(tree: Path, name: str) -> None:
    (tree / name).write_text("a = 2\n")
    assert provenance.commit(tree).endswith("-dirty")
    with pytest.raises(DirtyError, match=rf"{name}; commit, stash or remove"):
        provenance.require_clean(tree)


def test_what_is_no_checkout_is_refused(tmp_path: Path) -> None:
    assert provenance.commit(tmp_path) == ""
    with pytest.raises(DirtyError, match="not a git checkout"):
        provenance.require_clean(tmp_path)


# -- other work ---------------------------------------------------------------------------------------------------


BEFORE = Sample(10.0, 100.0, {(1, 0.0): ("python", 5.0), (2, 0.0): ("java", 7.0), (3, 0.0): ("sh", 1.0)}, frozenset())


def test_busy_is_what_others_use_of_all_processors() -> None:
    # In 2 s of 4 processors: 1 s by this program, 2 s by java, 0.5 s by nobody that lasts.
    after = Sample(
        12.0, 103.5, {(1, 0.0): ("python", 6.0), (2, 0.0): ("java", 9.0), (3, 0.0): ("sh", 1.0)}, frozenset({(1, 0.0)})
    )
    others = quiet.between(BEFORE, after, processors=4)
    assert others.share == pytest.approx(2.5 / 8)
    assert others.processes == ((2, "java", 1.0),)
    assert not others.quiet
    assert "others use 31% of the processors' time (java, process 2: 100% of one)" in str(others)


def test_an_id_that_is_used_again_is_another_process() -> None:
    after = Sample(12.0, 100.1, {(2, 11.0): ("java", 0.1)}, frozenset())
    others = quiet.between(BEFORE, after, processors=4)
    assert others.share == pytest.approx(0.1 / 8)
    assert others.processes == ()
    assert others.quiet


@pytest.mark.slow
def test_a_process_that_computes_is_seen_and_one_of_ours_is_not() -> None:
    # `timeout` ends it, whatever becomes of this test; a session of its own is adopted, so it is not ours.
    burn = f"timeout 20 {sys.executable} -c 'while True: pass'"
    shell = subprocess.run(
        ["sh", "-c", f"setsid {burn} >/dev/null 2>&1 & echo $!"], check=True, capture_output=True, text=True
    )
    theirs = int(shell.stdout)
    ours = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        time.sleep(0.3)
        others = quiet.look(2.0)
        seen = {pid for pid, _, _ in others.processes}
        assert ours.pid not in seen
        assert any(os.getsid(pid) == theirs for pid in seen if Path(f"/proc/{pid}").exists())
        assert others.share > 0.0
    finally:
        ours.kill()
        ours.wait()
        os.kill(theirs, 15)


def test_a_busy_machine_is_waited_for_and_then_refused_with_the_busiest() -> None:
    answers = [BUSY, BUSY, IDLE]
    assert quiet.wait_until_quiet(60, lambda: answers.pop(0)) is IDLE
    with pytest.raises(BusyError, match=r"55%.*java, process 7: 100% of one; cc1plus, process 9.*end that work"):
        quiet.wait_until_quiet(0, lambda: BUSY)


# -- the commands -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [command, curves_command])
@pytest.mark.parametrize("why", ["dirty", "busy"])
def test_nothing_is_measured_for_docs_from_a_dirty_tree_or_on_a_busy_machine(
    module: Any, why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(error: Exception) -> Any:
        raise error

    def measured(*_: Any) -> Any:
        raise AssertionError("it measures")

    monkeypatch.setattr(
        provenance, "require_clean", lambda: refuse(DirtyError("the tree")) if why == "dirty" else "abc"
    )
    monkeypatch.setattr(quiet, "wait_until_quiet", lambda: refuse(BusyError("the machine")))
    monkeypatch.setattr(quiet, "look", measured)
    monkeypatch.setattr(curves_command, "run", measured)
    monkeypatch.setattr(command, "exit_on_terminate", lambda: None)
    arguments = ["--out", str(tmp_path), "--only", "index"] if module is command else []
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    before = (DOCS / "benchmarks.json").read_bytes(), (DOCS / "evaluation" / "curves.json").read_bytes()
    try:
        status = module.main()
    except SystemExit as ended:
        status = ended.code
    assert status == 1
    assert ("the tree" if why == "dirty" else "the machine") in (told := capsys.readouterr().err)
    assert "--docs FOLDER" in told
    assert not (tmp_path / "index.json").exists()
    assert before == ((DOCS / "benchmarks.json").read_bytes(), (DOCS / "evaluation" / "curves.json").read_bytes())


def test_work_of_others_that_began_meanwhile_is_seen_and_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    looks = iter([IDLE, BUSY])
    monkeypatch.setattr(quiet, "look", lambda: next(looks))
    part = type("Part", (), {"EXPECTED_S": 1, "run": lambda _: {"rows": 1}})
    monkeypatch.setattr(command, "PARTS", {"index": part})
    scale = command.Scale(quick=True, ends_s=time.monotonic() + 60, data=tmp_path, work=tmp_path)
    found = command.run_part("index", scale, published=False)
    assert (found["busy_before"], found["busy_after"], found["quiet"]) == (0.02, 0.55, False)
    assert "warning: after it others use 55%" in capsys.readouterr().err
    assert not summary.publishable({**found, "quick": False})
    text = page({"index": found}, {})
    assert "looked at: index 2% and 55%." in text
    assert "The machine was not idle before this part or after it (2% and 55% of the cores' time)" in text


def test_a_part_for_docs_that_others_disturbed_is_one_that_went_not_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "exit_on_terminate", lambda: None)
    monkeypatch.setattr(command, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(command, "run_part", lambda *_: part("2026-01-02T03:04:05+00:00", "abc", is_quiet=False))
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--only", "index", "--out", str(tmp_path / "out")])
    assert command.main() == 1
    assert "not everything went well: index" in capsys.readouterr().err
    assert "Nothing has been measured yet" in (tmp_path / "docs" / "benchmarks.md").read_text()


@pytest.mark.parametrize("module", [command, curves_command])
def test_toy_sizes_do_not_go_into_docs(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "exit_on_terminate", lambda: None)
    docs = DOCS if module is command else DOCS / "evaluation"
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--quick", "--docs", str(docs)])
    with pytest.raises(SystemExit) as ended:
        module.main()
    assert ended.value.code == 2


def test_code_that_changes_while_it_is_measured_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commits = iter(["abc", "abd"])
    monkeypatch.setattr(provenance, "commit", lambda: next(commits))
    monkeypatch.setattr(quiet, "look", lambda: IDLE)
    part = type("Part", (), {"EXPECTED_S": 1, "run": lambda _: {"rows": 1}})
    monkeypatch.setattr(command, "PARTS", {"index": part})
    scale = command.Scale(quick=True, ends_s=time.monotonic() + 60, data=tmp_path, work=tmp_path)
    found = command.run_part("index", scale, published=False)
    assert found["error"] == "the code was changed while it was measured"
    assert not summary.publishable({**found, "quick": False})
