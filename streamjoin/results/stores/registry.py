"""All result stores by name. Adding one is its folder, with a `kind.py`, and its place in `KINDS`."""

from __future__ import annotations

from streamjoin.results.stores.cassandra.kind import CASSANDRA
from streamjoin.results.stores.hbase.kind import HBASE
from streamjoin.results.stores.kind import StoreKind
from streamjoin.results.stores.sqlite.kind import SQLITE

KINDS = (SQLITE, CASSANDRA, HBASE)
STORES: dict[str, StoreKind] = {kind.name: kind for kind in KINDS}
