"""One-time questions: what DuckDB answers over the same rows, in pages too, and few blocks read for it."""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import functools
import itertools
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from result_jobs import SCHEMA, Job, assert_once, ids, rows, table

from streamjoin.errors import InputError, StateError
from streamjoin.plan.join import RESULT_KEY, RESULT_TIME
from streamjoin.results.answer import ask
from streamjoin.results.block import BlockRef, KeyCode, key_code
from streamjoin.results.finding import Answer
from streamjoin.results.policy import EpochPolicy
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.results.snapshot import FIRST, SnapshotId
from streamjoin.results.stores.memory import MemoryStore
from streamjoin.results.stores.store import BlockKey

pytestmark = pytest.mark.slow

EACH = EpochPolicy(span_us=None)
S = 1_000_000
UTC = dt.UTC

N = 120  # rows a snapshot

KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int64": (pa.int64(), [-(2**63), 2**63 - 1, -1, 0, *range(40)]),
    "int8": (pa.int8(), [-128, 127, 0, *range(-20, 20)]),
    "bool": (pa.bool_(), [True, False]),
    "float64": (pa.float64(), [math.nan, math.inf, -math.inf, 0.0, -0.0, 1e300, *(x / 4 for x in range(-20, 20))]),
    "float32": (pa.float32(), [math.nan, math.inf, -math.inf, 0.0, -0.0, *(x / 4 for x in range(-20, 20))]),
    "decimal(18,2)": (pa.decimal128(18, 2), [Decimal(x).scaleb(-2) for x in (*range(-40, 40), 10**18 - 1)]),
    "decimal(38,10)": (
        pa.decimal128(38, 10),
        # Tens of them have one code: as float64 they are the same number.
        [Decimal(10**20) + Decimal(x).scaleb(-10) for x in range(-20, 20)] + [Decimal(x) for x in range(-9, 9)],
    ),
    "string": (
        pa.string(),
        ["", "a", "ab", "größe", "\U0001f600", "ends\x00", *(f"https://example.com/{x:03d}" for x in range(40))],
    ),
    "binary": (pa.binary(), [b"", b"\x00", b"\xff\xff", *(b"long beginning" + bytes([x]) for x in range(40))]),
    "date": (pa.date32(), [dt.date(1969, 12, 20) + dt.timedelta(days=x) for x in range(40)]),
    "timestamp": (
        pa.timestamp("us", tz="UTC"),
        [dt.datetime(1969, 12, 31, 23, 59, 50, x, tzinfo=UTC) + dt.timedelta(seconds=x) for x in range(40)],
    ),
}


@functools.cache
def keyed(name: str, equality: bool, buckets: int) -> tuple[Job, pa.Table]:
    """A job with keys of a type in six snapshots, and all its rows."""
    kind, values = KEYS[name]
    random = np.random.default_rng(7)
    schema = pa.schema([*list(SCHEMA)[:-1], pa.field(RESULT_KEY, kind)])
    code = key_code(kind, equality=equality, buckets=buckets)
    job = Job(MemoryStore(), EACH, code, schema, block_bytes=1, rows_max=24).start()
    batches = []
    for number in range(6):
        content = rows(N, number, first_us=number * S, last_us=(number + 2) * S)
        keys = pa.array([[*values, None][at] for at in random.integers(0, len(values) + 1, N)], kind)
        batches.append(pa.RecordBatch.from_arrays([*content.columns[:-1], keys], schema=schema))
        job.batch(number, batches[-1])
    job.ledger.finish()
    return job, table(*batches)


def reader_of(job: Job) -> Reader:
    return Reader(job.store, job.name)


def answered(reader: Reader, question: Question) -> tuple[list[int], Answer]:
    answer = ask(reader, question)
    found = ids(answer)
    assert answer.rows == len(found)
    return found, answer


@functools.cache
def one_connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    return connection


