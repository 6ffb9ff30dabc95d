"""What groups are made of: exact sums and variances, panes and windows, and values at the ends of their types."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.engine.loop import Brought, Loop
from streamjoin.operators import registry
from streamjoin.operators.aggregate.exact import rounded, sum_codes, sum_squares, sum_values, variances
from streamjoin.operators.aggregate.means import integer_means, means
from streamjoin.operators.aggregate.windows import Ending, first_end_us, last_end_us, last_given_us
from streamjoin.plan.aggregate import Hopping
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Cascade
from streamjoin.query import plan_query
from streamjoin.state.memory import MemoryStates

HUGE = 1.7976931348623157e308
Groups = Sequence[Sequence[float]]


def laid_out(groups: Groups) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values of all groups, their order, and where each group begins."""
    values = np.array([value for group in groups for value in group], float)
    return values, np.arange(values.size), np.cumsum([0, *map(len, groups)]).astype(np.int64)


def drawn(seed: int, count: int = 1_500) -> list[list[float]]:
    """Groups of floats of all sizes, of which many nearly cancel."""
    chosen = random.Random(seed)

    def one() -> float:
        kind = chosen.randrange(5)
        if kind == 0:
            return chosen.uniform(-1, 1) * 10.0 ** chosen.randint(-300, 300)
        if kind == 1:
            return math.ldexp(chosen.random(), chosen.randint(-1080, -1000))
        return chosen.choice([chosen.uniform(-1, 1), float(chosen.randint(-(10**16), 10**16)), 1e9 + chosen.random()])

    found = [[one() for _ in range(chosen.randint(1, 9))] for _ in range(count)]
    return [
        [*group, *(-value for value in group[1:])] if number % 3 == 0 else group for number, group in enumerate(found)
    ]


def as_float(number: Fraction) -> float:
    try:
        return number.numerator / number.denominator
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def test_sums_are_the_nearest_floats_to_exact_ones() -> None:
    groups = drawn(1)
    found = rounded(*sum_values(*laid_out(groups)))
    assert [float(value) for value in found] == [as_float(sum(map(Fraction, group), Fraction(0))) for group in groups]


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ([1e40, 1e20, 1.0, -1e40, -1e20], 1.0), ([5e-324, 5e-324], 1e-323), ([HUGE, HUGE], math.inf),
        ([HUGE, HUGE, -HUGE], HUGE), ([-HUGE, -HUGE], -math.inf), ([math.inf, 1.0], math.inf), ([-0.0], 0.0), ([], 0.0),
        ([math.inf, -math.inf], math.nan), ([math.nan, 1.0], math.nan), ([0.1] * 10, 1.0),
        ([1.0, 2**-53, 2**-53], 1.0000000000000002),
    ],
)  # fmt: skip
def test_sums_at_the_ends_of_floats(group: list[float], expected: float) -> None:
    (found,) = rounded(*sum_values(*laid_out([group])))
    assert found == expected or (math.isnan(found) and math.isnan(expected))


COUNTS = (1, 3, 7, 10**6 + 3, 2**31 - 1, 2**31, 2**40 + 1, 2**63 - 1)
"""Above 2**31 a division goes another way."""


@pytest.mark.parametrize("count", COUNTS)
def test_means_are_the_nearest_floats_to_exact_ones(count: int) -> None:
    groups = [*drawn(5), [5e-324], [1e-320] * 3, [HUGE, HUGE], [-HUGE], [1.0, 2**-54], [-0.0]]
    found = means(*sum_values(*laid_out(groups)), np.full(len(groups), count))
    exact = [sum(map(Fraction, group), Fraction(0)) / count for group in groups]
    assert found.tolist() == [as_float(one) for one in exact]


@pytest.mark.parametrize("count", COUNTS)
def test_means_of_integers_are_the_nearest_floats_to_exact_ones(count: int) -> None:
    chosen = random.Random(6)
    sums = [chosen.getrandbits(bits) * sign for bits in range(1, 92) for sign in (1, -1)] + [
        0,
        1,
        -1,
        -(2**90),
        2**54 + 1,
    ]
    digits = [[one & 0xFFFFFFFF, one >> 32 & 0xFFFFFFFF, one >> 64] for one in sums]
    found = integer_means(*(np.array(column) for column in zip(*digits, strict=True)), np.full(len(sums), count))
    assert found.tolist() == [as_float(Fraction(one, count)) for one in sums]


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ([math.inf, 1.0], math.inf),
        ([-math.inf], -math.inf),
        ([math.inf, -math.inf], math.nan),
        ([math.nan, 1.0], math.nan),
    ],
)
def test_means_of_what_is_no_number(group: list[float], expected: float) -> None:
    (found,) = means(*sum_values(*laid_out([group])), np.array([len(group)]))
    assert found == expected or (math.isnan(found) and math.isnan(expected))


