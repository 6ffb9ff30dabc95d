"""The folder that Spark takes for its own: its programs and jars, without PySpark's zip.

Spark puts `python/lib/pyspark.zip` of its folder first on the path of every Python process that it starts. Python keeps
nothing it compiled for a zip, so each process compiled half of PySpark anew: 0.6 s of processor time of 1.0 until it
connects to Spark, which waits ten seconds for one of them and no longer. Without the zip they find the package that
brought it.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import pyspark

NEEDED = ("bin", "jars")


def spark_home() -> Path:
    """SPARK_HOME where that is set; else a folder of links, made if it is not there; PySpark's own if it cannot be."""
    if chosen := os.environ.get("SPARK_HOME"):
        return Path(chosen)
    installed = Path(pyspark.__file__).parent
    home = Path(sys.prefix) / "share" / "streamjoin" / f"spark-{pyspark.__version__}"
    try:
        home.mkdir(parents=True, exist_ok=True)
        for name in NEEDED:
            if not (home / name).is_dir():
                (home / name).unlink(missing_ok=True)  # it led to an environment that was moved
                with contextlib.suppress(FileExistsError):  # another start was quicker
                    (home / name).symlink_to(installed / name)
    except OSError:
        return installed
    return home
