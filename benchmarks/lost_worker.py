"""What is fetched from an object store after a worker is lost with its disk, and how long that takes.

The equi join of `equi_large` on two workers that each write to a disk of their own. Once its windows are full one of
them is killed with its executor and its disk, and another one starts with an empty disk. Without that nothing is
fetched (`benchmarks.cluster`), so all that is fetched is fetched because of it. The lost one's slot has half of the
state. Two machines need that half: the one that is left, where the batch goes on at once, and the replacement, when it
takes over a slot.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.far_state import WARM
from benchmarks.scale import SLOTS, Scale
from benchmarks.startup import NoCommitError, last_commit, running_job
from benchmarks.systems import Report
from tests.servers.spark import SparkCluster

SHARE_TARGET = 2 / SLOTS * (WARM + 1) / WARM
"""The largest share of the state that may be fetched: what one slot has, once for each of two machines. A unit opens
what the previous batch left, which is one batch more than it keeps."""


def lose(
    scale: Scale, work: Path, join: Mapping[str, Any], cluster: SparkCluster, limit_s: float, count: int
) -> Report:
    """Run a join and lose a worker on the way.

    Args:
        join: the content of its join file, for this cluster, with its state in a store.
        limit_s: for all of it.
        count: how many results there are.

    Returns:
        `state_bytes`: of all units together, when they had the most. `fetched_bytes` and `fetched` segments.
        `share`: fetched bytes of state bytes. `back_s`: from the kill to the next commit; `batch_s`: a batch usually.
    """
    file, told = work / "lost.yaml", work / "lost.json"
    file.write_text(json.dumps(join, indent=1))
    checkpoint = Path(join["run"]["checkpoint"])
    limit_s = scale.seconds(limit_s)
    deadline_s = time.monotonic() + limit_s
    scale.show(f"  a worker is lost with its disk: at most {limit_s:,.0f} s")
    with running_job(file, work / "lost.log", scale.code, report=told) as job:
        try:
            job.committed(checkpoint, WARM, limit_s)
            killed_s = time.monotonic()
            cluster.lose(cluster.workers[0])
            reached = last_commit(checkpoint)
            job.committed(checkpoint, reached + 1, deadline_s - time.monotonic())
            back_s = time.monotonic() - killed_s
            job.process.wait(max(1.0, deadline_s - time.monotonic()))
        except (NoCommitError, subprocess.TimeoutExpired) as failure:
            return {"error": f"it did not go on: {failure}"}
    if job.process.returncode or not told.exists():
        return {"error": f"it ended with status {job.process.returncode}: {job.log.read_text()[-1000:]}"}
    figures = json.loads(told.read_text())
    traffic = figures["state_traffic"]
    return {
        "killed_after": reached, "batches": figures["batches"], "state_bytes": figures["state_bytes_max"],
        "fetched": traffic["fetched"], "fetched_bytes": traffic["fetched_bytes"], "served": traffic["served"],
        "share": traffic["fetched_bytes"] / figures["state_bytes_max"], "back_s": back_s,
        "batch_s": figures["batch_ms"]["p50"] / 1000, "right": figures["results"] == count,
    }  # fmt: skip
