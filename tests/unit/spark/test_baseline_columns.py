"""What Spark's own join cannot be asked for, since it means something else there."""

from __future__ import annotations

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from streamjoin.errors import UnsupportedError
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query
from streamjoin.spark.baseline import spark_column


@pytest.mark.parametrize("text", ["CAST(r.ts AS BIGINT)", "CAST(r.k AS TIMESTAMP)"])
def test_timestamps_as_integers_are_not_compared_with_spark_which_counts_seconds(text: str) -> None:
    columns = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("k", pa.int64())])
    plan = plan_query(f"SELECT ONLINE {text} AS a FROM r, r AS s", {"r": StreamSchema("r", columns, "ts")})
    with pytest.raises(UnsupportedError, match="in microseconds here and in seconds in Spark"):
        spark_column(plan.select[0][1], plan)
