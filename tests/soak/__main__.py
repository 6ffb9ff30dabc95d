"""The soak: `python -m tests.soak` runs the parts that have not passed for this state of the product.

    python -m tests.soak --list            what has passed, and what is left
    python -m tests.soak --minutes 60      begins no part after an hour
    python -m tests.soak --only dying-0    one part, even if it has passed before

Parts that passed for one hash of the product's folders add up, on whatever day they ran. One that fails leaves no
record, and the next ones run; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.scale import ROOT

from .queue import GOALS, PART_S_MAX, PARTS, Part
from .records import SAID_LINES, ChangedError, Record, commit, keep, left, passed, product, sums

PATIENCE = 4
"""On a machine that does other things a part may take so many times as long."""
END_S = 120
"""How long a part that takes longer has to end what it has started."""
TAIL_BYTES = 20_000


def call(part: Part, folder: Path) -> list[str]:
    """How a part is run.

    Args:
        folder: what parts of one state of the product leave for each other.
    """
    # These parts are of one platform: each goes on with what the one before has left.
    more = ["--folder", str(folder / "dying")] if part.what == "minutes of dying parts" else []
    return [sys.executable, "-m", part.module, *part.arguments, *more]


def run(part: Part, folder: Path) -> tuple[int, float, list[str]]:
    """Run a part: its exit status, seconds and last lines; its output goes on to ours."""
    begun_s, tail = time.monotonic(), b""
    with subprocess.Popen(call(part, folder), stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        deadline_s, is_ending = begun_s + PATIENCE * PART_S_MAX, False
        while True:
            if not select.select([process.stdout], [], [], max(0.0, deadline_s - time.monotonic()))[0]:
                # Asked first, so that it ends what it has started.
                process.kill() if is_ending else process.terminate()
                deadline_s, is_ending = deadline_s + END_S, True
                continue
            if not (piece := os.read(process.stdout.fileno(), 1 << 16)):
                break
            sys.stdout.buffer.write(piece)
            sys.stdout.flush()
            tail = (tail + piece)[-TAIL_BYTES:]
    return process.returncode, time.monotonic() - begun_s, tail.decode(errors="replace").splitlines()[-SAID_LINES:]


def show(of: str) -> None:
    """What has passed, and what is left."""
    done = passed(of)
    print(f"product {of}: {len(done)} of {len(PARTS)} parts have passed")
    for what, amount in sums(done.values()).items():
        print(f"  {what:<24}{amount:>10,} of {GOALS[what]:>8,}")
    for part in left(PARTS, done):
        print(f"  left: {part.name}")


def soak(parts: Sequence[Part], of: str, minutes: float | None) -> int:
    """Run parts; how many failed."""
    begun_s, failed = time.monotonic(), 0
    for number, part in enumerate(parts, 1):
        if minutes is not None and time.monotonic() - begun_s > minutes * 60:
            break
        if part.after is not None and part.after not in passed(of):
            print(f"{part.name} goes on with {part.after}, which has not passed; left out", flush=True)
            continue
        begun = datetime.now(UTC).isoformat(timespec="seconds")
        print(f"\n### soak: part {number} of {len(parts)}, {part.name}", flush=True)
        status, seconds, said = run(part, ROOT / "build" / "soak" / of)
        if product() != of:
            raise ChangedError("the product has changed while a part ran, so nothing can be said about it")
        if status:
            failed += 1
            print(f"{part.name} failed with exit status {status} after {seconds:.0f} s", flush=True)
            continue
        print(keep(Record(part.name, part.what, part.amount, of, commit(), begun, round(seconds, 1), said)), flush=True)
    return failed


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--list", action="store_true", help="what has passed, and what is left")
    parser.add_argument("--minutes", type=float, help="begin no part after so long")
    parser.add_argument("--only", nargs="+", metavar="PART", choices=[part.name for part in PARTS])
    asked = parser.parse_args()
    try:
        of = product()
        if asked.list:
            show(of)
            return 0
        chosen = [part for part in PARTS if part.name in asked.only] if asked.only else left(PARTS, passed(of))
        failed = soak(chosen, of, asked.minutes)
        show(of)
    except ChangedError as reason:
        print(f"soak: {reason}", file=sys.stderr)
        return 2
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
