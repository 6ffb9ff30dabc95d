"""The page's sections of clusters, of units that come and go, and of how joins grow with their slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.cells import mib, number, right, table
from benchmarks.head import Part, one_line
from benchmarks.rates import median
from benchmarks.sections import reached, spread, yes
from streamjoin.operators.costs.growth import SHARE_MIN, SLOTS_MAX, WINDOW_BATCHES
from streamjoin.operators.costs.slots import NEAR_TUPLES


def cluster(part: Part) -> str:
    """See `benchmarks.cluster`."""
    from benchmarks.cluster import CLUSTER_STORE, FAR_TARGET, SERVED_TARGET

    workload, far = part["workload"], part["far"]
    measured = {name: one for name, one in part["places"].items() if "skipped" not in one}
    skipped = "".join(
        f"- {name} was not measured: {one_line(one['skipped'])}.\n"
        for name, one in part["places"].items() if "skipped" in one
    )  # fmt: skip
    batches = max((len(one["batch_rows"]) for one in measured.values()), default=0) or 1
    rows = [
        [
            name, number(one["rate_measured"]), number(one["of_local"], ".0%"), number(one["batch_ms_median"]),
            number(one["served"], ".1%"), _per(one["traffic"], "fetched_bytes", batches),
            _per(one["traffic"], "put_bytes", batches), right(one),
        ]
        for name, one in measured.items()
    ]  # fmt: skip
    header = [
        "tasks, state", "tuples/s, windows full", "of local[2] with a folder", "median batch, ms",
        "openings the cache served", "MiB fetched a batch", "MiB put a batch", "count right",
    ]  # fmt: skip
    waits = [
        [name, number(one["cpu_share"], ".1%"), mib(one["pss_bytes"]), number(one["file_ms_median"]), yes(one["right"])]
        for name, one in part["idle"].items()
    ]
    middle = median(far["ratios"])
    served = measured.get(CLUSTER_STORE, {}).get("served")
    far_served = _share(far["turns"][-1]["traffic"]) if far["turns"] else None
    return f"""## A cluster, and state in an object store

{table(header, rows)}

- {FAR_TARGET:.0%} of the rate with a folder was the aim for a store 30 ms a call away that gives 200 MB/s a connection:
  {reached(middle, FAR_TARGET)}, {number(middle, ".0%")}, {spread(far["ratios"], ".0%")}; local[2], and its cache served
  {number(far_served, ".1%")} of the openings. Counts right: {yes(far["right"])}.
- {SERVED_TARGET:.0%} of the openings served by the cache of their own machine was the aim on a cluster:
  {reached(served, SERVED_TARGET)}, {number(served, ".1%")}.
{_lost(part.get("lost", {}))}{skipped}
{table(["a job that waits", "of one core", "memory, MiB", "ms from a file to its results", "rows right"], waits)}

