"""A window of more bytes than memory is given: where the bytes are, and whether the results are still right.

(a) Without a limit: peaks of proportional set size, anonymous and file-backed apart. State is in mapped files, so the
    file-backed part should be the state once at most, and the anonymous part what Python and Java need whatever the
    window is.
(b) Inside a memory cgroup of `LIMIT_BYTES`, where one was named: slower, but as many results.
"""

from __future__ import annotations

from typing import Any

from benchmarks import padded, systems
from benchmarks.baselines.duckdb_join import count_and_hash
from benchmarks.limited import limited
from benchmarks.rates import ratio
from benchmarks.scale import SLOTS, Scale
from benchmarks.systems import Report, without_paths

LIMIT_BYTES = 2 << 30
STATE_BYTES = 3 << 30
DRIVER_MEMORY_MIB = 480
EXPECTED_S = 900


def run(scale: Scale) -> dict[str, Any]:
    """`free` and `limited`: one run each; `results` by DuckDB, which runs afterwards and outside the limit."""
    wanted_bytes = scale.pick(STATE_BYTES, 24 << 20)
    # Whoever has little memory takes small batches: what a batch carries is anonymous memory several times over.
    window_files, files = scale.pick((96, 128), (3, 5))
    work = systems.folder(scale, "memory")
    scale.show("  making the files")
    streams = padded.make(scale, wanted_bytes, window_files, files)

    def measured(name: str, **options: Any) -> Report:
        join = streams.join(work, name, driver_memory=DRIVER_MEMORY_MIB)
        return systems.own(scale, work, name, [join], limit_s=scale.pick(1200, 180), watch=True, **options)[0]

    free = measured("free")
    inside: Report
    if scale.cgroup is None:
        inside = {"skipped": "no memory cgroup was named; give --cgroup"}
    else:
        try:
            with limited(scale.cgroup, LIMIT_BYTES) as group:
                inside = measured("limited", cgroup=group)
                inside["cgroup"] = group.figures()
        except OSError as refused:
            inside = {"skipped": without_paths(f"no group could be made: {refused}")}
    count, _ = count_and_hash(streams.data, streams.window_ms * 1000)
    state_bytes = free.get("state_bytes")
    memory = free["memory"]
    answer: dict[str, Any] = {
        "limit_bytes": LIMIT_BYTES, "state_bytes": state_bytes, "rows_in": streams.rows,
        "window_rows": 2 * streams.window_ms,
        "driver_memory_mib": DRIVER_MEMORY_MIB, "workers": SLOTS, "results": count, "free": free, "limited": inside,
        # Up to 1: the state is in memory once; up to the number of workers: each has its own.
        "mapped_to_state": ratio(memory["watched_bytes"], state_bytes),
        "anonymous_fits": memory["anonymous_bytes"] < LIMIT_BYTES,
        "slowdown": ratio(free.get("rows_per_second"), inside.get("rows_per_second")),
    }  # fmt: skip
    for name, report in (("free", free), ("limited", inside)):
        if "skipped" in report:
            continue
        report["right"] = report.get("results") == count
        if not report["right"]:
            answer["error"] = f"{name}: {report.get('error') or 'the number of results is wrong'}"
    return answer
