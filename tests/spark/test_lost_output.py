"""Output of a stage that was lost, and what becomes of the process that made it again."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 20
"""In which 200 heartbeats fail here; Spark by itself ends a process after 60."""
SAID_MAX = 10
"""How often a log says so at first; see `log4j2.properties`."""


@pytest.mark.soak
@pytest.mark.spark
def test_a_process_that_made_lost_output_again_goes_on(tmp_path: Path) -> None:
    """Without a cluster Spark's heartbeats fail from then on; here there are a hundred times as many as usual."""
    log = tmp_path / "spark.log"
    code = textwrap.dedent(f"""
        import time
        from pathlib import Path
        from streamjoin.spark.session import create_session

        log, blocks = Path({str(log)!r}), Path({str(tmp_path / "blocks")!r})
        settings = {{"spark.executor.heartbeatInterval": "100ms", "spark.local.dir": str(blocks)}}
        session = create_session(2, settings=settings, log=log)
        pairs = session.sparkContext.parallelize(range(100), 2).map(lambda n: (n % 7, n)).groupByKey(2)
        assert pairs.count() == 7
        for file in blocks.rglob("shuffle_*.data"):
            file.unlink()
        assert pairs.count() == 7, "it is made again"
        time.sleep({WAIT_S})
        assert session.sparkContext.parallelize(range(5), 2).count() == 5
        print("goes on")
    """)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert found.stdout.endswith("goes on\n"), found.stdout + found.stderr
    said = log.read_text().count("Cannot find endpoint: spark://CoarseGrainedScheduler")
    assert 0 < said <= SAID_MAX, "Spark cannot put itself back, which is why it is to go on without"
