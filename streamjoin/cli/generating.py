"""The command that writes workloads of the papers to files."""

from __future__ import annotations

from typing import Literal

from streamjoin.cli.places import Written
from streamjoin.cli.terminal import counted


def generate(
    kind: str,
    *,
    out: Written,
    rows: int = 100_000,
    seed: int = 1,
    rate: float = 10_000.0,
    rows_per_file: int = 100_000,
    format: Literal["parquet", "csv", "jsonl", "arrow"] = "parquet",
) -> None:
    """Write a workload of the papers to files.

    Parameters
    ----------
    kind
        Such as band.r, zipf.s, nexmark.bid or tpch.lineitem.
    out
        The folder; it is made if it is not there.
    rows
        How many.
    seed
        The same seed gives the same rows.
    rate
        Rows a second of event time.
    rows_per_file
        Files are 00000, 00001 and so on.
    format
        Of the files.
    """
    from streamjoin.generate.files import write_files

    files = write_files(kind, out, rows=rows, seed=seed, rate=rate, rows_per_file=rows_per_file, format=format)
    print(f"{counted(rows, 'row')} of {kind} in {counted(len(files), 'file')} in {out}")
