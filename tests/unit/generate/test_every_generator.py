"""What holds for every kind of generated stream."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.errors import InputError
from streamjoin.generate import GENERATORS, Generator, generator

KINDS = [
    "band.r",
    "band.s",
    "zipf.r",
    "zipf.s",
    "uniform.r",
    "uniform.s",
    "nexmark.person",
    "nexmark.auction",
    "nexmark.bid",
    "tpch.orders",
    "tpch.lineitem",
]
ENDLESS = [kind for kind in KINDS if not kind.startswith("tpch")]

pytestmark = pytest.mark.usefixtures("tpch_cache")
each_kind = pytest.mark.parametrize("kind", KINDS)
each_endless_kind = pytest.mark.parametrize("kind", ENDLESS)


def rows(kind: str, start: int, stop: int, seed: int = 1, rate: float = 1000.0, **options: float) -> pa.RecordBatch:
    return generator(kind).rows(start, stop, seed=seed, rate=rate, options=options)


def times_us(batch: pa.RecordBatch) -> Any:
    return batch["ts"].cast(pa.int64()).to_numpy()


def test_the_kinds_are_those_promised() -> None:
    assert list(GENERATORS) == KINDS
    assert all(kind == one.kind for kind, one in GENERATORS.items())


def test_unknown_kind_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r'"band" is not a kind.*band\.r.*tpch\.lineitem'):
        generator("band")


@each_kind
@pytest.mark.parametrize("cut", [0, 1, 37, 50, 99, 100])
def test_rows_do_not_depend_on_where_the_stream_is_cut(kind: str, cut: int) -> None:
    assert pa.concat_batches([rows(kind, 0, cut), rows(kind, cut, 100)]).equals(rows(kind, 0, 100))


@each_kind
def test_a_single_row_in_the_middle_is_the_row_of_the_whole(kind: str) -> None:
    assert rows(kind, 7_654, 7_655).equals(rows(kind, 7_000, 8_000).slice(654, 1))


@each_endless_kind
def test_rows_far_out_can_be_made_alone(kind: str) -> None:
    far = 3 * 10**9
    assert rows(kind, far + 5, far + 9).equals(rows(kind, far, far + 9).slice(5))


@each_kind
def test_batch_has_the_declared_schema_and_is_sound(kind: str) -> None:
    batch = rows(kind, 0, 1000)
    batch.validate(full=True)
    assert batch.schema.equals(generator(kind).schema)
    assert all(column.null_count == 0 for column in batch.columns)
    assert generator(kind).schema.field(generator(kind).time).type == pa.timestamp("us", tz="UTC")


@each_kind
def test_no_rows_is_an_empty_batch_with_the_schema(kind: str) -> None:
    batch = rows(kind, 10, 10)
    assert batch.num_rows == 0
    assert batch.schema.equals(generator(kind).schema)


@pytest.mark.parametrize("kind", [*ENDLESS, "tpch.lineitem"])
def test_another_seed_gives_other_rows(kind: str) -> None:
    assert not rows(kind, 0, 100, seed=2).equals(rows(kind, 0, 100))


@pytest.mark.parametrize(("r", "s", "column"), [("zipf.r", "zipf.s", "k"), ("uniform.r", "uniform.s", "v")])
def test_two_streams_with_one_seed_are_independent(r: str, s: str, column: str) -> None:
    left, right = rows(r, 0, 50_000)[column].to_numpy(), rows(s, 0, 50_000)[column].to_numpy()
    assert abs(np.corrcoef(left, right)[0, 1]) < 0.02


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("nexmark") and kind != "tpch.lineitem"])
def test_event_times_follow_the_rate_from_the_start_of_2026(kind: str) -> None:
    base_us = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
    # Three rows/s: 333,333 us between rows, and no rounding error that adds up.
    assert (times_us(rows(kind, 0, 5, rate=3)) - base_us).tolist() == [0, 333_333, 666_666, 1_000_000, 1_333_333]


@each_kind
def test_rate_changes_nothing_but_times(kind: str) -> None:
    slow, fast = rows(kind, 0, 200, rate=10), rows(kind, 0, 200, rate=20)
    for name in slow.schema.names:
        assert slow[name].equals(fast[name]) == (name not in {"ts", "expires"})


@each_kind
@pytest.mark.parametrize("rate", [7.0, 100_000.0])
def test_no_row_lies_further_back_than_the_disorder_says(kind: str, rate: float) -> None:
    times = times_us(rows(kind, 0, 15_000, rate=rate))
    assert (np.maximum.accumulate(times) - times).max() <= generator(kind).disorder_us


def test_only_line_items_are_disordered() -> None:
    assert {kind: one.disorder_us for kind, one in GENERATORS.items() if one.disorder_us} == {
        "tpch.lineitem": 30_000_000
    }


@each_kind
def test_unknown_option_is_refused_by_name(kind: str) -> None:
    with pytest.raises(InputError, match=f'{kind} has no option "colour"'):
        rows(kind, 0, 1, colour=1)
    with pytest.raises(InputError, match="colour"):
        generator(kind).length({"colour": 1})


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_rate_that_is_no_positive_number_is_refused(rate: float) -> None:
    with pytest.raises(InputError, match="rate"):
        rows("band.r", 0, 1, rate=rate)


@pytest.mark.parametrize("rate", [1e-9, 1e-310])
def test_rate_that_leads_out_of_the_times_is_refused(rate: float) -> None:
    with pytest.raises(InputError, match="raise the rate"):
        rows("band.r", 0, 100_000, rate=rate)


@pytest.mark.parametrize(("start", "stop"), [(-1, 5), (5, 4)])
def test_rows_that_cannot_be_are_refused(start: int, stop: int) -> None:
    with pytest.raises(InputError, match="no rows"):
        rows("band.r", start, stop)


def test_another_seed_leaves_orders_as_they_are() -> None:
    assert rows("tpch.orders", 0, 100, seed=2).equals(rows("tpch.orders", 0, 100))


@each_endless_kind
def test_made_up_streams_have_no_end(kind: str) -> None:
    assert generator(kind).length() is None


@each_kind
def test_generator_travels_between_processes(kind: str) -> None:
    travelled: Generator = pickle.loads(pickle.dumps(generator(kind)))
    assert travelled.rows(3, 9, seed=1, rate=1000.0).equals(rows(kind, 3, 9))
