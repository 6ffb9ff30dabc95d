"""`docs/benchmarks.md`: what was measured, how, and what a reader should hold against it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.cells import mib, number, right, table, times
from benchmarks.cluster_sections import cluster, elastic, scaling
from benchmarks.head import NO_FIGURES, Part, Results, machine, measured, one_line, warnings
from benchmarks.sections import aggregate, asof, group_questions, outer, refresh, three_streams

INTRODUCTION = """\
# Benchmarks

Every section's numbers are from one run on one machine, with all systems side by side on it; the section says when and
at which commit. Ratios between systems carry over to other machines better than rates do. Written by
`python -m benchmarks`; do not edit.

To reproduce: `make bench`, on a machine that does nothing else. It takes about four hours, needs 16 GB of memory, 20
GB of disk, Java 17 or later, PostgreSQL and, for Flink and Kafka, Maven and the network once. `python -m benchmarks
--help` tells how to run single parts. All figures, each batch's included: [benchmarks.json](benchmarks.json).
"""

CAVEATS = """\
## What is not fair

- StreamJoin reads Parquet by PyArrow when it runs a join file (`streamjoin-driver`), Spark by its own reader.
  `streamjoin-dataframe` uses Spark's reader and gives typed rows to Spark's sink: compare that one for the join alone.
- `streamjoin-driver` computes all results and drops them inside the units; Spark's rows go to its `noop` sink, Flink's
  to its `blackhole`. All rows of ours run like it, but `streamjoin-dataframe`.
- Spark runs as it comes, with two task slots and a large heap. `spark-default-same-settings` adds those settings of
  StreamJoin's session that make any streaming query cheaper, such as one file rename a log entry.
- Flink works tuple by tuple and has no batches. Its checkpoints come every second, as often as the others commit; with
  the heap state they copy the whole state. `flink-heap-60s` takes one a minute. It reads each stream by one reader in
  time order, because rows in another order would be late.
- Flink answers within milliseconds of a tuple; the others wait for a batch. Nothing here measures that latency.
- Large batches and wide windows are what StreamJoin was built for. A window of a few hundred tuples, or batches of a
  few thousand, gain little: the fixed cost of a batch dominates for it and for Spark alike.
- Peers get 10 GiB of heap (8 GiB with Kafka); StreamJoin keeps its state in files and gets its default of 1 GiB.
- Rates of papers are from their machines of their time. They say how the workload was meant, not how fast the
  method would be today.
- A measured rate leaves out the warm-up, for all systems the same number of tuples; ratios with it are given, too.
"""


def page(results: Results, plots: Mapping[str, str]) -> str:
    """The page in Markdown, with a section for each part that ran."""
    parts = [INTRODUCTION, machine(results)]
    for name, section in SECTIONS.items():
        if name not in results:
            continue
        part = results[name]
        try:
            text = section(part)
        except NO_FIGURES:
            text = f"## {name}\n\nNo figures."
        title, _, rest = text.partition("\n")
        picture = f"\n![{title.lstrip('# ')}](benchmarks/{plots[name]})\n" if name in plots else ""
        parts.append(f"{title}\n\n{measured(part, results)}\n{warnings(part)}{picture}{rest.rstrip()}\n")
    return "\n".join([*parts, CAVEATS])


def _runs(part: Part) -> str:
    ratios = part["ratios"]
    rows = []
    for name, run in part["runs"].items():
        against = [ratios.get(ours, {}).get(name, {}) for ours in ("streamjoin-driver", "streamjoin-dataframe")]
        rows.append(
            [
                name, number(run.get("rate_measured")), number(run.get("rate_full_window")),
                number(run.get("rate_all")), number(run.get("batch_ms_median") if "flink" not in name else None),
                *(times(one.get("measured")) for one in against), *(times(one.get("all")) for one in against),
                mib(run["memory"]["pss_bytes"]), right(run),
            ]
        )  # fmt: skip
    header = [
        "system", "tuples/s after warm-up", "window full", "whole run", "median batch, ms", "driver / it",
        "dataframe / it", "driver / it, whole run", "dataframe / it, whole run", "peak memory, MiB", "count right",
    ]  # fmt: skip
    return table(header, rows)


def _targets(part: Part, targets: Mapping[str, float]) -> str:
    lines = []
    for theirs, target in targets.items():
        reached = {ours: part["ratios"][ours].get(theirs, {}).get("measured") for ours in part["ratios"]}
        said = ", ".join(f"{times(value)} ({ours.removeprefix('streamjoin-')})" for ours, value in reached.items())
        lines.append(f"- {target:g} times {theirs} was the aim: {said}.")
    return "\n".join(lines)


def _equi_large(part: Part) -> str:
    from benchmarks.equi_large import TARGETS

    workload = part["workload"]
    return f"""## Equi join with an interval, large batches

