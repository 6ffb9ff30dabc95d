"""A job as its tasks know it: plain data that travels to every worker."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamjoin.engine.operator import Operator
from streamjoin.engine.slot import StageJob
from streamjoin.flow.punctuation import IDLE_TIMEOUT_US
from streamjoin.index.columns import routed_columns
from streamjoin.intake.shedding import Shedding
from streamjoin.plan.ending import EndsByRow
from streamjoin.plan.expression import columns_of
from streamjoin.plan.hearing import elsewhere, entries_elsewhere
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import SIMPLE_TYPES
from streamjoin.plan.sharing import Lasting
from streamjoin.plan.stages import Part, Plan, Query, StagePlan, decided_stages, entries_of, is_divided, running
from streamjoin.plan.window import S
from streamjoin.sources import Source
from streamjoin.sources.relation import AnyRelation
from streamjoin.sources.spec import SourceSpec
from streamjoin.spec.order import Order
from streamjoin.state.root import Root

IDENTITY_FILE = "job.json"
"""Says what a checkpoint belongs to."""
RELATION_COLUMNS = "relation columns"
"""Where it has the types of what is read of each relation."""
ENDED_COLUMNS = "ended relation columns"
"""Where it has all columns of each relation that only queries join which have ended."""


@dataclass(frozen=True, slots=True)
class Job:
    """Everything a task needs.

    Args:
        operators: of each stage of the plan.
        slots: Spark partitions of the unit stage.
        checkpoint: the job's directory: offsets, state, file logs, dead letters.
        sources: by the number of the stream, for those that StreamJoin reads itself.
        strict: a row that cannot be joined stops the job.
        heartbeat_us: while nothing arrives, a batch runs so often all the same, and expires what is due; 0 for never.
        every_us: batches begin so often at most, and one behind its time begins at once; all do where it is 0.
        sync: fsync state files.
        shedding: what is shed under overload.
        resizes: how often its state was given another number of units.
        earlier: the queries that its state is of, where those of `plan` are others.
        topics: by the number of the stream, the Kafka topics that Spark reads.
        relations: of the plan, by name; how each is read.
        begins: of the batches that are not done, those that are the first that their run has planned.
        states: where the units' state is, if not in the checkpoint.
        order: in which it joins its streams, where `auto` chose that.
        notes_versions: its batches note themselves which versions of relations they join, as nobody knows where Spark
            logs what they read.
    """

    plan: Plan
    operators: tuple[Operator, ...]
    slots: int
    checkpoint: Path
    sources: Mapping[int, SourceSpec] = field(default_factory=dict)
    strict: bool = False
    heartbeat_us: int = 0
    every_us: int = 0
    sync: bool = True
    shedding: Shedding = field(default_factory=Shedding)
    resizes: int = 0
    earlier: Plan | None = None
    topics: Mapping[int, str] = field(default_factory=dict)
    relations: Mapping[str, AnyRelation] = field(default_factory=dict)
    begins: frozenset[int] = frozenset()
    states: Root | None = None
    order: Order | None = None
    notes_versions: bool = False

    @property
    def drain_batches(self) -> int:
        """How many batches without input the end of input takes: until every pair has met, and one for what waits.

        None for that where Spark reads a stream: our sources may be at their end before it.
        """
        waits = any(operator.capabilities.waits for operator in self.operators)
        return self.meeting_batches + (waits and not self.topics)

    @property
    def meeting_batches(self) -> int:
        """How many batches without input it takes until every pair has met: stage by stage, as one feeds the next.

        A chain of one worker needs none by itself, but it may have been several. Rows of an outer join that wait are
        decided in the first one, and what they become may wait in the next stage.
        """
        return max(map(self._meeting_batches, self.plan.parts))  # parts drain side by side

    def _meeting_batches(self, part: Part) -> int:
        operators = [self.operators[stage] for stage in part.numbers]
        return sum(
            max(operator.drain_batches, 1 if self.resizes and operator.capabilities.hands_on else 0)
            for operator in operators
        ) + decided_stages(part.plan)

    @property
    def operator(self) -> Operator:
        """What the stages run by; their operators differ by their units alone."""
        return self.operators[0]

    def stage(self, number: int) -> StageJob:
        """A stage as its slots know it."""
        stage = self.plan.stages[number]
        fed_by = sum(len(self.operators[before].units) for before in stage.fed_by)
        others = elsewhere(self.plan, number)
        return StageJob(
            stage.plan, self.operators[number], self.slots, self.begins, fed_by, others, number, stage.keeps,
            entries_elsewhere(self.plan, number),
        )  # fmt: skip

    @property
    def idle_us(self) -> int:
        """The longest silence after which a partition or a stream of it becomes idle."""
        return max([IDLE_TIMEOUT_US, *(stream.idle_us or 0 for stream in self.plan.streams)])

    @property
    def state(self) -> Root:
        """Where the units' state is."""
        return self.states or state_folder(self.checkpoint)

    @property
    def relation_joins(self) -> dict[int, JoinPlan]:
        """By stage, the joins whose S is a relation, of queries that have not ended."""
        stages = [stage for stage in running(self.plan) if stage.table is not None]
        return {stage.number: stage.plan for stage in stages if isinstance(stage.plan, JoinPlan)}

    @property
    def joined_relations(self) -> dict[str, AnyRelation]:
        """The relations of queries that have not ended; no version of another one is read or joined any more."""
        names = {join.streams[S].name for join in self.relation_joins.values()}
        return {name: relation for name, relation in self.relations.items() if name in names}

    @property
    def tables(self) -> Path:
        """Where the versions of relations are."""
        return tables_folder(self.checkpoint)

    @property
    def noted(self) -> Path:
        """Where batches note which versions of relations they join, if they do."""
        return self.checkpoint / "joined"

    @property
    def offsets(self) -> Path:
        """Where Spark keeps offsets and commits."""
        return self.checkpoint / "offsets"

    @property
    def dead_letters(self) -> Path:
        """Where rows that cannot be joined are kept."""
        return dead_letters_folder(self.checkpoint)

    def open_source(self, number: int) -> Source:
        """The source of a stream that StreamJoin reads itself."""
        name = self.plan.names[number]
        return self.sources[number].open(name, self.checkpoint / "sources" / f"{number}-{name}.jsonl")

    def read_columns(self, number: int) -> tuple[str, ...]:
        """See `read_columns`."""
        wanted = {name for stage, side in entries_of(self.plan, number) for name in read_columns(stage.plan, side)}
        return tuple(name for name in self.plan.streams[number].columns.names if name in wanted)


