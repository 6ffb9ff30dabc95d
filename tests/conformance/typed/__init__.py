"""Random conditions over all column types, against two oracles that share no code with the engine.

kinds      column types: their edge values, and values next to each other
terms      conditions as trees, and as text
meaning    oracle 1: a nested loop over Python's integers, fractions and correctly rounded floats
in_duckdb  oracle 2: DuckDB, for the conditions that mean the same there
generator  a seed -> a case: columns, rows, conditions, window, operator, index
case       a case run by the engine in this process, and compared
shrinking  the smallest case that still differs, and a script that shows it
edges      the small corpus that is run with every change
soak       many cases: `python -m tests.conformance.typed.soak --conditions 100000`
"""
