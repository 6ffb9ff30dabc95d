"""Input whose live state is large: few wide rows and few results.

A stored row is its three selected columns and two engine columns, about `ROW_BYTES` together.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import systems
from benchmarks.data import make_equi
from benchmarks.scale import Scale

PAD_BYTES = 200
ROW_BYTES = PAD_BYTES + 4 + 8 + 8 + 8 + 8
"""The text and its offset, key, val, time, cell."""
QUERY = (
    "SELECT ONLINE r.key AS key, r.val AS r_val, r.pad AS r_pad, s.val AS s_val, s.pad AS s_pad "
    "FROM r, s WHERE r.key = s.key WITHIN {window_ms} MILLISECONDS"
)
OPERATOR = {"name": "biclique", "routing": "hash"}


@dataclass(frozen=True, slots=True)
class Padded:
    """Both streams on disk, and the window to join them with."""

    data: Path
    files: int
    rows_per_file: int
    window_ms: int

    @property
    def rows(self) -> int:
        """Of both streams."""
        return 2 * self.files * self.rows_per_file

    def join(self, work: Path, name: str, **run_options: Any) -> dict[str, Any]:
        """The join file over them."""
        query = QUERY.format(window_ms=self.window_ms)
        return systems.join_file(work, name, systems.parquet_streams(self.data), query, OPERATOR, **run_options)


def make(scale: Scale, state_bytes: int, window_files: int, files: int) -> Padded:
    """Write `files` files a stream, of which `window_files` are live and take about `state_bytes`."""
    rows_per_file = max(state_bytes // ROW_BYTES // 2 // window_files, 1000)
    folder = scale.data / f"padded-{rows_per_file}x{files}"
    # A millisecond of event time has one row a side.
    make_equi(
        folder, files=files, rows_per_file=rows_per_file, keys=16 * rows_per_file * window_files, seed=1,
        span_ms_per_file=rows_per_file, pad_bytes=PAD_BYTES,
    )  # fmt: skip
    return Padded(folder, files, rows_per_file, window_files * rows_per_file)