def by_duckdb(whole: pa.Table, condition: str, **bounds: pa.Array) -> list[int]:
    """The ids of the rows for which a condition over columns, `low` and `high` is true."""
    connection = one_connection()
    connection.register("whole", whole)
    connection.register("given", pa.table(bounds or {"one": pa.array([1])}))
    found = connection.execute(f"SELECT id FROM whole, given WHERE {condition} ORDER BY id").fetchall()
    return [id for (id,) in found]


KEY = f'"{RESULT_KEY}"'
SHAPES = [(True, 1), (True, 8), (False, 1)]


@pytest.mark.parametrize(("equality", "buckets"), SHAPES)
@pytest.mark.parametrize("name", KEYS)
def test_keys_and_key_ranges_are_answered_as_duckdb_does(name: str, equality: bool, buckets: int) -> None:
    job, whole = keyed(name, equality, buckets)
    kind, values = KEYS[name]
    reader = reader_of(job)
    found_any = 0
    for at in range(0, len(values), max(len(values) // 4, 1)):
        value, other = values[at], values[(at * 7 + 3) % len(values)]
        one = pa.array([value], kind)
        found, answer = answered(reader, Question(key=value))
        assert found == by_duckdb(whole, f"{KEY} = low", low=one)
        assert answer.blocks_read == answer.blocks_wanted <= answer.blocks_stored
        found_any += len(found)
        assert answered(reader, Question(key_from=value))[0] == by_duckdb(whole, f"{KEY} >= low", low=one)
        assert answered(reader, Question(key_to=value))[0] == by_duckdb(whole, f"{KEY} <= high", high=one)
        two = pa.array([other], kind)
        wanted = by_duckdb(whole, f"{KEY} BETWEEN low AND high", low=one, high=two)
        if by_duckdb(whole, "low > high", low=one, high=two):
            with pytest.raises(InputError, match="the key range is empty"):
                ask(reader, Question(key_from=value, key_to=other))
        else:
            assert answered(reader, Question(key_from=value, key_to=other))[0] == wanted
    assert found_any > 0


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("int64", "17", 17), ("int64", "-1", -1), ("int8", "5", 5), ("float64", "0.25", 0.25), ("float64", "1", 1.0),
        ("float64", 1, 1.0),
        ("timestamp", "1970-01-01", dt.datetime(1970, 1, 1, tzinfo=UTC)),
        ("float32", "-2.5", -2.5), ("decimal(18,2)", "0.17", Decimal("0.17")),
        ("decimal(18,2)", 0, Decimal(0)), ("decimal(38,10)", 7, Decimal(7)), ("decimal(38,10)", "-7", Decimal(-7)),
        ("decimal(18,2)", 0.25, Decimal("0.25")), ("string", "größe", "größe"), ("binary", "long beginning\x05", None),
        ("date", "1970-01-05", dt.date(1970, 1, 5)), ("bool", "true", True), ("bool", False, False),
        ("timestamp", "1969-12-31T23:59:55.000005Z", None), ("timestamp", "1969-12-31T23:59:55.000005", None),
        ("timestamp", "1970-01-01T00:59:55.000005+01:00", None), ("timestamp", -4_999_995, None),
        ("float64", "nan", math.nan),
    ],
)  # fmt: skip
def test_a_key_may_be_given_as_text_or_as_a_number(name: str, text: Any, value: Any) -> None:
    job, whole = keyed(name, True, 8)
    kind = KEYS[name][0]
    if value is None:
        value = b"long beginning\x05" if name == "binary" else dt.datetime(1969, 12, 31, 23, 59, 55, 5, tzinfo=UTC)
    wanted = by_duckdb(whole, f"{KEY} = low", low=pa.array([value], kind))
    assert answered(reader_of(job), Question(key=text))[0] == wanted
    assert wanted or text == "1970-01-01"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("int64", "x"), ("int64", ""), ("int64", 1.5), ("int64", "1.5"), ("int64", 2**70), ("int64", True),
        ("int64", math.nan), ("int64", math.inf), ("int8", 200), ("float64", "much"), ("float64", True),
        ("decimal(18,2)", "0.001"), ("decimal(18,2)", 10**17), ("decimal(18,2)", "x"), ("date", "2026-02-30"),
        ("timestamp", "soon"), ("bool", "maybe"), ("string", "\ud800"), ("int64", [1]), ("int64", {"a": 1}),
        ("decimal(38,10)", 10**40), ("string", b"\xff"),
    ],
)  # fmt: skip
def test_a_key_of_the_wrong_type_is_wrong_input(name: str, key: Any) -> None:
    reader = reader_of(keyed(name, True, 1)[0])
    for question in (Question(key=key), Question(key_from=key), Question(key_to=key)):
        with pytest.raises(InputError, match="is not a key of this join; keys are"):
            ask(reader, question)


