"""What a file's name says about its format."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final, Literal

Format = Literal["csv", "jsonl", "parquet", "arrow"]
"""A `source` of files."""
_FORMATS: Final[dict[str, Format]] = {
    ".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
}  # fmt: skip
_PACKED: Final = (".gz", ".zst")


def format_of(name: str) -> Format | None:
    """The `source` that reads a file; None where its name does not tell."""
    path = PurePath(name.lower())
    if path.suffix in _PACKED:
        path = path.with_suffix("")
        found = _FORMATS.get(path.suffix)
        return found if found in ("csv", "jsonl") else None
    return _FORMATS.get(path.suffix)
