"""The page of SSBJ's evaluation, from its figures."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

from benchmarks import provenance

_Words = Callable[[float], str]
PICTURES: dict[str, tuple[str, ...]] = {
    "ssbj_memory": ("4(a)", "4(b)"),
    "ssbj_rate": ("5(a)", "5(b)", "5(c)"),
    "ssbj_data": ("5(d)", "5(d), Zipf", "5(e)", "5(e), apart"),
    "ssbj_knobs": ("5(f)", "6(a)", "6(b)"),
}
"""By the name of the file, which figures stand in it side by side."""
_SHOWN: dict[str, tuple[str, _Words]] = {
    "rate": ("tuples/s", lambda value: f"{value:,.0f}"),
    "memory": ("KiB", lambda value: f"{value / 1024:,.0f}"),
    "share": ("share of tuples that the cache joins", lambda value: f"{value:.1%}"),
    "step": ("ms a step", lambda value: f"{value * 1e3:,.3f}"),
}
_PAPER = {
    "4(a)": "MESHJOIN takes about 7 times the memory of SSBJ, whatever the rate.",
    "4(b)": "MESHJOIN takes 7 times the memory at 20 million rows, and 5 times at 80 million.",
    "5(a)": "SSBJ is 7 times as fast at 1 % and 8 times at 10 %.",
    "5(b)": "SSBJ is 7 times as fast at 20 million rows, and 5.7 times at 100 million.",
    "5(c)": "SSBJ is faster from slight skew on, about 8 times at skew 1; MESHJOIN gets slightly slower.",
    "5(d)": "On TPC-H SSBJ is 3.4 times as fast at 1 % and 7.4 times at 10 %; the data was adapted, and not said how.",
    "5(d), Zipf": "As before. Here orders are of few customers most of the time, after Zipf's law with exponent 1.",
    "5(e)": "On weather data SSBJ is faster at any memory.",
    "5(e), apart": "As before. Here reports come as often from one place as from another, whatever R has of it.",
    "5(f)": "39 % at 1 %, 54 % from 9 % on.",
    "6(a)": "The best factor is 1.",
    "6(b)": "The rate rises, then falls.",
    "6(c, d)": "The times that are computed and measured agree.",
}


def page(results: dict[str, Any]) -> str:
    """The text of the page."""
    said = provenance.said(results.get("begun"), results.get("commit"))
    head = f"""# SSBJ's evaluation beside ours

Source: "SSBJ", Distributed and Parallel Databases 2019, section 4. Written by
`python -m benchmarks.semistream`; do not edit. All figures: [ssbj.json](ssbj.json). {said}

## How it is made

The paper's relation has 10^8 rows; here the largest has {results["rows"]:,}, of 120 bytes, and as many join values.
Its values are drawn at random with repetition, so some match many rows and others none; the stream is after Zipf's law.
A tuple takes 24 bytes with its pointer, and the buffer a tenth of the memory where memory is given.

Figures 5(d) and 5(e) have [other data](../../simulate/ssbj/data.py). TPC-H: customers of 223 bytes, each once, and
orders of 138 bytes, which are of two thirds of the customers, all as often. Then no customer's row takes less than the
orders that wait for it, so nothing is cached; a cache needs orders that are not spread evenly. Weather: rows of 128
bytes on both sides, about 555 of a longitude. The reports themselves are not here, but weights of longitudes that were
drawn once. A longitude with many reports has many stations too, so its rows are too many to be cached: a cache pays
where reports and stations are in different places.

[`simulate/ssbj`](../../simulate/ssbj/) runs a unit by the operators' own cache and rules on a virtual clock. Its disk
seeks in 8 ms and reads 100 MB/s; other steps take fixed times, as in the paper's table 1. A run is warmed up for 24
rounds, 2 without a cache, and measured for 6. *model* is the [cost model](../../streamjoin/operators/costs/ssbj.py)
(section 3.2), which knows nothing of the runs: it has the distribution of values, theorem 1 and equations 1 to 3. With
memory given, it is told of the eighth that [`ssbj`](../operators/ssbj.md) sets aside. That is why `meshjoin` is faster
where the stream has next to no skew: nothing is worth caching, and the eighth is missing. To move a row into the cache
(c_B) is free in both. The clock adds up the times of steps that equation 2 has, too: that both agree says that there
are as many steps and tuples as the formulas have, and nothing about what they take. So figures 6(c, d) hold by
construction.

The simulation differs from the model by at most {_worst(results):.0%} of it in rate, memory and time of a step where
s_f is 1, as in the model. With 2 % of the memory a step has room for one or two tuples in figures 5(d) and 5(e), and
only whole ones count: that is where the most comes from, and the ratio of 1.00. A cached value's entry of 24 bytes
counts, which the paper leaves out. With equal buffers no ratio can be higher than 1 / (1 - P), where P is the share of
tuples that the cache joins: the paper's 54 % would allow 2.2.
"""
    return head + "".join(_figure(figure) for figure in results["figures"])


def _worst(results: dict[str, Any]) -> float:
    compared = chain.from_iterable(
        (point["meshjoin"], *([] if figure["x"] == "s_f" else [point["ssbj"]]))
        for figure in results["figures"]
        if figure["shows"] != "share"
        for point in figure["points"]
    )
    return max((abs(simulated / said - 1) for simulated, said in compared), default=0.0)


def _figure(figure: dict[str, Any]) -> str:
    words, shown = _SHOWN[figure["shows"]]
    lines = [f"\n## Figure {figure['name']}\n", *_picture(figure["name"])]
    lines += [f"In the paper: {_PAPER[figure['name']]} Here, in {words}:\n"]
    if figure["shows"] == "share":
        lines += [f"| {figure['x']} | ssbj | model |", "| --: | --: | --: |"]
        lines += [f"| {one['x']} | {shown(one['ssbj'][0])} | {shown(one['ssbj'][1])} |" for one in figure["points"]]
        return "\n".join(lines) + "\n"
    has_model = figure["x"] != "s_f"
    model = " model |" if has_model else ""
    lines += [f"| {figure['x']} | ssbj |{model} meshjoin | model | ratio |{model}"]
    lines += ["| --: | --: |" + " --: |" * (3 + 2 * has_model)]
    for one in figure["points"]:
        ssbj, mesh = one["ssbj"], one["meshjoin"]
        ratios = [f"{a / b:.2f}" for a, b in map(_ratio(figure["shows"]), ssbj, mesh)]
        cells = [one["x"], shown(ssbj[0]), *([shown(ssbj[1])] if has_model else []), *map(shown, mesh)]
        lines.append(f"| {' | '.join([*cells, ratios[0], *(ratios[1:] if has_model else [])])} |")
    return "\n".join(lines) + "\n"


def _picture(name: str) -> list[str]:
    """Before the first of the figures that stand in it."""
    return [f"![{name} and what follows]({file}.png)\n" for file, shown in PICTURES.items() if shown[0] == name]


def _ratio(shows: str) -> Callable[[float, float], tuple[float, float]]:
    """Of ssbj to meshjoin, so that more is better for ssbj; of memory the other way round."""
    return (lambda ssbj, mesh: (mesh, ssbj)) if shows == "memory" else (lambda ssbj, mesh: (ssbj, mesh))
