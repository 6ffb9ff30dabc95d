"""In which order `auto` joins three streams and more: chosen before the first start, kept with the checkpoint."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from streamjoin.errors import InputError
from streamjoin.explain import drift as drift_module
from streamjoin.explain import order
from streamjoin.explain.candidates import Candidates
from streamjoin.explain.drift import Watch, drift
from streamjoin.explain.order import ordered
from streamjoin.explain.plans import explain, summary
from streamjoin.operators import ordering
from streamjoin.operators.ordering import Candidate, Known, choice
from streamjoin.plan.stages import Cascade
from streamjoin.spark.batchreport import BatchReport
from streamjoin.spark.checkpoint import opened
from streamjoin.spark.rates import Rates
from streamjoin.spec.joinfile import load
from streamjoin.spec.outputs import store_sink
from streamjoin.spec.prepare import Bound, bind
from tests.unit.test_ways import CHAIN, RELATION, bound, write

FEW_OF_C = {"a": 2000, "b": 2000, "c": 300}
STORE = "results: {store: sqlite, path: results.db}"


def shape_of(found: Bound) -> str:
    assert isinstance(found.plan, Cascade)
    return "ring" if found.plan.rounds else found.plan.shape


def test_brackets_stay_where_no_other_order_is_clearly_better(tmp_path: Path) -> None:
    write(tmp_path, {"a": 300, "b": 300, "c": 300})
    query = "SELECT ONLINE a.id AS a FROM a JOIN (b JOIN c ON b.k = c.k) ON a.k = b.k WITHIN 5 SECONDS"
    found = ordered(bound(tmp_path, query))
    assert shape_of(found) == "(a, (b, c))" and found.order is not None and found.order.tree == ("a", ("b", "c"))
    flat = query.replace("a JOIN (b JOIN c ON b.k = c.k) ON a.k = b.k", "a JOIN b ON a.k = b.k JOIN c ON b.k = c.k")
    assert shape_of(ordered(bound(tmp_path, flat))) == "((a, b), c)"


def start(found: Bound) -> None:
    """What a start does with a checkpoint before its first batch."""
    with opened(found.job()):
        pass


def again(folder: Path) -> Bound:
    return ordered(bind(load(folder / "join.yaml")))


def test_the_first_start_chooses_and_later_ones_keep_it_whatever_the_rates_are(tmp_path: Path) -> None:
    write(tmp_path, FEW_OF_C)
    first = ordered(bound(tmp_path, CHAIN))
    assert shape_of(first) == "(a, (b, c))"
    assert first.order is not None and "of the work of the order of FROM at 2" in first.order.reason
    start(first)
    # Another start would choose otherwise.
    write(tmp_path, FEW_OF_C, keys=400, others=5)
    later = bind(load(tmp_path / "join.yaml"))
    assert shape_of(later) == "(a, (b, c))"
    assert later.order is not None and later.order.reason == first.order.reason
    assert ordered(later) is later
    start(later)
    assert "(a, (b, c)), chosen by auto: " in str(explain(later))
    (tmp_path / "state" / "job.json").unlink()
    assert shape_of(again(tmp_path)) == "((a, b), c)"


def test_a_ring_that_was_chosen_is_kept_with_its_orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, FEW_OF_C)
    monkeypatch.setattr(ordering, "CLEAR", 1e9)
    monkeypatch.setattr(ordering, "CLEAR_OTHER", 1.0)
    first = ordered(bound(tmp_path, CHAIN))
    assert isinstance(first.plan, Cascade) and first.plan.rounds is not None and first.operator == "ring"
    assert first.order is not None and first.order.orders["b"] == ["c", "a"]
    start(first)
    later = again(tmp_path)
    assert isinstance(later.plan, Cascade) and later.plan.rounds is not None
    assert later.plan.rounds.orders == first.plan.rounds.orders
    assert "chosen by auto; " in str(explain(later))
    start(later)


def test_nothing_known_joins_in_the_order_of_from_and_stays_so(tmp_path: Path) -> None:
    write(tmp_path, {"a": 100, "b": 100, "c": 0})
    first = ordered(bound(tmp_path, CHAIN))
    assert shape_of(first) == "((a, b), c)"
    assert "the rates of the streams are not known before the start" in str(explain(first))
    start(first)
    write(tmp_path, FEW_OF_C)
    assert shape_of(again(tmp_path)) == "((a, b), c)"
    start(again(tmp_path))


def test_a_checkpoint_from_before_there_was_a_choice_stays_in_the_order_of_from(tmp_path: Path) -> None:
    write(tmp_path, FEW_OF_C)
    start(bound(tmp_path, CHAIN))
    path = tmp_path / "state" / "job.json"
    found = json.loads(path.read_text())
    assert found.pop("order") is None
    path.write_text(json.dumps(found))
    later = again(tmp_path)
    assert shape_of(later) == "((a, b), c)"
    assert "that of FROM, with which the checkpoint was begun" in str(explain(later))
    start(later)


@pytest.mark.parametrize(
    ("more", "shape"),
    [
        ("operator: {tree: [[a, c], b]}", "((a, c), b)"),
        ("operator: {name: biclique}", "((a, b), c)"),
        ("operator: {name: ring}", "ring"),
    ],
)
def test_what_the_join_file_says_is_what_runs(more: str, shape: str, tmp_path: Path) -> None:
    write(tmp_path, FEW_OF_C)
    found = bound(tmp_path, CHAIN, more=more)
    assert ordered(found) is found and found.order is None
    assert shape_of(found) == shape
    assert f"order       {'that of FROM' if 'biclique' in more else 'as the join file says'}" in str(explain(found))


def test_another_tree_is_refused_with_the_checkpoint_of_the_one_that_was_chosen(tmp_path: Path) -> None:
    write(tmp_path, FEW_OF_C)
    start(ordered(bound(tmp_path, CHAIN)))
    start(bound(tmp_path, CHAIN, more="operator: {tree: [a, [b, c]]}"))
    with pytest.raises(InputError, match="belongs to another join, with other tree"):
        start(bound(tmp_path, CHAIN, more="operator: {tree: [[a, b], c]}"))


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (CHAIN.replace("a JOIN b", "a LEFT JOIN b"), "outer, semi and anti joins are joined as they are written"),
        (CHAIN.replace("JOIN c", "LEFT JOIN c"), "outer, semi and anti joins are joined as they are written"),
        ("SELECT ONLINE a.id AS a FROM a LEFT SEMI JOIN b ON a.k = b.k JOIN c ON a.j = c.j WITHIN 5 SECONDS",
         "outer, semi and anti joins are joined as they are written"),
        ("SELECT ONLINE a.id AS a FROM a JOIN b ON a.k = b.k ASOF JOIN c ON b.j = c.j AND a.ts >= c.ts "
         "WITHIN 5 SECONDS", "an as-of join stands where it is written"),
        ("SELECT ONLINE a.id AS a FROM a JOIN b ON a.k = b.k JOIN r ON b.j = r.j JOIN c ON a.j = c.j WITHIN 5 SECONDS",
         "relations are joined where a condition leads to them"),
    ],
)  # fmt: skip
def test_what_has_one_order_is_not_reordered(query: str, reason: str, tmp_path: Path) -> None:
    write(tmp_path, FEW_OF_C)
    found = bound(tmp_path, query, more=RELATION if "JOIN r" in query else "")
    assert not order.chooses(found)
    assert ordered(found) is found
    assert f"as it is written: {reason}" in str(explain(found))


def test_two_queries_that_share_a_job_are_left_as_they_are(tmp_path: Path) -> None:
    write(tmp_path, FEW_OF_C)
    asked = bound(tmp_path, "SELECT ONLINE a.id AS a FROM a JOIN b ON a.k = b.k WITHIN 5 SECONDS")
    text = (tmp_path / "join.yaml").read_text()
    one = text[text.index("query: ") + len("query: ") :].strip()
    other = one.replace("5 SECONDS", "9 SECONDS")
    (tmp_path / "join.yaml").write_text(
        text.replace(f"query: {one}", f"queries: {{near: {{query: {one}}}, far: {{query: {other}}}}}")
    )
    shared = bind(load(tmp_path / "join.yaml"))
    for found in (asked, shared):
        assert ordered(found) is found and found.order is None
    start(shared)
    assert ordered(bind(load(tmp_path / "join.yaml"))).order is None


def test_an_order_in_which_an_index_cannot_be_used_is_not_chosen(tmp_path: Path) -> None:
    """By hash: every join of a tree needs an equality, and there is none between b and c."""
    write(tmp_path, FEW_OF_C, keys=2)
    query = CHAIN.replace("b.j = c.j", "b.j = c.x - 5 * c.x AND a.k = c.k").replace("b.j =", "b.j <")
    assert shape_of(ordered(bound(tmp_path, query))) == "(a, (b, c))"
    with pytest.raises(InputError, match="hash"):
        bound(tmp_path, query, more="operator: {index: hash, tree: [a, [b, c]]}")
    by_hash = ordered(bound(tmp_path, query, more="operator: {index: hash}"))
    assert shape_of(by_hash) in ("((a, b), c)", "((a, c), b)")


def test_knobs_of_joins_of_two_leave_rings_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, FEW_OF_C)
    monkeypatch.setattr(ordering, "CLEAR", 1e9)
    monkeypatch.setattr(ordering, "CLEAR_OTHER", 0.0)
    assert shape_of(ordered(bound(tmp_path, CHAIN))) == "ring"
    assert shape_of(ordered(bound(tmp_path, CHAIN, more="operator: {r_units: 2}"))) == "((a, b), c)"


def test_validate_says_what_will_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, FEW_OF_C)
    monkeypatch.setattr(ordering, "CLEAR", 1e9)
    monkeypatch.setattr(ordering, "CLEAR_OTHER", 1.0)
    assert "by ring" in summary(ordered(bound(tmp_path, CHAIN)))


@pytest.mark.parametrize("operator", ["{}", "{tree: [[a, c], b]}", "{tree: [a, [b, c]]}", "{name: ring}"])
def test_a_store_is_told_the_same_key_in_every_order(operator: str, tmp_path: Path) -> None:
    write(tmp_path, FEW_OF_C)
    found = {}
    for more in ("{}", operator):
        one = bound(tmp_path, CHAIN.replace("b.j = c.j", "a.x < c.x"), more=f"operator: {more}\n{STORE}")
        found[more] = store_sink(one.file, one.plan).description
    assert found[operator] == found["{}"]
    assert found[operator].key_name is not None and found[operator].code.ordered


def known(*works: tuple[float, bool]) -> Known:
    """The first is the order of FROM."""
    return Known(
        "1 a/s", [Candidate(place, f"way {place}", work, place == 0, tree) for place, (work, tree) in enumerate(works)]
    )


@pytest.mark.parametrize(
    ("works", "number"),
    [
        ([(1.0, True), (1.2, True)], None),
        ([(1.4, True), (1.0, True)], None),
        ([(1.6, True), (1.0, True)], 1),
        ([(1.6, True), (1.0, False)], None),
        ([(2.1, True), (1.0, False)], 1),
        ([(1.9, True), (1.0, False), (1.2, True)], 2),
        ([], None),
    ],
)
def test_the_margin_has_to_be_clear(works: list[tuple[float, bool]], number: int | None) -> None:
    assert choice(known(*works)).number == number


def test_what_predictions_are_made_of_can_be_written_down(tmp_path: Path) -> None:
    write(tmp_path, FEW_OF_C)
    first = ordered(bound(tmp_path, CHAIN))
    assert first.order is not None and first.order.costs is not None
    start(first)
    later = again(tmp_path).order
    assert later is not None and later.costs is not None
    of = Candidates.from_json(later.costs)
    (best, *_) = of.ways(4, "")
    assert best.plan == later.costs["chosen"] == "(a, (b, c))"
    assert of == Candidates.from_json(first.order.costs)


def test_other_rates_make_another_order_better_and_it_is_said(tmp_path: Path) -> None:
    """Of few rows of a and many of c, the pair of a and b is the one to join first."""
    write(tmp_path, FEW_OF_C, keys=60, others=60)
    one = ordered(bound(tmp_path, CHAIN))
    assert shape_of(one) == "(a, (b, c))"
    same = drift(one.order, {"a": 20.0, "b": 20.0, "c": 3.0})
    assert same is not None and same.better is None
    assert str(same).endswith("at today's 20 a/s, 20 b/s, 3 c/s no other order is clearly better")
    other = drift(one.order, {"a": 2.0, "b": 20.0, "c": 400.0})
    assert other is not None and other.better is not None
    assert other.better.plan == "((a, b), c)" and other.times > 1.5
    told = other.to_json()
    assert told["better"]["operator"] == {"name": "biclique", "tree": (("a", "b"), "c")}
    assert told["text"].startswith("(a, (b, c)) was chosen for 20 a/s, 20 b/s, 3 c/s; at today's 2 a/s, ")
    # What is said can be written.
    (tmp_path / "other").mkdir()
    write(tmp_path / "other", FEW_OF_C)
    assert shape_of(bound(tmp_path / "other", CHAIN, more=f"operator: {{{other.better.setting}}}")) == "((a, b), c)"
    assert drift(one.order, {"a": 2.0, "b": 20.0}) is None
    assert drift(None, {"a": 2.0, "b": 20.0, "c": 400.0}) is None


def test_a_ring_that_was_chosen_is_compared_with_its_own_orders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, FEW_OF_C)
    monkeypatch.setattr(ordering, "CLEAR", 1e9)
    monkeypatch.setattr(ordering, "CLEAR_OTHER", 1.0)
    one = ordered(bound(tmp_path, CHAIN))
    found = drift(one.order, {"a": 20.0, "b": 20.0, "c": 3.0})
    assert found is not None and found.plan == "ring of 2" and found.better is not None
    assert found.better.operator == {"name": "biclique", "tree": ("a", ("b", "c"))}


def test_rates_are_those_of_event_time_after_the_first_batch() -> None:
    rates = Rates()
    assert rates.per_s(("a", "b")) == {}
    for number in range(4):
        counts = {"rows": 100 if number else 5_000, "dropped_by_selection": 20}
        latest = {0: 2_000_000 * number} if number < 3 else {}
        rates.add(BatchReport(number, 0, [], {0: counts, 1: counts}, {}, {**latest, 1: 7}))
    assert rates.per_s(("a", "b")) == {"a": 40.0}


def test_a_watch_looks_now_and_then(tmp_path: Path) -> None:
    write(tmp_path, FEW_OF_C)
    now_s, looks = [0.0], []

    def rates() -> dict[str, float]:
        looks.append(now_s[0])
        return {} if len(looks) == 1 else {"a": 20.0, "b": 20.0, "c": 3.0}

    watch = Watch(ordered(bound(tmp_path, CHAIN)).order, 30.0, lambda: now_s[0])
    assert watch.look(rates) is None
    watch.settle()
    for now_s[0] in (0.5, 1.0, 2.0, 30.0, 31.0, 40.0):
        said = watch.look(rates)
        watch.settle()
    assert looks == [0.0, 1.0, 31.0]
    assert said is not None and said["better"] is None and set(said["rates"]) == set("abc")
    assert Watch(None).look(rates) is None and len(looks) == 3


def test_who_commits_a_batch_does_not_wait_for_a_prediction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of nine streams takes more than a second."""
    write(tmp_path, FEW_OF_C)
    predicts, goes_on = threading.Event(), threading.Event()
    real, asked = drift_module.drift, []

    def slow(*arguments: Any) -> Any:
        asked.append(arguments)
        predicts.set()
        assert goes_on.wait(60)
        return real(*arguments)

    monkeypatch.setattr(drift_module, "drift", slow)
    watch = Watch(ordered(bound(tmp_path, CHAIN)).order, 600.0)
    rates = {"a": 20.0, "b": 20.0, "c": 3.0}
    assert watch.look(lambda: rates) is None and predicts.wait(60)
    assert watch.look(lambda: rates) is None and len(asked) == 1, "one is made at a time"
    rates["c"] = 0.0
    goes_on.set()
    watch.settle()
    said = watch.look(lambda: rates)
    assert said is not None and said["rates"]["c"] == 3.0, "rates are those of the look"