The equi join of [large batches](#equi-join-with-an-interval-large-batches) with windows of {part["window_s"]} batches,
{2 * workload["rows_per_file"]:,} tuples each, {part["rows_in"]:,} in all, {part["results"]:,} results. All is on one
machine: the workers have one core each, so a cluster has no more processors than local[2], and more processes. With
state in a store each worker writes to a disk of its own, as on a machine of its own. The store is S3Proxy over a
folder, which is slow by itself: beside it look at openings and bytes. A rate is the median of {workload["turns"]}
runs after one that does not count. A job that waits is watched for {workload["idle_s"]:g} s, with the cluster's own
processes; then {workload["appended"]} files of {workload["appended_rows"]:,} rows come to r, one after the other.
"""


def _lost(one: Mapping[str, Any]) -> str:
    """See `benchmarks.lost_worker`; nothing of a part that was measured without it."""
    from benchmarks.lost_worker import SHARE_TARGET

    if not one:
        return ""
    if reason := one.get("skipped") or one.get("error"):
        return f"- A worker that is lost was not measured: {one_line(reason)}.\n"
    segments = f"{mib(one['fetched_bytes'])} MiB in {one['fetched']:,} segments"
    return f"""- A worker is killed with its disk after {one["killed_after"] + 1} batches of {one["batches"]},
  and one with an empty disk takes its place. What is fetched then is {segments},
  of a state of {mib(one["state_bytes"])} MiB at most. The lost slot had half of it, and two machines need that half:
  the one that is left, where the batch goes on at once, and the replacement, when it takes over a slot. Including
  what a unit drops in its next batch, {SHARE_TARGET:.0%} at most was the aim:
  {reached(one["share"], SHARE_TARGET, below=True)}, {number(one["share"], ".0%")}. The next commit came
  {one["back_s"]:.1f} s after the kill, where a batch takes {one["batch_s"]:.1f} s. Count right: {yes(one["right"])}.
"""


def elastic(part: Part) -> str:
    """See `benchmarks.elastic`."""
    from benchmarks.elastic import ROUNDS_TARGET

    routings: Mapping[str, Any] = part["routings"]
    simulated = part["simulated"]
    rounds = [one["rounds"] for found in [*routings.values(), simulated] for one in found["changes"]]
    rows = [
        [
            f"{name}, {'more' if one['way'] == 'up' else 'fewer'} units", number(one["rounds"]),
            number(one["batch"] - one["since"]), number(one["seconds"], ".1f"),
            f"{'+' if one['way'] == 'up' else '-'}{one['count']}",
            number(None if one["left"] is None else one["left"] - one["batch"]), number(found["moved_bytes"]),
            "cut off" if found["right"] is None else yes(found["right"]),
        ]
        for name, found in routings.items() for one in found["changes"]
    ]  # fmt: skip
    header = [
        "routing", "rounds that asked", "batches from the load's change", "seconds", "units", "batches they drain",
        "bytes moved", "count right",
    ]  # fmt: skip
    phases = [
        [
            f"{name}: {one['name']}", f"{one['begin']} to {one['end'] - 1}",
            " + ".join(str(one["storing"].get(side, "-")) for side in "RS"), number(one["fixed"]),
            number(one["adaptive"]),
        ]
        for name, found in routings.items() for one in found["phases"]
    ]  # fmt: skip
    copies = ", ".join(
        f"{name} {number(found['replication']['fixed'], '.2f')} and {number(found['replication']['adaptive'], '.2f')}"
        for name, found in routings.items()
    )
    seen = [[f"{one['before']} to {one['after']}", number(one["rounds"])] for one in simulated["changes"]]
    workload = part["workload"]
    usual, doubled, again = workload["phases"]
    return f"""## Units that come and go

{table(header, rows)}

- Units that follow a load which doubles and halves within {ROUNDS_TARGET} rounds was the aim:
  {reached(max(rounds, default=None), ROUNDS_TARGET, below=True)}.
- No stored tuple may move: bytes moved are what units got to store, less the same with units that stay.

{table(["phase", "batches", "units of R + S", "tuples/s, units stay", "tuples/s, adaptive"], phases)}

Simulated by the same decisions, from {simulated["at_first"]} units, contrand in 4 subgroups of either stream:

{table(["units", "rounds that asked"], seen)}

A biclique of {part["units_at_first"]} + {part["units_at_first"]} units on two slots, asked in each batch. {usual}
batches have {2 * workload["rows_per_file"]:,} tuples, {doubled} twice as many, {again} the first number again; windows
of 3 batches, {part["rows_in"]:,} tuples in all, {part["results"]:,} results. A unit's capacity is such that the doubled
load is a tenth above all of it; the limits are 0.8 and 0.35. Units are not slots, so more units have no more processors
here: what each phase shows is that nothing stops while they come and go. Copies of a tuple, units that stay and
adaptive: {copies}. One batch in twenty takes longer than this, without those before a window is full:
{_slowest(routings)}.
"""


def scaling(part: Part) -> str:
    """See `benchmarks.scaling`."""
    costs, around = part["costs"], part["around"]
    told = [
        [
            f"{one['layout']}, {one['slots']:,}", number(one["rate"]), number(one["sent_bytes_per_s"] / 1e6, ",.1f"),
            mib(one["stored_bytes"]), one["most"],
        ]
        for one in part["told"]
    ]  # fmt: skip
    ends = "\n".join(f"- {name}: {_end(one)}" for name, one in part["ends"].items())
    return f"""## How joins grow with their slots

{_checks(part)}

What a step takes, of one core, in ns: {costs["route_ns"]:,.0f} to take a tuple in and give its results,
{costs["send_ns"]:,.0f} to send a copy, {costs["store_ns"]:,.0f} to store one, and {costs["far_store_ns"]:,.0f} more
where a unit's part of a batch has more than {NEAR_TUPLES:,} keys, which fill the cache of a core;
{costs["probe_ns"]:,.0f} to look in one unit for partners, and {costs["far_probe_ns"]:,.0f} more where that stores more.
A unit's batch takes {costs["unit_us"]:,.0f} us. Around it {around["tuple_ns"]:,.0f} ns a tuple,
{around["copy_ns"]:,.0f} ns each further copy of it on its way between processes, and {around["batch_ms"]:,.0f} ms a
batch.
Within a process a copy is sent as often as it is probed, in every layout, so the fit gives both the same time.
From these, with {part["slot_tuples"]:,} tuples a batch for each slot and windows of {WINDOW_BATCHES}
batches, by `operators/costs/slots.py`:

{table(["layout, slots", "tuples/s", "MB/s into a slot", "stored in a slot, MiB", "most of a batch is"], told)}

How many slots are useful: with twice as many, each slot does less than {SHARE_MIN:.0%} of what one alone does.

{ends}

Keys are even here, the network is as fast as memory, and a batch costs as much with many slots as with one; hot keys,
slow networks and a driver with much to plan end it earlier. The first table is of Spark, {part["rows_in"]:,} tuples,
{part["results"]:,} results. In the second all units run in one process after the other, so nothing is known of rates;
bytes and processor time are those of as many machines.
"""


def _checks(part: Part) -> str:
    """What was predicted beside what was measured."""
    from benchmarks.scaling import WITHIN_TARGET, is_made_of

    spark, alone, few_and_many = part["spark"], part["checked"], part["workload"]["files_per_batch"]
    rates = [
        [
            f"{one['layout']}, {one['slots']}", number(one["tuples"]), number(one["rate"]), number(one["predicted"]),
            _off(one["predicted"], one["rate"]), "yes" if is_made_of(one, few_and_many) else "",
        ]
        for one in spark
    ]  # fmt: skip
    units = [
        [
            f"{one['layout']}, {one['slots']}", number(one["seconds"], ".2f"), number(one["predicted_s"], ".2f"),
            _off(one["predicted_s"], one["seconds"]), mib(one["sent_bytes"]), mib(one["predicted_bytes"]),
            _off(one["predicted_bytes"], one["sent_bytes"]),
        ]
        for one in alone
    ]  # fmt: skip
    pairs = {
        "rates": [(one["predicted"], one["rate"]) for one in spark if not is_made_of(one, few_and_many)],
        "processor time": [(one["predicted_s"], one["seconds"]) for one in alone],
        "bytes": [(one["predicted_bytes"], one["sent_bytes"]) for one in alone],
    }
    said = ", ".join(f"{what} {_within(found, WITHIN_TARGET)} of {len(found)}" for what, found in pairs.items())
    of_spark = ["layout, slots", "tuples a batch", "tuples/s", "predicted", "off by", "the model was made of it"]
    of_units = ["layout, slots", "processor s", "predicted", "off by", "sent, MiB", "predicted", "off by"]
    return f"""{table(of_spark, rates)}

{table(of_units, units)}

- Within {WITHIN_TARGET:.0%} was the aim for each prediction: {said} are."""


def _per(traffic: Mapping[str, int] | None, what: str, batches: int) -> str:
    return number(traffic[what] / batches / 2**20 if traffic else None, ",.1f")


def _share(traffic: Mapping[str, int]) -> float | None:
    openings = traffic["served"] + traffic["fetched"]
    return traffic["served"] / openings if openings else None


def _slowest(routings: Mapping[str, Any]) -> str:
    """The 95th percentiles of batches once a window is full, of units that stay and of those that come and go."""
    from benchmarks.elastic import WINDOW_FILES

    def one(batch_ms: Sequence[int]) -> str:
        full = batch_ms[WINDOW_FILES + 1 :]
        return number(float(np.percentile(full, 95)) if full else None)

    return ", ".join(
        f"{name} {one(found['batch_ms']['fixed'])} and {one(found['batch_ms']['adaptive'])} ms"
        for name, found in routings.items()
    )


def _off(predicted: float, measured: float | None) -> str:
    return number(predicted / measured - 1 if measured else None, "+.0%")


def _within(pairs: Sequence[tuple[float, float | None]], share: float) -> int:
    return sum(measured is not None and abs(predicted / measured - 1) <= share for predicted, measured in pairs)


def _end(one: Mapping[str, Any]) -> str:
    if one["slots"] is None:
        return f"not before {SLOTS_MAX:,} slots, where most of a batch is {one['most']}."
    return f"{one['slots']:,} slots; most of a batch of twice as many is {one['most']}."