@pytest.fixture(scope="module")
def job() -> Job:
    return keyed("int64", True, 8)[0]


@pytest.fixture(scope="module")
def whole() -> pa.Table:
    return keyed("int64", True, 8)[1]


@pytest.mark.parametrize("equality", [True, False])
def test_time_ranges_include_both_ends(equality: bool) -> None:
    job, whole = keyed("int64", equality, 1)
    reader = reader_of(job)
    times = sorted(whole[RESULT_TIME].to_pylist())
    for low, high in [(0, 6 * N - 1), (10, 20), (3 * N, 3 * N), (0, 0), (6 * N - 1, 6 * N - 1), (99, 5 * N)]:
        from_us, to_us = times[low], times[high]
        condition = f'"{RESULT_TIME}" BETWEEN {from_us} AND {to_us}'
        found, _ = answered(reader, Question(from_us=from_us, to_us=to_us))
        assert found == by_duckdb(whole, condition) and len(found) >= high - low + 1
        assert answered(reader, Question(from_us=from_us))[0] == by_duckdb(whole, f'"{RESULT_TIME}" >= {from_us}')
        assert answered(reader, Question(to_us=to_us))[0] == by_duckdb(whole, f'"{RESULT_TIME}" <= {to_us}')
    for nothing in (
        Question(from_us=times[-1] + 1),
        Question(to_us=-1),
        Question(from_us=2**70),
        Question(to_us=-(2**70)),
    ):
        found, answer = answered(reader, nothing)
        assert (found, answer.blocks_read) == ([], 0)


@pytest.mark.parametrize(
    "where",
    ["price > 0.5", "price > 0.5 AND name LIKE 'n%'", "name IN ('n1', 'n2') OR id % 2 = 0", "price IS NULL",
     "NOT (price < 0.9)", "id BETWEEN 10000000 AND 10000100", "upper(name) = 'N3'"],
)  # fmt: skip
def test_conditions_are_answered_as_duckdb_does(job: Job, whole: pa.Table, where: str) -> None:
    assert answered(reader_of(job), Question(where=where))[0] == by_duckdb(whole, where)
    both = Question(where=where, key_from=3, key_to=20, from_us=2 * S, to_us=5 * S)
    condition = f'({where}) AND {KEY} BETWEEN 3 AND 20 AND "{RESULT_TIME}" BETWEEN {2 * S} AND {5 * S}'
    assert answered(reader_of(job), both)[0] == by_duckdb(whole, condition)


def test_columns_come_in_the_order_asked_for_without_the_engines(job: Job, whole: pa.Table) -> None:
    answer = ask(reader_of(job), Question())
    assert answer.schema.names == ["id", "price", "name"]
    answer = ask(reader_of(job), Question(select=("name", "id"), where="price > 0.9"))
    batches = list(answer)
    assert answer.schema == pa.schema([("name", pa.string()), ("id", pa.int64())])
    assert all(batch.schema == answer.schema for batch in batches)
    assert ids(batches) == by_duckdb(whole, "price > 0.9")  # also by a column that is not asked for


