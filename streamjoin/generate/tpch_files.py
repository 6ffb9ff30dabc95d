"""The TPC-H tables as Parquet files, made once per scale factor by the program `tpchgen-cli` and kept in a cache.

    <cache>/tpch-scale-0.01/orders.parquet
                            lineitem.parquet

The cache is `STREAMJOIN_CACHE`, else `~/.cache/streamjoin`. A folder appears there complete or not at all.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from streamjoin.errors import InputError, RunError

PROGRAM = "tpchgen-cli"
TABLES = ("orders", "lineitem")


def table_file(table: str, scale: float) -> Path:
    """The Parquet file of `table`, one of `TABLES`, at this TPC-H scale factor; it is made if it is not there.

    Two processes may ask at once: both make the tables, and one copy stays. Scale 1 takes about 10 s and 300 MB.

    Raises:
        InputError: the tables have to be made, and the program that makes them is not installed.
        RunError: the program failed.
    """
    folder = cache_folder() / f"tpch-scale-{float(scale)}"
    if not folder.is_dir():
        _make(folder, scale)
    return folder / f"{table}.parquet"


def cache_folder() -> Path:
    """Where made data is kept: `STREAMJOIN_CACHE`, else `~/.cache/streamjoin`."""
    return Path(os.environ.get("STREAMJOIN_CACHE") or Path.home() / ".cache" / "streamjoin")


def _make(folder: Path, scale: float) -> None:
    program = _program()
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        command = [program, "parquet", "--scale-factor", f"{float(scale)}", "--tables", ",".join(TABLES)]
        done = subprocess.run(
            [*command, "--output-dir", str(unfinished), "--quiet"], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            reason = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[0]
            raise RunError(f"{PROGRAM} could not make the TPC-H tables of scale {scale:g}: {reason}")
        try:
            unfinished.rename(folder)
        except OSError:
            # Another process was first. The tables depend on the scale only, so its copy is as good as ours.
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _program() -> str:
    # Beside the interpreter first: a virtual environment works without being activated.
    beside = str(Path(sys.executable).parent)
    found = shutil.which(PROGRAM, path=os.pathsep.join([beside, os.environ.get("PATH", os.defpath)]))
    if found is None:
        raise InputError(f"TPC-H data is made by the program {PROGRAM}, which is not here; pip install {PROGRAM}")
    return found
