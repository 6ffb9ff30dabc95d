"""What a query means, as plain data: types and schemas, expressions, predicates, windows, and the bound join.

It knows no tuples: how they are stored and found is the index's, and where they go is the engine's.
"""
