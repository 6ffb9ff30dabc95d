"""What explain tells of the ways to join three streams and more, from samples of the streams."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from streamjoin.errors import InputError
from streamjoin.explain import several
from streamjoin.explain.candidates import Candidates, Way, candidates
from streamjoin.explain.plans import Explanation, explain
from streamjoin.explain.sampling import look
from streamjoin.explain.several import Ways
from streamjoin.explain.shares import shares
from streamjoin.operators.costs.several import Cost, Several
from streamjoin.plan.stages import Cascade
from streamjoin.spec.joinfile import load
from streamjoin.spec.measured import MEASURED_FILE, MeasuredLog
from streamjoin.spec.prepare import Bound, bind
from tests import duck

SPAN_S = 100
CHAIN = "SELECT ONLINE a.id AS a, b.id AS b, c.id AS c FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.j WITHIN 5 SECONDS"
RELATION = "relations:\n  r: {source: csv, path: c.csv}\n"


def write(folder: Path, rows: Mapping[str, int], keys: int = 5, others: int = 400, seed: int = 1) -> None:
    """Streams of so many rows in the same time: of `k` there are few values, of `j` many."""
    chosen = random.Random(seed)
    for name, count in rows.items():
        lines = ["ts,id,k,j,x"]
        for place in range(count):
            ts = int(place * SPAN_S * 1e6 / count)
            k = "" if chosen.random() < 0.1 else chosen.randrange(keys)
            lines.append(f"{ts},{place},{k},{chosen.randrange(others)},{chosen.randrange(100)}")
        (folder / f"{name}.csv").write_text("\n".join(lines))


def bound(folder: Path, query: str, streams: str = "abc", more: str = "") -> Bound:
    entries = [f"  {name}: {{source: csv, path: {name}.csv, time: ts, schema: {{ts: int64, id: int64, k: int64, "
               "j: int64, x: int64}}" for name in streams]  # fmt: skip
    text = "\n".join(["streams:", *entries, "run: {slots: 2, checkpoint: state}", f'query: "{query}"', more])
    (folder / "join.yaml").write_text(text)
    return bind(load(folder / "join.yaml"))


def explained(folder: Path, query: str, streams: str = "abc", more: str = "") -> Explanation:
    return explain(bound(folder, query, streams, more))


def ways_of(found: Explanation) -> Ways:
    assert found.ways is not None
    return found.ways


def test_a_selective_pair_that_is_written_last_is_advised_first(tmp_path: Path) -> None:
    write(tmp_path, {"a": 2000, "b": 2000, "c": 300})
    ways = ways_of(explained(tmp_path, CHAIN, more="operator: {name: biclique}"))
    assert [way.plan for way in ways.found if way.runs] == ["((a, b), c)"]
    assert ways.found[0].plan == "(a, (b, c))"
    assert ways.advice.startswith("operator: {tree: [a, [b, c]]} has ")
    # And what is advised can be written.
    advised = ways_of(explained(tmp_path, CHAIN, more=f"operator: {{{ways.found[0].setting}}}"))
    assert advised.found[0].runs
    assert advised.advice == "the way it runs has the least work of 3 trees and rings"


def test_a_selective_pair_that_is_written_first_stays_first(tmp_path: Path) -> None:
    write(tmp_path, {"a": 2000, "b": 2000, "c": 300}, keys=400, others=5)
    ways = ways_of(explained(tmp_path, CHAIN))
    assert (ways.found[0].plan, ways.found[0].runs) == ("((a, b), c)", True)


@pytest.mark.parametrize(
    ("work_s", "advice"),
    [
        (0.9, "the way it runs has the least work of 3 trees"),
        (1.4, "the way it runs has 1.40 times the least work, which is too near to tell"),
        (1.6, "operator: {tree: [a, [b, c]]} has 62% of the work of the way it runs"),
    ],
)
def test_small_differences_say_nothing(work_s: float, advice: str) -> None:
    other = Way("(a, (b, c))", Cost(work_s=1.0), operator={"tree": ("a", ("b", "c"))})
    runs = Way("((a, b), c)", Cost(work_s=work_s), runs=True, operator={"tree": (("a", "b"), "c")})
    found = sorted((other, runs), key=lambda way: way.cost.work_s)
    of = Candidates(("a", "b", "c"), Several((), ()), 2)
    assert Ways(of, tuple(found), 3, (), None, ()).advice == advice


def test_what_would_have_to_change_is_told(tmp_path: Path) -> None:
    write(tmp_path, {"a": 1000, "b": 1000, "c": 1000}, keys=20, others=60)
    found = explained(tmp_path, CHAIN)
    assert any(
        words.startswith("((a, b), c) would have the least work of trees if ") for words in ways_of(found).changes
    )
    assert set(ways_of(found).changes) <= set(str(found).splitlines())


@pytest.mark.parametrize(
    ("condition", "sql"),
    [
        ("a.k = b.k", "a.k = b.k"),
        ("a.k = b.k AND a.j = b.j", "a.k = b.k AND a.j = b.j"),
        ("ABS(a.x - b.x) <= 5", "ABS(a.x - b.x) <= 5"),
        ("a.k = b.k AND a.x > b.x + 40", "a.k = b.k AND a.x > b.x + 40"),
        ("a.k = b.k AND a.x > 20 AND b.x < 50", "a.k = b.k"),
    ],
)
def test_shares_are_those_of_pairs_in_reach(tmp_path: Path, condition: str, sql: str) -> None:
    write(tmp_path, {"a": 1000, "b": 700, "c": 50}, others=20)
    query = f"SELECT ONLINE a.id AS a, b.id AS b, c.id AS c FROM a, b, c WHERE {condition} AND b.j = c.j "
    query += "WITHIN 3 SECONDS FOR a, 7 SECONDS FOR b, 1 SECOND FOR c"
    file = bound(tmp_path, query)
    assert isinstance(file.plan, Cascade)
    found = shares(file.plan, look(file), file.plan.where)
    of_pair = next(share for share in found if share.streams == {0, 1})
    alone = "a.x > 20 AND b.x < 50" if "20" in condition else "TRUE"
    (count, pairs), = duck.rows(
        f"SELECT COUNT(*) FILTER (WHERE {sql}), COUNT(*) FROM '{tmp_path}/a.csv' a, '{tmp_path}/b.csv' b "
        f"WHERE b.ts - a.ts <= 3e6 AND a.ts - b.ts <= 7e6 AND {alone}"
    )  # fmt: skip
    assert of_pair.matching == pytest.approx(count / pairs, rel=0.1)
    assert of_pair.looked_at >= of_pair.matching


@pytest.mark.parametrize(("reaches", "share"), [((4, 1), 0.2), ((1, 4), 0.0)])
def test_partners_that_come_later_are_in_reach_of_those_before(
    tmp_path: Path, reaches: tuple[int, int], share: float
) -> None:
    """Rows of b have the keys that rows of a had three seconds ago: of five seconds in reach one, or none."""
    write(tmp_path, {"a": 1000, "b": 1000, "c": 1000})
    for name, later in (("a", 0), ("b", 3)):
        lines = [f"{place * 100_000},{place},{place // 10 - later + 5},{place % 7},0" for place in range(1000)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["ts,id,k,j,x", *lines]))
    mine, theirs = reaches
    within = f"WITHIN {mine} SECONDS FOR a, {theirs} SECONDS FOR b, 5 SECONDS FOR c"
    shown = dict(ways_of(explained(tmp_path, CHAIN.replace("WITHIN 5 SECONDS", within))).shares)
    assert shown["(a.k = b.k)"] == pytest.approx(share, rel=0.1, abs=0.001)


def test_shares_of_samples_of_different_times_are_of_any_pairs(tmp_path: Path) -> None:
    write(tmp_path, {"a": 1000, "b": 1000, "c": 1000})
    later = [line.split(",") for line in (tmp_path / "b.csv").read_text().splitlines()]
    moved = [",".join([str(int(ts) + 10**10) if ts != "ts" else ts, *rest]) for ts, *rest in later]
    (tmp_path / "b.csv").write_text("\n".join(moved))
    assert dict(ways_of(explained(tmp_path, CHAIN)).shares)["(a.k = b.k)"] == pytest.approx(0.9 * 0.9 / 5, rel=0.1)


def test_conditions_over_three_streams_are_evaluated(tmp_path: Path) -> None:
    write(tmp_path, {"a": 500, "b": 500, "c": 500})
    query = "SELECT ONLINE a.id AS a FROM a, b, c WHERE a.k = b.k AND a.x + b.x < c.x WITHIN 5 SECONDS"
    shown = dict(ways_of(explained(tmp_path, query)).shares)
    assert shown["((a.x + b.x) < c.x)"] == pytest.approx(1 / 6, rel=0.15)


def test_what_is_predicted_is_what_is_found(tmp_path: Path) -> None:
    """Partial results and results a second, of rates and reaches that differ."""
    write(tmp_path, {"a": 3000, "b": 600, "c": 1200}, keys=10, others=50)
    query = CHAIN.replace("WITHIN 5 SECONDS", "WITHIN 4 SECONDS FOR a, 9 SECONDS FOR b, 2 SECONDS FOR c")
    file = bound(tmp_path, query)
    looked = look(file)
    statistics = looked.statistics()
    assert statistics is not None and isinstance(file.plan, Cascade)
    known = candidates(file.plan, looked, statistics, file.job().operators, 2).known
    tables = ", ".join(f"'{tmp_path}/{name}.csv' {name}" for name in "abc")
    for names, condition in (("ab", "a.k = b.k"), ("bc", "b.j = c.j"), ("abc", "a.k = b.k AND b.j = c.j")):
        reach = {"a": 4, "b": 9, "c": 2}
        newest = f"GREATEST({', '.join(f'{name}.ts' for name in names)})"
        near = " AND ".join(f"{newest} <= {name}.ts + {reach[name]}e6" for name in names)
        used = ", ".join(table for table in tables.split(", ") if table[-1] in names)
        ((count,),) = duck.rows(f"SELECT COUNT(*) FROM {used} WHERE {condition} AND {near}")
        assert known.found_per_s(frozenset(map("abc".index, names))) == pytest.approx(count / SPAN_S, rel=0.2), names


def test_a_ring_is_shown_with_the_terms_of_its_paper(tmp_path: Path) -> None:
    write(tmp_path, {"a": 2000, "b": 2000, "c": 300})
    found = explained(tmp_path, CHAIN, more="operator: {name: ring, nodes: 3, lengths: {c: 1}}")
    ways = ways_of(found)
    (runs,) = (way for way in ways.found if way.runs)
    assert runs.plan == "ring of 3"
    assert ways.advice.startswith("operator: {name: biclique, tree: [a, [b, c]]} has ")
    assert ways.ring is not None and ways.ring.best in range(1, 4) and len(ways.ring.lengths) == 3
    assert "ring: N* is " in str(found) and "N1 " in str(found)
    told = found.to_json()["ways"]
    assert set(told["ring"]["lengths"]) == {"a", "b", "c"}
    assert [way["runs"] for way in told["ways"]].count(True) == 1
    all_nodes = ways_of(explained(tmp_path, CHAIN, more="operator: {name: ring, nodes: 3}"))
    (longer,) = (way for way in all_nodes.found if way.runs)
    assert longer.cost.sent_per_s > runs.cost.sent_per_s


def test_each_way_has_the_rate_that_it_can_take_and_when_it_answers(tmp_path: Path) -> None:
    write(tmp_path, {"a": 2000, "b": 2000, "c": 300})
    found = explained(tmp_path, CHAIN)
    ways = ways_of(found)
    rates = {one.plan: one.rate_per_s for one in ways.found}
    for way in ways.found:
        # Two slots, and 43 rows a second of all streams.
        assert way.rate_per_s == pytest.approx(2 * 43 / way.cost.work_s, rel=0.01)
    assert list(rates.values()) == sorted(rates.values(), reverse=True)
    # T_n of 1 ms: rows of a go through one stage, all others through both.
    tree = next(way for way in ways.found if way.plan == "(a, (b, c))")
    assert tree.cost.response_s == pytest.approx(1e-3 * (1 + 23 / 43), rel=0.01)
    ring = next(way for way in ways.found if way.plan == "ring of 2")
    assert ring.cost.response_s == pytest.approx(0.5e-3 + 3 * 2 * 1e-3)  # equation 5, where rounds take longest
    told = {one["plan"]: one for one in found.to_json()["ways"]["ways"]}
    assert told["ring of 2"]["response_s"] == ring.cost.response_s
    assert told["ring of 2"]["rate_per_s"] == pytest.approx(ring.rate_per_s, rel=1e-4)
    (line,) = (line for line in str(found).splitlines() if line.startswith("ring of 2  "))
    assert line.split()[-3:] == [f"{ring.rate_per_s:,.0f}", "6.5", "ms"]
    assert "rows/s are what 2 slots can take" in str(found) and "a batch adds its own length" in str(found)


def test_a_way_on_fewer_nodes_than_slots_keeps_these_alone_busy(tmp_path: Path) -> None:
    write(tmp_path, {"a": 2000, "b": 2000, "c": 300})
    one, three = (
        next(way for way in ways_of(explained(tmp_path, CHAIN, more=f"operator: {{name: ring, nodes: {nodes}}}")).found
             if way.runs) for nodes in (1, 3)
    )  # fmt: skip
    assert one.rate_per_s == pytest.approx(43 / one.cost.work_s, rel=0.01)
    assert three.rate_per_s == pytest.approx(2 * 43 / three.cost.work_s, rel=0.01)


def test_a_ring_is_warned_of_where_nodes_send_more_than_they_give(tmp_path: Path) -> None:
    write(tmp_path, {"a": 2000, "b": 2000, "c": 300})
    ring = "operator: {name: ring, nodes: 3, adaptive: true, max_nodes: 9"
    latency, rate = (str(explained(tmp_path, CHAIN, more=ring + more)) for more in ("}", ", objective: rate}"))
    assert "ring: warning: nodes are sent 47 rows and partial results for each row that comes in" in latency
    assert "and there are 3 nodes" in latency and "and there are 9 nodes" in rate
    assert "best for latency, so N* of them, of 9 at most" in latency
    assert "best for output rate, so all of them, of 9 at most" in rate
    assert "all of them for the output rate" in rate and "for the output rate" not in latency
    # Nobody is warned of a ring that does not run, and a number that is given is for nothing.
    assert "ring: warning" not in str(explained(tmp_path, CHAIN))
    assert "are best for" not in str(explained(tmp_path, CHAIN, more="operator: {name: ring}"))
    told = explained(tmp_path, CHAIN, more=ring + "}").to_json()["ways"]["ring"]["traffic"]
    assert told["nodes"] == 3 and told["sent"] == pytest.approx(47, abs=1) and told["found"] < 2
    # Where a row matches more than there are nodes, what goes round is the smaller part.
    write(tmp_path, {"a": 2000, "b": 2000, "c": 2000}, others=3)
    many = str(explained(tmp_path, CHAIN, more="operator: {name: ring, nodes: 2}"))
    assert "ring: with 2 nodes on as many processors" in many and "warning" not in many


def test_an_objective_is_of_an_adaptive_ring_and_auto_does_not_take_it(tmp_path: Path) -> None:
    write(tmp_path, {"a": 200, "b": 200, "c": 30})
    for name, message in (
        ("{name: ring, objective: rate}", "write adaptive: true beside it"),
        ("{name: ring, adaptive: true, objective: speed}", "is not a valid objective; use latency, rate"),
        ("{objective: rate}", "objective"),
        ("{name: biclique, objective: rate}", "objective"),
    ):
        with pytest.raises(InputError, match=message):
            bound(tmp_path, CHAIN, more=f"operator: {name}")


def test_a_ring_that_has_run_is_shown_by_what_its_steps_took(tmp_path: Path) -> None:
    write(tmp_path, {"a": 2000, "b": 2000, "c": 300})
    ring = "operator: {name: ring, nodes: 3, adaptive: true, max_nodes: 20, hop_us: 10}"
    assumed = explained(tmp_path, CHAIN, more=ring)
    assert "ring: set: T_n 10 us; assumed: T_j 0.016 us" in str(assumed)
    (tmp_path / "state").mkdir()
    log = MeasuredLog().with_batch(4, {"join": 2e-3, "hop": 7.0})
    (tmp_path / "state" / MEASURED_FILE).write_text(log.to_text())
    found = explained(tmp_path, CHAIN, more=ring)
    assert "ring: measured: T_j 2 ms; set: T_n 10 us; assumed: T_s" in str(found)
    before, now = ways_of(assumed).ring, ways_of(found).ring
    assert before is not None and now is not None and before.best < now.best == 20
    assert now.bandwidth_bytes_per_s < before.bandwidth_bytes_per_s
    times = {one["symbol"]: (one["us"], one["origin"]) for one in found.to_json()["ways"]["ring"]["times"]}
    assert times["T_j"] == (pytest.approx(2000), "measured") and times["T_n"] == (pytest.approx(10), "set")
    # Ways are compared with one another by what is assumed of all.
    assert ways_of(assumed).found == ways_of(found).found


@pytest.mark.parametrize(("operator", "shown"), [("aligned", "aligned on 3"), ("coordinated", "coordinated on 3")])
def test_baselines_are_shown_and_never_advised(operator: str, shown: str, tmp_path: Path) -> None:
    write(tmp_path, {"a": 2000, "b": 2000, "c": 300})
    by_default = {way.plan: way for way in ways_of(explained(tmp_path, CHAIN)).found}
    assert by_default[f"{operator} on 2"].is_baseline and not by_default["ring of 2"].is_baseline
    found = explained(tmp_path, CHAIN, more=f"operator: {{name: {operator}, nodes: 3}}")
    ways = ways_of(found)
    (runs,) = (way for way in ways.found if way.runs)
    assert runs.plan == shown and runs.cost.memory_bytes > by_default["ring of 2"].cost.memory_bytes
    assert ways.advice.startswith(("operator: {name: biclique, tree: ", "the way it runs is a baseline; operator: "))
    assert "tree: [a, [b, c]]}" in ways.advice
    # However little it costs, something else is advised, and chosen.
    cheap = tuple(replace(way, cost=Cost(work_s=1e-9)) if way.is_baseline else way for way in ways.found)
    assert "tree: [a, [b, c]]}" in replace(ways, found=cheap).advice


def test_an_order_of_a_ring_that_meets_few_first_is_advised(tmp_path: Path) -> None:
    write(tmp_path, {"a": 2000, "b": 2000, "c": 300})
    ways = ways_of(explained(tmp_path, CHAIN, more="operator: {name: ring}"))
    (other,) = (way for way in ways.found if "other orders" in way.plan)
    assert "b: [c, a]" in other.setting
    written = ways_of(explained(tmp_path, CHAIN, more=f"operator: {{{other.setting}}}"))
    (runs,) = (way for way in written.found if way.runs)
    assert runs.cost.work_s == pytest.approx(other.cost.work_s)


def test_without_a_window_there_is_no_ring_and_an_hour_is_stored(tmp_path: Path) -> None:
    write(tmp_path, {"a": 100, "b": 100, "c": 100})
    ways = ways_of(explained(tmp_path, CHAIN.replace(" WITHIN 5 SECONDS", "")))
    assert ways.ring is None and len(ways.found) == 3
    assert "ring" not in str(ways)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT ONLINE a.id AS a FROM a JOIN b ON a.k = b.k WITHIN 5 SECONDS", "there is one way to join two streams"),
        ("SELECT ONLINE a.id AS a FROM a LEFT JOIN b ON a.k = b.k JOIN c ON a.j = c.j WITHIN 5 SECONDS",
         "outer, semi and anti joins are joined as they are written"),
        ("SELECT ONLINE a.id AS a FROM a JOIN b ON a.k = b.k JOIN r ON b.j = r.j JOIN c ON a.j = c.j WITHIN 5 SECONDS",
         "relations are joined where a condition leads to them"),
    ],
)  # fmt: skip
def test_where_there_is_one_way_nothing_is_shown(tmp_path: Path, query: str, reason: str) -> None:
    write(tmp_path, {"a": 100, "b": 100, "c": 100})
    found = explained(tmp_path, query, more=RELATION if "JOIN r" in query else "")
    assert several.refusal(found.plan) == reason
    assert found.ways is None and found.to_json()["ways"] is None


def test_nothing_is_told_of_streams_that_nobody_can_look_at(tmp_path: Path) -> None:
    write(tmp_path, {"a": 100, "b": 100, "c": 0})
    found = explained(tmp_path, CHAIN)
    assert found.ways is None
    assert "its costs need the streams' rates, not known yet" in str(found)


def test_groups_of_several_streams_have_ways_too(tmp_path: Path) -> None:
    write(tmp_path, {"a": 2000, "b": 2000, "c": 300})
    query = CHAIN.replace("SELECT ONLINE a.id AS a, b.id AS b, c.id AS c", "SELECT ONLINE a.k AS k, COUNT(*) AS n")
    ways = ways_of(explained(tmp_path, f"{query} GROUP BY a.k EMIT EVERY 5 SECONDS"))
    assert ways.found[0].plan == "(a, (b, c))"


@pytest.mark.parametrize("operator", ["ring", "aligned", "coordinated"])
def test_an_index_that_a_round_cannot_have_is_refused_before_the_first_batch(operator: str, tmp_path: Path) -> None:
    write(tmp_path, {"a": 20, "b": 20, "c": 20})
    query = "SELECT ONLINE a.id FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.j WITHIN 100 MICROSECONDS"
    bound(tmp_path, query, more=f"operator: {{name: {operator}, index: hash}}")
    with pytest.raises(InputError) as refusal:
        bound(tmp_path, query, more=f"operator: {{name: {operator}, index: hash, orders: {{a: [c, b]}}}}")
    assert str(refusal.value) == (
        "operator.index: a hash index needs an equality between the two streams, and "
        f"{operator} joins what a brings with c without one; leave it out, or write other orders"
    )
