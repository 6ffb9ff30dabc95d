"""The model of scale: unit costs of one and two slots, and what they predict of more.

    fitted     processor time of the units in one process, 1 and 2 slots; Spark's own on 1 slot, two sizes of batches
    checked    the rate on Spark: 1 slot with other batches, 2 slots; processor time and bytes at 4 to 64 slots
    told       rate, bytes and memory at 4 to 1,000 slots, and where each layout stops scaling

At 4 slots and more all units run in this process one after the other (`engine/loop.py`), so bytes and processor time
are those of as many machines, and rates are not known. Every run counts its results, which are DuckDB's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import systems
from benchmarks.baselines.duckdb_join import count_and_hash
from benchmarks.data import make_equi, stream_files
from benchmarks.equi import QUERY
from benchmarks.rates import median_ms_after
from benchmarks.scale import Scale
from benchmarks.systems import Report
from streamjoin.engine.loop import Brought, Loop
from streamjoin.operators import registry
from streamjoin.operators.costs.slots import (
    LAYOUTS,
    Around,
    Layout,
    Predicted,
    StepCosts,
    hash_layout,
    matrix_layout,
    predicted,
    random_layout,
    sides,
    splitjoin_layout,
)
from streamjoin.plan.join import JoinPlan
from streamjoin.spec.joinfile import of_content
from streamjoin.spec.prepare import bind
from streamjoin.state.memory import MemoryStates

EXPECTED_S = 900
WITHIN_TARGET = 0.15
STEPS = ("route_ns", "send_ns", "store_ns", "probe_ns", "unit_us")
FITTED = (hash_layout, random_layout, matrix_layout, splitjoin_layout)
"""Those that differ at 2 slots: contrand has one subgroup there, as random has."""
TOLD = (1, 2, 4, 16, 64, 256, 1000)
SHARE_MIN = 0.5
"""A slot among many is to bring so much of what one alone does, or a layout has stopped scaling."""
SLOTS_MAX = 4096


@dataclass(frozen=True, slots=True)
class Size:
    """A file spans a second.

    Args:
        rows_per_file: of each stream.
        files_per_batch: few and many, between which a batch's cost is a line; and others, which it predicts.
        slots: how many the units in one process are checked with.
    """

    files: int
    rows_per_file: int
    window_s: int
    files_per_batch: tuple[int, int]
    others: tuple[int, ...]
    slots: tuple[int, ...]
    tries: int
    limit_s: float


FULL = Size(
    files=24, rows_per_file=65_536, window_s=4, files_per_batch=(1, 6), others=(3,), slots=(4, 8, 16, 32, 64), tries=3,
    limit_s=300,
)  # fmt: skip
QUICK = Size(
    files=8, rows_per_file=1024, window_s=2, files_per_batch=(1, 4), others=(2,), slots=(4, 16), tries=1, limit_s=400,
)  # fmt: skip


def run(scale: Scale) -> dict[str, Any]:
    """`costs` and `around`; `spark` and `units`, each row with what was measured and predicted; `told`; `ends`."""
    size = scale.pick(FULL, QUICK)
    work = systems.folder(scale, "scale")
    data = scale.data / f"scale-{size.rows_per_file}x{size.files}"
    make_equi(
        data, files=size.files, rows_per_file=size.rows_per_file, keys=8 * size.rows_per_file, span_ms_per_file=1000,
        seed=3,
    )  # fmt: skip
    count, _ = count_and_hash(data, size.window_s * 1_000_000)
    alone = Alone(data, size, work)
    scale.show("  units of 1 and 2 slots in one process")
    alone.run(hash_layout(1), size.files_per_batch[0])  # compiles
    fitted = [
        alone.run(layout(slots), files)
        for slots in (1, 2)
        for layout in (FITTED if slots > 1 else (hash_layout, matrix_layout))
        for files in size.files_per_batch
    ]
    costs, sizes = fit(fitted), _sizes(fitted[0])
    checked = []
    for slots in size.slots:
        scale.seconds(1)
        scale.show(f"  units of {slots} slots in one process")
        checked += [_compared(alone.run(layout(slots), size.files_per_batch[1]), costs, sizes) for layout in LAYOUTS]
    spark = _on_spark(scale, work, data, size, count)
    around = _around(spark, costs, size)
    rates = [_rate(one, costs, around) for one in spark]
    wrong = [f"{one['layout']} at {one['slots']}" for one in [*fitted, *checked, *spark] if one["results"] != count]
    return {
        "workload": asdict(size), "results": count, "rows_in": 2 * size.files * size.rows_per_file,
        "costs": asdict(costs), "around": asdict(around), "bytes": sizes, "fitted": fitted, "checked": checked,
        "spark": rates, "slot_tuples": _slot_tuples(size),
        "told": [_told(layout(slots), costs, around, sizes, size) for layout in LAYOUTS for slots in TOLD],
        "ends": {layout(1).name: ends(layout, costs, around, _slot_tuples(size)) for layout in LAYOUTS},
        **({"error": f"wrong counts: {', '.join(wrong)}"} if wrong else {}),
    }  # fmt: skip


class Alone:
    """The join in this process, all slots one after the other."""

    def __init__(self, data: Path, size: Size, work: Path) -> None:
        self.size = size
        content = systems.join_file(
            work, "alone", systems.parquet_streams(data), QUERY.format(window_s=size.window_s), {"name": "biclique"}
        )
        plan = bind(of_content(content, base=work, name="alone")).plan
        assert isinstance(plan, JoinPlan)
        self.plan = plan
        self.files = [[self._rows(file, side) for file in stream_files(data, name)] for side, name in enumerate("rs")]

    def _rows(self, file: Path, side: int) -> pa.RecordBatch:
        columns = self.plan.streams[side].columns
        return pq.read_table(file, columns=columns.names).cast(columns).combine_chunks().to_batches()[0]

    def run(self, layout: Layout, files: int) -> dict[str, Any]:
        """Processor seconds of all batches after the first window, the least of some tries, and what was counted."""
        tries = [self._run(layout, files) for _ in range(self.size.tries)]
        return min(tries, key=lambda one: float(one["seconds"]))

    def _run(self, layout: Layout, files: int) -> dict[str, Any]:
        states = MemoryStates()
        operators = registry.build_all(*operator_of(layout), self.plan, layout.slots)
        loop = Loop(self.plan, operators, lambda stage: states, layout.slots)
        results, timed, spent_s, sent, warm = 0, 0, 0.0, 0, self._warm(files)
        for number, begin in enumerate(range(0, self.size.files, files)):
            pieces = [mine[begin : begin + files] for mine in self.files]
            brought = Brought(pieces, 1_000_000 * number, begins=not number)
            before, begun_s = _sent(loop), time.process_time()
            results += sum(rows.num_rows for _, rows in loop.batch(brought))
            loop.commit(brought)
            if number >= warm:
                spent_s += time.process_time() - begun_s
                sent += _sent(loop) - before
                timed += 1
        return {
            "layout": layout.name, "slots": layout.slots, "tuples": 2 * timed * files * self.size.rows_per_file,
            "batches": timed, "seconds": spent_s, "sent_bytes": sent, "results": results,
            "stored_bytes": sum(one.stored_bytes for one in loop.reports),
            "stored_rows": sum(sum(one.stored_rows) for one in loop.reports),
        }  # fmt: skip

    def _warm(self, files: int) -> int:
        """Batches until a window is full; one is left to be timed in any case."""
        return min(-(-self.size.window_s // files), -(-self.size.files // files) - 1)


def operator_of(layout: Layout) -> tuple[str, dict[str, Any]]:
    """The operator of a layout, and its settings."""
    if layout.name == "matrix":
        rows, columns = sides(layout.slots)
        return "matrix", {"rows": rows, "columns": columns}
    return ("splitjoin", {}) if layout.name == "splitjoin" else ("biclique", {"routing": layout.name})


def _sent(loop: Loop) -> int:
    return sum(counts.get("sent_bytes", 0) for counts in loop.counts)


def fit(runs: Sequence[dict[str, Any]]) -> StepCosts:
    """The step costs that fit best, none below 0; each run counts alike, however long it took."""
    known = [_layout(one) for one in runs]
    terms = np.array([
        [1e-9, 1e-9 * layout.sent, 1e-9 * layout.stored, 1e-9 * layout.probes,
         1e-6 * layout.units * one["batches"] / one["tuples"]]
        for one, layout in zip(runs, known, strict=True)
    ]) * np.array([[one["tuples"] / one["seconds"]] for one in runs])  # fmt: skip
    found = np.zeros(len(STEPS))
    used = list(range(len(STEPS)))
    while used:
        solved, *_ = np.linalg.lstsq(terms[:, used], np.ones(len(runs)), rcond=None)
        if (solved >= 0).all():
            found[used] = solved
            break
        used.pop(int(np.argmin(solved * np.abs(terms[:, used]).mean(axis=0))))
    return StepCosts(*map(float, found))


def _layout(one: dict[str, Any]) -> Layout:
    return next(layout(one["slots"]) for layout in LAYOUTS if layout(1).name == one["layout"])


def _sizes(one: dict[str, Any]) -> dict[str, float]:
    """Bytes of a tuple on its way, and stored, from a run that sends and stores each once."""
    return {"sent_bytes": one["sent_bytes"] / one["tuples"], "live_bytes": one["stored_bytes"] / one["stored_rows"]}


def _compared(one: dict[str, Any], costs: StepCosts, sizes: dict[str, float]) -> dict[str, Any]:
    """A run in one process beside what was predicted of it."""
    layout = _layout(one)
    whole = costs.seconds(layout, one["tuples"] / one["batches"])
    return {
        **one, "predicted_s": one["batches"] * sum(whole.values()),
        "predicted_bytes": one["tuples"] * layout.sent * sizes["sent_bytes"],
    }  # fmt: skip


def _on_spark(scale: Scale, work: Path, data: Path, size: Size, count: int) -> list[dict[str, Any]]:
    found = []
    for slots in (1, 2):
        layouts = [layout(slots) for layout in (FITTED if slots > 1 else (hash_layout,))]
        cases = [(layout, files) for layout in layouts for files in (*size.files_per_batch, *size.others)]
        joins = [_join(work, data, size, layout, files) for layout, files in cases]
        cold = {**joins[0], "run": {**joins[0]["run"], "checkpoint": str(work / f"cold-{slots}.checkpoint")}}
        reports = systems.own(scale, work, f"scale-{slots}", [cold, *joins], limit_s=size.limit_s)[1:]
        found += [_measured(*case, report, size) for case, report in zip(cases, reports, strict=True)]
    return found


def _join(work: Path, data: Path, size: Size, layout: Layout, files: int) -> dict[str, Any]:
    name, settings = operator_of(layout)
    return systems.join_file(
        work, f"{layout.name}-{layout.slots}-{files}", systems.parquet_streams(data),
        QUERY.format(window_s=size.window_s), {"name": name, **settings}, slots=layout.slots, files_per_batch=files,
    )  # fmt: skip


def _measured(layout: Layout, files: int, report: Report, size: Size) -> dict[str, Any]:
    tuples = 2 * files * size.rows_per_file
    return {
        "layout": layout.name, "slots": layout.slots, "files": files, "tuples": tuples,
        # A window is full then.
        "batch_ms": median_ms_after(report, 2 * min(size.window_s, size.files - files) * size.rows_per_file),
        "results": report.get("results"), "error": report.get("error"),
    }  # fmt: skip


def _around(spark: Sequence[dict[str, Any]], costs: StepCosts, size: Size) -> Around:
    """The line through one slot's few and many tuples a batch, without the work of the units.

    Raises:
        FailedRowError: one of the two was not measured.
    """
    ends = [one for one in spark if one["slots"] == 1 and one["files"] in size.files_per_batch]
    if not all(one["batch_ms"] for one in ends):
        raise systems.FailedRowError(f"a job of one slot has no rate: {[one['error'] for one in ends]}")
    rest_ms = [one["batch_ms"] - 1e3 * sum(costs.seconds(hash_layout(1), one["tuples"]).values()) for one in ends]
    few, many = (one["tuples"] for one in ends)
    tuple_ms = max((rest_ms[1] - rest_ms[0]) / (many - few), 0.0)
    return Around(max(rest_ms[0] - few * tuple_ms, 0.0), tuple_ms * 1e6)


def _rate(one: dict[str, Any], costs: StepCosts, around: Around) -> dict[str, Any]:
    """A job on Spark with its rate and the one that was predicted."""
    rate = predicted(costs, around, _layout(one), one["tuples"]).rate_per_s
    measured = one["tuples"] / one["batch_ms"] * 1000 if one["batch_ms"] else None
    return {**one, "rate": measured, "predicted": rate}


def _slot_tuples(size: Size) -> int:
    """Tuples of a batch for each of its slots."""
    return 2 * size.files_per_batch[1] * size.rows_per_file


def _told(layout: Layout, costs: StepCosts, around: Around, sizes: dict[str, float], size: Size) -> dict[str, Any]:
    """A job whose batches grow with its slots, and whose window has four batches."""
    tuples = _slot_tuples(size) * layout.slots
    one = predicted(
        costs, around, layout, tuples, sent_bytes=sizes["sent_bytes"], live_bytes=4 * tuples * sizes["live_bytes"]
    )
    return {
        "layout": layout.name, "slots": layout.slots, "rate": one.rate_per_s, "sent_bytes_per_s": one.sent_bytes_per_s,
        "stored_bytes": one.stored_bytes, "most": one.most,
    }  # fmt: skip


def ends(layout: Callable[[int], Layout], costs: StepCosts, around: Around, slot_tuples: int) -> dict[str, Any]:
    """The most slots of which each brings enough, and what takes the time with twice as many; None: no such end."""

    def at(slots: int) -> Predicted:
        return predicted(costs, around, layout(slots), slot_tuples * slots)

    slots = 1
    while slots < SLOTS_MAX:
        twice = at(2 * slots)
        if twice.rate_per_s / (2 * slots) < SHARE_MIN * at(1).rate_per_s:
            return {"slots": slots, "most": twice.most}
        slots *= 2
    return {"slots": None, "most": at(slots).most}
