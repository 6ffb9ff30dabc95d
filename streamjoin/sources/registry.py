"""All sources by name. Adding one is its module, one with a `SourceKind`, and its place in `KINDS`."""

from __future__ import annotations

from collections import ChainMap

from streamjoin.settings.setting import Settings
from streamjoin.sources.cassandra_kind import CASSANDRA
from streamjoin.sources.file_kinds import ARROW, CSV, JSONL, PARQUET
from streamjoin.sources.generated_kind import GENERATOR
from streamjoin.sources.kafka_kind import KAFKA
from streamjoin.sources.kind import SourceKind
from streamjoin.sources.sql_kind import SQL

KINDS = (PARQUET, CSV, JSONL, ARROW, KAFKA, GENERATOR)
SOURCES: dict[str, SourceKind] = {kind.name: kind for kind in KINDS}
"""Of streams; some of them can be relations, too."""
INPUTS = ChainMap({SQL.name: SQL, CASSANDRA.name: CASSANDRA}, SOURCES)
"""With those that can only be relations."""


def relation_kinds() -> dict[str, type[Settings]]:
    """The settings of the sources that can be relations, by name."""
    return {name: kind.settings for name, kind in INPUTS.items() if kind.no_relation is None}
