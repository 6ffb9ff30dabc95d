"""EXPLAIN: how a join will be run, and what each operator that could run it would cost."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamjoin.errors import InputError, StreamJoinError, UnsupportedError
from streamjoin.expression import TRUE, filter_mask
from streamjoin.intake.event_time import event_times
from streamjoin.joinfile import JoinFile
from streamjoin.operators import registry
from streamjoin.operators.costs import Prediction, StreamStatistics
from streamjoin.plan import JoinPlan
from streamjoin.prepare import Bound, source_spec, with_operator
from streamjoin.schema import ARRIVAL, type_name
from streamjoin.sources import Source
from streamjoin.window import CountWindow, R, S, TimeWindow, format_us

SAMPLE_ROWS = 20_000
STORED_ENGINE_BYTES = 16  # event time and one key a stored tuple
FULL_HISTORY_S = 3600.0
"""Without a window, costs are shown for one hour of history."""


@dataclass(frozen=True, slots=True)
class Option:
    """One operator in an explanation: its prediction, or why it cannot run the query."""

    name: str
    system: str
    prediction: Prediction | None
    refusal: str | None

    def refusal_text(self, is_blind: bool) -> str:
        """Why there are no figures; `is_blind` where nothing could be sampled."""
        if self.refusal:
            return f"cannot: {self.refusal}"
        if self.name == registry.SPARK:
            return "can run it; no formula tells its costs"
        return "can run it; its costs need the streams' rates, not known yet" if is_blind else "can run it; no formula"


@dataclass(frozen=True, slots=True)
class Explanation:
    """A plan and its costs.

    Args:
        statistics: of (R, S), from a sample; None where nothing can be sampled before the start.
    """

    plan: JoinPlan
    chosen: str
    reason: str
    operator: str
    statistics: tuple[StreamStatistics, StreamStatistics] | None
    options: tuple[Option, ...]

    def to_json(self) -> dict[str, Any]:
        """For the API."""
        return {
            "operator": self.chosen,
            "reason": self.reason,
            "window": str(self.plan.window),
            "main": str(self.plan.layout(R)),
            "residual": [str(part) for part in self.plan.layout(R).recheck],
            "operators": [
                {
                    "name": option.name,
                    "refusal": option.refusal,
                    "memory_bytes": option.prediction and round(option.prediction.memory_bytes),
                    "replication": option.prediction and round(option.prediction.replication, 3),
                    "comparisons_per_s": option.prediction and round(option.prediction.comparisons_per_s),
                    "bytes_per_s": option.prediction and round(option.prediction.bytes_per_s),
                }
                for option in self.options
            ],
        }

    def __str__(self) -> str:
        plan = self.plan
        lines = [
            ("join", f"{plan.names[R]} with {plan.names[S]}, {plan.window}"),
            ("output", ", ".join(f"{field.name} {type_name(field.type)}" for field in plan.output)),
        ]
        for side in (R, S):
            selection = plan.predicate.selections[side]
            words = f"{plan.names[side]}: {', '.join(plan.routed_columns(side)) or 'no column'}"
            lines.append(("keep" if side == R else "", words + ("" if selection == TRUE else f" where {selection}")))
        lines += [("index" if side == R else "", f"{plan.names[side]} by {plan.layout(side)}") for side in (R, S)]
        checks = plan.layout(R).recheck
        lines.append(("then check", " AND ".join(map(str, checks)) if checks else "nothing: the index settles it"))
        lines.append(("delay", ", ".join(f"{stream.name} {_span(stream.delay_us)}" for stream in plan.streams)))
        lines += [("operator", self.operator), ("", self.reason)]
        if self.statistics is not None:
            for side in (R, S):
                known = self.statistics[side]
                rate, stored = _figure(known.rate_per_s), _figure(known.stored)
                words = f"{plan.names[side]}: {rate} tuples/s of event time, {known.tuple_bytes:.0f} bytes each, "
                lines.append(("sampled" if side == R else "", f"{words}{stored} stored"))
        if registry.keeps_everything(plan):
            costs = "; the costs below are after one hour" if self.statistics else ""
            lines.append(("note", f"full history: state grows without end{costs}"))
        text = "\n".join(f"{label:<11} {words}" for label, words in lines)
        return f"{text}\n\n{self._table()}"

    def _table(self) -> str:
        """What every operator would cost, as wide as its figures."""
        head = ("operator", "memory", "replication", "comparisons/s", "bytes sent/s")
        rows = [head, *(_cells(option) for option in self.options if option.prediction)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        widths[0] = max(11, *(len(option.name) for option in self.options))
        lines = [_padded(head, widths)]
        for option in self.options:
            if option.prediction:
                lines.append(_padded(_cells(option), widths))
            else:
                lines.append(f"{option.name:<{widths[0]}}  {option.refusal_text(self.statistics is None)}")
        if len(rows) > 1:
            lines += ["", "comparisons are those of a nested loop; an index needs a small part of them"]
        return "\n".join(lines)


def _padded(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = cells
    return f"{first:<{widths[0]}}  " + "  ".join(
        f"{cell:>{width}}" for cell, width in zip(rest, widths[1:], strict=True)
    )


def _cells(option: Option) -> tuple[str, ...]:
    found = option.prediction
    assert found is not None
    return (
        option.name,
        _bytes(found.memory_bytes),
        f"{found.replication:,.2f}",
        _figure(found.comparisons_per_s),
        _bytes(found.bytes_per_s),
    )


def _figure(value: float) -> str:
    """Two digits at least: a stream of one tuple a minute has a rate too."""
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"


def _span(us: int) -> str:
    return format_us(us) if us else "none"


def _bytes(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{size:,.1f} {unit}" if unit != "B" else f"{size:.0f} B"
        size /= 1024
    raise AssertionError


def explain(bound: Bound) -> Explanation:
    """Explain a bound join file."""
    statistics = _statistics(bound)
    options = []
    for name in registry.REGISTRY:
        options.append(_option(bound, name, statistics))
    described = f"{bound.operator}, {bound.job().operator}" if registry.entry(bound.operator).build else bound.operator
    return Explanation(bound.plan, bound.operator, _reason(bound), described, statistics, tuple(options))


def _option(bound: Bound, name: str, statistics: tuple[StreamStatistics, StreamStatistics] | None) -> Option:
    entry = registry.REGISTRY[name]
    if refusal := entry.refuses(bound.plan):
        return Option(name, entry.system, None, refusal)
    if entry.build is None or statistics is None:
        return Option(name, entry.system, None, None)
    try:
        operator = with_operator(bound, name).job().operator
    except UnsupportedError as refused:
        return Option(name, entry.system, None, refused.message)
    # Batches are the ordering protocol's signals here, so no tuple waits for it: D is 0 in the formulas.
    return Option(name, entry.system, registry.predict(operator, *statistics, 0.0), None)


def _reason(bound: Bound) -> str:
    if bound.file.operator.name != registry.AUTO:
        return "as the join file says"
    if bound.plan.predicate.equalities:
        return "chosen by auto; an equality sends equal keys to one unit of each side, the least there is to send"
    if bound.plan.predicate.ranges:
        return "chosen by auto; tuples match many others and skew does not matter when units are chosen at random"
    return "chosen by auto; any predicate can be joined when each tuple meets all units of the other side"


def _statistics(bound: Bound) -> tuple[StreamStatistics, StreamStatistics] | None:
    r, s = (_sample(bound.file, bound.plan, side) for side in (R, S))
    return None if r is None or s is None else (r, s)


def _sample(file: JoinFile, plan: JoinPlan, side: int) -> StreamStatistics | None:
    """Rate and size of a stream from its first rows."""
    schema = plan.streams[side]
    stream = file.streams[schema.name]
    if stream.source == "kafka" or schema.time == ARRIVAL:
        return None
    with tempfile.TemporaryDirectory() as folder:
        try:
            source = source_spec(file, stream, schema).open(schema.name, Path(folder) / "log.jsonl")
            rows = _first_rows(source, schema.columns)
        except (InputError, StreamJoinError):
            return None
    if rows is None:
        return None
    ts_us, missing, wrong = event_times(rows, schema, 0)
    ts_us = ts_us[~(missing | wrong)]
    span_s = (int(ts_us.max()) - int(ts_us.min())) / 1e6 if ts_us.size else 0.0
    share = _selected_share(rows, plan, side)
    rate = share * (rows.num_rows / span_s if span_s else float(rows.num_rows))
    kept = rows.select(list(plan.stored_columns(side)))
    size = kept.nbytes / rows.num_rows + STORED_ENGINE_BYTES
    return StreamStatistics(size, rate, _stored(plan, side, rate, share))


def _first_rows(source: Source, columns: pa.Schema) -> pa.RecordBatch | None:
    read = source.sample(SAMPLE_ROWS)
    for rows, _ in read.rows(columns.names) if read else ():
        if rows.num_rows:
            return rows.slice(0, SAMPLE_ROWS)
    return None


def _selected_share(rows: pa.RecordBatch, plan: JoinPlan, side: int) -> float:
    """The share of rows that the query's conditions on this stream alone let through."""
    columns = {(plan.names[side], name): rows.column(name) for name in rows.schema.names}
    keep = filter_mask(plan.predicate.selections[side], columns, rows.num_rows, plan.predicates)
    return float(keep.mean()) if keep.size else 1.0


def _stored(plan: JoinPlan, side: int, rate_per_s: float, share: float) -> float:
    match plan.window:
        case TimeWindow() as window:
            kept_us = window.keeps_us(side) + plan.streams[1 - side].delay_us + (plan.archive_period or 0)
            return rate_per_s * kept_us / 1e6
        case CountWindow(rows):
            return rows * share
        case _:
            return rate_per_s * FULL_HISTORY_S


def summary(bound: Bound) -> str:
    """One line for `validate`."""
    plan = bound.plan
    delays = ", ".join(
        f"{name} {_span(stream.delay_us)}" for name, stream in zip(plan.names, plan.streams, strict=True)
    )
    return f"{plan.names[R]} joins {plan.names[S]} {plan.window}, by {bound.operator}; allowed delay: {delays}"
