"""Spark: the only part that imports pyspark. It moves blocks and keeps offsets; what they mean is decided elsewhere."""
