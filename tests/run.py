"""Runs the tests stage by stage and tells how far it is: `python -m tests.run`, or with the names of some stages.

`make test` is all of them, and `make check` the first. The first stage that fails ends the run. What each stage holds
is in `docs/testing.md`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

TWO = ("-n", "2")
# Tests that wait for servers leave the cores to others. Each process may have a Spark and two servers: 3 GiB.
MANY = ("-n", "3" if psutil.virtual_memory().total > 12 << 30 else "2")
ANYWHERE = "slow and not spark and not services"
QUICK = "not spark and not services and not slow"
CHECKED = ("tests/unit", "tests/client", "tests/frontend")
"""What `make check` has two minutes for, with lint and types."""
MEASURES_NOTHING = (
    "tests/unit", "tests/conformance", "tests/backend/test_auth_first_user.py", "tests/backend/test_auth_matrix.py",
    "tests/backend/test_auth_owners.py", "tests/backend/test_auth_users.py", "tests/backend/test_changing_groups.py",
    "tests/backend/test_compose.py", "tests/backend/test_fuzz.py", "tests/backend/test_migrations.py",
    "tests/backend/test_results_queries.py", "tests/backend/test_rotate.py", "tests/backend/test_streams.py",
    "tests/backend/test_two_folders.py", "tests/bench/test_against.py", "tests/bench/test_baselines.py",
    "tests/bench/test_curves.py", "tests/bench/test_semistream.py", "tests/bench/test_semistream_memory.py",
    "tests/client/test_commands.py", "tests/client/test_entry_files.py", "tests/client/test_nonsense.py",
    "tests/client/test_platform.py", "tests/client/test_results.py",
)  # fmt: skip
SERVERS = (
    "tests/backend", "tests/bench", "tests/client", "tests/demo", "tests/worker", "tests/frontend", "tests/spark",
    "tests/servers", "tests/unit/test_cli.py",
)  # fmt: skip
"""Where the tests with servers are. Those of one job or a whole platform take minutes, and are not the last: other
processes would wait for them. Every process of a stage reads all files that it is given, 20 s for all tests."""
SLOWEST = ("--durations=10", "--durations-min=2")
"""What takes long is seen before it is too long."""
TAIL_BYTES = 10_000


@dataclass(frozen=True)
class Stage:
    """One call of pytest.

    Args:
        usual_s: what it takes on two slow cores with nothing else to do; estimates are made of it.
    """

    name: str
    usual_s: float
    arguments: tuple[str, ...]


STAGES = (
    Stage("quick", 120, (*TWO, "--dist", "worksteal", "-m", QUICK, *CHECKED)),
    Stage("parts", 480, (*TWO, "--dist", "worksteal", "-m", QUICK, *(f"--ignore={path}" for path in CHECKED))),
    Stage("slow", 700, (*TWO, "--dist", "worksteal", "-m", ANYWHERE, *MEASURES_NOTHING)),
    # Alone, for they measure time, or wait with little patience.
    Stage("alone", 200, ("-m", f"({ANYWHERE}) or alone", *(f"--ignore={path}" for path in MEASURES_NOTHING))),
    # Files stay together, for the servers that their tests share; `kills` share none and go where there is room.
    Stage(
        "servers",
        1400,
        (*MANY, "--dist", "loadgroup", "--no-loadscope-reorder", "-m", "(spark or services) and not alone", *SERVERS),
    ),
)


@dataclass(frozen=True)
class Done:
    """A stage that has ended, with pytest's closing line."""

    stage: Stage
    seconds: float
    status: int
    said: str


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def left_s(done: Sequence[Done], stages: Sequence[Stage]) -> float:
    """How long the stages that are left will take, if the machine stays as fast as it was."""
    spent, usual = sum(one.seconds for one in done), sum(one.stage.usual_s for one in done)
    return sum(stage.usual_s for stage in stages[len(done) :]) * (spent / usual if usual else 1.0)


def run(stage: Stage, folder: Path) -> Done:
    """Run a stage, whose tests' files go into a folder; its output goes on to ours as it comes."""
    begun_s = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", f"--basetemp={folder}", *SLOWEST, *stage.arguments]
    tail = b""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while part := os.read(process.stdout.fileno(), 1 << 16):
            sys.stdout.buffer.write(part)
            sys.stdout.flush()
            tail = (tail + part)[-TAIL_BYTES:]
    return Done(stage, time.monotonic() - begun_s, process.returncode, closing_line(tail.decode(errors="replace")))


def remove(folder: Path) -> None:
    """Remove what tests have written, without waiting for it.

    It may be a hundred thousand files. Those of earlier stages pytest itself would remove one by one, for minutes.
    """
    nothing = subprocess.DEVNULL
    subprocess.Popen(["rm", "-rf", str(folder)], stdout=nothing, stderr=nothing, start_new_session=True)


def closing_line(output: str) -> str:
    """The last line of pytest's that counts tests."""
    lines = re.findall(
        r"^=* ?((?:\d+|no tests) (?:passed|failed|error|skipped|deselected|ran).*? in [\d.]+s.*?)(?: =+)?$",
        output,
        re.M,
    )
    return lines[-1] if lines else "pytest did not come to its end"


def main(names: Sequence[str]) -> int:
    """Run the stages of these names, or all; the exit status."""
    by_name = {stage.name: stage for stage in STAGES}
    if unknown := [name for name in names if name not in by_name]:
        print(f"there is no stage {unknown[0]}; stages are {', '.join(by_name)}", file=sys.stderr)
        return 2
    stages = [by_name[name] for name in names] or STAGES
    begun_s = time.monotonic()
    done: list[Done] = []
    files = Path(tempfile.mkdtemp(prefix="streamjoin-tests-"))
    for number, stage in enumerate(stages, 1):
        so_far = f"{clock(time.monotonic() - begun_s)} so far, about {clock(left_s(done, stages))} left"
        print(f"\n### tests: stage {number} of {len(stages)}, {stage.name}; {so_far}", flush=True)
        done.append(run(stage, files / stage.name))
        if done[-1].status:
            break
        remove(files / stage.name)
    if done[-1].status:
        print(f"\nwhat the tests wrote is in {files}")
    else:
        remove(files)
    print(f"\n### tests: {clock(time.monotonic() - begun_s)} in all")
    for one in done:
        verdict = "failed" if one.status else "passed"
        print(
            f"{one.stage.name:8} {verdict} {clock(one.seconds):>6} (usually {clock(one.stage.usual_s):>5})  {one.said}"
        )
    return done[-1].status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