def read_columns(plan: StagePlan, side: int) -> tuple[str, ...]:
    """The columns intake has to see: the routed ones, those the selection reads, and what tells time and ends."""
    stream = plan.streams[side]
    wanted = set(routed_columns(plan, side))
    for query in plan.queries:
        for condition in (query.predicate.selections[side], query.predicate.eligible[side]):
            wanted |= {name for _, name in columns_of(condition)}
        if side == S and isinstance(query, JoinPlan) and query.asof is not None:
            wanted |= set(query.asof.values)
    wanted.add(stream.time)
    if isinstance(stream.ending, EndsByRow):
        wanted.add(stream.ending.column)
    return tuple(name for name in stream.columns.names if name in wanted)


def state_folder(checkpoint: Path) -> Path:
    """Where the units' state is."""
    return checkpoint / "state"


def tables_folder(checkpoint: Path) -> Path:
    """Where the versions of relations are."""
    return checkpoint / "relations"


def dead_letters_folder(checkpoint: Path) -> Path:
    """Where rows that cannot be joined are kept; see `rejected`."""
    return checkpoint / "dead-letters"


def recorded_slots(checkpoint: Path) -> int | None:
    """How many slots a checkpoint's job had when it was first started; None where it never was."""
    slots = _recorded(checkpoint).get("slots")
    return slots if isinstance(slots, int) else None


def recorded_operators(checkpoint: Path) -> tuple[str, ...]:
    """The name of each stage's operator, as a checkpoint was first used; empty where it never was."""
    lasting = _recorded(checkpoint).get("operator")
    return tuple(words.split(",")[0] for words in lasting.split(" | ")) if isinstance(lasting, str) else ()


def recorded_order(checkpoint: Path, query: str) -> Order | None:
    """In which order a checkpoint's job joins its streams, where `auto` has chosen that for this query."""
    found = _recorded(checkpoint)
    try:
        is_same = found["queries"]["queries"][0]["text"] == " ".join(query.split())
        return Order.from_json(found["order"]) if is_same and found["order"] is not None else None
    except (KeyError, TypeError, IndexError, ValueError):
        return None  # whoever opens the checkpoint looks closer


def is_used(checkpoint: Path) -> bool:
    """Whether a job was started with a checkpoint."""
    return bool(_recorded(checkpoint))


def is_of_parts(checkpoint: Path) -> bool:
    """Whether a checkpoint is of several queries that have stages of their own."""
    return "tree" in _recorded(checkpoint) and bool((found := recorded(checkpoint)) and found.queries[0].name)


