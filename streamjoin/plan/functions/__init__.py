"""Computations of functions of the query language, on Arrow arrays and scalars; NULL in, NULL out.

`table` names them all, `signatures` says which types they take and give.
"""
