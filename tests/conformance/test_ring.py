"""The ring: all streams of a query in one state, against a nested loop that shares no code with it."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.engine.loop import Brought, Loop
from streamjoin.engine.slot import States
from streamjoin.errors import StreamJoinError
from streamjoin.intake.shedding import kept
from streamjoin.operators import registry
from streamjoin.operators.ring import resize, slices, step
from streamjoin.operators.ring.state import NodeState
from streamjoin.operators.rounds import expiry, keeping
from streamjoin.operators.rounds.later import LaterRound
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Cascade, Plan
from streamjoin.query import plan_query
from streamjoin.state import rewrite
from streamjoin.state.show import show_units
from streamjoin.state.store import StateStore

from . import loops
from .loops import joined, loop_of

DELAY_US = 15
COLUMNS = pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("k", pa.int64()), ("x", pa.int64())])
NAMES = "abcdefghi"
STREAMS = {name: StreamSchema(name, COLUMNS, "ts", "us", DELAY_US) for name in NAMES}
BATCHES = 5

Row = dict[str, Any]
Rows = list[Row]
Condition = tuple[str, str, Callable[..., bool]]
"""As text, the streams that it reads, and what it means."""


def rows_of(seed: int, count: int, keys: int = 4) -> Rows:
    """Rows out of order by less than the allowed delay; some keys are NULL, and many times are equal."""
    chosen = random.Random(seed)
    times = sorted(chosen.randrange(5 * count) for _ in range(count))
    return [
        {
            "ts": max(time - chosen.randrange(DELAY_US), 0),
            "id": number,
            "k": chosen.choice([None, *range(keys)]),
            "x": chosen.randrange(20),
        }
        for number, time in enumerate(times)
    ]


def nested_loop(
    streams: Sequence[Rows], conditions: Sequence[Condition], reaches_us: Sequence[int]
) -> Counter[tuple[int, ...]]:
    """Ids of every combination of rows that meets all conditions, and of which none is out of reach of the newest."""
    places = {name: place for place, name in enumerate(NAMES)}
    found: Counter[tuple[int, ...]] = Counter()

    def extend(parts: list[Row]) -> None:
        near = all(
            max(one["ts"] for one in parts) <= part["ts"] + reach
            for part, reach in zip(parts, reaches_us, strict=False)
        )
        there = [one for one in conditions if max(places[name] for name in one[1]) == len(parts) - 1]
        if parts and not (near and all(holds(*(parts[places[name]] for name in reads)) for _, reads, holds in there)):
            return
        if len(parts) == len(streams):
            found[tuple(part["id"] for part in parts)] += 1
            return
        for row in streams[len(parts)]:
            extend([*parts, row])

    extend([])
    return found


def equal(one: str, other: str) -> Condition:
    return (
        f"{one}.k = {other}.k",
        one + other,
        lambda r, s: r["k"] is not None and s["k"] is not None and r["k"] == s["k"],
    )


def band(one: str, other: str, width: int) -> Condition:
    return (
        f"ABS({one}.x - {other}.x) <= {width}",
        one + other,
        lambda r, s: abs(r["x"] - s["x"]) <= width,
    )


def below(one: str, other: str) -> Condition:
    return f"{one}.x < {other}.x", one + other, lambda r, s: r["x"] < s["x"]


def together(one: str, other: str, third: str) -> Condition:
    return (
        f"{one}.x + {other}.x > {third}.x",
        one + other + third,
        lambda r, s, t: r["x"] + s["x"] > t["x"],
    )


def alone(one: str, least: int) -> Condition:
    return f"{one}.x >= {least}", one, lambda r: r["x"] >= least


def text_of(count: int, conditions: Sequence[Condition], reaches_us: Sequence[int]) -> str:
    names = NAMES[:count]
    where = f" WHERE {' AND '.join(text for text, _, _ in conditions)}" if conditions else ""
    spans = ", ".join(f"{reach} MICROSECONDS FOR {name}" for name, reach in zip(names, reaches_us, strict=True))
    within = f"{reaches_us[0]} MICROSECONDS" if len(set(reaches_us)) == 1 else spans
    if count == 2:
        within = f"({reaches_us[1]} MICROSECONDS, {reaches_us[0]} MICROSECONDS)"
    selected = ", ".join(f"{name}.id AS {name}" for name in names)
    return f"SELECT ONLINE {selected} FROM {', '.join(names)}{where} WITHIN {within}"


def record_batch(rows: Rows) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=COLUMNS)


def cut(streams: Sequence[Rows], batches: int = BATCHES) -> Iterator[list[list[pa.RecordBatch]]]:
    return loops.cut([record_batch(rows) for rows in streams], batches)


class Run:
    """A job of a ring, batch by batch.

    Args:
        knobs: of the operator.
    """

    operator = "ring"

    def __init__(self, text: str, folder: Path, slots: int = 2, **knobs: Any) -> None:
        self.knobs = {"nodes": 3, **knobs}
        self.tree = plan_query(text, STREAMS)
        self.folder = folder
        self.loop = self._loop(slots)
        self.found: Counter[Any] = Counter()

    def _loop(self, slots: int) -> Loop:
        plan = registry.planned(self.operator, self.knobs, self.tree, slots)
        stores: dict[int, States] = {}
        return Loop(
            plan, registry.build_all(self.operator, self.knobs, plan, slots),
            lambda stage: stores.setdefault(stage, StateStore(self.folder, stage, sync=False)), slots,
        )  # fmt: skip

    def batch(self, pieces: list[list[pa.RecordBatch]], *, commit: bool = True, shed: Sequence[float] = ()) -> None:
        brought = Brought(pieces, 1_000_000 * self.loop.version, shed=shed)
        found: Counter[Any] = Counter()
        for _, part in self.loop.batch(brought):
            found.update(zip(*(column.to_pylist() for column in part.columns), strict=True))
        if commit:
            self.loop.commit(brought)
            self.found += found

    def run(self, streams: Sequence[Rows], batches: int = BATCHES) -> Counter[Any]:
        for pieces in cut(streams, batches):
            self.batch(pieces)
        return self.found

    def maybe_twice(self, pieces: list[list[pa.RecordBatch]], chosen: random.Random) -> None:
        """A batch that may be repeated by other slots."""
        if chosen.random() < 0.3:
            self.batch(pieces, commit=False)
            self.loop.slots = chosen.randrange(1, 4)
        self.batch(pieces)

    def resize(self, nodes: int) -> None:
        """Start again with another number of nodes."""
        before, self.knobs["nodes"] = self.loop, nodes
        self.loop = self._loop(before.slots)
        self.loop.version, self.loop.positions = before.version, before.positions
        for stage, operator in enumerate(self.loop.operators):
            store = StateStore(self.folder, stage, sync=False)
            states = rewrite.resized(store, before.version, len(before.operators[stage].units), operator)
            rewrite.begin(store, before.version, {store.stage: (operator.units, states)}, {})
            rewrite.complete(store)
            rewrite.forget(store)

    def nodes(self) -> list[NodeState]:
        """What the nodes have after the last batch."""
        store = StateStore(self.folder, 0, sync=False)
        return [NodeState.of(store.load(unit.number, self.loop.version)) for unit in self.loop.operators[0].units]


def random_query(chosen: random.Random, count: int) -> tuple[list[Condition], list[int]]:
    """Conditions over random streams, each stream led to by one at least, and reaches that are equal or not."""
    names = NAMES[:count]
    conditions: list[Condition] = []
    for place in range(1, count):
        other = chosen.choice(names[:place])
        conditions.append(chosen.choice([equal, equal, below, lambda a, b: band(a, b, 3)])(other, names[place]))
    if count > 2 and chosen.random() < 0.6:
        conditions.append(together(*chosen.sample(names, 3)))
    if chosen.random() < 0.4:
        conditions.append(alone(chosen.choice(names), 4))
    chosen.shuffle(conditions)
    reach = chosen.choice([10, 20])
    reaches = [chosen.choice([0, 5, 12, 30]) for _ in names] if chosen.random() < 0.6 else [reach] * count
    return conditions, reaches


def any_join(seed: int, chosen: random.Random) -> tuple[int, list[Condition], Sequence[int], list[Rows]]:
    """Of a random query over two to five streams: how many, its conditions and reaches, and random rows."""
    count = 2 + seed % 4
    conditions, reaches = random_query(chosen, count)
    streams = [rows_of(seed * 10 + place, {2: 60, 3: 30, 4: 18, 5: 13}[count]) for place in range(count)]
    return count, conditions, reaches, streams


def check_random(seed: int, folder: Path) -> int:
    """One random query over random rows, in random orders, with a batch repeated and another number of nodes midway."""
    chosen = random.Random(seed)
    count, conditions, reaches, streams = any_join(seed, chosen)
    wanted = nested_loop(streams, conditions, reaches)
    names = NAMES[:count]
    orders = {name: chosen.sample([one for one in names if one != name], count - 1) for name in names}
    nodes = chosen.randrange(1, 4)
    knobs: dict[str, Any] = {"nodes": nodes, "lengths": {"a": chosen.randrange(1, nodes + 1)}}
    knobs |= {"orders": orders} if chosen.random() < 0.7 else {}
    run = Run(text_of(count, conditions, reaches), folder, chosen.randrange(1, 4), **knobs)
    for number, pieces in enumerate(cut(streams)):
        run.maybe_twice(pieces, chosen)
        if number == 2 and chosen.random() < 0.5:
            run.resize(chosen.randrange(nodes, 5))
    assert run.found == wanted, (seed, text_of(count, conditions, reaches), knobs)
    return sum(wanted.values())


@pytest.mark.slow
def test_every_combination_of_kept_tuples_is_found_where_streams_shed(tmp_path: Path) -> None:
    conditions, reaches = [equal("a", "b"), band("b", "c", 3)], [20, 5, 30]
    streams = [rows_of(700 + place, 40) for place in range(3)]
    run = Run(text_of(3, conditions, reaches), tmp_path)
    stay: list[Rows] = [[], [], []]
    for number, pieces in enumerate(cut(streams)):
        factors = [0.5 if number % 2 else 0.0, 0.1 * number, 0.0 if number == 3 else 0.3]
        run.batch(pieces, commit=False, shed=factors)
        run.loop.slots = 1 + number % 3
        run.batch(pieces, shed=factors)
        for place, (rows, factor) in enumerate(zip(streams, factors, strict=True)):
            size = -(-len(rows) // BATCHES)
            own = np.arange(len(rows))[number * size : (number + 1) * size]
            stay[place] += [rows[at] for at in own[kept(factor, NAMES[place], "history", own)]]
    wanted = nested_loop(stay, conditions, reaches)
    assert run.found == wanted
    assert 10 < wanted.total() < nested_loop(streams, conditions, reaches).total()


@pytest.mark.parametrize("first", [0, 4])
def test_random_queries_of_two_to_five_streams_are_joined_exactly(first: int, tmp_path: Path) -> None:
    assert sum(check_random(seed, tmp_path / str(seed)) for seed in range(first, first + 4)) > 20


@pytest.mark.soak
def test_many_random_queries_are_joined_exactly(tmp_path: Path) -> None:
    assert sum(check_random(seed, tmp_path / str(seed)) for seed in range(100, 500)) > 2_000


CHAIN = [equal("a", "b"), equal("b", "c")]
MIXED = [equal("a", "b"), band("b", "c", 5), together("a", "c", "b")]


def orders_of(names: str) -> Iterator[dict[str, list[str]]]:
    """Every order for each of the streams."""
    each = [[list(one) for one in itertools.permutations(names.replace(name, ""))] for name in names]
    for chosen in itertools.product(*each):
        yield dict(zip(names, chosen, strict=True))


def test_every_order_of_three_streams_gives_the_same(tmp_path: Path) -> None:
    streams = [rows_of(place, 20) for place in range(3)]
    wanted = nested_loop(streams, MIXED, (20, 10, 30))
    assert len(wanted) > 10
    for number, orders in enumerate(orders_of("abc")):
        run = Run(text_of(3, MIXED, (20, 10, 30)), tmp_path / str(number), orders=orders)
        assert run.run(streams, 3) == wanted, orders


@pytest.mark.soak
def test_every_eleventh_choice_of_orders_of_four_streams_gives_the_same(tmp_path: Path) -> None:
    streams = [rows_of(place, 16) for place in range(4)]
    conditions = [*MIXED, equal("d", "c")]
    wanted = nested_loop(streams, conditions, (20, 10, 30, 25))
    assert len(wanted) > 5
    for number, orders in enumerate(itertools.islice(orders_of("abcd"), 0, None, 11)):
        run = Run(text_of(4, conditions, (20, 10, 30, 25)), tmp_path / str(number), orders=orders)
        assert run.run(streams, 3) == wanted, orders


NINE_CHAIN = [equal(one, other) for one, other in itertools.pairwise(NAMES)]
NINE = text_of(9, NINE_CHAIN, (12,) * 9)
"""A query of as many streams as there may be."""


def check_nine(run: Run) -> None:
    """A run of `NINE` is exact."""
    streams = [[{"ts": 7 * number + place, "id": number, "k": 0, "x": 0} for number in range(3)] for place in range(9)]
    wanted = nested_loop(streams, NINE_CHAIN, (12,) * 9)
    assert run.run(streams, 2) == wanted and sum(wanted.values()) > 20


def test_nine_streams_take_eight_rounds(tmp_path: Path) -> None:
    run = Run(NINE, tmp_path, nodes=2)
    assert len(run.loop.operators) == 8
    check_nine(run)


def test_rows_at_one_time_in_one_batch_and_in_three_are_joined_once(tmp_path: Path) -> None:
    row = {"ts": 100, "id": 0, "k": 1, "x": 1}
    one = Run(text_of(3, CHAIN, (5, 5, 5)), tmp_path / "one")
    one.batch([[record_batch([row])]] * 3)
    assert one.found == Counter([(0, 0, 0)])
    for number, turn in enumerate(itertools.permutations(range(3))):
        three = Run(text_of(3, CHAIN, (5, 5, 5)), tmp_path / str(number))
        for stream in turn:
            three.batch([[record_batch([row])] if stream == place else [] for place in range(3)])
        assert three.found == Counter([(0, 0, 0)])


def test_partners_of_a_slow_stream_stay(tmp_path: Path) -> None:
    """A row is dead when all other streams have passed it, and not when one of them has."""
    streams = [rows_of(place, 30, keys=2) for place in range(3)]
    run = Run(text_of(3, CHAIN, (10, 10, 10)), tmp_path)
    for pieces in cut(streams[:2]):
        run.batch([*pieces, []])
    for pieces in cut(streams[2:]):
        run.batch([[], [], *pieces])
    wanted = nested_loop(streams, CHAIN, (10, 10, 10))
    assert run.found == wanted and len(wanted) > 20


def test_late_rows_are_counted_and_give_no_wrong_row(tmp_path: Path) -> None:
    streams = [rows_of(place, 40, keys=2) for place in range(3)]
    late = [{"ts": 3, "id": 1_000, "k": 1, "x": 1}]
    run = Run(text_of(3, CHAIN, (10, 10, 10)), tmp_path)
    run.run(streams)
    run.batch([[record_batch(late)], [], []])
    assert sum(report.late[0] for report in run.loop.reports if len(report.late) == 3) == 1
    with_late = nested_loop([[*streams[0], *late], *streams[1:]], CHAIN, (10, 10, 10))
    on_time = nested_loop(streams, CHAIN, (10, 10, 10))
    assert not on_time - run.found and not run.found - with_late


def test_a_look_at_the_state_shows_every_stream(tmp_path: Path) -> None:
    run = Run(text_of(3, CHAIN, (10, 10, 10)), tmp_path)
    streams = [rows_of(place, 40, keys=2) for place in range(3)]
    run.run(streams)
    shown = show_units(tmp_path, 0, stage=1)
    rows = [sum(info.rows for info in run.nodes()[0].answered(stream, with_new=True)) for stream in range(3)]
    parts = re.split(r"  stream \d: 40 tuples so far", shown)[1:]
    assert [sum(map(int, re.findall(r"(\d+) rows", part))) for part in parts] == rows and all(rows)
    assert ", new" in shown


@pytest.mark.parametrize("knobs", [{}, {"lengths": {"a": 1, "c": 2}}], ids=["equal", "unequal"])
def test_every_live_row_lies_in_one_node_and_files_move_without_being_written(
    knobs: dict[str, Any], tmp_path: Path
) -> None:
    streams = [rows_of(place, 200, keys=40) for place in range(3)]
    run = Run(text_of(3, CHAIN, (200, 400, 300)), tmp_path, **knobs)
    moved = 0
    store = StateStore(tmp_path, 0, sync=False)
    filled: set[int] = set()
    for pieces in cut(streams, 20):
        run.batch(pieces)
        files: list[Path] = []
        ids: list[tuple[int, int]] = []
        for number, node in enumerate(run.nodes()):
            moved += sum(node.sent_on(stream) for stream in range(3))
            for stream in range(3):
                for info in node.answered(stream, with_new=True):
                    files.append((store.directory(number) / info.file).resolve())
                    times = store.open_segment(number, info).column("id").to_pylist()
                    ids += [(stream, one) for one in times]
                    filled.add(number)
                    assert number < run.loop.operators[0].lengths_by_stream[stream]
        assert len(files) == len(set(files)) and len(ids) == len(set(ids))
        assert all(file.exists() for file in files)
    assert moved > 200 and filled == {0, 1, 2}


def test_what_is_far_older_than_the_window_is_let_go_and_each_node_has_its_slice(tmp_path: Path) -> None:
    """Ten windows in one batch."""
    rows = [{"ts": time, "id": time, "k": time, "x": 0} for time in range(3_400)]
    run = Run(text_of(3, CHAIN, (300, 300, 300)), tmp_path)
    run.batch([[record_batch(rows[:3_000])]] * 3)
    # Each row is in the node of its age already.
    assert all(infos and infos[0].rows >= 100 for node in run.nodes() for infos in node.new.values())
    for pieces in cut([rows[3_000:]] * 3, 20):
        run.batch(pieces)
    nodes = run.nodes()
    shares = [sum(info.rows for stream in range(3) for info in node.answered(stream, with_new=True)) for node in nodes]
    assert min(shares) > 100 and sum(shares) < 3 * (300 + DELAY_US + 3 * 20 + 30)
    assert sum(run.found.values()) == 3_400


def check_dying_task(
    run: type[Run], later: type[LaterRound], after: int, folder: Path, patch: pytest.MonkeyPatch
) -> None:
    """In each batch a task dies in a round after the first, and the batch is repeated."""
    streams = [rows_of(place, 16) for place in range(4)]
    conditions = [*MIXED, equal("d", "c")]
    wanted = nested_loop(streams, conditions, (20, 20, 20, 20))
    assert len(wanted) > 5
    job = run(text_of(4, conditions, (20, 20, 20, 20)), folder)
    results = later.results
    for pieces in cut(streams):
        left = [after]

        def dying(self: LaterRound, left: list[int] = left) -> Iterator[pa.RecordBatch]:
            if self.plan.number == after and self._work.unit.number == 1 and left:
                left.pop()
                raise KeyboardInterrupt
            yield from results(self)

        patch.setattr(later, "results", dying)
        with pytest.raises(KeyboardInterrupt):
            job.batch(pieces)
        job.batch(pieces)
    assert job.found == wanted


@pytest.mark.parametrize("after", [1, 2])
def test_a_task_that_dies_between_rounds_changes_nothing(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_dying_task(Run, LaterRound, after, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("select", "by"),
    [
        ("ONLINE a.k AS k, COUNT(*) AS n, SUM(b.x) AS x", "GROUP BY a.k, TUMBLE(50 MICROSECONDS)"),
        ("ONLINE a.k AS k, COUNT(*) AS n, SUM(b.x) AS x", "GROUP BY a.k EMIT EVERY 20 MICROSECONDS"),
        ("DISTINCT ONLINE a.x AS x, b.x AS y, c.x AS z", ""),
    ],
    ids=["windows", "changing", "distinct"],
)
def test_groups_of_a_ring_are_those_of_a_tree(select: str, by: str, tmp_path: Path) -> None:
    text = f"SELECT {select} FROM a, b, c WHERE a.k = b.k AND b.k = c.k WITHIN 20 MICROSECONDS {by}"
    streams = [rows_of(place, 60) for place in range(3)]
    tree = plan_query(text, STREAMS)
    found = [
        joined(loop_of(registry.planned(name, {}, tree, 2), name, tmp_path / name), list(map(record_batch, streams)))
        for name in ("ring", "matrix")
    ]
    assert found[0] == found[1] and len(found[0]) > 10


def _answers_nothing(self: step.LaterRound) -> Iterator[pa.RecordBatch]:
    found = [self.meeting.arrived(origin) for origin in range(4)]
    if self.plan.number != 1:
        self.meeting.arrived = lambda origin, role=2: found[origin]  # type: ignore[method-assign]
        yield from _LATER(self)
        return
    self.meeting.arrived = lambda origin, role=2: []  # type: ignore[method-assign]
    yield from _LATER(self)


_LATER = step.LaterRound.results
_ANSWERED = NodeState.answered


def _only_at_rest(self: NodeState, stream: int, *, with_new: bool) -> Any:
    return (*self.at_rest.get(stream, ()), *(self.new.get(stream, ()) if with_new else ()))


def _everything(self: NodeState, stream: int, *, with_new: bool) -> Any:
    return _ANSWERED(self, stream, with_new=True)


def fastest(clocks: Sequence[Any], stream: int) -> int | None:
    return max((clock.mark_us for clock in clocks if clock.mark_us is not None), default=None)


BROKEN: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a round is left out": lambda patch: patch.setattr(step.LaterRound, "results", _answers_nothing),
    "a node does not answer for what it sends on": lambda patch: patch.setattr(NodeState, "answered", _only_at_rest),
    "all new rows are met": lambda patch: patch.setattr(NodeState, "answered", _everything),
    "the fastest stream says what is dead": lambda patch: patch.setattr(keeping, "others_mark_us", fastest),
}


@pytest.mark.parametrize("broken", [None, *BROKEN])
def test_a_broken_ring_is_caught(broken: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if broken is not None:
        BROKEN[broken](monkeypatch)
    streams = [rows_of(place, 30) for place in range(4)]
    conditions = [equal("a", "b"), equal("b", "c"), equal("c", "d")]
    wanted = nested_loop(streams, conditions, (60, 60, 60, 60))
    run = Run(text_of(4, conditions, (60, 60, 60, 60)), tmp_path)
    # One stream is slow: it comes two batches after the others.
    *batches, _, _ = [*cut(streams, 10), [[], [], [], []], [[], [], [], []]]
    for number in range(12):
        fast = batches[number][:3] if number < 10 else [[], [], []]
        run.batch([*fast, batches[number - 2][3] if number >= 2 else []])
    assert (run.found == wanted) == (broken is None)


def check_refused(operator: str, text: str, knobs: dict[str, Any], message: str) -> None:
    """An operator with knobs cannot run a query, and says so."""

    def planned() -> Plan:
        plan = plan_query(f"SELECT ONLINE a.id {text}", STREAMS, main=knobs.get("main"))
        return registry.planned(operator, knobs, plan, 2)

    with pytest.raises(StreamJoinError, match=message):
        planned()


@pytest.mark.parametrize(
    ("text", "knobs", "message"),
    [
        ("FROM a, b WHERE a.k = b.k", {}, "this query has none; add WITHIN, such as WITHIN 10 MINUTES"),
        ("FROM a, b WHERE a.k = b.k WITHIN 10 ROWS", {}, "slices of a ring are spans of time"),
        ("FROM a LEFT JOIN b ON a.k = b.k WITHIN 1 SECONDS", {}, "has no LEFT JOIN; choose biclique, matrix"),
        (
            "FROM a JOIN b ON a.k = b.k LEFT ANTI JOIN c ON a.k = c.k WITHIN 1 SECONDS",
            {},
            "has no LEFT ANTI JOIN; choose biclique",
        ),
        ("FROM a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts", {}, "gives each row one partner at most"),
        ("FROM a, b, c WITHIN 1 SECONDS", {"orders": {"a": ["b"]}}, r"such as \[b, c\]; this is \[b\]"),
        ("FROM a, b, c WITHIN 1 SECONDS", {"orders": {"a": ["b", "b"]}}, r"each other stream once"),
        ("FROM a, b, c WITHIN 1 SECONDS", {"orders": {"a": ["a", "b", "c"]}}, r"each other stream once"),
        ("FROM a, b, c WITHIN 1 SECONDS", {"orders": {"z": ["a", "b"]}}, "no stream z; it reads a, b, c"),
        ("FROM a, b, c WITHIN 1 SECONDS", {"orders": {"a": ["b", "z"]}}, "no stream z; it reads a, b, c"),
        ("FROM a, b, c WITHIN 1 SECONDS", {"orders": ["a"]}, r"write the other streams in order, such as"),
        ("FROM a, b, c WITHIN 1 SECONDS", {"orders": {"a": "b"}}, r"the order for a must be a list of streams, not"),
        ("FROM a, b WHERE a.k = b.k AND a.x < b.x WITHIN 1 SECONDS", {"main": "a.x < b.x"}, "leave operator.main out"),
        ("FROM a, b, c WITHIN 1 SECONDS", {"lengths": {"a": 3}, "nodes": 2}, "from 1 to 2, which the ring has"),
        ("FROM a, b, c WITHIN 1 SECONDS", {"lengths": {"z": 1}}, "no stream z; it reads a, b, c"),
        ("FROM a, b, c WITHIN 1 SECONDS", {"lengths": {"a": "x"}}, "is not a whole number"),
        (f"FROM {', '.join(NAMES)}, a AS j WITHIN 1 SECONDS", {}, "9 streams at most"),
        (
            "FROM a, b, c WITHIN 1 SECONDS",
            {"max_nodes": 3},
            "max_nodes says when nodes are added and taken away",
        ),
        ("FROM a, b, c WITHIN 1 SECONDS", {"adaptive": True, "lengths": {"a": 1}}, "leave one of the two out"),
        (
            "FROM a, b, c WITHIN 1 SECONDS",
            {"adaptive": True, "nodes": 3, "min_nodes": 4, "max_nodes": 2},
            "min_nodes 4 is above max_nodes 2; write a lower min_nodes or a higher max_nodes",
        ),
        (
            "FROM a, b, c WITHIN 1 SECONDS",
            {"adaptive": True, "target": 0.9},
            "the target 0.9 must be below add_above 0.8",
        ),
        ("FROM a, b, c WITHIN 1 SECONDS", {"adaptive": True, "smoothing": 1.5}, "must be at most 1.0, not 1.5"),
        ("FROM a, b, c WITHIN 1 SECONDS", {"adaptive": True, "pair_us": float("nan")}, "at most 1000000000.0, not nan"),
        ("FROM a, b, c WITHIN 1 SECONDS", {"adaptive": True, "hop_us": 0}, "must be at least 0.001, not 0"),
    ],
)
def test_what_a_ring_cannot_do_is_said_with_a_way_out(text: str, knobs: dict[str, Any], message: str) -> None:
    check_refused("ring", text, knobs, message)


def test_the_default_order_follows_equalities_first() -> None:
    text = text_of(4, [below("a", "b"), equal("a", "d"), equal("d", "c"), band("c", "b", 2)], (9, 9, 9, 9))
    plan = registry.planned("ring", {}, plan_query(text, STREAMS), 2)
    assert isinstance(plan, Cascade) and plan.rounds is not None
    orders = ["".join(NAMES[one] for one in order) for order in plan.rounds.orders]
    assert orders == ["dcb", "adc", "dab", "acb"]


def test_each_round_says_what_it_checks(tmp_path: Path) -> None:
    run = Run(text_of(3, [*MIXED, alone("a", 4)], (9, 9, 9)), tmp_path, orders={"c": ["a", "b"]})
    checked = [[str(one) for one in stage.conditions] for stage in run.loop.plan.stages]
    assert [len(one) for one in checked] == [2, 3]
    assert "(a.x >= 4)" in checked[0] and all("a.k = b.k" in " ".join(one) for one in checked)


def test_a_plan_of_a_ring_becomes_joins_of_two_again() -> None:
    tree: Plan = plan_query(text_of(3, CHAIN, (5, 6, 7)), STREAMS)
    ring = registry.planned("ring", {}, tree, 2)
    assert len(ring.stages) == 2 and ring != tree
    assert registry.planned("matrix", {}, ring, 2) == tree


def test_slices_abut_and_what_is_dead_is_not_kept() -> None:
    nodes = [slices.node_of(1_000 - age, 1_000, 100, 4) for age in range(130)]
    assert nodes == sorted(nodes) and set(nodes) == {0, 1, 2, 3}
    assert slices.node_of(0, None, 100, 4) == 0
    assert not expiry.is_dead(900, 1_000, 100) and expiry.is_dead(899, 1_000, 100)
    assert resize.node_of is slices.node_of
