"""The model of scale: unit costs of few and of many slots, and what they predict of others.

    fitted     processor time of the units in one process at 1, 2 and 64 slots; what is around them on Spark, by small
               and large batches of one slot, and of two without copies and with them
    checked    the rate on Spark: other batches, other layouts; processor time and bytes at 4 to 32 slots
    told       rate, bytes and memory at 4 to 1,000 slots, and where each layout stops scaling

At 4 slots and more all units run in this process one after the other (`engine/loop.py`), so bytes and processor time
are those of as many machines, and rates are not known. Layouts take turns. Of a batch's processor time the least
counts: what a machine does meanwhile only adds to it. Of a job's rates on Spark the median counts. Every run counts
its results, which are DuckDB's.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
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
from benchmarks.rates import median, median_ms_after
from benchmarks.scale import Scale
from benchmarks.systems import Report
from streamjoin.engine.loop import Brought, Loop
from streamjoin.operators import registry
from streamjoin.operators.costs.growth import WINDOW_BATCHES, growth
from streamjoin.operators.costs.slots import (
    LAYOUTS,
    Around,
    Layout,
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

EXPECTED_S = 1_500
WITHIN_TARGET = 0.15
STEPS = ("route_ns", "send_ns", "store_ns", "far_store_ns", "probe_ns", "far_probe_ns", "unit_us")
ON_SPARK = (hash_layout, random_layout, matrix_layout, splitjoin_layout)
"""Those that differ at 2 slots: contrand has one subgroup there, as random has."""
MADE_OF = ("hash", "random")
"""What a copy takes on Spark is found from one that sends none and one that sends each tuple to both slots."""
TOLD = (1, 2, 4, 16, 64, 256, 1000)


@dataclass(frozen=True, slots=True)
class Size:
    """A file spans a second.

    Args:
        rows_per_file: of each stream.
        files_per_batch: few and many, between which a batch's cost is a line; and others, which it predicts.
        slots: how many the units in one process are checked with.
        many: how many slots the model is made of beside 1 and 2.
        turns: of the units in one process, and of the jobs on Spark.
    """

    files: int
    rows_per_file: int
    window_s: int
    files_per_batch: tuple[int, int]
    others: tuple[int, ...]
    slots: tuple[int, ...]
    many: int
    turns: int
    limit_s: float

    def live(self, tuples: float) -> float:
        """Tuples of both streams that a batch of so many finds, on the mean, once a window is full."""
        return 2 * self.window_s * self.rows_per_file + tuples / 2


FULL = Size(
    files=24, rows_per_file=65_536, window_s=4, files_per_batch=(1, 6), others=(3,), slots=(4, 8, 16, 32), many=64,
    turns=3, limit_s=300,
)  # fmt: skip
QUICK = Size(
    files=8, rows_per_file=1024, window_s=2, files_per_batch=(1, 4), others=(2,), slots=(4, 8), many=16, turns=1,
    limit_s=400,
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
    few, many = size.files_per_batch
    cases = [(layout(slots), files) for slots, layouts in ((1, (hash_layout, matrix_layout)), (2, ON_SPARK))
             for layout in layouts for files in (few, many)]  # fmt: skip
    cases += [(layout(size.many), many) for layout in LAYOUTS]
    others = [(layout(slots), many) for slots in size.slots for layout in LAYOUTS]
    found = in_turns(Alone(data, size, work), [*cases, *others], scale)
    fitted, rest = found[: len(cases)], found[len(cases) :]
    costs, sizes = fit(fitted, size), _sizes(fitted[0])
    checked = [_compared(one, costs, sizes, size) for one in rest]
    spark = _on_spark(scale, work, data, size)
    around = _around(spark, costs, size)
    rates = [_rate(one, costs, around, size) for one in spark]
    wrong = [f"{one['layout']} at {one['slots']}" for one in [*fitted, *checked, *spark] if one["results"] != count]
    return {
        "workload": asdict(size), "results": count, "rows_in": 2 * size.files * size.rows_per_file,
        "costs": asdict(costs), "around": asdict(around), "bytes": sizes, "fitted": fitted, "checked": checked,
        "spark": rates, "slot_tuples": _slot_tuples(size),
        "told": [_told(layout(slots), costs, around, sizes, size) for layout in LAYOUTS for slots in TOLD],
        "ends": {layout(1).name: asdict(growth(layout, costs, around, _slot_tuples(size))) for layout in LAYOUTS},
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
        """Processor seconds of each batch after the first window, and what was counted."""
        states = MemoryStates()
        operators = registry.build_all(*operator_of(layout), self.plan, layout.slots)
        loop = Loop(self.plan, operators, lambda stage: states, layout.slots)
        results, sent, warm = 0, 0, self._warm(files)
        spent_s: list[float] = []
        for number, begin in enumerate(range(0, self.size.files, files)):
            pieces = [mine[begin : begin + files] for mine in self.files]
            brought = Brought(pieces, 1_000_000 * number, begins=not number)
            before, begun_s = _sent(loop), time.process_time()
            results += sum(rows.num_rows for _, rows in loop.batch(brought))
            loop.commit(brought)
            if number >= warm:
                spent_s.append(time.process_time() - begun_s)
                sent += _sent(loop) - before
        return {
            "layout": layout.name, "slots": layout.slots, "batches": len(spent_s), "batch_s": spent_s,
            "tuples": 2 * len(spent_s) * files * self.size.rows_per_file, "sent_bytes": sent, "results": results,
            "stored_bytes": sum(one.stored_bytes for one in loop.reports),
            "stored_rows": sum(sum(one.stored_rows) for one in loop.reports),
        }  # fmt: skip

    def _warm(self, files: int) -> int:
        """Batches until a window is full; one is left to be timed in any case."""
        return min(-(-self.size.window_s // files), -(-self.size.files // files) - 1)


def in_turns(alone: Alone, cases: Sequence[tuple[Layout, int]], scale: Scale) -> list[dict[str, Any]]:
    """Runs of layouts with so many files a batch, turn after turn; of each batch the least time counts."""
    alone.run(hash_layout(1), alone.size.files_per_batch[0])  # compiles
    turns = []
    for turn in range(alone.size.turns):
        scale.seconds(1)
        scale.show(f"  units of up to {alone.size.many} slots in one process, turn {turn + 1} of {alone.size.turns}")
        turns.append([alone.run(layout, files) for layout, files in cases])
    return [_least(tries) for tries in zip(*turns, strict=True)]


def _least(tries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One of several runs, with the least time of each batch.

    Raises:
        FailedRowError: they did not find the same.
    """
    _check_alike(tries)
    batch_s = [min(same) for same in zip(*(one["batch_s"] for one in tries), strict=True)]
    return {**tries[0], "batch_s": batch_s, "seconds": sum(batch_s)}


