"""Benchmark inputs: two streams, `r` and `s`, or more, as Parquet files every system under test can read.

    out/r/00000.parquet, 00001.parquet, ...     out/s/00000.parquet, ...     out/marker.json

Rules every data set keeps:
    1. `ts` is timestamp('us', UTC) whose values are whole milliseconds, since Flink's event time has no finer unit.
    2. Rows are sorted by `ts` within a file; file i covers [i * span_ms_per_file, (i + 1) * span_ms_per_file) ms after
       `BEGIN_MS`, for all streams; a longer first file moves the others back by as much.
    3. Modification times rise with the file number, because Spark's file source reads oldest first.
    4. The same parameters give the same bytes.
"""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

STREAMS = ("r", "s")
BAND_VALUE_MAX = 10_000  # SplitJoin draws every join attribute from 1 to this, both included.
MARKER = "marker.json"
# Not the epoch itself: Spark's first watermark is 0, so it drops a row of that very millisecond as late.
BEGIN_MS = 1_700_000_000_000
FIRST_FILE_MODIFIED_S = 1_600_000_000  # Any fixed past second; only the order of the files matters.

Columns = dict[str, pa.Array]
MakeColumns = Callable[[np.random.Generator, str, int], Columns]


def make_equi(
    out: Path,
    *,
    files: int,
    rows_per_file: int,
    keys: int,
    span_ms_per_file: int,
    seed: int,
    first_file: int = 1,
    pad_bytes: int = 0,
    groups: int = 0,
    streams: Sequence[str] = STREAMS,
    loads: Sequence[int] = (),
) -> None:
    """Write the equi-join streams: ts, key int64 uniform in [0, keys), val float64 uniform in [0, 1).

    All streams have `files` files of `rows_per_file` rows. Nothing is written when `out` already holds
    this data set; a data set with other parameters is replaced as a whole, never half.

    Args:
        first_file: the first file holds so many times the rows, and spans so many times the time; a window is full
            after it, so that what follows can be measured alone.
        pad_bytes: length of a further column, `pad`, of random letters; no such column where it is 0.
        groups: two further columns: g int64 uniform in [0, groups), x int64 uniform in [0, 100); neither where it is 0.
        streams: their names.
        loads: by file, how many times the rows it holds, in the time of any other; 1 where it is empty.
    """

    def columns(rng: np.random.Generator, stream: str, rows: int) -> Columns:
        made = {"key": pa.array(rng.integers(0, keys, rows)), "val": pa.array(rng.random(rows))}
        if groups:
            made |= {"g": pa.array(rng.integers(0, groups, rows)), "x": pa.array(rng.integers(0, 100, rows))}
        if pad_bytes:
            made["pad"] = _strings(rng.integers(ord("a"), ord("z") + 1, (rows, pad_bytes), dtype=np.uint8))
        return made

    parameters: dict[str, int | str] = {
        "kind": "equi",
        "files": files,
        "rows_per_file": rows_per_file,
        "keys": keys,
        "span_ms_per_file": span_ms_per_file,
        "begin_ms": BEGIN_MS,
        "seed": seed,
        **({"first_file": first_file} if first_file != 1 else {}),
        **({"pad_bytes": pad_bytes} if pad_bytes else {}),
        **({"groups": groups} if groups else {}),
        **({"streams": ",".join(streams)} if tuple(streams) != STREAMS else {}),
        **({"loads": ",".join(map(str, loads))} if loads else {}),
    }
    _make(out, parameters, columns, files, rows_per_file, span_ms_per_file, seed, first_file, streams, loads)


def make_band(out: Path, *, files: int, rows_per_file: int, span_ms_per_file: int, seed: int) -> None:
    """Write SplitJoin's band-join streams.

    r is (ts, x int32, y float32, z string of 20 letters), s is (ts, a int32, b float32, c float64, d bool). Every
    number is uniform in 1..10,000. Files, order and replacement as in `make_equi`.

    Source: SplitJoin (USENIX ATC 2016), evaluation.
    """

    def columns(rng: np.random.Generator, stream: str, rows: int) -> Columns:
        integers = pa.array(rng.integers(1, BAND_VALUE_MAX + 1, rows, dtype=np.int32))
        floats = pa.array(rng.uniform(1, BAND_VALUE_MAX, rows).astype(np.float32))
        if stream == "r":
            letters = rng.integers(ord("a"), ord("z") + 1, (rows, 20), dtype=np.uint8)
            return {"x": integers, "y": floats, "z": _strings(letters)}
        doubles = pa.array(rng.uniform(1, BAND_VALUE_MAX, rows))
        return {"a": integers, "b": floats, "c": doubles, "d": pa.array(rng.random(rows) < 0.5)}

    parameters: dict[str, int | str] = {
        "kind": "band",
        "files": files,
        "rows_per_file": rows_per_file,
        "span_ms_per_file": span_ms_per_file,
        "begin_ms": BEGIN_MS,
        "seed": seed,
    }
    _make(out, parameters, columns, files, rows_per_file, span_ms_per_file, seed)


def stream_files(data: Path, stream: str) -> list[Path]:
    """The files of `stream` under `data`, in time order."""
    return sorted((data / stream).glob("*.parquet"))


def _make(
    out: Path,
    parameters: dict[str, int | str],
    columns: MakeColumns,
    files: int,
    rows_per_file: int,
    span_ms: int,
    seed: int,
    first_file: int = 1,
    streams: Sequence[str] = STREAMS,
    loads: Sequence[int] = (),
) -> None:
    """Build the data set beside `out`, then put it in place with one rename."""
    marker = out / MARKER
    if marker.exists() and json.loads(marker.read_text()) == parameters:
        return
    partial = out.with_name(f".{out.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    rng = np.random.default_rng(seed)
    for stream in streams:
        (partial / stream).mkdir(parents=True)
        for number in range(files):
            begin, times = (0, first_file) if number == 0 else (number + first_file - 1, 1)
            rows = rows_per_file * times * (loads[number] if loads else 1)
            ts_ms = BEGIN_MS + np.sort(rng.integers(begin * span_ms, (begin + times) * span_ms, rows))
            ts = pa.array(ts_ms * 1000).cast(pa.timestamp("us", "UTC"))
            path = partial / stream / f"{number:05d}.parquet"
            table = pa.table({"ts": ts, **columns(rng, stream, rows)})
            pq.write_table(table, path, compression="none")
            modified_s = FIRST_FILE_MODIFIED_S + number
            os.utime(path, (modified_s, modified_s))
    (partial / MARKER).write_text(json.dumps(parameters))
    shutil.rmtree(out, ignore_errors=True)
    partial.rename(out)


def _strings(letters: np.ndarray) -> pa.Array:
    """One string a row from ASCII codes, uint8 of shape (rows, length)."""
    rows, length = letters.shape
    offsets = np.arange(0, (rows + 1) * length, length, dtype=np.int32)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(letters.tobytes()))
