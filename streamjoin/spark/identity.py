"""What must not change while a checkpoint is used, so that what is stored stays what the job would have stored."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from streamjoin.errors import OtherJoinError, StateError
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.stages import Plan, is_divided
from streamjoin.plan.window import S, format_us
from streamjoin.spec.job import IDENTITY_FILE, RELATION_COLUMNS, Job
from streamjoin.spec.relations import columns_read
from streamjoin.state.manifest import FORMAT, WAY_OUT

ANEW = "use another run.checkpoint and place for results, or remove that checkpoint and its results, to start anew"
"""The way out where a checkpoint is not the join's."""
_FIELD = re.compile(r"(\w+)=(<[^>]*>|[^,()]+)")
_UNITS = re.compile(r"(\d+) (nodes|units)\b")
_ADAPTIVE = ", adaptive"
_BY_NAME = ("streams", "relations", RELATION_COLUMNS)
"""Parts of an identity that are mappings."""
_SAID_MAX = 3
_SHOWN_MAX = 60
_NAMES = {"streams": "stream", "relations": "relation", "delay_us": "delay", "archive_period_us": "archive period"}
"""What parts of an identity are called in a join file, or one of them."""


def identity(job: Job) -> dict[str, Any]:
    """What must not change while a checkpoint is used.

    Slots may, units of an operator that resizes, and queries where the job says what becomes of them.
    """
    plan = job.plan
    joins = [stage.plan for stage in plan.stages if isinstance(stage.plan, JoinPlan)]
    ending = {join.names[S] for join in joins if join.asof is not None and join.asof.values}
    return {
        **({"tree": plan.shape} if plan.pair is None else {}),
        **({"relations": _relations(plan), RELATION_COLUMNS: _relation_columns(job)} if job.relations else {}),
        "format": FORMAT,
        "streams": {
            name: {
                "columns": str(stream.columns),
                "time": stream.time,
                "delay_us": stream.delay_us,
                **({"key": list(stream.key)} if name in ending else {}),
            }
            for name, stream in zip(plan.names, plan.streams, strict=True)
        },
        "index": plan.index,
        "archive_period_us": plan.archive_period_us,
        "main predicate": plan.main,
        "operator": " | ".join(operator.lasting for operator in job.operators),
        # What the order is may change; stored tuples have their sequence numbers or have them not.
        "ordered results": plan.ordering is not Ordering.NONE,
    }


def _relations(plan: Plan) -> dict[str, str]:
    """By the names of the query, which relations are joined; a later version may have other columns beside these."""
    return dict(zip(plan.relation_names, (relation.name for relation in plan.relations), strict=True))


def _relation_columns(job: Job) -> dict[str, dict[str, str]]:
    """The types of what is read of each relation, by which rows are compared and stored."""
    return {name: {one.name: str(one.type) for one in columns_read(job, name)} for name in job.joined_relations}


def ended_relations(job: Job) -> dict[str, dict[str, str]]:
    """All columns of each relation that only queries join which have ended, so that these are bound without it."""
    ended = job.relations.keys() - job.joined_relations.keys()
    return {name: {one.name: str(one.type) for one in job.relations[name].columns} for name in sorted(ended)}


def retyped(was: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]) -> str | None:
    """What a column of a relation was and is now, for people; None where none has changed."""
    for relation, columns in now.items():
        for name, kind in columns.items():
            if (before := was.get(relation, {}).get(name, kind)) != kind:
                return f'column "{name}" of relation {relation} was {before} and is {kind} now'
    return None


def recorded_identity(path: Path) -> dict[str, Any]:
    """What a checkpoint says it belongs to.

    Raises:
        StateError: it is damaged.
    """
    try:
        found = json.loads(path.read_text())
    except ValueError:
        found = None
    if not isinstance(found, dict) or any(not isinstance(found.get(name, {}), dict) for name in _BY_NAME):
        raise StateError(f"{path} is damaged; restore the checkpoint from a copy or start with another one")
    return found


def known_identity(job: Job) -> dict[str, Any]:
    """The identity that the job's checkpoint has if it is the job's, as JSON gives it back.

    Where queries with stages of their own start or end, it is that of the queries before.
    """
    if job.earlier is not None and is_divided(job.earlier):
        job = replace(job, plan=job.earlier, operators=job.operators[: len(job.earlier.stages)])
    found: dict[str, Any] = json.loads(json.dumps(identity(job)))
    return found


def check_continues(job: Job) -> None:
    """Refuse a job that cannot go on with what its checkpoint has, where there is one; changes nothing.

    Raises:
        OtherJoinError: another join began the checkpoint, or its format is one that this version does not read.
        StateError: it is damaged.
    """
    if (path := job.checkpoint / IDENTITY_FILE).exists():
        check_same(job.checkpoint, recorded_identity(path), known_identity(job))


def check_same(checkpoint: Path, theirs: Mapping[str, Any], mine: Mapping[str, Any]) -> None:
    """Refuse a checkpoint of another join.

    Args:
        theirs: the identity that the checkpoint began with.
        mine: that of the join that is to go on with it.
    Raises:
        OtherJoinError: they differ, or the checkpoint's format is one that this version does not read.
    """
    if (format_ := theirs.get("format")) != FORMAT:
        differs = f"has format {format_} and this version of StreamJoin reads format {FORMAT}"
        raise OtherJoinError(f"checkpoint {checkpoint} {differs}; {WAY_OUT}", f"the checkpoint {differs}")
    if said := retyped(theirs.get(RELATION_COLUMNS, {}), mine.get(RELATION_COLUMNS, {})):
        raise OtherJoinError(
            f"checkpoint {checkpoint}: {said}, and what is stored was compared as it was; give it that type again, or "
            "use another run.checkpoint and place for results to start anew",
            said,
        )
    if changed := [name for name in mine if name != RELATION_COLUMNS and theirs.get(name) != mine[name]]:
        differs = parts_differ(changed, theirs, mine)
        raise OtherJoinError(
            f"checkpoint {checkpoint} belongs to another join, with other {' and '.join(changed)} ({differs}); {ANEW}",
            differs, tuple(changed),
        )  # fmt: skip