def _check_alike(tries: Sequence[dict[str, Any]]) -> None:
    """Turns of one run have found the same.

    Raises:
        FailedRowError: they have not.
    """
    if len(found := {one["results"] for one in tries}) > 1:
        raise systems.FailedRowError(f"{tries[0]['layout']} at {tries[0]['slots']} slots found {sorted(found)} rows")


def operator_of(layout: Layout) -> tuple[str, dict[str, Any]]:
    """The operator of a layout, and its settings."""
    if layout.name == "matrix":
        rows, columns = sides(layout.slots)
        return "matrix", {"rows": rows, "columns": columns}
    return ("splitjoin", {}) if layout.name == "splitjoin" else ("biclique", {"routing": layout.name})


def _sent(loop: Loop) -> int:
    return sum(counts.get("sent_bytes", 0) for counts in loop.counts)


def fit(runs: Sequence[dict[str, Any]], size: Size) -> StepCosts:
    """The step costs that fit best, none below 0; each run counts alike, however long it took."""
    # A batch's time is a sum of the costs, each as often as it is had: so many times the time with one alone of 1.
    terms = np.array([
        [one["batches"] / one["seconds"] * sum(StepCosts(*alone).seconds(_layout(one), *_batch(one, size)).values())
         for alone in np.eye(len(STEPS))]
        for one in runs
    ])  # fmt: skip
    return StepCosts(*_none_below_0(terms, np.ones(len(runs))))


def _none_below_0(terms: np.ndarray, wanted: np.ndarray) -> list[float]:
    """What the terms, a column each, are had how often, by least squares; what would be below 0 is left out."""
    found = np.zeros(terms.shape[1])
    used = list(range(terms.shape[1]))
    while used:
        solved, *_ = np.linalg.lstsq(terms[:, used], wanted, rcond=None)
        if (solved >= 0).all():
            found[used] = solved
            break
        used.pop(int(np.argmin(solved * np.abs(terms[:, used]).mean(axis=0))))
    return list(map(float, found))


def _layout(one: dict[str, Any]) -> Layout:
    return next(layout(one["slots"]) for layout in LAYOUTS if layout(1).name == one["layout"])


def _batch(one: Mapping[str, Any], size: Size) -> tuple[float, float]:
    """A batch's tuples of both streams, and those that it finds."""
    tuples = one["tuples"] / one.get("batches", 1)
    return tuples, size.live(tuples)


