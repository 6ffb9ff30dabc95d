"""The parts `cluster`, `elastic` and `scale`: exact at toy sizes, and what they make of their figures."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import cluster, elastic, machine, scaling
from benchmarks.baselines.duckdb_join import count_and_hash
from benchmarks.cluster_sections import _lost
from benchmarks.data import make_equi, stream_files
from benchmarks.page import page
from benchmarks.parts import PARTS
from benchmarks.scale import Scale
from benchmarks.systems import FailedRowError
from streamjoin.operators.costs.growth import SLOTS_MAX, growth
from streamjoin.operators.costs.slots import (
    LAYOUTS,
    Around,
    Layout,
    StepCosts,
    contrand_layout,
    hash_layout,
    matrix_layout,
    predicted,
    random_layout,
    splitjoin_layout,
)

ROOT = Path(__file__).parents[2]
COSTS = StepCosts(route_ns=200, send_ns=15, store_ns=60, far_store_ns=90, probe_ns=45, far_probe_ns=80, unit_us=300)


def result(part: str, **found: Any) -> dict[str, Any]:
    described = {"part": part, "quick": True, "begun": "2026-01-01T00:00:00+00:00", "busy_before": 0.01, "quiet": True}
    return {**described, "machine": machine.describe(), "seconds": 1.0, **found}


def text_of(part: str, **found: Any) -> str:
    text = page({part: result(part, **found)}, {})
    assert "No figures" not in text
    return " ".join(text.split())


def quick(parts: str, folder: Path) -> dict[str, Any]:
    """What a run of toy sizes leaves, by part, and its page."""
    command = [sys.executable, "-m", "benchmarks", "--quick", "--only", parts, "--out", str(folder / "out")]
    done = subprocess.run(
        [*command, "--data", str(folder / "data")], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-4000:]
    text = (folder / "out" / "docs" / "benchmarks.md").read_text()
    assert "No figures" not in text and "Incomplete" not in text
    return {"page": text, **{name: json.loads((folder / "out" / f"{name}.json").read_text())
                             for name in parts.split(",")}}  # fmt: skip


def test_the_parts_are_there() -> None:
    assert {"cluster": cluster, "elastic": elastic, "scale": scaling}.items() <= PARTS.items()


# -- elastic ------------------------------------------------------------------------------------------------------


def test_files_hold_more_rows_where_the_load_is_higher(tmp_path: Path) -> None:
    make_equi(tmp_path / "d", files=3, rows_per_file=10, keys=5, span_ms_per_file=1000, seed=1, loads=[1, 3, 2])
    assert count_and_hash(tmp_path / "d", 1)[0] >= 0
    sizes = [file.stat().st_size for file in stream_files(tmp_path / "d", "s")]
    assert sizes[0] < sizes[2] < sizes[1]
    marker = (tmp_path / "d" / "marker.json").stat().st_mtime_ns
    make_equi(tmp_path / "d", files=3, rows_per_file=10, keys=5, span_ms_per_file=1000, seed=1, loads=[1, 3, 1])
    assert (tmp_path / "d" / "marker.json").stat().st_mtime_ns > marker, "another load is other data"


def test_64_units_follow_in_the_third_round_and_back() -> None:
    found = elastic.simulated()
    assert [(one["way"], one["rounds"]) for one in found["changes"]] == [("up", 3), ("down", 3)]
    assert found["at_first"] == 64
    up, down = found["changes"]
    assert up["before"] == 64 == down["after"] and up["after"] == down["before"] > 100
    assert max(step["load"] for step in found["steps"]) > elastic.HIGH


def decision(batch: int, **more: Any) -> dict[str, Any]:
    told = {"batch": batch, "side": "R", "group": 0, "wish": 1, "added": [], "drained": [], "left": [], "units": 4}
    return {**told, **more}


def test_changes_are_counted_from_the_round_that_asked_first() -> None:
    size = replace(elastic.QUICK, phases=(2, 5, 5))
    asked = [0, 0, 0, 1, 0, 2, 1, 1, -1, -1]
    rounds = [{"batch": batch, "asked": {"R 0": {"wish": wish}}} for batch, wish in enumerate(asked)]
    decisions = [decision(8, added=[8, 9]), decision(10, wish=-1, drained=[9]), decision(13, wish=0, left=[9])]
    up, down = elastic._changes(decisions, rounds, size, [100] * 14)
    # Those of batches 5, 6 and 7 asked for more; a round in between that asked for nothing began it anew.
    assert (up["rounds"], up["since"], up["batch"], up["count"], up["seconds"]) == (3, 2, 8, 2, 0.6)
    assert (down["rounds"], down["since"], down["count"], down["left"]) == (2, 7, 1, 13)


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_units_come_and_go_and_nothing_stored_moves(tmp_path: Path) -> None:
    found = quick("elastic", tmp_path)
    part = found["elastic"]
    assert set(part["routings"]) == {"hash", "random"}
    for routing in part["routings"].values():
        assert routing["right"] is True
        assert routing["moved_bytes"] == 0 < routing["stored_bytes"]
        up, down = routing["changes"]
        assert up["rounds"] == down["rounds"] == elastic.ROUNDS_TARGET
        assert down["left"] > down["batch"] > up["batch"]
        assert all(phase["adaptive"] and phase["fixed"] for phase in routing["phases"])
    assert "within 3 rounds was the aim: reached" in " ".join(found["page"].split())


def test_units_that_are_late_and_bytes_that_move_are_on_the_page() -> None:
    change = {"way": "up", "rounds": 4, "batch": 9, "since": 5, "seconds": 1.5, "count": 8, "left": None}
    routing = {
        "changes": [change], "moved_bytes": 1024, "right": True, "replication": {"fixed": 2.0, "adaptive": 2.5},
        "phases": [{"name": "units come", "begin": 9, "end": 12, "storing": {"R": 8, "S": 8}, "fixed": 2e6,
                    "adaptive": 1e6}],
        "batch_ms": {"fixed": [9_000] * 4 + [100] * 19 + [300], "adaptive": [9_000] * 4 + [200] * 20},
    }  # fmt: skip
    text = text_of(
        "elastic", workload={"phases": [5, 6, 7], "rows_per_file": 10}, units_at_first=4, rows_in=100, results=7,
        routings={"hash": routing, "random": {**routing, "right": None}},
        simulated={"at_first": 64, "changes": [], "steps": []},
    )  # fmt: skip
    assert "| hash, more units | 4 | 4 | 1.5 | +8 | - | 1,024 | yes |" in text
    assert "| random, more units | 4 | 4 | 1.5 | +8 | - | 1,024 | cut off |" in text
    assert "within 3 rounds was the aim: missed" in text
    assert "those before a window is full: hash 110 and 200 ms, random" in " ".join(text.split())
    assert "| hash: units come | 9 to 11 | 8 + 8 | 2,000,000 | 1,000,000 |" in text


# -- scale --------------------------------------------------------------------------------------------------------

SIZE = replace(scaling.FULL, rows_per_file=20_000)


def timed(layout: Layout, tuples: int, batches: int) -> dict[str, Any]:
    """A run that takes what the costs say."""
    batch = tuples / batches
    seconds = batches * sum(COSTS.seconds(layout, batch, SIZE.live(batch)).values())
    return {"layout": layout.name, "slots": layout.slots, "tuples": tuples, "batches": batches, "seconds": seconds}


def test_costs_of_few_and_of_many_slots_predict_those_between_them() -> None:
    cases = [(layout(slots), batches) for slots in (1, 2) for layout in scaling.ON_SPARK for batches in (1, 10)]
    cases += [(layout(64), 1) for layout in LAYOUTS]
    found = scaling.fit([timed(layout, 1_000_000, batches) for layout, batches in cases], SIZE)
    for layout, slots in itertools.product(LAYOUTS, (4, 16, 32)):
        want, got = (sum(one.seconds(layout(slots), 500_000, 2e6).values()) for one in (COSTS, found))
        assert got == pytest.approx(want, rel=1e-6)


def test_no_step_takes_less_than_nothing() -> None:
    runs = [timed(layout(slots), 1000, 1) for slots in (1, 2) for layout in scaling.ON_SPARK]
    for one in runs:
        one["seconds"] *= 0.3 if one["layout"] == "random" else 1.0
    assert min(vars_of(scaling.fit(runs, SIZE))) >= 0


def on_spark(around: Around, layout: Layout, files: int) -> dict[str, Any]:
    """A job that takes what the model says."""
    tuples = 2 * files * SIZE.rows_per_file
    batch_s = sum(predicted(COSTS, around, layout, tuples, SIZE.live(tuples)).seconds.values())
    return {
        "layout": layout.name, "slots": layout.slots, "files": files, "tuples": tuples, "batch_ms": 1000 * batch_s,
        "results": 7, "error": None,
    }  # fmt: skip


def test_what_is_around_is_found_from_one_slot_and_two() -> None:
    around = Around(batch_ms=60, tuple_ns=400, copy_ns=310)
    layouts = (hash_layout(1), hash_layout(2), random_layout(2))
    runs = [on_spark(around, layout, files) for layout in layouts for files in (1, 6)]
    # The model is not made of these.
    others = [
        on_spark(Around(900, 900, 900), layout, files) for layout, files in ((hash_layout(2), 3), (matrix_layout(2), 6))
    ]
    assert asdict(scaling._around([*runs, *others], COSTS, SIZE)) == pytest.approx(asdict(around))


def test_of_a_job_on_spark_the_median_of_its_turns_counts_and_a_turn_that_fails_is_told() -> None:
    tries = [{**on_spark(Around(60, 400, 0), hash_layout(2), 1), "batch_ms": ms} for ms in (9.0, 500.0, 11.0)]
    assert scaling._median(tries)["batch_ms"] == 11.0
    failed = {**tries[1], "error": "stopped", "batch_ms": None, "results": None}
    assert scaling._median([tries[0], failed, tries[2]]) == failed
    with pytest.raises(FailedRowError, match=r"hash at 2 slots found \[7, 8\] rows"):
        scaling._median([tries[0], {**tries[1], "results": 8}])


def vars_of(costs: StepCosts) -> list[float]:
    return [getattr(costs, name) for name in scaling.STEPS]


def test_hash_goes_on_and_what_every_slot_gets_ends() -> None:
    around = Around(batch_ms=100, tuple_ns=300, copy_ns=0)
    ends = {layout(1).name: asdict(growth(layout, COSTS, around, 1_000_000)) for layout in LAYOUTS}
    assert ends["hash"]["slots"] is None
    assert ends["random"]["slots"] < ends["contrand"]["slots"] < SLOTS_MAX
    assert ends["splitjoin"] == {"slots": ends["splitjoin"]["slots"], "most": "probing"}


@pytest.mark.parametrize(
    "layout", [hash_layout(1), hash_layout(5), contrand_layout(9), random_layout(4), matrix_layout(6),
               splitjoin_layout(3)], ids=lambda layout: f"{layout.name}-{layout.slots}",
)  # fmt: skip
def test_units_of_any_layout_find_what_duckdb_finds_and_send_what_is_predicted(layout: Layout, tmp_path: Path) -> None:
    size = replace(scaling.QUICK, files=4, rows_per_file=3000)
    make_equi(tmp_path / "d", files=4, rows_per_file=3000, keys=3000, span_ms_per_file=1000, seed=5)
    count, _ = count_and_hash(tmp_path / "d", size.window_s * 1_000_000)
    alone = scaling.Alone(tmp_path / "d", size, tmp_path)
    once, found = (alone.run(one, 1) for one in (hash_layout(1), layout))
    assert found["results"] == once["results"] == count > 1000
    assert found["tuples"] == 2 * 2 * 3000 and found["batches"] == 2, "what comes before a window is full is not timed"
    # Blocks have headers, and small segments end where their rows do, so that fewer rows are kept too long.
    assert found["sent_bytes"] / once["sent_bytes"] == pytest.approx(layout.sent, rel=0.1)
    assert found["stored_rows"] == pytest.approx(layout.stored * once["stored_rows"], rel=0.2)


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_the_model_of_scale_stands_beside_what_spark_and_units_took(tmp_path: Path) -> None:
    found = quick("scale", tmp_path)
    part = found["scale"]
    assert all(one["results"] == part["results"] > 0 for one in [*part["spark"], *part["checked"], *part["fitted"]])
    assert {(one["layout"], one["slots"]) for one in part["spark"]} == {
        ("hash", 1), ("hash", 2), ("random", 2), ("matrix", 2), ("splitjoin", 2),
    }  # fmt: skip
    assert all(one["rate"] > 0 and one["predicted"] > 0 for one in part["spark"])
    assert len(part["told"]) == len(LAYOUTS) * len(scaling.TOLD)
    assert "## How joins grow with their slots" in found["page"]


def test_of_each_batch_the_least_time_counts_and_turns_that_differ_are_told(tmp_path: Path) -> None:
    class Slow:
        size = replace(scaling.QUICK, turns=3)
        times = iter([[9.0], [3.0, 1.0], [8.0], [1.0, 3.0], [7.0], [2.0, 2.0], [9.0]])

        def run(self, layout: Layout, files: int) -> dict[str, Any]:
            return {"layout": layout.name, "slots": layout.slots, "results": 7, "batch_s": next(self.times)}

    scale = Scale(quick=True, ends_s=time.monotonic() + 60, data=tmp_path, work=tmp_path)
    found = scaling.in_turns(Slow(), [(matrix_layout(4), 1), (hash_layout(2), 1)], scale)  # type: ignore[arg-type]
    assert [(one["layout"], one["seconds"]) for one in found] == [("matrix", 2.0), ("hash", 7.0)]
    assert found[0]["batch_s"] == [1.0, 1.0]
    with pytest.raises(FailedRowError, match=r"hash at 2 slots found \[7, 8\] rows"):
        scaling._least([{**found[1], "results": rows} for rows in (7, 8)])


def test_predictions_that_are_off_are_counted_and_those_of_the_fit_are_not() -> None:
    spark = [
        {"layout": "hash", "slots": slots, "files": files, "tuples": 10, "rate": 100.0, "predicted": predicted}
        for slots, files, predicted in ((1, 1, 100.0), (1, 3, 110.0), (2, 3, 120.0))
    ]
    checked = [{"layout": "matrix", "slots": 4, "seconds": 2.0, "predicted_s": 1.0, "sent_bytes": 100,
                "predicted_bytes": 90.0}]  # fmt: skip
    text = text_of(
        "scale", workload={"files_per_batch": [1, 6]}, spark=spark, checked=checked, slot_tuples=5, rows_in=9,
        results=3, costs=dict.fromkeys(scaling.STEPS, 1.0), told=[],
        around={"batch_ms": 150.0, "tuple_ns": 300.0, "copy_ns": 250.0},
        ends={"hash": {"slots": None, "most": "reading"}, "random": {"slots": 16, "most": "probing"}},
    )  # fmt: skip
    assert "rates 1 of 2, processor time 0 of 1, bytes 1 of 1 are" in text
    assert "| matrix, 4 | 2.00 | 1.00 | -50% | 0 | 0 | -10% |" in text
    assert "- random: 16 slots; most of a batch of twice as many is probing." in text


# -- cluster ------------------------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.services
@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_cluster_and_a_store_give_the_same_rows_as_two_slots(tmp_path: Path) -> None:
    found = quick("cluster", tmp_path)
    part = found["cluster"]
    assert list(part["places"]) == list(cluster.PLACES)
    for place in part["places"].values():
        assert place["right"] is True and place["rate_measured"] > 0
    kept = [name for name, place in part["places"].items() if place["traffic"]]
    assert kept == [cluster.LOCAL_STORE, cluster.CLUSTER_STORE]
    assert part["places"][cluster.LOCAL_STORE]["served"] == 1.0, "one machine has all that it has written"
    assert part["places"][cluster.CLUSTER_STORE]["served"] >= cluster.SERVED_TARGET, "slots stay on their machines"
    assert part["far"]["right"] is True and len(part["far"]["ratios"]) == 1
    assert part["far"]["turns"][0]["traffic"]["put"] > 0
    for idle in part["idle"].values():
        assert idle["right"] is True and len(idle["file_ms"]) == cluster.QUICK.appended
    lost = part["lost"]
    assert lost["right"] is True and lost["fetched"] > 0 and 0 < lost["killed_after"] < lost["batches"] - 1
    assert "## A cluster, and state in an object store" in found["page"]
    assert "A worker is killed with its disk after" in found["page"]


def place(**more: Any) -> dict[str, Any]:
    told = {"rate_measured": 1e6, "of_local": 1.0, "batch_ms_median": 500, "served": None, "traffic": None,
            "batch_rows": [5, 5], "results": 9, "right": True, "error": None}  # fmt: skip
    return {**told, **more}


def test_what_a_cluster_did_not_reach_and_what_was_not_there_is_on_the_page() -> None:
    traffic = {"served": 3, "fetched": 1, "fetched_bytes": 4 << 20, "put": 8, "put_bytes": 8 << 20, "retries": 0}
    text = text_of(
        "cluster", workload={"rows_per_file": 10, "turns": 2, "idle_s": 60, "appended": 3, "appended_rows": 9},
        window_s=4, rows_in=80, results=9,
        places={
            cluster.LOCAL: place(), cluster.ON_CLUSTER: {"skipped": "no cluster could be started"},
            cluster.CLUSTER_STORE: place(of_local=0.25, served=0.75, traffic=traffic, right=False),
        },
        far={"ratios": [0.55, 0.63], "right": True, "turns": [{"traffic": {"served": 4, "fetched": 0}}]},
        idle={cluster.LOCAL: {"cpu_share": 0.02, "pss_bytes": 1 << 30, "file_ms_median": 250.0, "right": True}},
        lost={"killed_after": 4, "batches": 14, "state_bytes": 100 << 20, "fetched": 7, "fetched_bytes": 60 << 20,
              "share": 1.26, "back_s": 12.34, "batch_s": 1.5, "right": True},
    )  # fmt: skip
    assert "200 MB/s a connection: missed, 59%" in text and "served 100.0% of the openings" in text
    assert "was the aim on a cluster: missed, 75.0%" in text
    assert "| two workers, object store | 1,000,000 | 25% | 500 | 75.0% | 2.0 | 4.0 | NO |" in text
    assert "- two workers, folder was not measured: no cluster could be started." in text
    assert "| local[2], folder | 2.0% | 1,024 | 250 | yes |" in text
    assert "after 5 batches of 14, and one with an empty disk takes its place. What is fetched then is 60 MiB" in text
    assert "125% at most was the aim: missed, 126%. The next commit came 12.3 s after the kill" in text


def test_a_worker_that_could_not_be_lost_is_on_the_page_with_its_reason() -> None:
    assert _lost({}) == ""
    assert _lost({"skipped": "no cluster"}) == "- A worker that is lost was not measured: no cluster.\n"
    assert "it did not go on" in _lost({"error": "it did not go on: batch 5"})


def test_wrong_rows_are_an_error_whoever_counted_them() -> None:
    idle = {"a": {"right": True}}
    wrong = {"x": place(right=False)}
    assert cluster._complaints(wrong, [{}], [True], idle) == {"error": "wrong counts: x"}
    assert cluster._complaints({"x": place()}, [{}], [False], idle) == {"error": "wrong counts: far"}
    assert cluster._complaints({"x": place()}, [{}], [True], {"a": {"right": False}}) == {
        "error": "wrong counts: a, idle"
    }
    assert cluster._complaints({"x": {"skipped": "no jars"}}, [{}], [True], idle) == {"error": "x: no jars"}
    assert cluster._complaints({"x": place()}, [], [], idle) == {"error": "far failed"}
    assert cluster._complaints({"x": place()}, [{}], [True], idle) == {}