# ---- pages ------------------------------------------------------------------------------------------------------


def pages(reader: Reader, question: Question, limit: int) -> Iterator[list[int]]:
    question = replace(question, limit=limit)
    while True:
        answer = ask(reader, question)
        found = [value for batch in answer for value in batch.column("id").to_pylist()]
        assert len(found) <= limit and (answer.cursor is None or len(found) == limit)
        yield found
        if answer.cursor is None:
            return
        question = replace(question, cursor=answer.cursor)


QUESTIONS = [
    Question(), Question(key=7), Question(key_from=3, key_to=20), Question(from_us=S, to_us=3 * S),
    Question(where="price > 0.7"), Question(where="price > 2"), Question(after="2.0", upto="4.0"),
    Question(select=("id",), where="name = 'n1'", key_to=9),
]  # fmt: skip


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("limit", [7, 24, 400])
def test_pages_are_the_answer_without_a_limit_in_its_order(job: Job, question: Question, limit: int) -> None:
    reader = reader_of(job)
    wanted = [value for batch in ask(reader, question) for value in batch.column("id").to_pylist()]
    found = list(pages(reader, question, limit))
    assert [value for page in found for value in page] == wanted
    assert len(found) == max(-(-len(wanted) // limit), 1)


@pytest.mark.parametrize("limit", [1, 30, 64])
def test_pages_do_not_see_what_is_committed_between_them(limit: int) -> None:
    job = Job(MemoryStore(), EACH, block_bytes=1).start()
    for number in range(3):
        job.batch(number, rows(50, seed=number))
    found: list[int] = []
    for step, page in enumerate(pages(reader_of(job), Question(), limit)):
        found += page
        job.batch(3 + step, rows(20, seed=100 + step))
    assert_once(found, ids([rows(50, seed=0), rows(50, seed=1)]))


def test_pages_go_on_although_older_snapshots_were_removed_long_before() -> None:
    job = Job(MemoryStore(), EACH, block_bytes=1).start()
    for number in range(6):
        job.batch(number, rows(30, seed=number))
    assert job.ledger.expire(3 * S) == 2
    wanted = ids(rows(30, seed=number) for number in (2, 3, 4))
    assert sorted(value for page in pages(reader_of(job), Question(), 7) for value in page) == wanted


def test_a_page_whose_place_was_removed_is_told_so() -> None:
    job = Job(MemoryStore(), EACH, block_bytes=1).start()
    for number in range(6):
        job.batch(number, rows(30, seed=number))
    reader = reader_of(job)
    first = ask(reader, Question(limit=10))
    assert len(ids(first)) == 10 and first.cursor is not None
    job.ledger.expire(3 * S)
    with pytest.raises(InputError, match=r"ha(ve|s) been removed"):
        list(ask(reader, Question(limit=10, cursor=first.cursor)))
    later = ask(reader, Question(limit=10, after="3.0"))
    assert ids(later) and later.cursor is not None
    assert len(ids(ask(reader, Question(limit=10, after="3.0", cursor=later.cursor)))) == 10


def test_attack_pages_of_a_key_range_miss_nothing_that_was_removed_between_them() -> None:
    everything = Question(key_from=-(2**60), key_to=2**60, limit=25)
    refused = 0
    for given, removed in itertools.product(range(1, 7), range(2, 5)):
        job = Job(MemoryStore(), EACH, block_bytes=1).start()
        for number in range(6):
            job.batch(number, rows(30, seed=number))
        wanted, found, page = ids(ask(reader_of(job), replace(everything, limit=None))), [], everything
        for _ in range(given):
            answer = ask(reader_of(job), page)
            found += ids(answer)
            page = replace(everything, cursor=answer.cursor)
            if answer.cursor is None:
                break
        job.ledger.expire(removed * S)
        with contextlib.suppress(InputError):
            while page.cursor is not None:
                answer = ask(reader_of(job), page)
                found += ids(answer)
                page = replace(everything, cursor=answer.cursor)
        if page.cursor is None:
            assert sorted(found) == sorted(wanted)
        else:
            with pytest.raises(InputError, match="have been removed; ask from there on"):
                list(ask(reader_of(job), page))
            refused += 1
    assert refused > 5


def cursor_of(job: Job, question: Question) -> str:
    answer = ask(reader_of(job), question)
    assert list(answer) and answer.cursor is not None
    return answer.cursor


@pytest.mark.parametrize(
    "other",
    [Question(key=7), Question(where="price > 0.2"), Question(from_us=1), Question(select=("id",)),
     Question(after="1.0"), Question(key_from=0)],
)  # fmt: skip
def test_a_cursor_of_another_question_is_refused(job: Job, other: Question) -> None:
    cursor = cursor_of(job, Question(where="price > 0.1", limit=5))
    with pytest.raises(InputError, match="this cursor belongs to another query"):
        ask(reader_of(job), replace(other, limit=5, cursor=cursor))


@pytest.mark.parametrize("name", ["other", "j-1", "J"])
def test_attack_a_cursor_of_another_job_or_of_an_earlier_life_skips_nothing(job: Job, name: str) -> None:
    """Both have blocks at the place that the cursor names, so only what it says of its results tells them apart."""
    other = Job(MemoryStore(), EACH, block_bytes=1, name=name).start()
    for number in range(6):
        other.batch(number, rows(N, seed=number))
    cursor = cursor_of(other, Question(limit=5))
    assert ids(ask(reader_of(other), Question(limit=5, cursor=cursor)))
    with pytest.raises(InputError, match="before the job began anew"):
        ask(reader_of(job), Question(limit=5, cursor=cursor))


def test_the_limit_may_change_from_page_to_page(job: Job) -> None:
    cursor = cursor_of(job, Question(limit=5))
    assert len(ids(ask(reader_of(job), Question(limit=50, cursor=cursor)))) == 50
    assert len(ids(ask(reader_of(job), Question(cursor=cursor)))) == 6 * N - 5


@pytest.mark.parametrize("cursor", ["", "zz", "WyJ4Il0=", "größe", "[]", "e30=", "bnVsbA==", "W" * 5000, "\x00"])
def test_what_is_no_cursor_is_wrong_input(job: Job, cursor: str) -> None:
    with pytest.raises(InputError, match="cursor"):
        list(ask(reader_of(job), Question(cursor=cursor)))


@pytest.mark.parametrize("place", range(7))
@pytest.mark.parametrize("forged", [-1, "x", None, 1.5, [1], True, 10**30, "9.9"])
def test_a_forged_cursor_is_wrong_input_or_reads_nothing_more(job: Job, place: int, forged: Any) -> None:
    content = json.loads(base64.urlsafe_b64decode(cursor_of(job, Question(limit=5))))
    content[place] = forged
    cursor = base64.urlsafe_b64encode(json.dumps(content).encode()).decode()
    whole = ids(ask(reader_of(job), Question()))
    try:
        found = ids(ask(reader_of(job), Question(cursor=cursor)))
    except InputError:
        return
    assert set(found) <= set(whole) and len(found) == len(set(found))


def test_a_deeply_nested_cursor_is_wrong_input(job: Job) -> None:
    with pytest.raises(InputError, match="cursor"):
        ask(reader_of(job), Question(cursor=base64.urlsafe_b64encode(b"[" * 100_000).decode()))


# ---- wrong input ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (Question(key_from=5, key_to=3), "the key range is empty: 5 is above 3; swap the two"),
        (Question(from_us=2, to_us=1), "the time range is empty"),
        (Question(key=1, key_from=1), "a key or for a range of keys, not for both"),
        (Question(key=1, key_to=1), "a key or for a range of keys, not for both"),
        (Question(select=("id", "nope")), 'there is no result column "nope"; columns are id, price, name'),
        (Question(select=("id", "price", "id")), '"id" is given twice; ask for it once'),
        (Question(select=(RESULT_KEY,)), "there is no result column"),
        (Question(where="nope > 1"), "nope"),
        (Question(where=f"{RESULT_TIME} > 1"), RESULT_TIME),
        (Question(where=""), "a condition is missing"),
        (Question(where="price"), "condition"),
        (Question(where="price >"), "line 1, column"),
        (Question(where="price > 1; SELECT 1"), "condition"),
        (Question(where="price > 1 ORDER BY id"), "condition"),
        (Question(where="name > 1"), "cannot compare string with int64"),
        (Question(limit=0), "a limit is between 1 and"),
        (Question(limit=-5), "a limit is between 1 and"),
        (Question(limit=10**9), "a limit is between 1 and"),
        (Question(after="one"), "is not a snapshot id"),
        (Question(upto="1"), "is not a snapshot id"),
    ],
)
def test_wrong_questions_are_told_what_is_wrong(job: Job, question: Question, said: str) -> None:
    with pytest.raises(InputError) as wrong:
        ask(reader_of(job), question)
    assert said in str(wrong.value) and "\n" not in str(wrong.value)


