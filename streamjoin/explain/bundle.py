"""EXPLAIN of any job: of queries that have stages of their own, what they share and then each part for itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from streamjoin.engine.operator import Operator
from streamjoin.explain import plans
from streamjoin.explain.delays import closing_words, delay_lines
from streamjoin.explain.options import Option
from streamjoin.explain.parts import parts_of
from streamjoin.explain.plans import Explanation
from streamjoin.explain.stages import stages_to_json
from streamjoin.operators import registry
from streamjoin.plan.stages import Flow, Plan, Stage, Table, entries_of, is_divided, joins_nothing, parts_at
from streamjoin.spec.prepare import Bound

ORDER = "that of FROM: auto chooses the order of streams for a query that is a job of its own"

OPERATOR = "operator.name is one for all queries; left out, each part has one that fits it"


@dataclass(frozen=True, slots=True)
class OfBundle:
    """What queries of several kinds share, and the parts of their job.

    Args:
        parts: each as a job of its own would be explained.
        stages: the operator of each stage.
        columns: of each stream, what is read of it for all.
        closing: when snapshots close by punctuation; None where none do.
    """

    plan: Plan
    chosen: str
    parts: tuple[Explanation, ...]
    stages: tuple[Operator, ...]
    columns: tuple[tuple[str, ...], ...]
    closing: str | None = None

    def to_json(self) -> dict[str, Any]:
        """For the API: what an `Explanation` says, with each part's in `parts`."""
        grows = any(registry.keeps_everything(part.plan) for part in self.parts)
        return {
            "operator": self.chosen,
            "described": f"{len(self.parts)} parts, each with stages of its own",
            "reason": "each part has its own",
            "order": "",
            "sampled": None,
            "window": "each query has its own",
            "state_grows": grows,
            "state_bytes_per_hour": None,
            "main": None,
            "residual": [],
            "relations": {name: told for part in self.parts for name, told in part.to_json()["relations"].items()},
            "snapshots_close": self.closing,
            "readings": {},
            "stages": stages_to_json(self.plan, self.stages),
            "shed": {},
            "hot_keys": {},
            "ways": None,
            "operators": [],
            "reads": {name: list(read) for name, read in zip(self.plan.names, self.columns, strict=True)},
            "parts": [
                {"names": list(part.names), **told.to_json()}
                for part, told in zip(self.plan.parts, self.parts, strict=True)
            ],
        }

    def __str__(self) -> str:
        plan, floors = self.plan, len(self.plan.floors)
        names = plan.names_of_queries
        lines = [("job", f"{len(names)} queries: {', '.join(names)}"), ("shared", "")]
        for number, (name, read) in enumerate(zip(plan.names, self.columns, strict=True)):
            if times := len(entries_of(plan, number)):
                words = f"{name} is read and decoded once, for {times} {'stage' if times == 1 else 'stages'}"
                lines.append(("", f"{words}: {', '.join(read)}"))
            else:
                lines.append(("", f"no query reads {name} any more; the job only keeps its place in it"))
        lines += [("", f"{_listed(part.names)} share the stored tuples of {' and '.join(part.plan.names)}")
                  for part in plan.parts if len(part.names) > 1]  # fmt: skip
        for stage in plan.stages:
            if len(parts := parts_at(plan, stage.number)) > 1:
                names_of = _listed([name for part in parts for name in part.names])
                joined = " with ".join(_inputs(plan, stage))
                lines.append(("", f"{names_of} share stage {stage.number + 1}: {joined}"))
        lines[1:3] = [("shared", lines[2][1])]
        lines.append(("not shared", "what each part stores, its marks and its matched rows; a stream's rows are sent"))
        lines.append(("", "to each part that selects them"))
        lines.append(("operator", OPERATOR))
        lines.append(("shuffles", f"{floors} a batch: the parts run side by side"))
        lines += delay_lines(plan.streams) + ([("snapshots", self.closing)] if self.closing else [])
        text = ["\n".join(f"{label:<11} {words}".rstrip() for label, words in lines)]
        for part, told in zip(plan.parts, self.parts, strict=True):
            label = "queries" if len(part.names) > 1 else "query"
            numbers = _listed([str(number + 1) for number in part.numbers])
            where = f"in the job stage{'s' if len(part.numbers) > 1 else ''} {numbers}"
            text.append(f"{label:<11} {_listed(part.names)}, {where}\n{told}")
        return "\n\n".join(text)


def _inputs(plan: Plan, stage: Stage) -> list[str]:
    """What a stage reads, for people."""
    return [f"stage {read.stage + 1}" if isinstance(read, Flow) else plan.names[read]
            for read in stage.inputs if not isinstance(read, Table)]  # fmt: skip


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def explain(bound: Bound) -> Explanation | OfBundle:
    """Explain a bound join file, whatever its queries share."""
    if not is_divided(bound.plan):
        return plans.explain(bound)
    job = bound.job()
    parts = tuple(_explained(bound, part) for part in parts_of(bound))
    columns = tuple(job.read_columns(number) for number in range(len(bound.plan.streams)))
    return OfBundle(bound.plan, bound.operator, parts, job.operators, columns, closing_words(bound))


def _explained(bound: Bound, part: Bound) -> Explanation:
    found = plans.explain(part, as_written=True)
    options = tuple(_in_job(bound, part, one) for one in found.options)
    refused = {one.name for one in options if one.refusal}
    return replace(
        found,
        options=options,
        readings=tuple(one for one in found.readings if one.operator not in refused),
        order=ORDER if found.order and not part.file.operator.tree else found.order,
    )


def _in_job(bound: Bound, part: Bound, option: Option) -> Option:
    """What an operator costs one part, or why `operator.name`, which is one for all, cannot name it in this job."""
    if option.refusal or option.name == part.operator:
        return option
    if registry.entry(option.name).is_sparks:
        return replace(option, prediction=None, refusal=f"{option.name} runs one query a job")
    for other in bound.plan.parts:
        if joins_nothing(other.plan):
            why: str | None = "it joins nothing, and leaves operator.name out"
        else:
            why = registry.refusal(option.name, other.plan)
        if why:
            refusal = f"not in this job, as operator.name is one for all queries; {_listed(other.names)}: {why}"
            return replace(option, prediction=None, refusal=refusal)
    return option


def summary(bound: Bound) -> str:
    """One line for `validate`, whatever its queries share."""
    if not is_divided(bound.plan):
        return plans.summary(bound)
    count, stages = len(bound.plan.parts), len(bound.plan.stages)
    reads = _listed([*bound.plan.names, *(one.name for one in bound.plan.relations)])
    return (
        f"{', '.join(bound.plan.names_of_queries)}: {len(bound.single)} queries over {reads}, which share what is read "
        f"of streams, in {count} {'part' if count == 1 else 'parts'} of {stages} stages"
    )