@pytest.mark.slow
def test_a_mean_is_not_beyond_the_greatest_value() -> None:
    price = Decimal("806.20")
    found = only_group("AVG(x) AS mean, MAX(CAST(x AS DOUBLE)) AS most", pa.decimal128(9, 2), [price] * 3)
    assert found == {"mean": 806.2, "most": 806.2}


@pytest.mark.parametrize("add", [sum_values, sum_squares])
def test_sums_of_parts_are_the_same_bytes_as_sums_of_all(add: Any) -> None:
    groups, chosen = drawn(2), random.Random(3)
    parts, owners = [], []
    for number, group in enumerate(groups):
        mixed = chosen.sample(group, len(group))
        at = sorted(chosen.randrange(len(group) + 1) for _ in range(2))
        parts += [mixed[: at[0]], mixed[at[0] : at[1]], mixed[at[1] :]]
        owners += [number] * 3
    codes, spans = add(*laid_out(parts))
    order = np.argsort(owners, kind="stable").astype(np.int64)
    found = sum_codes(codes, spans, order, np.arange(0, len(parts) + 1, 3))
    whole = add(*laid_out(groups))
    assert np.array_equal(found[0], whole[0]) and np.array_equal(found[1], whole[1])


@pytest.mark.parametrize("less", [0, 1])
def test_variances_are_exact_whatever_the_mean(less: int) -> None:
    groups = [*drawn(4), [1e15, 1e15 + 1, 1e15 + 2], [3.0] * 7]
    counts = np.array(list(map(len, groups)), np.int64)
    found = variances(*sum_values(*laid_out(groups)), *sum_squares(*laid_out(groups)), counts, less)
    for group, value in zip(groups, found.tolist(), strict=True):
        if len(group) <= less:
            assert math.isnan(value)
            continue
        exact, count = list(map(Fraction, group)), len(group)
        above = count * sum(one * one for one in exact) - sum(exact, Fraction(0)) ** 2
        expected = as_float(above / (count * (count - less)))
        assert value == expected or math.isclose(value, expected, rel_tol=1e-15, abs_tol=1e-320)