def test_an_unknown_job_is_told_which_there_are(job: Job) -> None:
    with pytest.raises(InputError, match="the store has no results of a job other; there are j"):
        ask(Reader(job.store, "other"), Question())
    with pytest.raises(InputError, match="the store has no results of a job j; it has none"):
        ask(Reader(MemoryStore(), "j"), Question())


def test_a_join_without_a_key_has_none_to_look_up() -> None:
    schema = pa.schema(list(SCHEMA)[:-1])
    job = Job(MemoryStore(), EACH, key_code(None, equality=False, buckets=8), schema).start()
    content = pa.RecordBatch.from_arrays(rows(100).columns[:-1], schema=schema)
    job.batch(0, content)
    job.ledger.finish()
    for question in (Question(key=1), Question(key_from=1), Question(key_to=1)):
        with pytest.raises(InputError, match="this join has no key to look up"):
            ask(reader_of(job), question)
    assert answered(reader_of(job), Question(where="price < 0.5"))[0] == by_duckdb(table(content), "price < 0.5")


# ---- snapshots --------------------------------------------------------------------------------------------------


def test_after_and_upto_choose_snapshots(job: Job, whole: pa.Table) -> None:
    reader = reader_of(job)
    every = [ids(ask(reader, Question(after=f"{number}.0", upto=f"{number + 1}.0"))) for number in range(6)]
    assert [len(found) for found in every] == [N] * 6
    assert_once([id for found in every for id in found], ids([whole]))
    assert answered(reader, Question(after="4.0"))[0] == sorted(every[4] + every[5])
    assert answered(reader, Question(upto="1.0"))[0] == every[0]
    assert answered(reader, Question(upto="1.0"))[1].last == SnapshotId(1, 0)
    assert answered(reader, Question(after="6.0"))[0] == []
    assert answered(reader, Question(after="3.0", upto="2.0"))[0] == []
    assert answered(reader, Question(after=str(FIRST)))[0] == ids([whole])


