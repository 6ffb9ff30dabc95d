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
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from streamjoin.errors import InputError, RunError
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


REFUSAL = """WARNING: Using incubator modules: jdk.incubator.vector
Exception in thread "main" java.lang.NumberFormatException: Size must be specified as bytes (b) and so on
\tat org.apache.spark.network.util.JavaUtils.byteStringAs(JavaUtils.java:1)
"""


@pytest.mark.parametrize("with_log", [True, False])
def test_java_that_does_not_start_says_why(
    with_log: bool, command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def start(words: list[str], **_: Any) -> Never:
        os.write(2, REFUSAL.encode())
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    monkeypatch.setattr(java_gateway, "Popen", start)
    log = tmp_path / "spark.log" if with_log else None
    if log is not None:
        log.write_text("java.lang.Error: of an earlier start\n")
    with pytest.raises(InputError, match="Java did not start with these settings") as no:
        create_session(2, settings={"spark.executor.memory": "lots", "spark.secret": SECRET}, log=log)
    assert no.value.field == "run.spark" and SECRET not in str(no.value)
    assert no.value.message == (
        "Java did not start with these settings (spark.executor.memory, spark.secret); it said: "
        "java.lang.NumberFormatException: Size must be specified as bytes (b) and so on"
    )
    with pytest.raises(RunError, match=r"Java did not start; it said: java\.lang\.NumberFormatException"):
        create_session(2, log=log)
    assert log is None or log.read_text().count("Size must be") == 2


def test_other_failures_of_a_start_stay_what_they_are(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(words: list[str], **_: Any) -> Never:
        raise PySparkRuntimeError(errorClass="ONLY_ALLOW_SINGLE_TRIGGER", messageParameters={})

    monkeypatch.setattr(java_gateway, "Popen", start)
    with pytest.raises(PySparkRuntimeError):
        create_session(2, settings={"spark.x": "y"})