{_runs(part)}

{_targets(part, TARGETS)}

`r.key = s.key`, times at most {workload["window_s"]:,} s apart; {part["rows_in"]:,} tuples of both streams in batches
of {2 * workload["rows_per_file"]:,}, {workload["keys"]:,} keys, {part["results"]:,} results. The warm-up is as many
tuples as the first batch; the window is full after {workload["full_rows"]:,}.
"""


def _equi_small(part: Part) -> str:
    from benchmarks.equi_small import TARGETS

    workload = part["workload"]
    return f"""## The same with small batches

{_runs(part)}

{_targets(part, TARGETS)}

Batches of {2 * workload["rows_per_file"]:,} tuples with the same live window: one batch of
{2 * workload["rows_per_file"] * workload["first_file"]:,} tuples fills it before anything is measured, for all.
{part["results"]:,} results.
"""


def _band(part: Part) -> str:
    rows = [
        [
            name, number(run["rate_full_window"]), number(run.get("rows_per_second")),
            times(run["rate_full_window"] / part["paper_tuples_per_second"] if run["rate_full_window"] else None),
            number((run.get("figures") or {}).get("comparisons")), number(run.get("results")),
            mib(run["memory"]["pss_bytes"]),
        ]
        for name, run in part["runs"].items()
    ]  # fmt: skip
    header = [
        "operator", "tuples/s, windows full", "whole run", "/ paper", "comparisons", "results", "peak memory, MiB",
    ]  # fmt: skip
    orderings = any(name.startswith("splitjoin-") for name in part["runs"])
    aim = "was the aim" + (", with each ordering of SplitJoin's results" if orderings else "")
    return f"""## SplitJoin's band join

{table(header, rows)}

- {part["target_tuples_per_second"]:,.0f} tuples/s {aim}. SplitJoin
  (USENIX ATC 2016, evaluation) reports {part["paper_tuples_per_second"]:,.0f} tuples/s on 28 cores; it compares each
  tuple with the whole opposite window, and a grid index does not.
- The operators agree on the number of results: {"yes" if part["results_agree"] else "NO"}.

`ABS(x - a) <= 10 AND ABS(y - b) <= 10`, numbers uniform in 1..10,000, windows of {part["window_rows"]:,} tuples a
stream, {part["rows_per_batch"]:,} tuples a batch, from Parquet.
"""


def _kafka_json(part: Part) -> str:
    from benchmarks.kafka_json import TARGETS

    rows = [
        [name, number(run["rate_measured"]), number(run["rate_all"]), mib(run["memory"]["pss_bytes"]), right(run)]
        for name, run in part["runs"].items()
    ]
    header = ["system", "tuples/s after the first batch", "whole run", "peak memory, MiB", "count right"]
    return f"""## JSON in Kafka

{table(header, rows)}

- {TARGETS["spark-default"]:g} times Spark's own join was the aim: {times(part["ratio"]["rate_measured"])}
  ({times(part["ratio"]["rate_all"])} with the first batch).