@dataclass(frozen=True, slots=True)
class RecordedQuery:
    """A query that a checkpoint's state is of.

    Args:
        name: empty for a job's only query, as `query:` in a join file.
        text: as written, but for white space.
        keyed: its results go into a store.
        started: it was started over stored tuples.
        since: with which start it came, where it has stages of its own; 0 for the job's first one.
    """

    name: str
    text: str
    keyed: bool
    started: bool = False
    since: int = 0

    def is_same(self, other: RecordedQuery) -> bool:
        """Whether the two ask the same, whatever they are called."""
        return (self.text, self.keyed) == (other.text, other.keyed)


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a checkpoint says of a job's queries.

    Args:
        operator: its name.
        lasting: what stays, whatever queries there are.
        queries: those that its state is of, in the order of their numbers.
        kept: of R and of S, whether no stored tuple was let go as its last query was stopped.
        ended: those that were stopped; their names are theirs, as their results are.
        order: the names of all, in which their stages are numbered; empty where queries have no stages of their own.
    """

    operator: str
    lasting: Lasting
    queries: tuple[RecordedQuery, ...]
    kept: tuple[bool, bool] = (True, True)
    ended: tuple[RecordedQuery, ...] = ()
    order: tuple[str, ...] = ()

    @property
    def started(self) -> frozenset[str]:
        """Names of the queries that were started over stored tuples."""
        return frozenset(query.name for query in self.queries if query.started)

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; `recorded` reads it back."""
        return asdict(self)

    def called(self, name: str) -> Recorded:
        """The same, with a name for a query that was the only one and had none."""
        return replace(self, queries=tuple(replace(query, name=query.name or name) for query in self.queries))


def recorded_query(name: str, query: Query, *, started: bool = False, since: int = 0) -> RecordedQuery:
    """A query as a checkpoint names it."""
    return RecordedQuery(name, " ".join(query.text.split()), query.keyed, started, since)


def queries_of(plan: Plan) -> tuple[RecordedQuery, ...]:
    """The queries of a plan as a checkpoint names them."""
    started = plan.shared.started if plan.shared else frozenset()
    return tuple(
        recorded_query(name, query, started=name in started, since=plan.since_of(name))
        for name, query in zip(plan.names_of_queries, plan.queries, strict=True)
    )


def order_of(plan: Plan) -> tuple[str, ...]:
    """The names of all queries that a plan has or had, as their stages are numbered; none where they share one."""
    return plan.every_name if is_divided(plan) else ()


def recorded(checkpoint: Path) -> Recorded | None:
    """The queries of a checkpoint; None where it was never used."""
    try:
        found = _recorded(checkpoint)["queries"]
        names, equalities = found["lasting"]["names"], found["lasting"]["equalities"]
        queries, ended = (tuple(RecordedQuery(**query) for query in found[which]) for which in ("queries", "ended"))
        lasting, kept = Lasting(tuple(names), tuple(equalities)), found["kept"]
        order = tuple(found.get("order", ()))
        return Recorded(found["operator"], lasting, queries, (kept[0], kept[1]), ended, order) if queries else None
    except (KeyError, TypeError, IndexError):
        return None  # whoever opens the checkpoint looks closer


def recorded_columns(checkpoint: Path, stream: str, time: str, guessed: pa.Schema) -> pa.Schema | None:
    """The columns that a stream had when its checkpoint was first used, where a guess finds them all again.

    A guess may find more columns and wider types as files arrive, or in another version; stored tuples stay as they
    are.

    Args:
        stream, time: by which it is found, as the query may call it otherwise.
    """
    try:
        streams = _recorded(checkpoint)["streams"]
        same = [streams[stream]] if stream in streams else [one for one in streams.values() if one["time"] == time]
        found = {text: pa.schema(list(map(_column, text.split("\n")))) for text in (one["columns"] for one in same)}
    except (KeyError, TypeError, ValueError, AttributeError):
        return None  # whoever opens the checkpoint looks closer
    fits = [columns for columns in found.values() if set(columns.names) <= set(guessed.names)]
    return fits[0] if len(fits) == 1 else None


def as_recorded(checkpoint: Path, relation: str, guessed: pa.Schema) -> pa.Schema:
    """A relation's columns, those with the types of before that its checkpoint has joined by.

    What is stored was compared by these, and a value that is not of its column's type any more is a bad record.
    """
    try:
        was = _recorded(checkpoint)[RELATION_COLUMNS][relation]
        return pa.schema([_column(f"{one.name}: {was[one.name]}") if one.name in was else one for one in guessed])
    except (KeyError, TypeError, ValueError, AttributeError):
        return guessed  # whoever opens the checkpoint looks closer


def ended_columns(checkpoint: Path) -> dict[str, pa.Schema]:
    """By name, the columns of the relations that only queries of a checkpoint join which have ended."""
    try:
        return {
            name: pa.schema([_column(f"{column}: {kind}") for column, kind in columns.items()])
            for name, columns in _recorded(checkpoint).get(ENDED_COLUMNS, {}).items()
        }
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}  # whoever opens the checkpoint looks closer


def _column(line: str) -> pa.Field:
    """The inverse of `str` of a field of a stream's columns."""
    name, _, kind = line.rpartition(": ")
    if match := re.fullmatch(r"decimal128\((\d+), (\d+)\)", kind):
        return pa.field(name, pa.decimal128(int(match[1]), int(match[2])))
    return pa.field(name, {str(simple): simple for simple in SIMPLE_TYPES.values()}[kind])


def _recorded(checkpoint: Path) -> dict[str, Any]:
    try:
        found = json.loads((checkpoint / IDENTITY_FILE).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
