"""Benchmarks: the project's engine and its peers on the same Parquet files, with the same report."""