@pytest.mark.parametrize(("slide", "size"), [(10, 10), (10, 30), (10, 25), (4, 10), (7, 8)])
def test_windows_are_those_that_a_loop_finds(slide: int, size: int) -> None:
    windows = Hopping(slide, size)
    chosen = random.Random(slide * size)
    for _ in range(200):
        times = [chosen.randrange(-200, 200) for _ in range(chosen.randint(1, 12))]
        panes = np.unique(np.array(times) // windows.pane_us * windows.pane_us)
        after, until = sorted(chosen.randrange(-200, 300) for _ in range(2))
        holding = {
            pane: [n for n in range(-200, 200) if n * slide <= pane < n * slide + size] for pane in panes.tolist()
        }
        wanted = {n for numbers in holding.values() for n in numbers if after < n * slide + size <= until}
        assert Ending(windows, after, until).numbers(panes).tolist() == sorted(wanted)
        held = {n for numbers in holding.values() for n in numbers}
        assert Ending(windows, None, None).numbers(panes).tolist() == sorted(held)
        assert first_end_us(windows, panes).tolist() == [min(holding[pane]) * slide + size for pane in panes.tolist()]
        assert last_end_us(windows, panes).tolist() == [max(holding[pane]) * slide + size for pane in panes.tolist()]
        assert last_given_us(windows, until) == max(
            n * slide + size for n in range(-200, 200) if n * slide + size <= until
        )


def only_group(items: str, kind: pa.DataType, values: Sequence[Any]) -> dict[str, Any]:
    """What a query over one group gives, its values one a batch."""
    schema = pa.schema([("ts", pa.int64()), ("x", kind), ("y", pa.int64())])
    plan = plan_query(f"SELECT ONLINE {items} FROM a GROUP BY TUMBLE(1 DAY)", {"a": StreamSchema("a", schema, "ts")})
    assert isinstance(plan, Cascade)
    states = MemoryStates()
    loop = Loop(plan, registry.build_all("auto", {}, plan, 2), lambda stage: states, 2)
    found: list[dict[str, Any]] = []
    for number in range(len(values) + 1):
        cells = [{"ts": number, "x": values[number], "y": number}] if number < len(values) else []
        brought = Brought([[pa.RecordBatch.from_pylist(cells, schema=schema)]], number, drains=not cells)
        found += [row for _, part in loop.batch(brought) for row in part.to_pylist()]
        loop.commit(brought)
    (row,) = found
    return row


def test_a_sum_of_integers_outside_int64_is_null_and_comes_back() -> None:
    most, least = 2**63 - 1, -(2**63)
    assert only_group("SUM(x) AS s", pa.int64(), [most, 1]) == {"s": None}
    assert only_group("SUM(x) AS s", pa.int64(), [most, most, least, least, 5]) == {"s": 3}
    assert only_group("SUM(x) AS s", pa.int64(), [least, 0]) == {"s": least}
    assert only_group("SUM(CAST(x AS DECIMAL(38, 0))) AS s", pa.int64(), [most, most]) == {"s": Decimal(2 * most)}
    assert only_group("AVG(x) AS s", pa.int64(), [most, most]) == {"s": float(most)}
    assert only_group("SUM(x) AS s, AVG(x) AS a, MIN(x) AS m, COUNT(x) AS n", pa.int64(), [None]) == {
        "s": None, "a": None, "m": None, "n": 0,
    }  # fmt: skip


def test_a_sum_of_decimals_beyond_38_digits_is_null_and_comes_back() -> None:
    kind, most, least = pa.decimal128(38, 2), Decimal("9" * 36 + ".99"), Decimal("-" + "9" * 36 + ".99")
    assert only_group("SUM(x) AS s", kind, [most, Decimal("0.01")]) == {"s": None}
    assert only_group("SUM(x) AS s", kind, [most, most, least, least, least]) == {"s": least}
    assert only_group("SUM(x) AS s", kind, [least, Decimal("-0.01")]) == {"s": None}
    assert only_group("SUM(x) AS s, MAX(x) AS m", kind, [None, most]) == {"s": most, "m": most}


def test_nan_is_above_all_numbers_and_a_group_of_its_own() -> None:
    row = only_group("MAX(x) AS m, MIN(x) AS l, COUNT(DISTINCT x) AS d, ARG_MAX(y, x) AS at", pa.float64(),
                     [2.0, math.nan, -0.0, 0.0, math.nan])  # fmt: skip
    assert math.isnan(row["m"]) and math.copysign(1, row["l"]) == 1
    assert (row["l"], row["d"], row["at"]) == (0.0, 3, 1)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.string(), ["b", "a", "straße", None]), (pa.binary(), [b"\xff", b"", None, b"a"]),
        (pa.bool_(), [True, False, None]), (pa.date32(), [5, 3, None]), (pa.float32(), [1.5, -2.5, None]),
        (pa.timestamp("ns", "UTC"), [5, 3, None]), (pa.timestamp("us", "UTC"), [5, 3, None]),
        (pa.int8(), [5, -3, None]), (pa.decimal128(9, 2), [Decimal("1.50"), Decimal("-2.50"), None]),
        (pa.decimal128(38, 0), [Decimal(10**37), None]),
    ],
)  # fmt: skip
def test_values_of_every_type_are_chosen_and_counted(kind: pa.DataType, values: list[Any]) -> None:
    column = pa.array(values, kind).to_pylist()
    row = only_group("MIN(x) AS l, MAX(x) AS m, COUNT(DISTINCT x) AS d, ARG_MIN(x, y) AS first", kind, column)
    there = [value for value in column if value is not None]
    assert row == {"l": min(there), "m": max(there), "d": len(there), "first": there[0]}


def test_a_file_that_is_lost_is_an_error_and_no_hole(tmp_path: Path) -> None:
    from streamjoin.errors import StateError
    from streamjoin.state.store import StateStore

    schema = pa.schema([("ts", pa.int64()), ("k", pa.int64())])
    plan = plan_query("SELECT ONLINE k, COUNT(*) AS n FROM a GROUP BY k, TUMBLE(1 DAY)",
                      {"a": StreamSchema("a", schema, "ts")})  # fmt: skip
    assert isinstance(plan, Cascade)
    loop = Loop(plan, registry.build_all("auto", {}, plan, 1), lambda stage: StateStore(tmp_path, stage, sync=False))
    brought = Brought([[pa.RecordBatch.from_pylist([{"ts": 1, "k": 1}], schema=schema)]], 0)
    list(loop.batch(brought))
    loop.commit(brought)
    (file,) = tmp_path.rglob("*.arrow")
    file.unlink()
    loop.open_states = lambda stage: StateStore(tmp_path, stage, sync=False)
    with pytest.raises(StateError, match="is lost"):
        list(loop.batch(Brought([[]], 1, drains=True)))
