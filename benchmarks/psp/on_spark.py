"""What two cores can show of a ring: jobs of Spark's, of one node and of more, beside a tree of joins of two."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks import three_way
from benchmarks.three_way import HASH, STREAMS, THREE, DifferentError, Size
from streamjoin.spark.session import open_session
from streamjoin.spec.joinfile import load

NODES = (1, 2, 4)
WAYS: Mapping[str, Mapping[str, Any]] = {
    "tree": HASH, **{f"ring of {nodes}": {"name": "ring", "nodes": nodes} for nodes in NODES},
}  # fmt: skip


def points(size: Size) -> Iterator[dict[str, Any]]:
    """A point for each way: seconds of its turns, in which all ways take turns; the first, which compiles, is left out.

    Raises:
        DifferentError: two ways differ in their results.
    """
    took_s: dict[str, list[float]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory(prefix="psp-on-spark-") as work:
        folder = Path(work)
        three_way.write_all(folder, size)
        session, results = None, 0
        try:
            for number in range(size.pairs + 1):
                here = folder / str(number)
                here.mkdir()
                for way, operator in WAYS.items():
                    file = three_way.join_file(here, way, THREE, STREAMS, size, operator)
                    session = session or open_session(load(file))
                    seconds = three_way.turn(session, [file])
                    took_s[way] += [seconds] if number else []
                wanted = three_way.rows_of(here / "tree")
                if any(three_way.rows_of(here / way) != wanted for way in WAYS if way != "tree"):
                    raise DifferentError("the ways differ in their results")
                results = len(wanted)
                del wanted  # nothing of a turn is there while the next ones are timed
        finally:
            if session is not None:
                session.stop()
    rows = len(STREAMS) * size.rows
    for way, turns in took_s.items():
        yield {"way": way, "rows": rows, "results": results, "seconds": turns, "rate": rows / statistics.median(turns)}
