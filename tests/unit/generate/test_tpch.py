"""The replay of TPC-H, and the cache of its tables."""

from __future__ import annotations

import stat
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.errors import InputError, RunError
from streamjoin.generate import generator, tpch_files
from streamjoin.generate.tpch_files import table_file

RATE = 100.0
BASE_US = 1_767_225_600_000_000


def rows(stream: str, start: int, stop: int, seed: int = 1, scale: float = 0.01) -> pa.RecordBatch:
    return generator(f"tpch.{stream}").rows(start, stop, seed=seed, rate=RATE, options={"scale": scale})


def everything(stream: str) -> pa.RecordBatch:
    return rows(stream, 0, generator(f"tpch.{stream}").length() or 0)


def times_us(batch: pa.RecordBatch) -> Any:
    return batch["ts"].cast(pa.int64()).to_numpy()


pytestmark = pytest.mark.usefixtures("tpch_cache")


def test_length_is_that_of_the_file() -> None:
    assert generator("tpch.orders").length() == 15_000
    assert generator("tpch.lineitem").length() == pq.read_metadata(table_file("lineitem", 0.01)).num_rows


def test_row_past_the_end_is_refused_with_the_length() -> None:
    with pytest.raises(InputError, match="ends after 15000 rows"):
        rows("orders", 14_999, 15_001)


@pytest.mark.parametrize("scale", [0, 0.00001, 1000])
def test_scale_out_of_range_is_refused(scale: float) -> None:
    with pytest.raises(InputError, match='"scale"'):
        rows("orders", 0, 1, scale=scale)


@pytest.mark.parametrize(("stream", "prefix"), [("orders", "o_"), ("lineitem", "l_")])
def test_values_are_those_of_the_file_with_nearest_floats_for_decimals(stream: str, prefix: str) -> None:
    stored = pq.read_table(table_file(stream, 0.01))
    replayed = everything(stream)
    for name in replayed.schema.names[:-1]:
        expected = stored[prefix + name].to_pylist()
        assert replayed[name].to_pylist() == [float(v) if isinstance(v, Decimal) else v for v in expected], name


@pytest.mark.parametrize(
    ("start", "stop"),
    [(0, 1), (999, 1_000), (1_000, 1_001), (999, 1_001), (1_000, 3_000), (2_345, 7_891), (60_000, 60_175)],
)
def test_rows_do_not_depend_on_the_row_groups_of_the_file(start: int, stop: int, tpch_cache: Path) -> None:
    finer = tpch_cache / "tpch-scale-0.011"
    if not finer.exists():
        finer.mkdir()
        pq.write_table(pq.read_table(table_file("lineitem", 0.01)), finer / "lineitem.parquet", row_group_size=1_000)
    assert pq.read_metadata(finer / "lineitem.parquet").num_row_groups == 61
    assert rows("lineitem", start, stop, scale=0.011).equals(rows("lineitem", start, stop))


def test_every_line_item_comes_less_than_thirty_seconds_after_its_order() -> None:
    orders, lines = everything("orders"), everything("lineitem")
    ordered_us = dict(zip(orders["orderkey"].to_pylist(), times_us(orders).tolist(), strict=True))
    lags_us = times_us(lines) - np.array([ordered_us[key] for key in lines["orderkey"].to_pylist()])
    assert set(lines["orderkey"].to_pylist()) == set(ordered_us)
    assert 0 <= lags_us.min() < 10_000
    assert 29_990_000 < lags_us.max() < 30_000_000
    assert abs(lags_us.mean() - 15_000_000) < 200_000


def test_line_items_of_one_order_spread() -> None:
    lines = rows("lineitem", 0, 6)
    assert lines["orderkey"].to_pylist() == [1] * 6
    assert len(set(times_us(lines).tolist())) == 6


def test_disorder_of_line_items_comes_close_to_its_bound_and_stays_below() -> None:
    times = times_us(everything("lineitem"))
    behind_us = (np.maximum.accumulate(times) - times).max()
    assert 29_000_000 < behind_us < generator("tpch.lineitem").disorder_us == 30_000_000


def test_seed_moves_line_items_in_time_only() -> None:
    one, other = rows("lineitem", 0, 500), rows("lineitem", 0, 500, seed=2)
    assert one.drop_columns("ts").equals(other.drop_columns("ts"))
    assert (times_us(one) != times_us(other)).mean() > 0.99


def use_program(folder: Path, script: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `folder` the only place where programs are found, with this one in it; `script` is shell."""
    folder.mkdir()
    if script is not None:
        program = folder / "tpchgen-cli"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("STREAMJOIN_CACHE", str(folder.parent / "cache"))


def test_missing_program_is_named_with_the_way_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_program(tmp_path / "bin", None, monkeypatch)
    with pytest.raises(InputError, match="pip install tpchgen-cli"):
        rows("orders", 0, 1)


def test_failed_program_leaves_nothing_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_program(tmp_path / "bin", "echo 'disk is full' >&2; exit 3", monkeypatch)
    with pytest.raises(RunError, match=r"scale 0\.01: disk is full"):
        rows("orders", 0, 1)
    assert list((tmp_path / "cache").iterdir()) == []


def test_tables_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_program(tmp_path / "bin", 'echo "$*" >> "$STREAMJOIN_CACHE/calls"', monkeypatch)
    assert table_file("orders", 0.5) == table_file("orders", 0.5) == tmp_path / "cache/tpch-scale-0.5/orders.parquet"
    assert table_file("lineitem", 2) == tmp_path / "cache/tpch-scale-2.0/lineitem.parquet"
    calls = (tmp_path / "cache" / "calls").read_text().splitlines()
    assert [call.split(" --output-dir ")[0] for call in calls] == [
        "parquet --scale-factor 0.5 --tables orders,lineitem",
        "parquet --scale-factor 2.0 --tables orders,lineitem",
    ]


def test_loser_of_a_race_uses_the_tables_of_the_winner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # While our program runs, another process finishes.
    finish = 'folder="$STREAMJOIN_CACHE/tpch-scale-0.5"; /bin/mkdir "$folder"; echo winner > "$folder/orders.parquet"'
    use_program(tmp_path / "bin", f'echo loser > "$7/orders.parquet"; {finish}', monkeypatch)
    assert table_file("orders", 0.5).read_text() == "winner\n"
    assert [folder.name for folder in (tmp_path / "cache").iterdir()] == ["tpch-scale-0.5"]


def test_cache_is_in_the_home_folder_unless_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STREAMJOIN_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tpch_files.cache_folder() == tmp_path / ".cache" / "streamjoin"
