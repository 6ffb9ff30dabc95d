"""Decimals of up to 18 digits are carried in 64 bits; segments of a version that did not do so are still read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from streamjoin.operators.biclique import Biclique
from streamjoin.plan.decimals import carried, carried_type, widened
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.sharing import SharedJoin
from streamjoin.query import plan_query
from tests.conformance.check import ANY, REPRESENTATIVES
from tests.conformance.local import Batch, LocalRun

MONEY = pa.decimal128(18, 2)
ENDS = [Decimal(10**18 - 1).scaleb(-2), -Decimal(10**18 - 1).scaleb(-2), Decimal("0.00"), Decimal("-0.01")]
BATCHES, ROWS, WINDOW_US, PERIOD_US = 6, 60, 90, 200
Row = tuple[int, int, Decimal | None]
"""Id, event time and key."""


def test_a_decimal_comes_back_as_it_was() -> None:
    values = pa.array([*ENDS, None, Decimal("2.25"), None], MONEY)
    for start in range(len(values) + 1):  # slices, of which the validity begins inside of a byte
        part = values.slice(start)
        narrow = carried(part)
        assert narrow.type == pa.decimal64(18, 2) and narrow.null_count == part.null_count
        assert widened(narrow).equals(part)
        assert widened(narrow.slice(1)).equals(part.slice(1))
    assert widened(carried(pa.nulls(3, MONEY))).equals(pa.nulls(3, MONEY))
    assert carried(pa.Array.from_buffers(MONEY, 0, [None, None])).type == pa.decimal64(18, 2)


@pytest.mark.parametrize("kind", [pa.decimal128(19, 2), pa.decimal128(38, 38), pa.int64(), pa.float64(), pa.string()])
def test_other_types_are_carried_as_they_are(kind: pa.DataType) -> None:
    assert carried_type(kind) == kind
    values = pa.nulls(2, kind)
    assert carried(values) is values and widened(values) is values


def history(seed: int) -> tuple[list[list[Row]], list[list[Row]]]:
    """What R and S bring, batch by batch; keys meet often, and some are NULL or at the ends."""
    rng = Random(seed)
    keys = [*ENDS, None, *(Decimal(cents).scaleb(-2) for cents in range(-8, 8))]
    r, s = (
        [
            [(number * ROWS + row, number * ROWS + row, rng.choice(keys)) for row in range(ROWS)]
            for number in range(BATCHES)
        ]
        for _ in "rs"
    )
    return r, s


def as_rows(rows: list[Row]) -> pa.RecordBatch:
    ids, times, keys = zip(*rows, strict=True)
    at = pa.array(times, pa.int64()).view(pa.timestamp("us", "UTC"))
    return pa.record_batch([pa.array(ids), at, pa.array(keys, MONEY)], ["id", "ts", "k"])


def widen_segments(state: Path) -> int:
    """Write all segments as they were before: decimals in 128 bits. How many were others."""
    sizes = {}
    for path in state.rglob("*.arrow"):
        rows = pa.ipc.open_file(pa.BufferReader(path.read_bytes())).get_batch(0)
        wide = pa.RecordBatch.from_arrays([widened(column) for column in rows.columns], rows.schema.names)
        if wide.schema == rows.schema:
            continue
        path.unlink()  # not over it: it may be mapped
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, wide.schema) as writer:
            writer.write_batch(wide)
        sizes[path.resolve()] = path.stat().st_size
    for path in state.rglob("[0-9]*.json"):
        manifest = json.loads(path.read_text())
        for table in manifest["tables"].values():
            for info in table["segments"]:
                info["bytes"] = sizes.get((path.parent / info["file"]).resolve(), info["bytes"])
        path.write_text(json.dumps(manifest))
    return len(sizes)


def meets(name: str, r: Decimal | None, s: Decimal | None) -> bool:
    if name == "null-safe":
        return r == s
    if r is None or s is None:
        return False
    return r == s if name == "equality" else abs(r - s) <= Decimal("0.02")


CONDITIONS = {
    "equality": "r.k = s.k",
    "null-safe": "r.k IS NOT DISTINCT FROM s.k",
    "band": "ABS(r.k - s.k) <= 0.02",
}
SELECT = "SELECT ONLINE r.id AS a, s.id AS b, r.k AS rk, s.k AS sk, r.k + 1.5 AS more FROM r, s WHERE"


def wanted(name: str, r: list[list[Row]], s: list[list[Row]]) -> Iterator[tuple[object, ...]]:
    for one in (row for batch in r for row in batch):
        for other in (row for batch in s for row in batch):
            if abs(one[1] - other[1]) <= WINDOW_US and meets(name, one[2], other[2]):
                yield one[0], other[0], one[2], other[2], None if one[2] is None else one[2] + Decimal("1.5")


@pytest.mark.parametrize("earlier", [False, True], ids=["", "an earlier version's segments"])
@pytest.mark.parametrize("operator", REPRESENTATIVES)
def test_decimals_are_joined_and_given_back_exactly(operator: str, earlier: bool, tmp_path: Path) -> None:
    r, s = history(7)
    schemas = {name: StreamSchema(name, as_rows(r[0]).schema, "ts") for name in "rs"}
    plans = {
        # So long an archive period that segments of several batches are merged.
        name: replace(
            plan_query(f"{SELECT} {condition} WITHIN {WINDOW_US} MICROSECONDS", schemas), archive_period_us=PERIOD_US
        )
        for name, condition in CONDITIONS.items()
    }
    for names in (("equality",), ("null-safe",), ("band",), tuple(CONDITIONS)):
        chosen = tuple(plans[name] for name in names)
        plan = chosen[0] if len(chosen) == 1 else SharedJoin(names, chosen)
        folder = tmp_path / "-".join(names)
        job = LocalRun(plan, ANY[operator], folder)
        found = [Counter[tuple[object, ...]]() for _ in names]
        batches: list[Batch] = [([as_rows(r[at])], [as_rows(s[at])]) for at in range(BATCHES)]
        for number, batch in enumerate([*batches, *job.drain()]):
            results = job.batch(batch)
            for query, rows in zip(job.of_queries, results, strict=True):
                assert rows.schema.field("rk").type == rows.schema.field("sk").type == MONEY
                found[query].update(tuple(row.values()) for row in rows.to_pylist())
            if earlier and number == 2:
                assert widen_segments(folder)
        for name, pairs in zip(names, found, strict=True):
            assert pairs == Counter(wanted(name, r, s)), name


def test_stored_decimals_take_eight_bytes(tmp_path: Path) -> None:
    r, s = history(7)
    schemas = {name: StreamSchema(name, as_rows(r[0]).schema, "ts") for name in "rs"}
    job = LocalRun(plan_query(f"{SELECT} r.k = s.k", schemas), Biclique(1, 1), tmp_path)
    job.batch(([as_rows(r[0])], [as_rows(s[0])]))
    kinds = {
        pa.ipc.open_file(pa.BufferReader(path.read_bytes())).schema.field("k").type
        for path in tmp_path.rglob("*.arrow")
    }
    assert kinds == {pa.decimal64(18, 2)}
