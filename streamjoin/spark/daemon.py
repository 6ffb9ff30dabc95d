"""Spark's Python worker daemon, with our imports done once.

Workers are forked from it, so they start with everything loaded. Spark collects garbage after every task; frozen
objects are left out of that, which takes a third off the fixed cost of a batch.
"""

import gc
import os
from typing import Any

import numpy  # noqa: F401
import pandas  # noqa: F401
import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet  # noqa: F401
import pyspark.daemon
import pyspark.sql.pandas.serializers
import pyspark.sql.worker.plan_data_source_read
import pyspark.worker

import streamjoin.spark.tasks  # noqa: F401
from streamjoin.warming import load_join_kernels

_worker = pyspark.daemon.worker


def worker(sock: Any, authenticated: bool) -> int:
    """Spark's, which ends without a stack where nobody takes its answer any more: Spark has ended, or the task has."""
    try:
        return int(_worker(sock, authenticated))
    except (BrokenPipeError, ConnectionResetError):
        os._exit(1)


pyspark.daemon.worker = worker

if __name__ == "__main__":
    load_join_kernels()
    gc.collect()
    gc.freeze()
    pyspark.daemon.manager()
