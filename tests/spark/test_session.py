"""What a session keeps from other users of the machine."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
RPC_REQUEST, RPC_FAILURE = 3, 5
"""Kinds of messages of Spark's network protocol."""


def answer_to_a_stranger(port: int) -> bytes:
    """What Spark answers to a message of somebody who has not shown that they know a secret."""
    message = b"let me in"
    frame = struct.pack(">BqI", RPC_REQUEST, 1, len(message)) + message
    with socket.create_connection(("127.0.0.1", port), 10) as client:
        client.sendall(struct.pack(">q", 8 + len(frame)) + frame)
        return client.recv(1 << 16)


def test_attack_strangers_on_this_machine_get_no_further_than_the_drivers_port(session: SparkSession) -> None:
    answer = answer_to_a_stranger(int(session.conf.get("spark.driver.port") or 0))
    assert answer[8] == RPC_FAILURE
    assert b"Expected SaslMessage" in answer, answer


def test_what_hadoop_makes_has_the_modes_of_what_its_process_makes(session: SparkSession, tmp_path: Path) -> None:
    before = os.umask(0)
    os.umask(before)
    session.range(1).write.parquet(str(tmp_path / "made"))
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "file").touch()
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "made").iterdir()}
    assert modes == {(tmp_path / "ours" / "file").stat().st_mode & 0o777}
    assert session._jsc.hadoopConfiguration().get("fs.permissions.umask-mode") == f"{before:04o}"  # type: ignore[attr-defined]
