"""Which Java is taken, and what it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamjoin.errors import InputError
from streamjoin.spark import java
from streamjoin.spark.java import SECOND_COMPILER_OPTIONS, Java, find_java


def fake_java(folder: Path, answer: str) -> None:
    """A `java` that says this of its version."""
    folder.mkdir(exist_ok=True)
    program = folder / "java"
    program.write_text(f"#!/bin/sh\necho '{answer}' >&2\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("answer", "said"),
    [('openjdk version "11.0.2"', "version 11"), ("what?", "does not tell its version"), ("", "does not tell")],
)
def test_a_java_that_spark_cannot_use_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, said: str
) -> None:
    fake_java(tmp_path / "bin", answer)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InputError, match=said) as failure:
        find_java()
    assert str(tmp_path / "bin" / "java") in str(failure.value)


def test_no_java_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="install one or set JAVA_HOME"):
        find_java()


def test_java_home_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "bin", 'openjdk version "21.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == Java(str(tmp_path / "bin" / "java"), 'openjdk version "21.0.1"\n')


def test_the_archive_is_used_where_it_is_and_made_where_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java.sys, "prefix", str(tmp_path))
    ours = Java("java", "17")
    assert ours.options() == list(SECOND_COMPILER_OPTIONS)
    assert f"-XX:ArchiveClassesAtExit={tmp_path / 'new.jsa'}" in ours.options(tmp_path / "new.jsa")
    ours.archive.parent.mkdir(parents=True, exist_ok=True)
    ours.archive.touch()
    assert ours.options()[0] == f"-XX:SharedArchiveFile={ours.archive}"


def test_another_java_has_another_archive() -> None:
    assert Java("java", "17").archive != Java("java", "21").archive
