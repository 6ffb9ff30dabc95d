"""What the daemon of Spark's Python workers adds to Spark's own."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

TALK = textwrap.dedent("""
    import os, socket, sys
    import pyspark.daemon
    from streamjoin.spark import daemon

    def worker(sock, authenticated):
        if sys.argv[1] == "gone":
            outfile = os.fdopen(os.dup(sock.fileno()), "wb")
            outfile.write(bytes(1 << 20))
            outfile.flush()
        if sys.argv[1] == "wrong":
            raise ValueError("a mistake")
        return 0

    daemon._worker = worker
    ours, theirs = socket.socketpair()
    theirs.close()
    print("worker ended with", pyspark.daemon.worker(ours, True))
""")


@pytest.mark.parametrize(
    ("how", "status", "said"), [("gone", 1, ""), ("wrong", 1, "ValueError: a mistake"), ("well", 0, "")]
)
def test_who_answers_nobody_ends_without_a_stack_and_other_failures_have_theirs(
    how: str, status: int, said: str
) -> None:
    done = subprocess.run([sys.executable, "-c", TALK, how], capture_output=True, text=True, timeout=300)
    assert done.returncode == status
    assert said in done.stderr and ("Traceback" in done.stderr) == bool(said)
    assert ("worker ended with 0" in done.stdout) == (how == "well")
