"""Aggregates over answers are DuckDB's over the same rows, and nothing of the user's reaches DuckDB but names."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest
from result_jobs import SCHEMA, Job, rows, table

from streamjoin.errors import InputError
from streamjoin.results.aggregate import Aggregate, aggregate, parse_aggregates
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.results.stores.memory import MemoryStore
from tests.processor import seconds_of

WHOLE = table(*(rows(700, seed=number) for number in range(3)))


@pytest.fixture(scope="module")
def reader() -> Reader:
    job = Job(MemoryStore()).start()
    for number in range(3):
        job.batch(number, rows(700, seed=number))
    job.ledger.finish()
    return Reader(job.store, "j")


def by_duckdb(text: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.register("whole", WHOLE)
        return connection.execute(text).fetchall()


def found(answer: tuple[pa.Table, Any]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in answer[0].to_pylist()]


def test_all_functions_over_all_rows(reader: Reader) -> None:
    wanted = parse_aggregates("count, count(name), sum(id), avg(price), min(name), max(id), count_distinct(name)")
    got = aggregate(reader, Question(), wanted)
    assert got[0].schema.names == [
        "count", "count_name", "sum_id", "avg_price", "min_name", "max_id", "count_distinct_name",
    ]  # fmt: skip
    want = by_duckdb(
        "SELECT count(*), count(name), sum(id), avg(price), min(name), max(id), count(DISTINCT name) FROM whole"
    )
    assert [pytest.approx(value) if isinstance(value, float) else value for value in want[0]] == list(found(got)[0])
    assert got[1].blocks_read == got[1].blocks_stored


@pytest.mark.slow
def test_attack_groups_that_take_too_much_memory_are_refused() -> None:
    job = Job(MemoryStore()).start()
    count = 400_000
    job.batch(0, rows(count).set_column(0, "id", pa.array(range(count), pa.int64())))
    job.ledger.finish()
    with pytest.raises(InputError, match=r"do not fit into the 8 MiB .* by fewer columns"):
        aggregate(Reader(job.store, "j"), Question(), parse_aggregates("count"), ("id",), memory_bytes=8 << 20)
    held: list[int] = []
    found = aggregate(Reader(job.store, "j"), Question(), parse_aggregates("count"), ("id",), holds=held.append)
    assert found[0].num_rows == count and held == [found[0].nbytes]


def test_groups_come_in_the_order_of_their_columns(reader: Reader) -> None:
    got = aggregate(reader, Question(where="price > 0.5"), parse_aggregates("count, min(id)"), ("name",))
    assert found(got) == by_duckdb(
        "SELECT name, count(*), min(id) FROM whole WHERE price > 0.5 GROUP BY name ORDER BY name"
    )


def test_a_key_reads_few_blocks_for_its_aggregate(reader: Reader) -> None:
    got = aggregate(reader, Question(key=7), parse_aggregates("count"))
    assert found(got) == by_duckdb('SELECT count(*) FROM whole WHERE "__key" = 7')
    assert 0 < got[1].blocks_read < got[1].blocks_stored


def test_nothing_found_is_a_count_of_zero(reader: Reader) -> None:
    assert found(aggregate(reader, Question(where="price > 2"), parse_aggregates("count, sum(id)"))) == [(0, None)]
    assert found(aggregate(reader, Question(where="price > 2"), parse_aggregates("count"), ("name",))) == []


def test_times_are_in_utc() -> None:
    schema = pa.schema([pa.field("at", pa.timestamp("us", "UTC")), *list(SCHEMA)[3:]])
    job = Job(MemoryStore(), schema=schema).start()
    columns = [pa.array([5, 1], pa.int64()).view(pa.timestamp("us", "UTC")), pa.array([5, 1]), pa.array([1, 2])]
    job.batch(0, pa.RecordBatch.from_arrays(columns, schema=schema))
    job.ledger.finish()
    got, _ = aggregate(Reader(job.store, "j"), Question(), parse_aggregates("min(at), max(at)"))
    assert got.schema.types == [pa.timestamp("us", "UTC")] * 2
    assert [column.cast(pa.int64())[0].as_py() for column in got.columns] == [1, 5]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cout", '"cout" is not an aggregate'),
        ("", '"" is not an aggregate'),
        ("count,", '"" is not an aggregate'),
        ("sum", "sum needs a column"),
        ("sum(*)", "sum"),
        ("read_csv(id)", "is not an aggregate"),
        ("sum(id); DROP TABLE x", "is not an aggregate"),
        ("sum(id) + 1", "is not an aggregate"),
        (", ".join(["count"] * 101), "101 aggregates are too many"),
    ],
)
def test_what_is_no_aggregate_is_wrong_input(text: str, said: str, reader: Reader) -> None:
    with pytest.raises(InputError, match=said.replace("(", r"\(").replace("*", r"\*")):
        aggregate(reader, Question(), parse_aggregates(text))


@pytest.mark.parametrize(
    ("question", "wanted", "by", "said"),
    [
        (Question(), (Aggregate("sum", "nope"),), (), 'no result column "nope"; columns are id, price, name'),
        (Question(), (Aggregate("sum", "id) FROM x --"),), (), "no result column"),
        (Question(), (Aggregate("count"),), ("__key",), 'no result column "__key"'),
        (Question(), (Aggregate("sum", "name"),), (), "sum is of numbers, and name is string"),
        (Question(), (Aggregate("count"), Aggregate("count")), (), 'two output columns would be called "count"'),
        (Question(), (Aggregate("count"),), ("name", "name"), 'by: "name" is given twice'),
        (Question(), (), (), "nothing to aggregate"),
        (Question(limit=3), (Aggregate("count"),), (), "leave select, limit and cursor out"),
        (Question(select=("id",)), (Aggregate("count"),), (), "leave select, limit and cursor out"),
    ],
)
def test_wrong_aggregates_are_told_what_is_wrong(
    question: Question, wanted: tuple[Aggregate, ...], by: tuple[str, ...], said: str, reader: Reader
) -> None:
    with pytest.raises(InputError, match=said):
        aggregate(reader, question, wanted, by)


def test_columns_with_quotes_in_their_names_are_names() -> None:
    name = 'a" FROM answer; --'
    schema = pa.schema([pa.field(name, pa.int64()), *list(SCHEMA)[3:]])
    job = Job(MemoryStore(), schema=schema).start()
    job.batch(0, pa.RecordBatch.from_arrays([pa.array([2, 3]), pa.array([1, 1]), pa.array([1, 1])], schema=schema))
    job.ledger.finish()
    got, _ = aggregate(Reader(job.store, "j"), Question(), (Aggregate("sum", name),), ())
    assert got.to_pylist() == [{f"sum_{name}": 5}]


@pytest.mark.parametrize("text", ["count(" + " " * 16_000 + "x", "count" + " " * 16_000 + "x", " " * 16_000 + "("])
def test_attack_blanks_in_an_aggregate_take_no_time(text: str) -> None:
    def read() -> None:
        with pytest.raises(InputError, match="is not an aggregate"):
            parse_aggregates(text)

    assert seconds_of(read) < 0.05


def test_blanks_around_the_parts_of_an_aggregate_do_not_matter() -> None:
    assert parse_aggregates(" SUM (  a b ) , count( * ),count () ") == (
        Aggregate("sum", "a b"), Aggregate("count"), Aggregate("count"),
    )  # fmt: skip