def parts_differ(changed: Sequence[str], theirs: Mapping[str, Any], mine: Mapping[str, Any]) -> str:
    """How the parts of two identities that have changed differ, in words: the first few, with both values."""
    said: list[str] = []
    for name in changed:
        if name == "operator":
            said.append(operators_differ(str(theirs.get(name)), mine[name]))
        else:
            said += _values_differ(_NAMES.get(name, name), theirs.get(name), mine[name])
    more = [f"and {len(said) - _SAID_MAX} more"] if len(said) > _SAID_MAX else []
    return "; ".join([*said[:_SAID_MAX], *more])


def _values_differ(name: str, was: Any, now: Any) -> Iterator[str]:
    if name in ("stream", "relation"):  # by names of the query
        for one in dict.fromkeys([*(was or {}), *now]):
            before, after = (found.get(one) for found in (was or {}, now))
            if isinstance(before, Mapping) and isinstance(after, Mapping):
                for part in (part for part in dict.fromkeys([*before, *after]) if before.get(part) != after.get(part)):
                    words = f"{_NAMES.get(part, part)} of {name} {one}"
                    yield from _values_differ(words, before.get(part), after.get(part))
            elif before != after:
                yield _was_and_is(f"{name} {one}", before, after)
    elif name.startswith("columns of "):
        before, after = (_column_types(text or "") for text in (was, now))
        names = [column for column in dict.fromkeys([*before, *after]) if before.get(column) != after.get(column)]
        whose = name.removeprefix("columns")
        yield from (_was_and_is(f'column "{column}"{whose}', before.get(column), after.get(column)) for column in names)
        if not names:
            yield f"{name} come in another order now"
    elif name.startswith(("delay", "archive period")):
        yield _was_and_is(name, *(format_us(us) if us else None for us in (was, now)))
    else:
        yield _was_and_is(name, was, now)


def _column_types(schema: str) -> dict[str, str]:
    """By name, from a schema as Arrow writes it; names may have colons, and types have none."""
    return {name: kind for name, _, kind in (line.rpartition(": ") for line in schema.splitlines())}


def _was_and_is(name: str, was: Any, now: Any) -> str:
    first, then = (value if isinstance(value, str) else json.dumps(value) for value in (was, now))
    if max(len(first), len(then)) > _SHOWN_MAX:  # what differs may be far behind
        differing = (at for at, (one, other) in enumerate(zip(first, then, strict=False)) if one != other)
        same = next(differing, min(len(first), len(then)))
        at = max(same - _SHOWN_MAX // 2, 0)
        first, then = (_part(text, at) for text in (first, then))
    first, then = ("not there" if value in (None, {}) else said for value, said in ((was, first), (now, then)))
    return f"{name} was {first} and is {then} now"


def _part(text: str, at: int) -> str:
    end = at + _SHOWN_MAX
    return f"{'...' if at else ''}{text[at:end]}{'...' if end < len(text) else ''}"


def operators_differ(was: str, now: str) -> str:
    """How the operators of a checkpoint differ from those of a join, in words.

    Args:
        was, now: what lasts of each stage's operator, as `identity` puts it together.
    """
    said = (words for pair in zip_longest(was.split(" | "), now.split(" | ")) for words in _differences(*pair))
    return "; ".join(dict.fromkeys(said))


def _differences(was: str | None, now: str | None) -> Iterator[str]:
    if was == now:
        return
    if was is None or now is None:
        yield f"the checkpoint began with {'fewer' if was is None else 'more'} stages than this has"
    elif _kind(was) != _kind(now):
        yield f"the checkpoint began with {_kind(was)}, and this says {_kind(now)}"
    elif found := list(_knobs_differ(was, now)):
        yield from found
    else:
        yield f"the checkpoint began with {was}, and this says {now}"


def _knobs_differ(was: str, now: str) -> Iterator[str]:
    if (_ADAPTIVE in was) != (_ADAPTIVE in now):
        words = ("units that come and go (adaptive)", "a fixed number of units")
        first, then = words if _ADAPTIVE in was else words[::-1]  # a ring's nodes are its units
        yield f"the checkpoint began with {first}, and this says {then}"
        return
    before, after = _knobs(was), _knobs(now)
    for name in dict.fromkeys([*before, *after]):
        if (one := before.get(name)) != (other := after.get(name)):
            is_counted = name in ("nodes", "units")
            begun = f"{one} {name}" if is_counted else f"{name} {one}"
            yield f"the checkpoint began with {begun}, and this says {other}"


def _kind(operator: str) -> str:
    return operator.replace("(", " ").replace(",", " ").split()[0].lower()


def _knobs(operator: str) -> dict[str, str]:
    """By name, what is said of an operator: `r_units=2` of a biclique, `2 nodes at first` of a ring."""
    found = {name: re.sub(r"<\w+\.\w+: '(.*)'>", r"\1", value) for name, value in _FIELD.findall(operator)}
    return found | {name: count for count, name in _UNITS.findall(operator)}
