"""Many kills: `python -m tests.conformance.stores.soak --kills 200 --store sqlite`. Exit status 1 on any violation."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from streamjoin.results.stores.spec import StoreSpec

from .job import CASES
from .play import BrokenError, Report, play, sqlite

KILLS_A_JOB = 12


@contextlib.contextmanager
def cassandra(folder: Path) -> Iterator[StoreSpec]:
    """A node of its own."""
    from tests.servers.cassandra import CassandraNode

    with CassandraNode() as node:
        yield StoreSpec("cassandra", (("hosts", "127.0.0.1"), ("port", node.port)))


@contextlib.contextmanager
def hbase(folder: Path) -> Iterator[StoreSpec]:
    """A server of its own."""
    from tests.servers.hbase import HbaseServer

    with HbaseServer() as server:
        yield StoreSpec("hbase", (("port", server.port),))


STORES: dict[str, Callable[[Path], contextlib.AbstractContextManager[StoreSpec]]] = {
    "sqlite": sqlite,
    "cassandra": cassandra,
    "hbase": hbase,
}


def soak(store: str, kills: int, seed: int, report: Report) -> None:
    """Jobs one after the other, each with a few kills, in one store."""
    with tempfile.TemporaryDirectory(prefix="streamjoin-soak-") as name, STORES[store](Path(name)) as spec:
        for number, case in zip(itertools.count(seed), itertools.cycle(CASES)):
            some = min(kills - report.kills.total(), KILLS_A_JOB)
            if not some:
                return
            folder = Path(name) / str(number)
            folder.mkdir()
            try:
                report.add(play(spec, case, some, number, folder))
            except BrokenError as error:
                raise BrokenError(f"{case}, seed {number}: {error}") from None
            print(f"{report.kills.total()} kills, {report.seconds:.0f} s", file=sys.stderr, flush=True)


def main() -> int:
    """Play, and print what was played."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.stores.soak")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--store", choices=STORES, default="sqlite")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    report, status, began_s = Report(), 0, time.monotonic()
    try:
        soak(asked.store, asked.kills, asked.seed, report)
    except Exception:
        traceback.print_exc()
        status = 1
    lines = {
        "kills": report.kills.total(),
        **{f"  at {place}": count for place, count in sorted(report.kills.items())},
        "restarts": report.restarts,
        "zombies fenced": report.fenced,
        "batches": report.batches,
        "snapshots": report.snapshots,
        "snapshots checked": report.snapshots_checked,
        "rows checked": report.rows_checked,
        "blocks swept at the end": report.swept,
        "reader looks": report.looks,
        "seconds": round(time.monotonic() - began_s, 1),
        "violations": status,
    }
    for what, value in lines.items():
        print(f"{what:<28}{value:>12,}")
    return status


if __name__ == "__main__":
    sys.exit(main())