def _sizes(one: dict[str, Any]) -> dict[str, float]:
    """Bytes of a tuple on its way, and stored, from a run that sends and stores each once."""
    return {"sent_bytes": one["sent_bytes"] / one["tuples"], "live_bytes": one["stored_bytes"] / one["stored_rows"]}


def _compared(one: dict[str, Any], costs: StepCosts, sizes: dict[str, float], size: Size) -> dict[str, Any]:
    """A run in one process beside what was predicted of it."""
    layout = _layout(one)
    whole = costs.seconds(layout, *_batch(one, size))
    return {
        **one, "predicted_s": one["batches"] * sum(whole.values()),
        "predicted_bytes": one["tuples"] * layout.sent * sizes["sent_bytes"],
    }  # fmt: skip


def _on_spark(scale: Scale, work: Path, data: Path, size: Size) -> list[dict[str, Any]]:
    """Jobs of one slot and of two, each with the median of its turns."""
    turns = []
    for turn in range(size.turns):
        scale.show(f"  jobs on Spark, turn {turn + 1} of {size.turns}")
        turns.append([one for slots in (1, 2) for one in _jobs(scale, work, data, size, slots)])
    return [_median(tries) for tries in zip(*turns, strict=True)]


def _jobs(scale: Scale, work: Path, data: Path, size: Size, slots: int) -> list[dict[str, Any]]:
    layouts = [layout(slots) for layout in (ON_SPARK if slots > 1 else (hash_layout,))]
    cases = [(layout, files) for layout in layouts for files in (*size.files_per_batch, *size.others)]
    joins = [_join(work, data, size, layout, files) for layout, files in cases]
    cold = {**joins[0], "run": {**joins[0]["run"], "checkpoint": str(work / f"cold-{slots}.checkpoint")}}
    reports = systems.own(scale, work, f"scale-{slots}", [cold, *joins], limit_s=size.limit_s)[1:]
    return [_measured(*case, report, size) for case, report in zip(cases, reports, strict=True)]


def _median(tries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One of several runs, with the median of their batches' times; of what failed nothing is left out."""
    if failed := next((one for one in tries if one["error"] or not one["batch_ms"]), None):
        return failed
    _check_alike(tries)
    return {**tries[0], "batch_ms": median([one["batch_ms"] for one in tries])}


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


def is_made_of(one: Mapping[str, Any], files_per_batch: Sequence[int]) -> bool:
    """Whether a run on Spark is one of those that the model is made of."""
    return one["layout"] in MADE_OF and one["files"] in files_per_batch


def _around(spark: Sequence[dict[str, Any]], costs: StepCosts, size: Size) -> Around:
    """What a batch, a tuple and a copy of it take on Spark, without the work of the units.

    Raises:
        FailedRowError: one of the runs that it is made of was not measured.
    """
    made = [one for one in spark if is_made_of(one, size.files_per_batch)]
    if not all(one["batch_ms"] for one in made):
        raise systems.FailedRowError(f"a job that the model is made of has no rate: {[one['error'] for one in made]}")
    terms, rest = [], []
    for one in made:
        whole_s, layout = one["batch_ms"] / 1000, _layout(one)
        tuples = one["tuples"] / layout.slots
        terms.append(np.array([1e-3, 1e-9 * tuples, 1e-9 * tuples * (layout.sent - 1)]) / whole_s)
        rest.append(1 - sum(costs.seconds(layout, *_batch(one, size)).values()) / layout.slots / whole_s)
    return Around(*_none_below_0(np.array(terms), np.array(rest)))


def _rate(one: dict[str, Any], costs: StepCosts, around: Around, size: Size) -> dict[str, Any]:
    """A job on Spark with its rate and the one that was predicted."""
    rate = predicted(costs, around, _layout(one), *_batch(one, size)).rate_per_s
    measured = one["tuples"] / one["batch_ms"] * 1000 if one["batch_ms"] else None
    return {**one, "rate": measured, "predicted": rate}


def _slot_tuples(size: Size) -> int:
    """Tuples of a batch for each of its slots."""
    return 2 * size.files_per_batch[1] * size.rows_per_file


def _told(layout: Layout, costs: StepCosts, around: Around, sizes: dict[str, float], size: Size) -> dict[str, Any]:
    """A job whose batches grow with its slots, as `growth` takes it."""
    tuples = _slot_tuples(size) * layout.slots
    live = WINDOW_BATCHES * tuples
    one = predicted(
        costs, around, layout, tuples, live, sent_bytes=sizes["sent_bytes"], live_bytes=live * sizes["live_bytes"]
    )
    return {
        "layout": layout.name, "slots": layout.slots, "rate": one.rate_per_s, "sent_bytes_per_s": one.sent_bytes_per_s,
        "stored_bytes": one.stored_bytes, "most": one.most,
    }  # fmt: skip
