"""The page's sections of outer joins, groups, as-of joins, three streams, relations, and questions about groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.cells import number, right, table, times
from benchmarks.head import Part, one_line


def outer(part: Part) -> str:
    """See `benchmarks.outer`."""
    from benchmarks.outer import INNER, LEFT, OF_INNER_TARGET, SPARK, SPARK_TARGET

    workload = part["workload"]
    of_inner = {name: found["median"] for name, found in part["of_inner"].items()} | {INNER: None, SPARK: None}
    rows = [
        [
            name, number(run.get("rate_measured")), number(run.get("rate_all")), number(of_inner[name], ".0%"),
            number(run.get("results")), right(run),
        ]
        for name, run in part["runs"].items()
    ]  # fmt: skip
    header = ["join", "tuples/s after warm-up", "whole run", "of the inner join's", "results", "count right"]
    left = part["of_inner"][LEFT]
    return f"""## Outer, semi and anti joins

{table(header, rows)}

- LEFT JOIN: {OF_INNER_TARGET:.0%} of the inner join's rate was the aim: {reached(left["median"], OF_INNER_TARGET)},
  {number(left["median"], ".0%")}, {spread(left["turns"], ".0%")}.
- {SPARK_TARGET:g} times {SPARK} was the aim: {reached(part["spark"], SPARK_TARGET)}, {times(part["spark"])}.

`r.key = s.key`, times at most {workload["window_s"]:,} s apart; {part["rows_in"]:,} tuples of both streams in batches
of {2 * workload["rows_per_file"]:,}, {workload["keys"]:,} keys; {part["partners"]:.0%} of the rows of r have partners.
The warm-up is the first batch. Ours took {workload["turns"] + 1} turns in one session, of which the first does not
count: rates are medians, and "of the inner join's" is that of ratios within a turn. Spark gives a row without a partner
once its watermark has passed the row's window, and keeps the last of them back when the input ends; its count is right
if it is DuckDB's without these.
"""


def aggregate(part: Part) -> str:
    """See `benchmarks.aggregate`."""
    from benchmarks.aggregate import SPARK, SPARK_TARGET, TIMES_TARGET

    workload, took, sent = part["workload"], part["times"], part["sent"]
    in_time = reached(took["median"], TIMES_TARGET, below=True)
    rows = [
        [
            name, number(run.get("rate_measured")), number(run.get("rate_all")), number(run.get("results")),
            right(run),
        ]
        for name, run in part["runs"].items()
    ]  # fmt: skip
    header = ["query", "tuples/s after warm-up", "whole run", "results", "right"]
    travelled = [
        ["every pair", number(sent["tuples"]), number(sent["tuple_bytes"])],
        ["views", number(sent["views"]), number(sent["view_bytes"])],
    ]
    return f"""## GROUP BY over a join

{table(header, rows)}

- At most {TIMES_TARGET:g} times the time of the join alone was the aim: {in_time},
  {number(took["median"], ".2f")} times, {spread(took["turns"], ".2f")}.
- {SPARK_TARGET:g} times {SPARK} was the aim: {reached(part["spark"], SPARK_TARGET)}, {times(part["spark"])}.

What travelled between the phases of one run, and what it would have been without views (BiStream, SIGMOD 2015,
figure 14); views are 1/{sent["tuple_bytes"] / max(sent["view_bytes"], 1):,.0f} of the bytes:

{table(["", "rows", "bytes"], travelled)}

