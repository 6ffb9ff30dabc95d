"""Counts add up however reports are cut and merged; nothing waits for a report."""

from __future__ import annotations

import random
from typing import Any

from sqlalchemy import select

from backend.catalog.database import Catalog
from backend.catalog.models import Report
from streamjoin.spark.batchreport import BatchReport
from worker.reports import COUNTS, COUNTS_BY_NAME, Reporter, merged, of_batch, quantiles
from worker.thin import DAY_US, REPORTS_S, thin

from .jobs import add_job, reports_of

S = 1_000_000
NOW = 1_700_000_040 * S
NAMES = ("auction", "bid")


def unit(number: int, rng: random.Random) -> dict[str, Any]:
    return {
        "unit": number, "label": f"r{number}", "comparisons": rng.randrange(1000), "search_steps": rng.randrange(1000),
        "results": rng.randrange(100),
        "received": {"store": rng.randrange(9), "probe": rng.randrange(9), "both": 0},
        "received_bytes": {"store": rng.randrange(999), "probe": rng.randrange(999), "both": 0},
        "stored_rows": [rng.randrange(99), rng.randrange(99)], "stored_bytes": rng.randrange(10**6), "segments": 3,
        "late": [rng.randrange(3), 0], "expired_rows": rng.randrange(5), "marks_us": [NOW - number, None],
        "open_rows": rng.randrange(50), "unmatched_rows": rng.randrange(20), "late_after_final": rng.randrange(4),
        "seconds": {"probe": 0.1, "store": 0.01, "expire": 0.0},
    }  # fmt: skip


def batch(number: int, rng: random.Random) -> BatchReport:
    return BatchReport(
        number, rng.randrange(200), [unit(0, rng), unit(1, rng)],
        {0: {"rows": rng.randrange(500), "dead_letters": 1}, 1: {"rows": rng.randrange(500), "null_keys": 2}},
        {"units": 0.1, "committed": 2.0}, {0: NOW - 2 * S},
    )  # fmt: skip