def test_an_answer_names_the_newest_snapshot_it_covers_and_never_one_that_is_not_there_yet(job: Job) -> None:
    assert ask(reader_of(job), Question()).last == SnapshotId(6, 0)
    assert ask(reader_of(job), Question(upto="900.0")).last == SnapshotId(6, 0)


def test_an_empty_job_answers_with_nothing() -> None:
    job = Job(MemoryStore(), EACH).start()
    answer = ask(reader_of(job), Question(key=1))
    assert (list(answer), answer.last, answer.blocks_stored, answer.cursor) == ([], FIRST, 0, None)


def test_after_a_removed_snapshot_is_an_error_and_without_after_what_is_left_is_answered() -> None:
    job = Job(MemoryStore(), EACH).start()
    for number in range(5):
        job.batch(number, rows(10, seed=number))
    job.ledger.expire(3 * S)
    with pytest.raises(InputError, match=r"snapshots up to 2\.0 have been removed"):
        ask(reader_of(job), Question(after="1.0"))
    assert answered(reader_of(job), Question(after="2.0"))[0] == ids(rows(10, seed=number) for number in (2, 3))
    assert answered(reader_of(job), Question())[0] == ids(rows(10, seed=number) for number in (2, 3))


def test_snapshots_that_come_while_an_answer_is_read_are_not_in_it() -> None:
    job = Job(MemoryStore(), EACH, block_bytes=1).start()
    for number in range(3):
        job.batch(number, rows(100, seed=number))
    reader = reader_of(job)
    answer = ask(reader, Question())
    found = ids([next(iter(answer))])
    job.batch(3, rows(100, seed=3))
    ask(reader, Question())
    assert_once(found + ids(answer), ids([rows(100, seed=0), rows(100, seed=1)]))
    assert answer.last == SnapshotId(2, 0)


