"""Uniform and Zipf keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamjoin.errors import InputError
from streamjoin.generate import generator, keys

COUNT = 200_000


def keys_of(kind: str, seed: int = 1, **options: float) -> Any:
    return generator(kind).rows(0, COUNT, seed=seed, rate=1000.0, options=options)["k"].to_numpy()


def chi_square(observed: np.ndarray, probabilities: np.ndarray) -> float:
    expected = probabilities * observed.sum()
    return float(((observed - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("kind", ["zipf.r", "zipf.s"])
@pytest.mark.parametrize("skew", [0, 0.5, 1, 1.3, 2])
def test_frequencies_follow_zipfs_law(kind: str, skew: float) -> None:
    law = np.array([1 / rank**skew for rank in range(1, 51)])
    counts = np.bincount(keys_of(kind, skew=skew, keys=50), minlength=50)
    assert len(counts) == 50
    # 49 degrees of freedom: beyond 95 in one of 10,000 tries.
    assert chi_square(counts, law / law.sum()) < 95


def test_draw_on_a_step_of_the_distribution_belongs_to_the_key_above(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = np.array([0.0, 0.25, 0.5, 0.75, 1 - 2.0**-53])
    monkeypatch.setattr(keys, "uniforms", lambda seed, column, numbers: draws)
    batch = generator("zipf.r").rows(0, 5, seed=1, rate=1.0, options={"keys": 4, "skew": 0})
    assert batch["k"].to_pylist() == [0, 1, 2, 3, 3]


def test_another_skew_would_be_noticed() -> None:
    law = np.array([1 / rank**1.05 for rank in range(1, 51)])
    assert chi_square(np.bincount(keys_of("zipf.r", skew=1, keys=50), minlength=50), law / law.sum()) > 95


def test_hottest_key_of_the_default_zipf_stream_has_its_share() -> None:
    harmonic = sum(1 / rank for rank in range(1, 100_001))
    drawn = keys_of("zipf.r")
    assert drawn.max() < 100_000
    assert abs((drawn == 0).mean() - 1 / harmonic) < 0.003
    # The tail is there too: the rarer half of the keys is 5.7 % of the rows.
    assert abs((drawn >= 50_000).mean() - np.log(2) / harmonic) < 0.003


def test_hot_keys_are_shared_by_both_streams_and_all_seeds() -> None:
    assert np.bincount(keys_of("zipf.r", seed=1)).argmax() == np.bincount(keys_of("zipf.s", seed=2)).argmax() == 0


def test_uniform_keys_are_even_and_reach_both_ends() -> None:
    counts = np.bincount(keys_of("uniform.s", keys=100), minlength=100)
    assert len(counts) == 100
    assert chi_square(counts, np.full(100, 0.01)) < 160


def test_uniform_keys_default_to_a_million() -> None:
    drawn = keys_of("uniform.r")
    assert 0 <= drawn.min() < 100
    assert 999_900 < drawn.max() < 1_000_000


def test_one_key_is_always_the_same_key() -> None:
    assert not keys_of("zipf.r", keys=1).any()
    assert not keys_of("uniform.r", keys=1).any()


def test_defaults_are_documented() -> None:
    assert generator("zipf.r").defaults == {"skew": 1.0, "keys": 100_000}
    assert generator("uniform.r").defaults == {"keys": 1_000_000}
    assert all(option.description for option in generator("zipf.r").known_options.values())


@pytest.mark.parametrize(
    "options", [{"skew": -0.1}, {"skew": 2.1}, {"skew": float("nan")}, {"keys": 0}, {"keys": 2.5}, {"keys": 1e12}]
)
def test_option_out_of_range_is_refused_with_the_range(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match=r"must be a (whole )?number from [\d.e+]+ to [\d.e+]+"):
        generator("zipf.r").rows(0, 1, seed=1, rate=1.0, options=options)
