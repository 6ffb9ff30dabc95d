"""EXPLAIN: how a join will be run, and what each operator that could run it would cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from streamjoin.engine.operator import Operator
from streamjoin.errors import UnsupportedError
from streamjoin.explain.asof import asof_lines, asof_words
from streamjoin.explain.delays import closing_words, delay_lines, span_words
from streamjoin.explain.figures import bytes_text, figure
from streamjoin.explain.hot_keys import HotKey, hot_keys
from streamjoin.explain.options import Option, table
from streamjoin.explain.order import order_words, ordered
from streamjoin.explain.reading import Reading, readings
from streamjoin.explain.relations import Size, relations_words, sizes, streams_words
from streamjoin.explain.rounds import memory_lines
from streamjoin.explain.sampling import look
from streamjoin.explain.several import Ways, ways
from streamjoin.explain.stages import (
    by_stage,
    joined_streams,
    joined_words,
    stage_lines,
    stages_to_json,
    unmatched_lines,
)
from streamjoin.index.columns import routed_columns
from streamjoin.index.layout import layout_of
from streamjoin.intake.shedding import OTHER_WAY_OUT, Rules
from streamjoin.operators import registry
from streamjoin.operators.costs import StreamStatistics
from streamjoin.plan.expression import TRUE, Expression
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import type_name
from streamjoin.plan.sharing import Pairs
from streamjoin.plan.stages import Plan, is_divided, joins_nothing
from streamjoin.plan.window import R, S
from streamjoin.spec import sparks
from streamjoin.spec.changed import with_operator
from streamjoin.spec.measured import known_times
from streamjoin.spec.prepare import Bound
from streamjoin.spec.shed import shed_rules


@dataclass(frozen=True, slots=True)
class Explanation:
    """A plan and its costs.

    Args:
        statistics: of each stream, from a sample; None where nothing can be sampled before the start.
        shed: what the sides shed by, and nothing for those that never do.
        hot: by side, a key that gives one unit more than its share.
        stages: the operator of each stage; None where it has no units.
        relations: how large they are, in the order of the stages.
        closing: when snapshots close by punctuation; None where none do.
        ways: to join three streams and more; None where there is one alone, or nothing is known of the streams.
        readings: how fast a relation is joined, and how much of it is read, by operator.
        order: of three streams and more, who says in which order they are joined, and why; else empty.
        unknown: by stream that was asked for its rate, why that is not known.
    """

    plan: Plan
    chosen: str
    reason: str
    operator: str
    statistics: tuple[StreamStatistics, ...] | None
    options: tuple[Option, ...]
    stages: tuple[Operator | None, ...]
    shed: Rules = field(default_factory=dict)
    hot: Mapping[int, HotKey] = field(default_factory=dict)
    relations: tuple[Size, ...] = ()
    closing: str | None = None
    ways: Ways | None = None
    readings: tuple[Reading, ...] = ()
    order: str = ""
    unknown: Mapping[str, str] = field(default_factory=dict)

    @property
    def state_bytes_per_hour(self) -> float | None:
        """By how much state grows where nothing bounds it, from the sampled rates; None where that cannot be told."""
        if self.statistics is None or not registry.keeps_everything(self.plan) or joins_nothing(self.plan):
            return None  # of a stream alone, groups are kept and no tuples: how many there will be, no sample tells
        # Without a window, what is stored are the tuples of FULL_HISTORY_S: an hour.
        for option in self.options:
            if option.name == self.chosen and option.prediction is not None:
                return option.prediction.memory_bytes
        return sum(known.stored * known.tuple_bytes for known in self.statistics)

    def to_json(self) -> dict[str, Any]:
        """For the API."""
        growth = self.state_bytes_per_hour
        return {
            "operator": self.chosen,
            "described": self.operator,
            "reason": self.reason,
            "order": self.order,
            "sampled": self._sampled(),
            "unknown_rates": dict(self.unknown),
            "window": str(self.plan.window),
            "state_grows": registry.keeps_everything(self.plan),
            "state_bytes_per_hour": None if growth is None else round(growth),
            **self._queries(),
            "relations": {size.name: size.to_json() for size in self.relations},
            "snapshots_close": self.closing,
            "readings": {one.operator: one.to_json() for one in self.readings},
            "stages": stages_to_json(self.plan, self.stages),
            "shed": {self.plan.names[side]: asdict(rule) for side, rule in self.shed.items()},
            "hot_keys": {self.plan.names[side]: asdict(key) for side, key in self.hot.items()},
            "ways": self.ways and self.ways.to_json(),
            "operators": [option.to_json(self.plan.names) for option in self.options],
        }

    def _sampled(self) -> dict[str, Any] | None:
        if self.statistics is None:
            return None
        return {
            name: {
                "tuples_per_s": round(found.rate_per_s, 3),
                "tuple_bytes": round(found.tuple_bytes, 1),
                "tuples_stored": round(found.stored, 1),
            }
            for name, found in zip(self.plan.names, self.statistics, strict=True)
        }

    def _queries(self) -> dict[str, Any]:
        if (shared := self.plan.shared) is None:
            joined = self.plan.last_join
            return {"main": None, "residual": []} if joined is None else _indexed(joined)
        named = zip(shared.names_of_queries, shared.queries, strict=True)
        return {"queries": {name: {"window": str(query.window), **_indexed(query)} for name, query in named}}

    def __str__(self) -> str:
        plan = self.plan
        lines = self._joined()
        lines += delay_lines(plan.streams) + ([("snapshots", self.closing)] if self.closing else [])
        lines += [("operator", self.operator), ("", self.reason)]
        lines += [("order", self.order)] if self.order else []
        for number, known in enumerate(self.statistics or ()):
            rate, stored = figure(known.rate_per_s), figure(known.stored)
            words = f"{plan.names[number]}: {rate} tuples/s of event time, {known.tuple_bytes:.0f} bytes each, "
            lines.append(("" if number else "sampled", f"{words}{stored} stored"))
        lines += [("rate of", f"{name} is not known: {why}") for name, why in self.unknown.items()]
        lines += memory_lines(plan, self.statistics)
        lines += [("" if number else "relations", str(size)) for number, size in enumerate(self.relations)]
        lines += [("" if number else "predicted", str(reading)) for number, reading in enumerate(self.readings)]
        for number, (side, key) in enumerate(self.hot.items()):
            lines.append(("" if number else "skew", f"{plan.names[side]}: {key}"))
        if self.hot:
            lines.append(("", "routing: contrand spreads each key over a subgroup of units, random over all"))
        for number, (side, rule) in enumerate(self.shed.items()):
            lines.append(("" if number else "shed", f"{plan.names[side]}: {rule}"))
        if self.shed:
            lines.append(("", f"results may be partial; {OTHER_WAY_OUT}"))
        if registry.keeps_everything(plan):
            growth = self.state_bytes_per_hour
            words = "" if growth is None else f", by {bytes_text(growth)} an hour"
            if growth is not None and any(option.prediction for option in self.options):
                words += "; the costs below are after one hour"
            if joins_nothing(plan):
                words = " as long as rows come that are of no group before"
            lines.append(("note", f"full history: state grows without end{words}"))
            if self.shed:
                lines.append(("", "so load never falls, and once units are full everything is shed"))
        if (shared := plan.shared) is not None:
            for name, query in zip(shared.names_of_queries, shared.queries, strict=True):
                lines += [("", ""), (f"query {name}", ""), ("window", str(query.window))]
                lines += [(f"{query.names[side]} where", str(query.predicate.selections[side]))
                          for side in (R, S) if query.predicate.selections[side] != TRUE]  # fmt: skip
                lines += _query_lines(query)
        text = "\n".join(f"{label:<11} {words}".rstrip() for label, words in lines)
        tables = []
        if self.options:
            read = {reading.operator for reading in self.readings}
            is_blind, has_ways = self.statistics is None, self.ways is not None
            tables.append(table(plan.names, self.options, read, is_blind=is_blind, has_ways=has_ways))
        tables += [str(self.ways)] if self.ways else []
        return "\n\n".join([text, *tables])

    def _joined(self) -> list[tuple[str, str]]:
        """What is joined, and how."""
        plan = self.plan
        if (pair := plan.pair) is None:
            count = len(plan.stages)
            words = f"{streams_words(plan, ', ')}, in {count} stage{'s'[: count > 1]}: {plan.shape}"
            if plan.groups:
                words = f"{streams_words(plan, ' with ')}, then groups"
            if joins_nothing(plan):
                return [("groups", f"of {plan.names[0]}"), *stage_lines(plan, self.stages), ("", "")]
            return [("join", words), *stage_lines(plan, self.stages), ("", "")]
        joined = f"{joined_words(pair.queries[0], pair.names)}, {pair.window}"
        if pair.shared is not None:
            joined += f": {len(pair.queries)} queries, which share intake and stored tuples"
            return [("join", joined), *_kept(pair, (TRUE, TRUE))]
        (query,) = pair.queries
        output, *rest = _query_lines(query)
        kept = _kept(pair, query.predicate.selections)
        if query.asof is not None:
            return asof_lines(query, output, kept)
        return [("join", joined), output, *kept, *rest]


def _indexed(plan: JoinPlan) -> dict[str, Any]:
    return {"main": str(layout_of(plan, R)), "residual": [str(part) for part in layout_of(plan, R).recheck]}


def _kept(plan: Pairs, selections: Sequence[Expression]) -> list[tuple[str, str]]:
    """What intake lets through."""
    lines = []
    for side in (R, S):
        words = f"{plan.names[side]}: {', '.join(routed_columns(plan, side)) or 'no column'}"
        selection = "" if selections[side] == TRUE else f" where {selections[side]}"
        lines.append(("keep" if side == R else "", words + selection))
    return lines


def _query_lines(plan: JoinPlan) -> list[tuple[str, str]]:
    """What a query gives, and how it finds it."""
    checks = layout_of(plan, R).recheck
    return [
        ("output", ", ".join(f"{field.name} {type_name(field.type)}" for field in plan.output)),
        *(("index" if side == R else "", f"{plan.names[side]} by {layout_of(plan, side)}") for side in (R, S)),
        ("then check", " AND ".join(map(str, checks)) if checks else "nothing: the index settles it"),
        *unmatched_lines(plan, plan.names),
    ]


def explain(bound: Bound, *, as_written: bool = False) -> Explanation:
    """Explain a bound join file; what it would run in another order now, in that order, unless `as_written`."""
    looked = look(bound)
    bound = bound if as_written else ordered(bound, looked)
    assert not is_divided(bound.plan)  # which `bundle` explains
    statistics = looked.statistics()
    joins = not joins_nothing(bound.plan)
    options = tuple(_option(bound, name, statistics) for name in registry.offered(bound.plan)) if joins else ()
    described, hot = bound.operator, {}
    stages: tuple[Operator | None, ...] = (None,) * len(bound.plan.stages)
    if not joins or not registry.is_sparks(bound.operator):
        operators = bound.job().operators
        described = by_stage(bound.plan, bound.operator) or f"{bound.operator}, {operators[0]}"
        hot = hot_keys(operators[0], replace(looked, plan=bound.as_tree.plan))
        stages = operators
    rules = shed_rules(bound.file, bound.plan)
    predicted, unknown = readings(bound, looked, registry.offered(bound.plan))
    options = tuple(replace(one, unknown=unknown) if one.name in registry.OF_RELATIONS else one for one in options)
    return Explanation(
        bound.plan, bound.operator, _reason(bound), described, statistics, options, stages, rules, hot,
        sizes(bound, stages), closing_words(bound),
        ways(bound.plan, looked, statistics, stages, bound.file.slots, known_times(bound.file.checkpoint)),
        predicted, order_words(bound), looked.unknown,
    )  # fmt: skip


def _option(bound: Bound, name: str, statistics: tuple[StreamStatistics, ...] | None) -> Option:
    entry = registry.REGISTRY[name]
    refusal = sparks.refusal(with_operator(bound, name)) if entry.is_sparks else registry.refusal(name, bound.plan)
    if refusal:
        return Option(name, entry.system, None, refusal)
    if entry.is_sparks or statistics is None or bound.plan.pair is None:
        return Option(name, entry.system, None, None)
    r, s = statistics
    try:
        operator = with_operator(bound, name).job().operator
    except UnsupportedError as refused:
        return Option(name, entry.system, None, refused.message)
    # Batches are the ordering protocol's signals here, so no tuple waits for it: D is 0 in the formulas.
    predicted = registry.predict(operator, r, s, 0.0)
    return Option(name, entry.system, predicted, None, growth=registry.grows(operator))


def _reason(bound: Bound) -> str:
    if joins_nothing(bound.plan):
        return "the query reads one stream, and nothing is joined"
    if bound.order is None and bound.file.operator.name != registry.AUTO:
        return "as the join file says"
    if bound.order is not None and bound.order.tree is None:
        return f"chosen by auto; {bound.order.reason}"
    return f"chosen by auto; {bound.reason or registry.chosen(bound.plan).reason}"


def summary(bound: Bound) -> str:
    """One line for `validate`."""
    plan = bound.plan
    delays = ", ".join(
        f"{name} {span_words(stream.delay_us)}" for name, stream in zip(plan.names, plan.streams, strict=True)
    )
    first, *others = plan.names
    groups = plan.groups
    made = groups.windows.made if groups else ""
    joined = f"{joined_streams(plan)} {plan.window}" if others else first
    joined += relations_words(plan, ", and " if others else " joins ")
    if plan.pair is not None and plan.pair.asof is not None:
        (query,) = plan.pair.queries
        joined = asof_words(query)
    is_joined = joined != first
    words = f"{joined}, by {bound.operator}" if is_joined else f"{made} of {first}"
    words += f", then {made}" if groups and is_joined else ""
    words += f"; allowed delay: {delays}"
    if bound.single:
        words = f"{', '.join(query.name for query in bound.single)}: {words}"
    shed = [plan.names[number] for number in shed_rules(bound.file, plan)]
    if not shed:
        return words
    return f"{words}; under overload tuples of {' and '.join(shed)} are shed and results partial; {OTHER_WAY_OUT}"
