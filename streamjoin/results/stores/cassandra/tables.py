"""The tables of a keyspace, the statements on them, and in which partition each block and record lies."""

from __future__ import annotations

from typing import Any

from streamjoin.results.stores.store import BlockKey

LAYOUT = 1
LANES = 16
_CHAPTER_BATCHES = 64
_SHELF_CUTS = {"s": 20, "b": 14}  # a hundred epochs, a hundred batches
_SHELF_CUT = 16

TABLES = {
    "heads": "job text PRIMARY KEY, head blob",
    "chapters": "job text, lane int, bucket bigint, chapter bigint, there boolean, "
    "PRIMARY KEY ((job, lane), bucket, chapter)",
    "blocks": "job text, bucket bigint, chapter bigint, batch_id bigint, generation bigint, unit bigint, "
    "number bigint, lowest bigint, content blob, "
    "PRIMARY KEY ((job, bucket, chapter), batch_id, generation, unit, number, lowest)",
    "shelves": "job text, shelf text, there boolean, PRIMARY KEY (job, shelf)",
    "records": "job text, shelf text, name text, content blob, PRIMARY KEY ((job, shelf), name)",
    "layout": "part text PRIMARY KEY, version int",
}
PLAIN = "compression = {'enabled': false}"
"""Of a table whose content is compressed already."""
STATEMENTS = {
    "put_chapter": "INSERT INTO chapters (job, lane, bucket, chapter, there) VALUES (?, ?, ?, ?, true)",
    "list_chapters": "SELECT bucket, chapter, writetime(there) FROM chapters WHERE job = ? AND lane = ?",
    "forget_chapter": "DELETE FROM chapters USING TIMESTAMP ? WHERE job = ? AND lane = ? AND bucket = ? "
    "AND chapter = ?",
    "drop_chapters": "DELETE FROM chapters WHERE job = ? AND lane = ?",
    "put_block": "INSERT INTO blocks (job, bucket, chapter, batch_id, generation, unit, number, lowest, content) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "get_blocks": "SELECT bucket, lowest, generation, batch_id, unit, number, content FROM blocks "
    "WHERE job = ? AND bucket = ? AND chapter = ? AND (batch_id, generation, unit, number, lowest) IN ?",
    "delete_block": "DELETE FROM blocks WHERE job = ? AND bucket = ? AND chapter = ? AND batch_id = ? "
    "AND generation = ? AND unit = ? AND number = ? AND lowest = ?",
    "list_blocks": "SELECT bucket, lowest, generation, batch_id, unit, number FROM blocks "
    "WHERE job = ? AND bucket = ? AND chapter = ?",
    "drop_blocks": "DELETE FROM blocks WHERE job = ? AND bucket = ? AND chapter = ?",
    "put_shelf": "INSERT INTO shelves (job, shelf, there) VALUES (?, ?, true)",
    "list_shelves": "SELECT shelf, writetime(there) FROM shelves WHERE job = ? AND shelf >= ? AND shelf <= ?",
    "all_shelves": "SELECT shelf FROM shelves WHERE job = ?",
    "forget_shelf": "DELETE FROM shelves USING TIMESTAMP ? WHERE job = ? AND shelf = ?",
    "drop_shelves": "DELETE FROM shelves WHERE job = ?",
    "put_record": "INSERT INTO records (job, shelf, name, content) VALUES (?, ?, ?, ?)",
    "get_records": "SELECT name, content FROM records WHERE job = ? AND shelf = ? AND name >= ? AND name <= ?",
    "delete_record": "DELETE FROM records WHERE job = ? AND shelf = ? AND name = ?",
    "drop_records": "DELETE FROM records WHERE job = ? AND shelf = ?",
    "head": "SELECT head FROM heads WHERE job = ?",
    "first_head": "INSERT INTO heads (job, head) VALUES (?, ?) IF NOT EXISTS",
    "swap_head": "UPDATE heads SET head = ? WHERE job = ? IF head = ?",
    "drop_head": "DELETE FROM heads WHERE job = ? IF EXISTS",
    "jobs": "SELECT job FROM heads",
}
TRANSACTIONS = ("first_head", "swap_head", "drop_head")
"""Statements that compare and set."""


def shelf_of(name: str) -> str:
    """The partition of a record. Shelves sort as their names do."""
    return name[: _SHELF_CUTS.get(name[:1], _SHELF_CUT)]


def chapter_of(key: BlockKey) -> int:
    return key.batch // _CHAPTER_BATCHES


def place_of(job: str, key: BlockKey) -> tuple[Any, ...]:
    return job, key.bucket, chapter_of(key), key.batch, key.generation, key.unit, key.number, key.lowest