# ---- what is read -----------------------------------------------------------------------------------------------


class Counting(MemoryStore):
    """Counts what is read."""

    def __init__(self) -> None:
        super().__init__()
        self.fetches = 0
        self.blocks = 0

    def get_blocks(self, job: str, keys: Sequence[BlockKey]) -> Iterator[tuple[BlockKey, bytes]]:
        self.fetches, self.blocks = self.fetches + 1, self.blocks + len(keys)
        yield from super().get_blocks(job, keys)


@functools.cache
def large(code: KeyCode) -> tuple[Job, Counting]:
    store = Counting()
    job = Job(store, EpochPolicy(span_us=None, threshold_rows=None), code).start()
    for number in range(5):
        job.batch(number, rows(20_000, number, 1000, number * S, (number + 1) * S))
    # These met late: old times in a new snapshot.
    job.batch(5, rows(100, 5, 1000, -10 * S, -9 * S))
    job.ledger.finish()
    return job, store


@pytest.mark.parametrize(
    "code", [key_code(pa.int64(), equality=True, buckets=8), key_code(pa.int64(), equality=False, buckets=1)]
)
def test_one_key_of_many_rows_reads_a_small_part(code: KeyCode) -> None:
    job, store = large(code)
    whole = table(*(rows(20_000, number, 1000, number * S, (number + 1) * S) for number in range(5)))
    for key in (0, 17, 500, 999):
        reader = reader_of(job)
        store.blocks = 0
        found, answer = answered(reader, Question(key=key))
        assert len([id for id in found if id < 5 * 10**7]) == len(by_duckdb(whole, f"{KEY} = {key}")) > 50
        assert answer.blocks_stored > 500
        assert answer.blocks_read == answer.blocks_wanted == reader.reads.blocks == store.blocks <= 16
        assert answer.rows_read == reader.reads.rows < 0.04 * 100_000


def sparse() -> tuple[Job, dict[int, int]]:
    """Even keys in one block a snapshot: manifests rule nothing out. Also how often each snapshot has key 10."""
    policy = EpochPolicy(span_us=None, batches=1, threshold_rows=None)
    job = Job(MemoryStore(), policy, KeyCode(ordered=True), block_bytes=1 << 20).start()
    counts = {}
    for number in range(8):
        batch = rows(500, number, 400)
        keys = pa.array(batch.column(RESULT_KEY).to_numpy() * 2)
        batch = batch.set_column(batch.schema.get_field_index(RESULT_KEY), RESULT_KEY, keys)
        counts[number] = int((keys.to_numpy() == 10).sum())
        job.batch(number, batch)
    job.ledger.finish()
    return job, counts


def test_blocks_without_the_key_are_not_decoded() -> None:
    job, counts = sparse()
    assert 0 < sum(count > 0 for count in counts.values()) < 8
    found, answer = answered(reader_of(job), Question(key=10))
    assert len(found) == sum(counts.values())
    assert answer.blocks_read == 8
    assert answer.rows_read == 500 * sum(count > 0 for count in counts.values())
    nothing, answer = answered(reader_of(job), Question(key=11))
    assert (nothing, answer.rows_read) == ([], 0)