{part["records"]:,} records in two topics of two partitions, at most {part["records_per_batch"]:,} a batch, equality
and times at most {part["window_s"]} s apart; both read the same topics in the same session settings, Spark with its
default state store.
"""


def _memory(part: Part) -> str:
    free, inside, memory = part["free"], part["limited"], part["free"]["memory"]
    rows = [
        ["live state", mib(part["state_bytes"])],
        ["proportional set size, all processes", mib(memory["pss_bytes"])],
        ["of it file-backed", mib(memory["file_bytes"])],
        ["of that segments of the state", mib(memory["watched_bytes"])],
        ["of it anonymous", mib(memory["anonymous_bytes"])],
        ["resident set size, shared pages counted for each process", mib(memory["rss_bytes"])],
    ]
    if "skipped" in inside:
        second = f"The run below a limit was left out: {one_line(inside['skipped'])}."
    else:
        second = (
            f"Below a limit of {mib(part['limit_bytes'])} MiB for all processes and the file pages they touch (memory "
            f"cgroup, version {inside['cgroup']['version']}, no swap) it is {times(part['slowdown'])} slower; results "
            f"right: {right(inside)}. Anonymous memory of all processes there: "
            f"{mib(inside['memory']['anonymous_bytes'])} MiB."
        )
    return f"""## A window larger than its memory

{table(["peak", "MiB"], rows)}

- Segments in memory / live state: {number(part["mapped_to_state"], ".2f")}. Below 1, because pages that no
  probe touches are not read; with a copy in each of {part["workers"]} workers it could be {part["workers"]}.
- {second}

{part["rows_in"]:,} tuples with 200 characters each, windows of {part["window_rows"]:,} of them; Java heap
{part["driver_memory_mib"]} MiB; {number(part["results"])} results by DuckDB; without a limit right: {right(free)}.
"""


def _startup(part: Part) -> str:
    rows = [
        [
            mib(part[size]["median"]["state_bytes"]), number(part[size]["batch_rows"]),
            *(number(part[size]["median"][what], ".2f") for what in ("first_batch_s", "recovery_s", "batch_s")),
            str(len(part[size]["rounds"])),
        ]
        for size in ("small", "large")
    ]  # fmt: skip
    header = [
        "state when killed, MiB", "tuples a batch", "first batch, s", "next batch after kill -9, s", "usual batch, s",
        "rounds",
    ]  # fmt: skip
    return f"""## Start and recovery

{table(header, rows)}

Medians, from the command `streamjoin run` to the entry in Spark's commit log. State is mapped and not loaded, so
recovery should not grow with it; it repeats the batch that was cut off.
"""


def _operators(part: Part) -> str:
    rows = [
        [
            f"{row['operator']}, skew {row['skew']:g}", number(row["tuples_per_second"]),
            number(row["replication"], ".2f"), number(row["replication_predicted"], ".2f"),
            number(row["comparisons"]), number(row["results"]), number(row["imbalance_received"], ".2f"),
            number(row["imbalance_comparisons"], ".2f"), mib(row["state_bytes_max"]),
        ]
        for row in part["rows"]
    ]  # fmt: skip
    header = [
        "operator", "tuples/s", "replication", "by formula", "comparisons", "results", "imbalance, received",
        "imbalance, comparisons", "state, MiB",
    ]  # fmt: skip
    most = max((figures["sent_bytes"] for figures in part["bytes"].values()), default=1)
    sent = [
        [
            f"{figures['paper_name']} ({name})", number(figures["predicted"], ".0f"), mib(figures["sent_bytes"]),
            number(figures["sent_bytes"] / most, ".2f"),
        ]
        for name, figures in part["bytes"].items()
    ]  # fmt: skip
    return f"""## Operators side by side

{table(header, rows)}

Imbalance is the busiest unit's work over the mean. Zipf keys ({part["keys"]:,}), {part["rows_in"]:,} tuples of both
streams, times at most {part["window_ms"]} ms apart at 1,000 tuples/s a stream, {part["rows_per_batch"]:,} a batch.

