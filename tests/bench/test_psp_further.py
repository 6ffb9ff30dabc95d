"""What is simulated beside PSP's figure 8: numbers for figure 7, PSP-I, ATR's throughput, and unequal rates."""

from __future__ import annotations

from collections import Counter
from statistics import fmean
from typing import Any

import pytest

from benchmarks import provenance, quiet, three_way
from benchmarks.psp import __main__ as psp
from benchmarks.psp import described, further_page, on_spark, throughput, unequal
from streamjoin.explain.compare.distribution import FIGURE_7, distribution_text

MEASURED: dict[str, Any] = {
    "comparison": {"5000": 20_000.0}, "probe": 200.0, "insert": 20.0, "purge": 20.0, "message": 1_000.0, "byte": 0.1,
    "hop": 100_000.0, "link_byte": 8.0,
}  # fmt: skip


def test_numbers_rank_the_three_as_the_words_of_figure_7_do() -> None:
    aligned, coordinated, ring = described.points((8,), 6)
    assert [one["system"] for one in (aligned, coordinated, ring)] == ["aligned", "coordinated", "ring"]
    assert coordinated["looked_up"] > 2 * aligned["looked_up"] > 2 and not ring["looked_up"]
    assert coordinated["metadata"] > 10 * aligned["metadata"] and not ring["metadata"]
    # Two copies answer twice, where both are asked.
    assert aligned["times_found"] == ring["times_found"] == 1 and 1.02 < coordinated["times_found"] <= 2
    assert aligned["granule"] > 10 * coordinated["granule"] > 10 * ring["granule"]
    assert ring["table"] == 0 < aligned["table"] < coordinated["table"] and ring["stored"] < aligned["stored"]
    # Each row is in one node after the other, and those of the last window are not through yet.
    assert 7 * 4 / 6 < ring["moved"] < 7 and aligned["moved"] == coordinated["moved"] == 0
    assert aligned["bytes"] < coordinated["bytes"] < ring["bytes"]
    assert aligned["messages"] < coordinated["messages"] < ring["messages"]


def test_the_page_has_each_word_of_figure_7_beside_its_number() -> None:
    points = list(described.points((4,), 3))
    lines = [line for line in further_page.words(points).splitlines() if line.startswith("| ") and "---" not in line]
    rows = {line.split(" | ")[0].strip("| "): line for line in lines}
    assert rows["4 nodes"] == "| 4 nodes | ATR | CTR | PSP |" and set(rows) == {"4 nodes", *(t.name for t in FIGURE_7)}
    for trait in FIGURE_7:
        assert [cell.split(":")[0].strip(" |") for cell in rows[trait.name].split(" | ")[1:]] == [
            trait.words[name] for name in ("aligned", "coordinated", "ring")
        ]
        assert (":" in rows[trait.name]) == (trait.name != "adaptation")
    assert f"high: {points[2]['messages']:,.1f}, " in rows["network"]


def test_rows_in_flight_raise_the_rate_and_lower_the_response_time_and_cost_rows_that_are_there_twice() -> None:
    basic, some, many = throughput.interleaved(MEASURED, (6,), 40, 60, (1, 3, 9))
    assert some["rate"] > 1.8 * basic["rate"] and many["rate"] > 1.3 * some["rate"]
    assert many["rate"] < 1.1 * many["limit"] and basic["busiest"] < some["busiest"] < many["busiest"] <= 1
    # Of the same rows at the same times: none waits for the end of the cycle before.
    assert basic["results"] == some["results"] == many["results"] > 30
    assert some["response"] < 0.8 * basic["response"] and many["response"] <= 1.05 * some["response"]
    assert basic["twice"] == 0 < some["twice"] <= many["twice"]


def test_more_nodes_bring_atr_more_rows_per_second_and_do_not_answer_much_sooner() -> None:
    points = list(throughput.of_aligned(MEASURED, (1, 2, 4), 20, 12, (1.0,)))
    rates, responses = ([one[name] for one in points] for name in ("rate", "response"))
    assert rates[1] > 1.5 * rates[0] and rates[2] > 1.4 * rates[1]
    # Segments that overlap wait for each other less often on more nodes; work that were shared would take a quarter.
    assert rates[2] > 2.5 * rates[0] and responses[2] > 0.8 * responses[0]
    # No more nodes are at work than there are segments.
    few, more = throughput.of_aligned(MEASURED, (4, 8), 20, 3, (2.0,))
    assert few["segments"] <= 4 and more["rate"] == pytest.approx(few["rate"], rel=0.01)


@pytest.mark.parametrize("nodes", [3, 4, 8])
def test_nodes_have_as_many_rows_a_window_after_the_start_though_one_stream_is_ten_times_as_fast(nodes: int) -> None:
    rows = unequal.rows_of(24)
    assert Counter(row.stream for row in rows) == {0: 24, 1: 240, 2: 24}
    filled = unequal.after_a_window(nodes, 24)
    assert sum(filled) == 24 * unequal.TURN
    assert max(abs(one / fmean(filled) - 1) for one in filled) < 0.1


def test_bounds_keep_nodes_even_while_rates_double_and_equal_slices_do_not() -> None:
    equal, bounds = (unequal.after_a_change(4, 40, smoothing=smoothing) for smoothing in (False, True))
    assert sum(equal) == sum(bounds)
    assert max(equal) > 1.4 * fmean(equal) and max(bounds) < 1.3 * fmean(bounds)
    assert min(bounds) > 0.9 * fmean(bounds)


def test_words_are_shown_of_those_that_are_compared_and_of_no_other() -> None:
    text = distribution_text(["biclique", "ring", "coordinated"])
    lines = text.splitlines()
    assert lines[0].split() == ["PSP,", "figure", "7", "coordinated", "(CTR)", "ring", "(PSP)"]
    assert lines[1].split()[-2:] == ["high", "low"] and lines[7].split() == ["network", "middle", "high"]
    assert not distribution_text(["ring", "biclique"])
    assert "low   high" not in text and distribution_text(["ring", "aligned"]).count("unknown") == 1


@pytest.mark.spark
@pytest.mark.soak
def test_jobs_of_a_tree_and_of_rings_have_the_same_results_and_take_turns() -> None:
    points = list(on_spark.points(three_way.QUICK))
    assert [one["way"] for one in points] == ["tree", "ring of 1", "ring of 2", "ring of 4"]
    assert {len(one["seconds"]) for one in points} == {three_way.QUICK.pairs}
    assert len({one["results"] for one in points}) == 1 and points[0]["results"] > 0
    assert "| ring of 4 |" in further_page.on_spark(points)


def test_jobs_are_not_timed_for_docs_on_a_busy_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def busy() -> None:
        raise quiet.BusyError("the machine is busy")

    monkeypatch.setattr(provenance, "require_clean", lambda: "abc")
    monkeypatch.setattr(quiet, "wait_until_quiet", busy)
    monkeypatch.setattr(on_spark, "points", lambda size: pytest.fail("it measures"))
    monkeypatch.setattr("sys.argv", ["psp", "--only", "on-spark"])
    with pytest.raises(SystemExit):
        psp.main()
    assert "nothing was simulated: the machine is busy" in capsys.readouterr().err