def test_damage_shows_also_in_blocks_that_are_not_decoded() -> None:
    job, _ = sparse()
    store = job.store
    ((key, content), *_) = store.get_blocks(job.name, list(store.list_blocks(job.name)))
    middle = len(content) // 2
    store.put_blocks(job.name, [(key, content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])])
    with pytest.raises(StateError, match="changed after its commit"):
        answered(reader_of(job), Question(key=11))


def test_a_key_range_reads_in_proportion_only_what_may_hold_it() -> None:
    job, _ = large(key_code(pa.int64(), equality=False, buckets=1))
    found, answer = answered(reader_of(job), Question(key_from=100, key_to=199))
    assert 9_500 < len(found) < 10_500
    assert answer.rows_read < 1.2 * len(found) + 1000


def test_a_result_that_met_late_is_found_by_its_old_time_in_a_new_snapshot() -> None:
    job, _ = large(key_code(pa.int64(), equality=True, buckets=8))
    found, answer = answered(reader_of(job), Question(to_us=-9 * S))
    assert_once(found, ids([rows(100, 5, 1000, -10 * S, -9 * S)]))
    assert answer.blocks_read <= 16


def test_a_time_range_reads_only_snapshots_that_may_hold_it() -> None:
    job, _ = large(key_code(pa.int64(), equality=True, buckets=8))
    found, answer = answered(reader_of(job), Question(from_us=2 * S + 1, to_us=3 * S - 1))
    assert 19_900 < len(found) <= 20_000
    assert answer.rows_read <= 20_000


def test_nothing_is_read_before_an_answer_is_iterated_and_stopping_early_stops_reading() -> None:
    job, store = large(key_code(pa.int64(), equality=True, buckets=8))
    reader = reader_of(job)
    store.blocks = store.fetches = 0
    answer = ask(reader, Question())
    assert (store.blocks, reader.reads.blocks, answer.blocks_read, answer.rows) == (0, 0, 0, 0)
    first = next(iter(answer))
    assert first.num_rows and answer.blocks_read == 1 and store.fetches == 1
    assert store.blocks < answer.blocks_wanted / 8
    del answer
    assert store.fetches == 1


def test_a_limit_stops_reading() -> None:
    job, store = large(key_code(pa.int64(), equality=True, buckets=8))
    store.fetches = 0
    found, answer = answered(reader_of(job), Question(limit=100))
    assert len(found) == 100 and answer.cursor is not None
    assert answer.blocks_read <= 3 and store.fetches == 1


class Looked(list[BlockRef]):
    """Counts how many blocks were looked at."""

    times = 0

    def __getitem__(self, at: Any) -> Any:
        self.times += 1
        return super().__getitem__(at)


def test_of_blocks_that_may_answer_only_those_that_are_read_are_looked_at() -> None:
    job, _ = large(key_code(pa.int64(), equality=True, buckets=8))
    reader = reader_of(job)
    reader.refresh()
    reader._index = replace(reader.index(), refs=(refs := Looked(reader.index().refs)))
    found, answer = answered(reader, Question(limit=1))
    assert len(found) == 1 and answer.blocks_read == 1
    assert 1 <= refs.times <= 16 < answer.blocks_wanted / 4


def test_going_on_from_a_cursor_does_not_read_what_was_given() -> None:
    job, _ = large(key_code(pa.int64(), equality=True, buckets=8))
    first = ask(reader_of(job), Question(limit=90_000))
    assert len(ids(first)) == 90_000 and first.cursor is not None
    found, answer = answered(reader_of(job), Question(limit=90_000, cursor=first.cursor))
    assert len(found) == 10_100
    assert answer.rows_read < 10_100 + 300
