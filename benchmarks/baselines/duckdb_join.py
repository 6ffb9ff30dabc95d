"""The oracle: the same join over the whole files at once, by DuckDB."""

from pathlib import Path

import duckdb

# `file_row_number` and the file's name identify a row without a column of its own.
STREAM_SQL = """
    select epoch_us(ts) as ts_us, key, parse_filename(filename) || ':' || file_row_number as row_id
    from read_parquet('{folder}/*.parquet', filename = true, file_row_number = true)
"""
JOIN_SQL = """
    select count(*), coalesce(sum(hash(r.row_id, s.row_id)), 0) % 18446744073709551616
    from ({r}) r join ({s}) s on r.key = s.key
    and r.ts_us between s.ts_us - {window_us} and s.ts_us + {window_us}
"""


def count_and_hash(data: Path, window_us: int) -> tuple[int, int]:
    """Results of r.key = s.key and |r.ts - s.ts| <= `window_us` microseconds over the streams under `data`.

    Returns:
        The number of pairs, and the sum modulo 2**64 of a 64-bit hash of each pair's row ids ("file:row", rows from 0).
        The hash is DuckDB's own, so it compares two results of DuckDB of one version, in any order of pairs.
    """
    r, s = (STREAM_SQL.format(folder=str(data / stream).replace("'", "''")) for stream in ("r", "s"))
    with duckdb.connect() as connection:
        row = connection.execute(JOIN_SQL.format(r=r, s=s, window_us=window_us)).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])
