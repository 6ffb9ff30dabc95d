"""The oracle: the same joins over the whole files at once, by DuckDB."""

from pathlib import Path

import duckdb

from benchmarks.data import STREAMS

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


ROWS_SQL = "(select *, epoch_us(ts) as us from read_parquet('{folder}/*.parquet'))"
PAIRS_SQL = "from {r} r join {s} s on r.key = s.key and abs(r.us - s.us) <= {window_us}"
LONE_SQL = """
    select count(*) from {one} one where one.us < {before_us}
    and not exists (select 1 from {other} other where one.key = other.key and abs(one.us - other.us) <= {window_us})
"""
THREE_SQL = """
    select count(*) {pairs} join {t} t on s.key = t.key
    and abs(r.us - t.us) <= {window_us} and abs(s.us - t.us) <= {window_us}
"""
GROUPS_SQL = """
    select r.g, {at} // {window_us} * {window_us} as since_us, count(*) as n, sum(s.x) as total, avg(s.val) as mean,
    max(s.val) as top {pairs} group by 1, 2 order by 2, 1
"""
ASOF_SQL = "select count(*) from {r} r asof join {s} s on r.key = s.key and r.us >= s.us"
AT_R, AT_LATER = "r.us", "greatest(r.us, s.us)"
"""What time of a pair says in which window its group is."""
FOREVER_US = 1 << 62
Group = tuple[int, int, int, int, float, float]


def lone(data: Path, one: str, window_us: int, before_us: int = FOREVER_US) -> int:
    """Rows of the stream `one` of the two before `before_us` that have no partner: what its outer join adds."""
    (other,) = (stream for stream in STREAMS if stream != one)
    rows = {"one": _rows(data, one), "other": _rows(data, other)}
    return _count(LONE_SQL.format(**rows, window_us=window_us, before_us=before_us))


def last_us(data: Path) -> int:
    """The time to which both streams have come."""
    return min(_count(f"select max(us) from {_rows(data, stream)}") for stream in STREAMS)


def count_three(data: Path, window_us: int) -> int:
    """Rows of r, s and t with equal keys, the times of any two at most `window_us` apart."""
    return _count(THREE_SQL.format(pairs=_pairs(data, window_us), t=_rows(data, "t"), window_us=window_us))


def count_asof(data: Path) -> int:
    """Rows of r that have an earlier row of s with their key, or one of the same time."""
    return _count(ASOF_SQL.format(**_both(data)))


def groups(data: Path, window_us: int, at: str) -> list[Group]:
    """(g, begin of the window in us, COUNT(*), SUM(s.x), AVG(s.val), MAX(s.val)) of the join, by window and g.

    Args:
        window_us: of the join, and of the groups.
        at: `AT_R` or `AT_LATER`.
    """
    with duckdb.connect() as connection:
        found: list[Group] = connection.execute(
            GROUPS_SQL.format(at=at, pairs=_pairs(data, window_us), window_us=window_us)
        ).fetchall()
    return found


def same_groups(ours: list[Group], theirs: list[Group]) -> bool:
    """Whether groups are equal, in this order; means within 1e-9 of each other, as they are added in another order."""
    exact = [(*row[:4], row[5]) for row in ours] == [(*row[:4], row[5]) for row in theirs]
    return exact and all(abs(one[4] - other[4]) < 1e-9 for one, other in zip(ours, theirs, strict=True))


def _count(sql: str) -> int:
    with duckdb.connect() as connection:
        row = connection.execute(sql).fetchone()
    assert row is not None
    return int(row[0])


def _rows(data: Path, stream: str) -> str:
    return ROWS_SQL.format(folder=str(data / stream).replace("'", "''"))


def _both(data: Path) -> dict[str, str]:
    return {stream: _rows(data, stream) for stream in STREAMS}


def _pairs(data: Path, window_us: int) -> str:
    return PAIRS_SQL.format(**_both(data), window_us=window_us)