`r.key = s.key`, times at most {workload["window_s"]} s apart; {part["rows_in"]:,} tuples of both streams in batches of
{2 * workload["rows_per_file"]:,}, {workload["keys"]:,} keys, {part["pairs"]:,} pairs. COUNT, SUM, AVG and MAX by
{workload["groups"]:,} groups and windows of {workload["window_s"]} s, {part["groups"]:,} results. The warm-up is the
first batch. Ours took {workload["turns"] + 1} turns in one session, of which the first does not count: rates are
medians, and the ratio to the join is that of ratios within a turn. The groups of the first turn were compared with
DuckDB's, those of the others counted. Our windows are of the later time of a pair, Spark's of the time of r, since it
drops the watermark of a time that is computed of two. Spark keeps back the last windows when the input ends; its count
is right if it is DuckDB's without these. So its pairs are the same, and its groups nearly as many.
"""


def asof(part: Part) -> str:
    """See `benchmarks.asof`."""
    from benchmarks.asof import OURS, TARGET, UNITS

    workload, duckdb = part["workload"], part["duckdb"]
    rows = [
        [name, number(_half(run.get("rate_measured"))), number(_half(run.get("rate_all"))), "-", right(run)]
        for name, run in part["runs"].items()
    ]
    rows += [
        [
            f"the join alone, {one['rows_per_batch']:,} rows of each stream a batch",
            number(one["left_rows_per_second"]), "-", number(one["kept_rows"]), yes(one["results"] == part["results"]),
        ]
        for one in part["alone"]
    ]  # fmt: skip
    rows.append(
        [
            "DuckDB, one thread, all rows at once", "-", number(duckdb["left_rows_per_second"]), "-",
            yes(duckdb["results"] == part["results"]),
        ]
    )  # fmt: skip
    header = ["system", "rows of r/s after warm-up", "whole run", "rows kept at most", "count right"]
    flink = f"\n- Flink's temporal join was not measured: {one_line(part['flink'])}." if part["flink"] else ""
    ours = _half(part["runs"][OURS].get("rate_measured"))
    return f"""## ASOF JOIN

{table(header, rows)}

- {TARGET:,} rows of r a second was the aim of a job: {reached(ours, TARGET)}, {number(ours)}.{flink}

`r ASOF JOIN s ON r.key = s.key AND r.ts >= s.ts`: each row of r with the latest row of s. {part["left_rows"]:,} rows of
each stream, {workload["keys"]:,} keys, {part["results"]:,} results; {2 * workload["rows_per_file"]:,} tuples a batch of
a job, and the first batch is the warm-up. A job reads Parquet; its rate is the median of {workload["turns"]} turns in
one session, after one that does not count. The join alone is {UNITS} units in turn in one process, without Spark,
reading and writing; its rate is the median over batches without the first one. Flink joins a versioned table as of the
time of r, reads each stream by one reader and takes a checkpoint each minute; its results are not counted.
"""


def three_streams(part: Part) -> str:
    """See `benchmarks.three_streams`."""
    from benchmarks.three_streams import FLINK, SPARK, SPARK_TARGET, TWO_JOINS_TARGET

    workload, two = part["workload"], part.get("two_joins") or {"median": None, "pairs": []}
    in_time = reached(two["median"], TWO_JOINS_TARGET, below=True)
    no_flink = f": {one_line(part['no_flink'])}" if part.get("no_flink") else ""
    notes = part["runs"].get(FLINK, {}).get("notes", ())
    checkpoints = "".join(f"; {note}" for note in notes if note.startswith("checkpoints"))
    rows = [
        [name, number(run.get("rate_measured")), number(run.get("rate_all")), number(run.get("results")), right(run)]
        for name, run in part["runs"].items()
    ]
    header = ["system", "tuples/s after warm-up", "whole run", "results", "count right"]
    return f"""## Three streams

{table(header, rows)}

- {SPARK_TARGET:g} times {SPARK} was the aim: {reached(part["spark"], SPARK_TARGET)}, {times(part["spark"])}.
- At most {TWO_JOINS_TARGET:g} times the time of two joins of two, one after the other on the same input, was the aim:
  {in_time}, {number(two["median"], ".2f")} times, {spread(two["pairs"], ".2f")}. These are the
  {number(two.get("rows"))} rows of `python -m benchmarks.three_way`, with the starts of its queries: one against two.
- Against {FLINK}: {times(part.get("flink"))}{no_flink}{checkpoints}.