Bytes that travelled between the two slots of this run, without skew. A tuple that several units of a slot receive
travels there once, so of BiStream's formulas (SIGMOD 2015, section 4.3, in bytes of one stream) little is to be seen;
they are measured with as many slots as units in [its evaluation](evaluation/bistream.md):

{table(["operator", "by formula, each unit a slot", "sent between two slots, MiB", "of the most"], sent)}
"""


def _stores(part: Part) -> str:
    from benchmarks.stores import READ_MS_TARGET, REST_S, TARGETS, VISIBLE_MS_TARGET

    rows = []
    for name, store in part["stores"].items():
        if "skipped" in store:
            rows.append([f"{name}: {store['skipped']}", *["-"] * 8])
            continue
        key, time = store["key"], store["time"]
        rows.append(
            [
                name, number(store["rows"]), number(store["bytes"] / store["rows"], ".1f"),
                number(store["rows_per_second"]), number(key["blocks_stored"]),
                number(key["blocks_read"], ".1f"), f"{key['p50_ms']:.0f} / {key['p95_ms']:.0f}",
                number(time["blocks_read"], ".1f"), f"{time['p50_ms']:.0f} / {time['p95_ms']:.0f}",
            ]
        )  # fmt: skip
    header = [
        "store", "rows", "bytes a row", "rows/s in", "blocks stored", "read for a key", "a key, ms p50 / p95",
        "read for 1 s of a day", "1 s, ms p50 / p95",
    ]  # fmt: skip
    aims = " and ".join(f"{target:,} rows/s into {name}" for name, target in TARGETS.items())
    visible = ", ".join(
        f"{name} {found['p50_ms']:.0f} / {found['p95_ms']:.0f}" for name, found in part["visible"].items()
    )
    return f"""## Result stores

{table(header, rows)}

- {aims}, and answers within {READ_MS_TARGET} ms at the 95th percentile were the aims.
- From commit to all rows in a reader's hands, ms p50 / p95: {visible}; {VISIBLE_MS_TARGET} was the aim. A follower
  looks every 20 ms.

Two processes write {part["rows_per_batch"]:,} rows a snapshot, keys uniform among {part["keys"]:,}, and one commits.
Each store is one node on this machine. {REST_S} s after the last write, when a store has put most of it in order,
questions are asked one after the other, 100 of each kind, in a process that has the manifests already.
"""


def _index(part: Part) -> str:
    rows = [
        [
            f"{name}: {figures['kind']}", number(figures["probes_per_second"]),
            number(figures["compared_per_second"]), number(figures["compared"] / figures["probes"], ",.1f"),
            number(figures["candidates"] / figures["probes"], ",.1f"), number(figures["build_rows_per_second"]),
        ]
        for name, figures in part["probes"].items()
    ]  # fmt: skip
    header = ["index", "probes/s", "rows compared/s", "compared a probe", "candidates a probe", "rows built/s"]
    kernels = [[name, number(rate / 1e6, ".1f")] for name, rate in part["kernels"].items()]
    return f"""## The index alone

{table(header, rows)}

One core, no Spark, one segment of {part["segment_rows"]:,} rows without a window; sorting the probes is timed,
rechecking candidates is not. The band is answered by a grid over both columns; a tree over x alone has to
compare every row whose x fits.

{table(["loop", "million rows/s"], kernels)}
"""


SECTIONS: Mapping[str, Callable[[Part], str]] = {
    "equi_large": _equi_large,
    "equi_small": _equi_small,
    "outer": outer,
    "aggregate": aggregate,
    "asof": asof,
    "three_streams": three_streams,
    "refresh": refresh,
    "kafka_json": _kafka_json,
    "band": _band,
    "memory": _memory,
    "startup": _startup,
    "cluster": cluster,
    "elastic": elastic,
    "scale": scaling,
    "operators": _operators,
    "stores": _stores,
    "group_questions": group_questions,
    "index": _index,
}
"""Sections in the page's order."""