class Clock:
    """Seconds that pass only when they are told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def reporter(catalog: Catalog, job: str, clock: Clock) -> Reporter:
    return Reporter(catalog, job, 1, NAMES, steady_s=clock)


def test_units_of_several_stages_come_stage_by_stage() -> None:
    """Slots tell of them as they are done, and a later floor's after all of an earlier one's."""
    rng = random.Random(3)
    there = [(0, 0), (3, 1), (5, 2), (1, 0), (2, 1), (4, 2)]
    told = [{**unit(number, rng), "stage": stage, "label": f"{stage + 1}.R{number}"} for number, stage in there]
    found = of_batch(BatchReport(0, 1, told, {}, {"units": 0.1}, {}), NAMES, NOW)["units"]
    assert [(one["stage"], one["unit"]) for one in found] == [(1, 0), (1, 1), (2, 2), (2, 3), (3, 4), (3, 5)]
    assert [one["label"] for one in found][:2] == ["1.R0", "1.R1"]


def chain_batch(handed_on: list[int], loads: list[int]) -> BatchReport:
    """A chain in the second stage, which stores the second stream, behind a unit that stores both and hands on none."""
    rng = random.Random(4)
    first = {**unit(0, rng), "stage": 0, "stored_rows": [7, 90]}
    chain = [
        {**unit(number, rng), "stage": 1, "stored_rows": [0, load],
         "forwarded": {"blocks": 1, "tuples": tuples, "bytes": 10 * tuples}}
        for number, (tuples, load) in enumerate(zip(handed_on, loads, strict=True), 1)
    ]  # fmt: skip
    return BatchReport(0, 1, [first, *chain], {}, {"units": 0.1}, {})


def test_what_a_chain_hands_on_adds_up_and_its_imbalance_is_the_last() -> None:
    given = [chain_batch([3, 0], [4, 2]), chain_batch([1, 2], [5, 1])]
    bodies = [of_batch(one, NAMES, NOW) for one in given]
    assert [body["forwarded"]["tuples"] for body in bodies] == [3, 3]
    assert [body["imbalance"] for body in bodies] == [{"bid": 0.3333}, {"bid": 0.6667}], "of the chain alone"
    found = merged(bodies)
    assert found["forwarded"] == {"blocks": 4, "tuples": 6, "bytes": 60} and found["imbalance"] == {"bid": 0.6667}
    silent = of_batch(batch(1, random.Random(5)), NAMES, NOW)
    assert "forwarded" not in silent and "imbalance" not in silent
    found = merged([*bodies, silent])
    assert found["forwarded"]["tuples"] == 6 and found["imbalance"] == {"bid": 0.6667}, "a span in which it ended"


def test_a_report_tells_of_its_span(catalog: Catalog) -> None:
    clock, rng = Clock(), random.Random(1)
    job = add_job(catalog)
    reports = reporter(catalog, job, clock)
    given = [batch(number, rng) for number in range(3)]
    reports.begin()
    clock.now_s += 2.0
    for one in given:
        reports.add(one)
        reports.took(100.0 * (one.batch + 1))
    clock.now_s += 0.7
    reports.write()
    (written,) = reports_of(catalog, job)
    body = written.body
    assert (written.generation, written.span_s) == (1, 1)
    assert (body["batches"], body["batch"], body["seconds"]) == (3, 2, 2.0)
    tuples = sum(one.intake[side]["rows"] for one in given for side in (0, 1))
    assert body["tuples_per_second"] == tuples / 2
    assert body["results"] == sum(one.results for one in given)
    assert body["rho"] == body["results"] / (body["comparisons"] + body["search_steps"])
    assert body["dead_letters"] == {"auction": 3, "bid": 0}
    assert body["null_keys"] == {"auction": 0, "bid": 6}
    assert body["marks_us"] == {"auction": NOW, "bid": None}
    assert body["live_tuples"]["auction"] == sum(unit["stored_rows"][0] for unit in given[-1].units)
    assert body["batch_ms"] == {"p50": 200.0, "p95": 290.0, "max": 300.0}
    assert set(body["lag_ms"]) == {"auction"}
    assert [one["unit"] for one in body["units"]] == [0, 1]
    assert body["units"][0]["comparisons"] == sum(one.units[0]["comparisons"] for one in given)


THREE = ("a", "b", "c")
STAGES = {
    1: {"inputs": [{"stream": "a"}, {"stream": "b"}], "kind": "LEFT"},
    2: {"inputs": [{"stage": 1}, {"stream": "c"}], "kind": "INNER"},
}


def staged(number: int, rng: random.Random) -> BatchReport:
    """A batch of a join of three streams: two units of the first stage, and one of the second."""
    units = []
    for place, (stage, flow_rows) in enumerate(((0, 0), (0, 0), (1, rng.randrange(1, 9)))):
        one = unit(place, rng)
        stored = [5, 6, 0] if stage == 0 else [0, 0, 7]
        marks = [NOW, None, None] if stage == 0 else [None, None, NOW - 1]
        units.append({**one, "stage": stage, "flow_rows": flow_rows, "stored_rows": stored, "late": [0, 1, 2],
                      "marks_us": marks})  # fmt: skip
    intake = {0: {"rows": 10}, 1: {"rows": 20}, 2: {"rows": 30}}
    return BatchReport(number, rng.randrange(200), units, intake, {"units": 0.1, "committed": 2.0}, {})


def test_a_report_tells_which_units_there_are_and_every_decision(catalog: Catalog) -> None:
    clock, rng = Clock(), random.Random(7)
    reports = reporter(catalog, "job_any", clock)
    decision = {"plan": 1, "batch": 2, "at_us": NOW, "side": "R", "group": 0, "units": 1, "bytes": 900, "load": 0.9,
                "wish": 1, "added": [2], "drained": [], "left": []}  # fmt: skip
    for number in range(3):
        one = batch(number, rng)
        asked = {"R 0": {"load": 0.91234, "wish": 1, "times": 3}} if number == 1 else {}
        one.units[0]["adapting"] = {
            "plan": number // 2, "at_us": NOW, "units": {"R": 1 + number // 2, "S": 1}, "draining": {"R": 0, "S": 0},
            "round": asked, "decisions": [decision] if number == 1 else [],
        }  # fmt: skip
        reports.add(one)
    body = reports.take()
    assert body is not None
    # What is so is the last batch's, with the loads that were told last.
    assert body["adaptive"] == [
        {"stage": 1, "plan": 1, "units": {"R": 2, "S": 1}, "draining": {"R": 0, "S": 0}, "loads": {"R 0": 0.9123}}
    ]
    assert body["decisions"] == [{"stage": 1, **decision}]
    assert merged([body, body])["decisions"] == [{"stage": 1, **decision}] * 2
    reports.add(batch(3, rng))
    plain = reports.take()
    assert plain is not None and "adaptive" not in plain


def test_a_report_of_a_ring_tells_the_best_number_of_nodes_when_it_was_looked_at_last(catalog: Catalog) -> None:
    rng = random.Random(7)
    reports = reporter(catalog, "job_any", Clock())
    bodies = []
    for number, best in enumerate((2, 5, None)):  # the last batch did not look
        one = batch(number, rng)
        asked = {} if best is None else {"ring": {"load": 0.5, "wish": 0, "times": 0}}
        one.units[0]["adapting"] = {"plan": 0, "at_us": NOW, "units": {"ring": 2}, "draining": {"ring": 0},
                                    "best": best, "model": best and {"best": best}, "round": asked,
                                    "decisions": []}  # fmt: skip
        reports.add(one)
        body = reports.take()
        assert body is not None
        bodies.append(body)
    assert [one["adaptive"][0].get("best") for one in bodies] == [2, 5, None]
    ring = {"stage": 1, "plan": 0, "units": {"ring": 2}, "draining": {"ring": 0}, "loads": {"ring": 0.5}, "best": 5,
            "model": {"best": 5}}  # fmt: skip
    assert merged(bodies)["adaptive"] == [ring]


def test_traffic_with_the_store_of_a_state_adds_up(catalog: Catalog) -> None:
    rng = random.Random(9)
    reports = Reporter(catalog, "job_any", 1, THREE, steady_s=Clock())
    for number in range(3):
        one = staged(number, rng)
        one.traffic.update({"put": 1 + number, "retries": number} if number else {})
        reports.add(one)
    body = reports.take()
    assert body is not None
    assert body["state_traffic"] == body["totals"]["state_traffic"] == {"put": 5, "retries": 3}
    one = staged(3, rng)
    one.traffic["put"] = 10
    reports.add(one)
    after = reports.take()
    assert after is not None
    assert (after["state_traffic"], after["totals"]["state_traffic"]) == ({"put": 10}, {"put": 15, "retries": 3})
    assert merged([body, after])["state_traffic"] == {"put": 15, "retries": 3}
    reports.add(staged(4, rng))
    plain = reports.take()
    assert plain is not None and "state_traffic" not in plain


def test_reconnects_are_counted_in_the_span_in_which_they_were(catalog: Catalog) -> None:
    rng = random.Random(10)
    reports = Reporter(catalog, "job_any", 1, THREE, steady_s=Clock())
    found = []
    for number, so_far in enumerate((0, 2, 2, 5)):
        reports.add(staged(number, rng), so_far)
        if number % 2:
            found.append(reports.take())
    first, second = found
    assert first is not None and second is not None
    assert [(body["reconnects"], body["totals"]["reconnects"]) for body in (first, second)] == [(2, 2), (3, 5)]
    assert merged([first, second])["reconnects"] == 5
    older = {name: value for name, value in first.items() if name != "reconnects"}
    assert merged([older, second])["reconnects"] == 3  # an older version did not tell


def test_loads_are_those_of_their_stage_in_whatever_order_stages_are_told(catalog: Catalog) -> None:
    rng = random.Random(8)
    reports = Reporter(catalog, "job_any", 1, THREE, steady_s=Clock())
    for number, loads in enumerate(({0: 0.2, 1: 0.7}, {})):
        one = staged(number, rng)
        told = [one.units[0], one.units[2]]
        for unit in told:
            asked = {"R 0": {"load": loads[unit["stage"]]}} if loads else {}
            unit["adapting"] = {"plan": 0, "units": {}, "draining": {}, "round": asked, "decisions": []}
        if number == 1:
            one.units.reverse()
        reports.add(one)
    body = reports.take()
    assert body is not None
    assert {stage["stage"]: stage["loads"] for stage in body["adaptive"]} == {1: {"R 0": 0.2}, 2: {"R 0": 0.7}}


def test_a_report_tells_what_each_stage_found_however_it_is_merged(catalog: Catalog) -> None:
    clock, rng = Clock(), random.Random(3)
    reports = Reporter(catalog, "job_any", 1, THREE, steady_s=clock, stages=STAGES)
    given = [staged(number, rng) for number in range(4)]
    found = []
    for one in given:
        reports.add(one)
        clock.now_s += 1
        if one.batch != 1:  # the second report is of two batches
            body = reports.take()
            assert body is not None
            found.append(body)
    whole = merged(found)

    def of_stage(name: str, places: tuple[int, ...], of: list[BatchReport]) -> int:
        return sum(one.units[place][name] for one in of for place in places)

    wanted = [
        {
            "stage": stage, **STAGES[stage],
            **{name: of_stage(name, places, given) for name in ("results", "unmatched_rows", "late_after_final")},
            "open_rows": of_stage("open_rows", places, given[-1:]),
        }
        for stage, places in ((1, (0, 1)), (2, (2,)))
    ]  # fmt: skip
    assert whole["stages"] == wanted
    for name in ("open_rows", "unmatched_rows", "late_after_final"):
        assert whole[name] == sum(stage[name] for stage in wanted), name
        assert whole[name] == sum(one[name] for one in whole["units"]), name
    assert [one["stage"] for one in whole["units"]] == [1, 1, 2]
    assert whole["live_tuples"] == {"a": 10, "b": 12, "c": 7}
    assert whole["units"][2]["stored_rows"] == 7 + given[-1].units[2]["flow_rows"]
    assert whole["marks_us"] == {"a": NOW, "b": None, "c": NOW - 1}
    assert whole["tuples"] == {"a": 40, "b": 80, "c": 120}


def test_reports_of_two_streams_are_of_one_stage_and_older_ones_tell_of_none(catalog: Catalog) -> None:
    new, old = bodies(4, 2, catalog)
    assert [one["stage"] for one in new["stages"]] == [1] and {one["stage"] for one in new["units"]} == {1}
    assert new["stages"][0]["results"] == sum(one["results"] for one in new["units"])
    del old["stages"]
    for told in (old, *old["units"]):
        for name in ("open_rows", "unmatched_rows", "late_after_final"):
            del told[name]
    assert merged([old, new])["stages"] == new["stages"]
    assert merged([old, new])["unmatched_rows"] == new["unmatched_rows"]
    assert merged([old, new])["units"][0]["unmatched_rows"] == new["units"][0]["unmatched_rows"]
    assert merged([new, old])["stages"] == []


def counted(number: int, rows: int, took_s: float, latest_us: int | None = None) -> BatchReport:
    """A batch of so many tuples of the first stream, each of which one unit received."""
    one = unit(0, random.Random(number)) | {"received": {"store": rows, "probe": 0, "both": 0}}
    latest = {} if latest_us is None else {0: latest_us}
    return BatchReport(number, 0, [one], {0: {"rows": rows}}, {"committed": took_s}, latest)


def test_a_rate_is_of_the_time_in_which_tuples_came_and_not_of_the_pause_before(catalog: Catalog) -> None:
    clock = Clock()
    reports = reporter(catalog, "job_any", clock)
    reports.begin()
    clock.now_s += 30.0
    reports.add(counted(0, 28_000, 0.45))
    clock.now_s += 0.6  # the reporter wakes later than that
    body = reports.take()
    assert body is not None
    assert (body["seconds"], body["quiet_seconds"], body["tuples_per_second"]) == (1.0, 29.0, 28_000.0)
    assert body["units"][0]["received"] / body["seconds"] == body["tuples_per_second"]
    clock.now_s += 9.4
    reports.add(counted(1, 28_000, 4.0))
    body = reports.take()
    assert body is not None
    assert (body["seconds"], body["quiet_seconds"], body["tuples_per_second"]) == (4.0, 6.0, 7_000.0)


def test_a_batch_may_be_known_before_the_query_is_known_to_run(catalog: Catalog) -> None:
    clock = Clock()
    reports = reporter(catalog, "job_any", clock)
    clock.now_s += 9.0
    reports.add(counted(0, 500, 0.5))
    clock.now_s += 0.1
    reports.begin()
    body = reports.take()
    assert body is not None
    assert (body["seconds"], body["tuples_per_second"]) == (1.0, 500.0)


def test_batches_that_follow_each_other_have_one_rate_however_reports_are_cut(catalog: Catalog) -> None:
    clock = Clock()
    reports = reporter(catalog, "job_any", clock)
    reports.begin()
    found = []
    for number in range(20):  # a batch every 0.7 s, and the reporter looks every second
        for _ in range(7):
            clock.now_s += 0.1
            if round(clock.now_s * 10) % 10 == 5 and (body := reports.take()) is not None:
                found.append(body)
        reports.add(counted(number, 700, 0.7))
    assert len(found) > 10
    assert {body["tuples_per_second"] for body in found} == {1000.0}
    assert {body["quiet_seconds"] for body in found} == {0.0}
    assert merged(found)["tuples_per_second"] == 1000.0


def test_the_pause_between_two_merged_reports_is_part_of_their_span(catalog: Catalog) -> None:
    clock = Clock()
    reports = reporter(catalog, "job_any", clock)
    reports.begin()
    found = []
    for number in range(3):
        clock.now_s += 10.0
        reports.add(counted(number, 100, 0.1))
        body = reports.take()
        assert body is not None
        found.append(body)
    assert [body["tuples_per_second"] for body in found] == [100.0, 100.0, 100.0]
    both = merged(found)
    assert (both["seconds"], both["quiet_seconds"], both["tuples_per_second"]) == (21.0, 9.0, 14.3)


def test_a_batch_without_tuples_tells_no_lag(catalog: Catalog) -> None:
    reports = reporter(catalog, "job_any", Clock())
    reports.add(counted(0, 10, 0.1, NOW))
    first = reports.take()
    reports.add(counted(1, 0, 0.1))
    heartbeat = reports.take()
    assert first is not None and heartbeat is not None
    assert set(first["lag_ms"]) == {"auction"}
    assert heartbeat["lag_ms"] == {}


def test_nothing_is_written_of_a_span_without_batches(catalog: Catalog) -> None:
    job = add_job(catalog)
    reporter(catalog, job, Clock()).write()
    assert reports_of(catalog, job) == []


def test_a_report_that_cannot_be_written_is_counted_in_the_next(catalog: Catalog) -> None:
    clock, rng = Clock(), random.Random(2)
    job = add_job(catalog)
    reports = reporter(catalog, "job_nothing", clock)  # a foreign key that is not there
    for number in range(3):
        reports.add(batch(number, rng))
        clock.now_s += 1
        if number == 2:
            reports.job_id = job
        reports.write()
    (written,) = reports_of(catalog, job)
    assert written.body["dropped_reports"] == 2
    assert written.body["totals"]["batches"] == 3
    assert reports.dropped == 0


def bodies(seed: int, count: int, catalog: Catalog) -> list[dict[str, Any]]:
    clock, rng = Clock(), random.Random(seed)
    reports = reporter(catalog, "job_any", clock)
    found = []
    for number in range(count):
        for _ in range(rng.randrange(1, 4)):
            reports.add(batch(number, rng))
            reports.took(rng.random() * 100)
        clock.now_s += 1
        body = reports.take()
        assert body is not None
        found.append(body)
    return found


def test_merging_in_steps_is_merging_at_once(catalog: Catalog) -> None:
    parts = bodies(3, 12, catalog)
    at_once = merged(parts)
    in_steps = merged([merged(parts[:5]), merged(parts[5:6]), merged(parts[6:])])
    for name in (*COUNTS, *COUNTS_BY_NAME, "seconds", "units", "rho", "live_tuples", "marks_us", "totals"):
        assert in_steps[name] == at_once[name] or name == "units", name
    for one, other in zip(in_steps["units"], at_once["units"], strict=True):
        assert one["comparisons"] == other["comparisons"]
        assert abs(one["seconds"]["probe"] - other["seconds"]["probe"]) < 1e-9
    assert at_once["batch_ms"]["max"] == max(part["batch_ms"]["max"] for part in parts)


def test_quantiles_of_few_and_of_none() -> None:
    assert quantiles([]) == {"p50": None, "p95": None, "max": None}
    assert quantiles([7.0]) == {"p50": 7.0, "p95": 7.0, "max": 7.0}


def add_reports(catalog: Catalog, job: str, body: dict[str, Any], ages_s: range, generation: int = 1) -> None:
    with catalog.begin() as session:
        session.add_all(Report(job_id=job, at_us=NOW - age_s * S, generation=generation, body=body) for age_s in ages_s)


def test_reports_get_rarer_with_age_and_keep_their_sums(catalog: Catalog) -> None:
    job = add_job(catalog)
    (body,) = bodies(4, 1, catalog)
    add_reports(catalog, job, body, range(1, 9000, 4))
    thin(catalog, NOW, 30, 365)
    found = reports_of(catalog, job)
    ages_s = [(NOW - report.at_us) // S for report in found]
    assert sum(report.body["batches"] for report in found) == 2250 * body["batches"]
    for low, high, span_s in ((0, 599, 1), (600, 7_100, 10), (7_260, 9_000, 60)):
        spans = {report.span_s for report, age_s in zip(found, ages_s, strict=True) if low < age_s < high}
        assert spans == {span_s}, (low, high)
    assert len(found) < 150 + 670 + 35
    before = [(report.at_us, report.span_s) for report in found]
    thin(catalog, NOW, 30, 365)
    assert [(report.at_us, report.span_s) for report in reports_of(catalog, job)] == before


def test_generations_and_jobs_are_not_merged_into_one(catalog: Catalog) -> None:
    (body,) = bodies(5, 1, catalog)
    jobs = [add_job(catalog), add_job(catalog)]
    for job in jobs:
        add_reports(catalog, job, body, range(1001, 1005))
        add_reports(catalog, job, body, range(1005, 1011), generation=2)
    thin(catalog, NOW, 30, 365)
    for job in jobs:
        assert [report.generation for report in reports_of(catalog, job)] == [2, 1]


def test_what_is_too_old_goes(catalog: Catalog) -> None:
    from backend.catalog.models import Event

    job = add_job(catalog)
    (body,) = bodies(6, 1, catalog)
    add_reports(catalog, job, body, range(REPORTS_S - 100, REPORTS_S + 100, 10))
    with catalog.begin() as session:
        for days in (29, 31, 364, 366):
            at_us = NOW - days * DAY_US
            for whose, of, actor in (("job's", job, None), ("platform's", None, None), ("person's", job, "usr_1")):
                id = f"{whose} {days}"
                session.add(Event(id=id, job_id=of, at_us=at_us, kind="x", message="", actor_id=actor))
    thin(catalog, NOW, 30, 365)
    assert all(report.at_us >= NOW - REPORTS_S * S for report in reports_of(catalog, job))
    with catalog.read() as session:
        left = set(session.scalars(select(Event.id)))
    assert left == {"job's 29", *(f"{whose} {days}" for whose in ("platform's", "person's") for days in (29, 31, 364))}


def test_what_joins_relations_is_told_with_its_rate_and_what_was_predicted(catalog: Catalog) -> None:
    clock, rng = Clock(), random.Random(2)
    reports = reporter(catalog, add_job(catalog), clock)
    reports.predicted, reports.slots = {"text": "t", "rate_per_s": 5.0}, 4
    reports.relations = {"customers": {"version": 2, "reading_rows": 70, "refresh_failures": 3, "rows": 9}}
    for number in range(3):
        one = batch(number, rng)
        for unit_of in one.units[: 2 - (number == 2)]:  # in the last batch the second unit does something else
            unit_of["reading"] = {"tuples": 100, "relation_rows": 50, "cache_hits": 25}
            unit_of["holding"] = {"memory_bytes": 10 * number}
        reports.add(one)
    clock.now_s += 1
    body = reports.take()
    assert body is not None
    reading = body["reading"]
    assert reading["counts"] == {"tuples": 500, "relation_rows": 250, "cache_hits": 125, "work_us": 550_000}
    assert reading["holding"] == {"memory_bytes": 20} and reading["predicted"]["rate_per_s"] == 5.0
    assert (reading["rows_read_per_tuple"], reading["cached_share"]) == (0.5, 0.25)
    assert reading["at_once"] == 1 and reading["rate_per_s"] == round(500 / 0.55, 1)
    told = {"version": 2, "reading_rows": 70, "refreshes": None, "refresh_failures": 3, "problem": None}
    assert body["relations"] == {"customers": told}
    again = merged([body, body])["reading"]
    assert again["counts"]["tuples"] == 1000 and again["rate_per_s"] == reading["rate_per_s"]
    assert "reading" not in of_batch(batch(9, rng), NAMES, NOW)


def test_a_report_says_why_rows_of_files_are_late(catalog: Catalog) -> None:
    reporter = Reporter(catalog, "job", 1, NAMES)
    reporter.late_files = {"bid": "files of bid are read in the order of their names"}
    reporter.add(batch(0, random.Random(1)))
    body = reporter.take()
    assert body is not None and body["late_files"] == reporter.late_files
