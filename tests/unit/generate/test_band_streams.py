"""SplitJoin's band benchmark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.generate import band, generator

COUNT = 200_000


@pytest.fixture(scope="module")
def r() -> pa.RecordBatch:
    return generator("band.r").rows(0, COUNT, seed=5, rate=1000.0)


@pytest.fixture(scope="module")
def s() -> pa.RecordBatch:
    return generator("band.s").rows(0, COUNT, seed=5, rate=1000.0)


def test_columns_are_those_of_the_paper_with_an_id_and_a_time() -> None:
    utc = pa.timestamp("us", tz="UTC")
    assert generator("band.r").schema.equals(
        pa.schema({"id": pa.int64(), "x": pa.int32(), "y": pa.float32(), "z": pa.string(), "ts": utc})
    )
    assert generator("band.s").schema.equals(
        pa.schema({"id": pa.int64(), "a": pa.int32(), "b": pa.float32(), "c": pa.float64(), "d": pa.bool_(), "ts": utc})
    )


def test_id_is_the_row_number() -> None:
    assert generator("band.s").rows(40, 43, seed=1, rate=1.0)["id"].to_pylist() == [40, 41, 42]


def test_whole_numbers_cover_one_to_ten_thousand_with_both_ends(r: pa.RecordBatch, s: pa.RecordBatch) -> None:
    for values in (r["x"].to_numpy(), s["a"].to_numpy()):
        assert (values.min(), values.max()) == (1, 10_000)
        # 20 expected for each value; a chi-square of 9,999 degrees of freedom has a standard deviation of 141.
        chi_square = ((np.bincount(values, minlength=10_001)[1:] - 20.0) ** 2 / 20).sum()
        assert abs(chi_square - 9_999) < 5 * 141


def test_broken_numbers_stay_below_ten_thousand_and_are_even(r: pa.RecordBatch, s: pa.RecordBatch) -> None:
    for values in (r["y"].to_numpy(), s["b"].to_numpy(), s["c"].to_numpy()):
        assert 1 <= values.min() < 2
        assert 9_999 < values.max() < 10_000
        deciles = np.quantile(values.astype(float), np.arange(0.1, 1, 0.1))
        assert np.abs(deciles - (1 + 9_999 * np.arange(0.1, 1, 0.1))).max() < 60


def test_largest_draw_does_not_round_up_to_ten_thousand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(band, "uniforms", lambda seed, column, numbers: np.full(len(numbers), 1 - 2.0**-53))
    assert generator("band.r").rows(0, 1, seed=1, rate=1.0)["y"][0].as_py() < 10_000
    assert generator("band.s").rows(0, 1, seed=1, rate=1.0)["c"][0].as_py() < 10_000


def test_z_has_twenty_characters(r: pa.RecordBatch) -> None:
    assert {len(text) for text in r["z"].to_pylist()} == {20}


def test_d_is_true_half_the_time(s: pa.RecordBatch) -> None:
    assert abs(s["d"].to_numpy(zero_copy_only=False).mean() - 0.5) < 0.005


def test_about_one_pair_in_250_000_is_inside_both_bands(r: pa.RecordBatch, s: pa.RecordBatch) -> None:
    x, y = r["x"].to_numpy()[:4_000], r["y"].to_numpy()[:4_000]
    a, b = s["a"].to_numpy()[:4_000], s["b"].to_numpy()[:4_000]
    matches = ((np.abs(x[:, None] - a) <= 10) & (np.abs(y[:, None] - b) <= 10)).sum()
    # Of 16 million pairs (21 / 10**4) * (20 / 10**4) match: 67 expected.
    assert 35 < matches < 105
