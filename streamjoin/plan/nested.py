"""Fields of structs as columns of a stream, which are called `struct.field`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa


def leaves(fields: Iterable[pa.Field], above: tuple[str, ...] = ()) -> Iterator[tuple[pa.Field, tuple[str, ...]]]:
    """What is no struct, called by its path, with the path."""
    for field in fields:
        path = (*above, field.name)
        if pa.types.is_struct(field.type):
            yield from leaves(field.type, path)
        else:
            yield (field.with_name(".".join(path)) if above else field), path


def paths_of(carried: pa.Schema, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Where those of a stream's columns that a file has are in it: the name of a column, then those of fields."""
    nested = {field.name: path for field, path in reversed([*leaves(carried)])}
    own = set(carried.names)
    return {name: (name,) if name in own else nested[name] for name in names if name in own or name in nested}
