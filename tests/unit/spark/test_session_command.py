"""What Java is started with, which every user of the machine sees, and what it gets otherwise."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Any, Never
from unittest.mock import MagicMock

import pytest

pytest.importorskip("pyspark")

from pyspark import SparkContext, java_gateway
from pyspark.sql import SparkSession

from streamjoin.spark import session
from streamjoin.spark.session import create_session
from streamjoin.spec.cluster import Cluster

SECRET = "hunter2"
GIVEN = {"spark.authenticate": "true", "spark.authenticate.secret": SECRET, "spark.x: y": " é=\\\n"}


class Started(Exception):
    """Java would be started now."""


class Command:
    """The command by which Java was to be started, and the file of properties that it names, as it was then."""

    words: list[str]
    file: Path
    mode: int
    text: str

    def start(self, words: list[str], **_: Any) -> Never:
        self.words = words
        if "--properties-file" in words:
            self.file = Path(words[words.index("--properties-file") + 1])
            self.mode, self.text = self.file.stat().st_mode & 0o777, self.file.read_text()
        raise Started


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Command:
    """Of a process that has no session, and does not get one."""
    found = Command()
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(session, "find_java", lambda: MagicMock(options=lambda record: []))
    monkeypatch.setattr(java_gateway, "Popen", found.start)
    for owner, name in (
        (SparkContext, "_gateway"), (SparkContext, "_jvm"), (SparkContext, "_active_spark_context"),
        (SparkSession, "_instantiatedSession"),
    ):  # fmt: skip
        monkeypatch.setattr(owner, name, None)
    return found


def test_attack_a_secret_of_a_cluster_is_not_on_the_command_line(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "cluster_settings", lambda cluster, slots, folder, given: {**given, "spark.a": "b"})
    with pytest.raises(Exception, match="did not take the job: Started"):
        create_session(2, cluster=Cluster("spark://there:7077"), settings=GIVEN)
    assert SECRET not in shlex.join(command.words) and SECRET not in os.environ["PYSPARK_SUBMIT_ARGS"]
    assert {"spark.a=b", "spark.app.name=streamjoin", "spark.master=spark://there:7077"} <= set(command.words)
    assert command.mode == 0o600 and not command.file.exists(), "it is gone once Java has read it"
    assert properties(command.text) == GIVEN
    # Else Spark reads this file in place of its spark-defaults.conf.
    assert "--load-spark-defaults" in command.words


def properties(text: str) -> dict[str, str]:
    """What Java reads in a file that has no other escapes than numbers."""
    return dict(map(_read, line.split("=")) for line in text.splitlines())


def _read(text: str) -> str:
    return re.sub(r"\\u(....)", lambda found: chr(int(found[1], 16)), text)


def test_a_session_on_this_machine_keeps_what_it_is_given_from_the_command_line_too(command: Command) -> None:
    given = {"spark.hadoop.fs.s3a.secret.key": SECRET, "spark.driver.memory": "2g", "spark.app.name": "mine"}
    with pytest.raises(Started):
        create_session(2, settings=given)
    assert SECRET not in shlex.join(command.words)
    assert properties(command.text) == given
    # A word on the command line would come before the file's.
    assert not [word for word in command.words if word.startswith(("spark.driver.memory=", "spark.app.name="))]
    with pytest.raises(Started):
        create_session(2)
    assert "--properties-file" not in command.words and "spark.driver.memory=1024m" in command.words
