"""Jars are fetched once and whole, and what is missing is said in one sentence. Maven itself is played by a script."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from .maven import ServerUnavailable, jars

Install = Callable[[str, str], None]

# Maven's last argument names the folder that takes the jars.
FETCHES = 'for last; do :; done; mkdir "${last#*=}"; echo jar > "${last#*=}/a.jar"; echo run >> "$COUNT"'
FAILS_HALFWAY = 'for last; do :; done; mkdir "${last#*=}"; echo "[ERROR] no such jar: a -> [Help 1]"; exit 1'


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts commands on a PATH that holds nothing else, and the cache into an empty folder."""
    commands = tmp_path / "bin"
    commands.mkdir()
    monkeypatch.setenv("PATH", str(commands))
    monkeypatch.setenv("STREAMJOIN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COUNT", str(tmp_path / "runs"))

    def install_command(name: str, script: str) -> None:
        path = commands / name
        path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
        path.chmod(0o755)

    return install_command


@pytest.fixture
def pom_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "server"
    folder.mkdir()
    (folder / "pom.xml").write_text("<project/>")
    return folder


def test_jars_are_fetched_by_one_of_those_who_ask(install: Install, pom_dir: Path, tmp_path: Path) -> None:
    install("java", "")
    install("mvn", FETCHES)
    folders: list[Path] = []
    askers = [threading.Thread(target=lambda: folders.append(jars(pom_dir))) for _ in range(4)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert len(folders) == 4
    assert len(set(folders)) == 1
    assert [jar.name for jar in folders[0].iterdir()] == ["a.jar"]
    assert (tmp_path / "runs").read_text() == "run\n"


def test_changed_pom_gets_a_folder_of_its_own(install: Install, pom_dir: Path) -> None:
    install("java", "")
    install("mvn", FETCHES)
    before = jars(pom_dir)
    (pom_dir / "pom.xml").write_text("<project></project>")
    assert jars(pom_dir) != before


def test_failed_fetch_leaves_nothing_and_says_why(install: Install, pom_dir: Path, tmp_path: Path) -> None:
    install("java", "")
    install("mvn", FAILS_HALFWAY)
    with pytest.raises(ServerUnavailable, match=r"\(no such jar: a\); check the network"):
        jars(pom_dir)
    assert [path.suffix for path in (tmp_path / "cache" / "jars").iterdir()] == [".lock"]


@pytest.mark.parametrize(("there", "missing"), [("mvn", "java"), ("java", "mvn")])
def test_missing_command_is_named(install: Install, pom_dir: Path, there: str, missing: str) -> None:
    install(there, FETCHES)
    with pytest.raises(ServerUnavailable, match=f"{missing} is not on the PATH; install"):
        jars(pom_dir)
