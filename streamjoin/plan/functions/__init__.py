"""Computations of functions of the query language, on Arrow arrays and scalars; NULL in, NULL out.

`streamjoin.plan.expression` says which types they take and give.
"""