`r.key = s.key AND s.key = t.key`, the times of any two at most {workload["window_s"]:,} s apart; {part["rows_in"]:,}
tuples of all streams in batches of {3 * workload["rows_per_file"]:,}, {workload["keys"]:,} keys. The warm-up is the
first batch. Spark and Flink have both joins in one query. Flink reads each stream by one reader, takes a checkpoint
each minute, and counts its results in a second job, which is not timed. Our rate is the median of {workload["turns"]}
turns in one session, after one that does not count.
"""


def group_questions(part: Part) -> str:
    """See `benchmarks.group_questions`."""
    from benchmarks.group_questions import FIRST_READ, P95_MS_TARGET

    stores: Mapping[str, Any] = {name: store for name, store in part["stores"].items() if "skipped" not in store}
    skipped = [
        f"- {name} was not measured: {one_line(store['skipped'])}.\n"
        for name, store in part["stores"].items()
        if "skipped" in store
    ]
    kinds = list(dict.fromkeys(kind for store in stores.values() for kind in store["asked"]))
    rows = [
        [
            kind,
            *(_p50_p95(store["asked"][kind]) for store in stores.values()),
            *(number(store["asked"][kind]["blocks"]) for store in stores.values()),
        ]
        for kind in kinds
    ]  # fmt: skip
    header = ["question", *(f"{name}, ms p50 / p95" for name in stores), *(f"{name}, blocks read" for name in stores)]
    came = [
        [
            name, number(store["written"]["changes_per_second"]),
            _p50_p95(store["written"]), number(store["written"]["max_ms"]),
        ]
        for name, store in stores.items()
    ]  # fmt: skip
    worst = {
        name: max(found["p95_ms"] for kind, found in store["asked"].items() if kind != FIRST_READ)
        for name, store in stores.items()
    }
    said = ", ".join(f"{name} {reached(ms, P95_MS_TARGET, below=True)} ({ms:.0f})" for name, ms in worst.items())
    return f"""## Questions about groups that change

{table(header, rows)}

- At most {P95_MS_TARGET} ms at the 95th percentile was the aim for each question but a reader's first: {said}.
{"".join(skipped)}

{table(["store", "changes/s in", "a commit, ms p50 / p95", "longest commit, ms"], came)}

{part["changes"]:,} changes of {part["groups"]:,} groups, a snapshot for each change of all groups. A job's code wrote
them, without Spark, and one process asked: {part["times"]} questions of each kind, one after the other, in a reader
that has the manifests already. The first read is by a reader that begins, as the command line does. Each store is one
node on this machine.
"""


def refresh(part: Part) -> str:
    """See `benchmarks.refresh`."""
    from benchmarks.refresh import FULL, RISE_TARGET, SECONDS_TARGET

    title = "## A relation that is read anew"
    if "skipped" in part:
        return f"{title}\n\nThis was not measured: {one_line(part['skipped'])}.\n"
    rows = [
        [
            name, number(part[key]["batches"]), number(part[key]["p50_ms"]), number(part[key]["p95_ms"]),
            number(part[key]["max_ms"]),
        ]
        for name, key in (("the job alone", "alone"), ("while its relation is read anew", "beside"))
    ]  # fmt: skip
    rose, took, told = part["rise"], part["seconds"], len(part["told"])
    checked = "all are right" if part["exact"] else "NOT all are right"
    return f"""{title}

{table(["", "batches", "ms p50", "ms p95", "longest, ms"], rows)}

- A rise of at most {RISE_TARGET:.0%} was the aim: {reached(rose, RISE_TARGET, below=True)}, {rose:.0%}.
- {SECONDS_TARGET} s was the aim for the time until a batch joins what was read:
  {reached(took, SECONDS_TARGET, below=True)}, {took:.1f} s. How many rows had been read was told {told} times.
- {part["results"]:,} results, each compared with the version that it names: {checked}.

A stream LEFT JOIN a table of PostgreSQL, {part["rows"]:,} rows of 120 bytes, into Parquet. {part["rate"]:,.0f} rows/s
come, half of what the job joins when all are there ({part["highest"]:,.0f} rows/s). A batch lasts from the moment its
offsets are logged to its commit. Batches of the {FULL.base_s:.0f} s before the table is asked for are those of the job
alone; those beside it are the later ones, up to {FULL.after_s:.0f} s after the first that joined the new version. The
server runs on the same cores.
"""


def _half(rate: float | None) -> float | None:
    """Rows of one stream, of a rate of both."""
    return None if rate is None else rate / 2


def reached(value: float | None, target: float, *, below: bool = False) -> str:
    """Whether an aim was; `below`, where less is better."""
    if value is None:
        return "not measured"
    return "reached" if (value <= target if below else value >= target) else "missed"


def spread(turns: list[float], form: str) -> str:
    """The lowest and highest of some turns."""
    if not turns:
        return "in no turn"
    return f"from {min(turns):{form}} to {max(turns):{form}} in {len(turns)} turns"


def _p50_p95(found: Mapping[str, float]) -> str:
    return f"{found['p50_ms']:.0f} / {found['p95_ms']:.0f}"


def yes(is_right: bool) -> str:
    """A word that shows where it is not so."""
    return "yes" if is_right else "NO"
