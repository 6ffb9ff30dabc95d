"""Short text that takes a parser, or whoever walks what it means, a time that doubles with each level."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pyarrow as pa
import pytest

from streamjoin.errors import InputError, QueryError
from streamjoin.query import bind_condition, parse
from tests.processor import seconds_of

pytestmark = pytest.mark.slow

HEAD = "SELECT ONLINE R.k FROM R, S WHERE "
TYPES = ("date", "timestamp", "time", "int", "decimal", "varchar", "bool", "struct")
SLOW = "takes too long to be read; nest fewer calls"


def nested(word: str, levels: int) -> str:
    """A type's name, called as if it were a function."""
    return f"{word}(" * levels + "1" + ")" * levels


@pytest.mark.timeout(60)
@pytest.mark.parametrize("word", TYPES)
def test_types_called_60_levels_deep_are_refused_at_once(word):
    def read() -> None:
        with pytest.raises(QueryError, match=SLOW) as caught:
            parse(f"{HEAD}{nested(word, 60)} WITHIN 10 SECONDS")
        assert caught.value.span.line == 1

    assert seconds_of(read) < 1


@pytest.mark.timeout(60)
@pytest.mark.parametrize("word", TYPES)
def test_a_condition_on_results_with_such_calls_is_refused_at_once(word):
    def read() -> None:
        with pytest.raises(InputError, match=SLOW):
            bind_condition(f"{nested(word, 60)} = 1", pa.schema({"k": pa.int64()}), "results")

    assert seconds_of(read) < 1


@pytest.mark.timeout(60)
def test_the_main_condition_of_a_query_with_such_calls_is_refused_at_once(plan):
    def read() -> None:
        with pytest.raises(InputError, match=SLOW):
            plan(f"{HEAD}R.k = S.k", main=f"{nested('date', 60)} = 1")

    assert seconds_of(read) < 1


@pytest.mark.timeout(120)
def test_other_threads_read_their_queries_meanwhile():
    stop = Event()

    def hostile() -> int:
        refused = 0
        while not stop.is_set():
            with pytest.raises(QueryError, match=SLOW):
                parse(HEAD + nested("date", 60))
            refused += 1
        return refused

    with ThreadPoolExecutor(1) as pool:
        refused = pool.submit(hostile)
        try:
            taken = []
            for _ in range(3):
                start = time.perf_counter()
                assert parse(f"{HEAD}R.k = S.k")
                taken.append(time.perf_counter() - start)
        finally:
            stop.set()
        assert refused.result() > 0
    assert min(taken) < 1  # the machine may have been busy with others in one of them


@pytest.mark.parametrize("levels", [1, 8])
def test_a_few_calls_of_types_inside_each_other_are_read(levels):
    assert parse(HEAD + nested("date", levels))


@pytest.mark.parametrize(
    "condition",
    [
        "CAST(" * 60 + "R.k" + " AS BIGINT)" * 60 + " = 1",
        " AND ".join(["R.k = CAST(CAST(S.k AS INT) AS BIGINT)"] * 1_000),
        " AND ".join(["R.k::INT = 1"] * 3_000),
        " AND ".join(["R.ts > TIMESTAMP '2024-01-01'"] * 1_500),
    ],
    ids=["casts inside each other", "many casts", "many short casts", "many times"],
)
def test_long_queries_with_many_types_are_read(condition):
    assert parse(HEAD + condition)
