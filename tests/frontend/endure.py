"""The job page under load, in a real browser: `python -m tests.frontend.endure` prints what it endured.

A job commits so many result rows a second and reports so many units every second; nothing of it is Spark's. The page
follows all of it, and counts its own frames and memory.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from backend.catalog.database import Catalog
from backend.catalog.ids import now_us
from backend.catalog.migrate import migrate
from backend.catalog.models import Report
from backend.frontend import BUILT
from streamjoin.spark.batchreport import BatchReport
from tests.backend.live_server import LiveServer, live_settings
from tests.backend.results_job import Committer, add_job
from worker.reports import of_batch, quantiles, rates

FRONTEND = Path(__file__).parents[2] / "frontend"
COMMITS_A_SECOND = 5
KEPT_US = 60_000_000


def report(batch: int, units: int, rows: int) -> dict[str, Any]:
    """What a driver with so many units tells of a second."""
    told = [
        {
            "unit": unit, "label": f"{'RS'[unit % 2]}{unit}", "received": {"store": 40, "probe": 60, "both": 0},
            "received_bytes": {"store": 4000, "probe": 6000, "both": 0}, "stored_rows": [1000 + (unit + batch) % 97, 0],
            "stored_bytes": 64_000 + 640 * ((unit + batch) % 97), "segments": 12, "comparisons": 5_000, "search_steps": 9_000,
            "results": rows // units, "late": [0, 0], "expired_rows": 40, "marks_us": [batch * 1_000_000] * 2,
            "seconds": {"probe": 0.1, "store": 0.05, "expire": 0.01},
        }
        for unit in range(units)
    ]  # fmt: skip
    intake = {side: {"rows": 20 * units, "routed": 20 * units} for side in (0, 1)}
    now = now_us()
    body = of_batch(BatchReport(batch, rows, told, intake, {}, {0: now - 400_000, 1: now - 700_000}), ("a", "b"), now)
    return {**body, "batch_ms": quantiles([180.0 + batch % 40]), **rates(body, 1.0)}


def feed(catalog: Catalog, job: str, committer: Committer, rows: int, units: int, stop: threading.Event) -> None:
    """Commit and report until told to stop."""
    begun_s, number = time.monotonic(), 0
    while not stop.wait(max(begun_s + number / COMMITS_A_SECOND - time.monotonic(), 0)):
        committer.commit(rows // COMMITS_A_SECOND)
        committer.numbers.clear()
        if number % COMMITS_A_SECOND == 0:
            with catalog.begin() as session:
                session.add(
                    Report(job_id=job, at_us=now_us(), generation=1, body=report(number, units, rows))
                )  # fmt: skip
        number += 1


def endure(folder: Path, seconds: float, rows: int, units: int) -> dict[str, Any]:
    """The page's figures."""
    node = shutil.which("node")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    assert node and chromium and (BUILT / "index.html").is_file(), "node, chromium and make frontend are needed"
    settings = live_settings(folder, frontend=BUILT)
    migrate(settings.catalog)
    catalog = Catalog(settings.catalog)
    job = add_job(catalog, "under load")
    committer = Committer(settings, job, retain_us=KEPT_US)
    stop = threading.Event()
    feeder = threading.Thread(target=feed, args=(catalog, job.id, committer, rows, units, stop))
    with LiveServer(settings, folder / "api.log") as server:
        feeder.start()
        try:
            command = [node, "walk/endure.mjs", f"{server.url}/jobs/{job.id}", chromium, str(seconds)]
            done = subprocess.run(
                command, cwd=FRONTEND, capture_output=True, text=True, timeout=seconds + 120, check=False
            )
        finally:
            stop.set()
            feeder.join()
    committer.close()
    catalog.close()
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--rows", type=int, default=50_000, help="results a second")
    parser.add_argument("--units", type=int, default=500)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="streamjoin-endure-") as folder:
        found = endure(Path(folder), arguments.seconds, arguments.rows, arguments.units)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
