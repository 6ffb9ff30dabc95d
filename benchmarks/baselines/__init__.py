"""The peers: Spark's own stream-stream join, Flink SQL's interval join, and DuckDB as the oracle of result counts."""
