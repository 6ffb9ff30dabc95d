"""The operators side by side on one workload, from uniform to very skewed keys, and the bytes that travel.

With Sigma bytes a second on either stream, the units of JB8, JM16, JB8-CR2 and JB8-CR4 of BiStream (SIGMOD 2015,
section 4.3, equations 5 and 6) together receive 10, 8, 6 and 4 Sigma. JB8 is a biclique of 4 + 4 units, CRy has y
subgroups a side, JM16 a matrix of 4 x 4; hash routing on 4 + 4 units is CR4. Between two slots less travels: units of
a slot share what they receive. `benchmarks.bistream` counts what travels between as many slots as units (figure 11).
"""

from __future__ import annotations

from typing import Any

from benchmarks import systems
from benchmarks.scale import Scale
from benchmarks.systems import Report
from streamjoin.operators import costs
from streamjoin.operators.costs import Prediction, StreamStatistics

EXPECTED_S = 480
SKEWS = (0.0, 0.5, 1.0, 1.5)
UNITS = 4
SIGMAS = {"random": 10.0, "matrix": 8.0, "contrand": 6.0, "hash": 4.0}
"""What travels if each unit is a slot of its own, in bytes of one stream, when both streams have as many."""
PAPER_NAMES = {"random": "JB8", "matrix": "JM16", "contrand": "JB8-CR2", "hash": "JB8-CR4"}
OPERATORS: dict[str, dict[str, Any]] = {
    "random": {"name": "biclique", "routing": "random", "r_units": UNITS, "s_units": UNITS},
    "matrix": {"name": "matrix", "rows": UNITS, "columns": UNITS},
    "contrand": {
        "name": "biclique", "routing": "contrand", "r_units": UNITS, "s_units": UNITS, "r_groups": 2, "s_groups": 2,
    },
    "hash": {"name": "biclique", "routing": "hash", "r_units": UNITS, "s_units": UNITS},
}  # fmt: skip
QUERY = (
    "SELECT ONLINE r.id AS r_id, r.v AS r_v, s.id AS s_id, s.v AS s_v FROM r, s "
    "WHERE r.k = s.k WITHIN {ms} MILLISECONDS"
)
RATE_PER_S = 1000
KEYS = 100_000


def run(scale: Scale) -> dict[str, Any]:
    """`rows`: by skew and operator, with measured and predicted figures; `bytes`: that travelled, without skew."""
    rows = scale.pick(400_000, 4000)
    rows_a_batch = scale.pick(50_000, 2000)
    window_ms = scale.pick(250, 250)
    skews = scale.pick(SKEWS, (0.0, 1.0))
    work = systems.folder(scale, "operators")
    runs = [(skew, name) for skew in skews for name in OPERATORS]
    joins = [
        systems.join_file(
            work,
            f"{name}-{skew:g}",
            _streams(rows, skew),
            QUERY.format(ms=window_ms),
            OPERATORS[name],
            offsets_per_batch=rows_a_batch,
        )
        for skew, name in runs
    ]
    # The first join of a session pays for starting it: it runs twice, and its first run is not kept.
    cold = {**joins[0], "run": {**joins[0]["run"], "checkpoint": str(work / "cold.checkpoint")}}
    reports = systems.own(scale, work, "operators", [cold, *joins], limit_s=scale.pick(60, 120))[1:]
    table = [_row(name, skew, report) for (skew, name), report in zip(runs, reports, strict=True)]
    answer: dict[str, Any] = {
        "rows_in": 2 * rows, "keys": KEYS, "window_ms": window_ms, "rows_per_batch": 2 * rows_a_batch, "rows": table,
        "bytes": _bytes([row for row in table if row["skew"] == 0.0]),
    }  # fmt: skip
    if failed := [f"{row['operator']}, skew {row['skew']:g}" for row in table if row["error"]]:
        answer["error"] = f"failed: {'; '.join(failed)}"
    for skew in skews:
        if len({row["results"] for row in table if row["skew"] == skew}) > 1:
            answer["error"] = f"operators disagree on the number of results at skew {skew:g}"
    return answer


def _streams(rows: int, skew: float) -> dict[str, Any]:
    return {
        stream: {
            "source": "generator", "kind": f"zipf.{stream}", "rows": rows, "rate": RATE_PER_S, "seed": seed,
            "options": {"skew": skew, "keys": KEYS}, "time": "ts",
        }
        for seed, stream in enumerate(("r", "s"), start=1)
    }  # fmt: skip


def _row(name: str, skew: float, report: Report) -> dict[str, Any]:
    figures = report.get("figures") or {}
    units = figures.get("units", [])
    return {
        "operator": name,
        "skew": skew,
        "error": report.get("error"),
        "tuples_per_second": report.get("rows_per_second_after_warmup"),
        "results": report.get("results"),
        "comparisons": figures.get("comparisons"),
        "replication": figures.get("replication"),
        "replication_predicted": _predicted(name).replication,
        "imbalance_received": _imbalance([unit["received"] for unit in units]),
        "imbalance_comparisons": _imbalance([unit["comparisons"] for unit in units]),
        "sent_bytes": sum(figures.get("sent_bytes", {}).values()) or None,
        "state_bytes_max": figures.get("state_bytes_max"),
    }


def _predicted(name: str) -> Prediction:
    """The formulas for equal streams; a tuple's size cancels out of everything taken from them here."""
    stream = StreamStatistics(1.0, RATE_PER_S, 0.0)
    if name == "matrix":
        return costs.matrix(stream, stream, UNITS, UNITS)
    groups = {"random": 1, "contrand": 2, "hash": UNITS}[name]
    return costs.biclique(stream, stream, UNITS, UNITS, groups, groups)


def _imbalance(work: list[int]) -> float | None:
    """The busiest unit's work over the mean: 1 where all do as much."""
    return max(work) * len(work) / sum(work) if work and sum(work) else None


def _bytes(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Of each operator: the paper's name, Sigma by formula, and bytes that travelled between the slots."""
    return {
        row["operator"]: {
            "paper_name": PAPER_NAMES[row["operator"]], "predicted": SIGMAS[row["operator"]],
            "sent_bytes": row["sent_bytes"],
        }
        for row in rows
        if row["sent_bytes"]
    }  # fmt: skip
