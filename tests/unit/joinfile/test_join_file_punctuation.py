"""`punctuate:` of a stream: what it may say, what is read for it, and when snapshots close by it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from streamjoin.errors import InputError
from streamjoin.explain.plans import explain
from streamjoin.plan.ending import EndsByFile, EndsByRow
from streamjoin.results.policy import PairPolicy, PunctuationPolicy
from streamjoin.spec.outputs import snapshot_policy

from .conftest import Changes, Try

BY_PERIOD: Changes = {"results": {"store": "sqlite", "path": "results.db", "snapshot": {"punctuation": True}}}
MARKED = {"column": "k", "value": 1}
PER_FILE = {"per": "file"}
SECONDS = {"every": "1s"}


def punctuated(orders: Any, payments: Any = MARKED) -> Changes:
    given = {"streams/orders/punctuate": orders, "streams/payments/punctuate": payments}
    return {**BY_PERIOD, **{place: value for place, value in given.items() if value is not None}}


WRONG: list[tuple[Any, str, str]] = [
    ({}, "", "is empty; write {every: 1s}, {column: kind, value: end} or {per: file}"),
    ({"column": "k"}, ".value", 'is missing; write what column "k" holds in the rows that end a period'),
    ({"value": 1}, ".value", "says nothing without a column"),
    ({**SECONDS, "value": 1}, ".value", "says nothing without a column"),
    ({**SECONDS, **PER_FILE}, "", "has every and per; a stream punctuates by one of them, so keep one"),
    ({**SECONDS, **MARKED, **PER_FILE}, "", "has every and column and per"),
    ({"every": "0s"}, ".every", "is 0s; give a span such as 1s"),
    ({"column": "kind", "value": 1}, ".column", 'there is no column "kind"; columns are ts, id, k, price'),
    ({"column": "K", "value": 1}, ".column", 'there is no column "K"; did you mean "k"?'),
    ({"column": "k", "value": "end"}, ".value", '"end" is no value that column "k" can hold, which is int64'),
    ({"column": "k", "value": True}, ".value", 'true is no value that column "k" can hold'),
    ({"column": "k", "value": [1, 2]}, ".value", '[1, 2] is no value that column "k" can hold'),
    ({"column": "ts", "value": 5}, ".value", '5 is no value that column "ts" can hold, which is timestamp'),
    ({"column": 5, "value": 1}, ".column", "needs a text"),
    ({"per": "row"}, ".per", "must be 'file'"),
    ({"colum": "k", "value": 1}, ".colum", 'did you mean "column"?'),
    ([MARKED], "", "mapping"),
]


@pytest.mark.parametrize(("punctuate", "place", "message"), WRONG)
def test_a_wrong_rule_is_refused_with_the_way_out(punctuate: Any, place: str, message: str, validate: Try) -> None:
    with pytest.raises(InputError) as wrong:
        validate(punctuated(punctuate))
    assert wrong.value.field == f"streams.orders.punctuate{place}"
    assert message in str(wrong.value) and "\n" not in str(wrong.value)


@pytest.mark.parametrize(
    "source",
    [
        {"source": "generator", "kind": "band.r", "time": "ts"},
        {
            "source": "kafka",
            "servers": "localhost:9092",
            "topic": "t",
            "format": "json",
            "time": "ts",
            "schema": {"ts": "timestamp"},
        },
    ],
    ids=["generator", "kafka"],
)
def test_what_has_no_files_ends_no_period_with_them(source: dict[str, Any], validate: Try) -> None:
    with pytest.raises(InputError) as wrong:
        validate({"streams/orders": {**source, "punctuate": PER_FILE}})
    assert wrong.value.field == "streams.orders.punctuate.per"
    assert f"is for streams of files, and {source['source']} has none; write {{every: 1s}}" in str(wrong.value)


@pytest.mark.parametrize(
    ("orders", "payments", "field", "message"),
    [
        (None, MARKED, "orders.punctuate", "is missing; commits by punctuation need it, such as {every: 1s}, {column"),
        (MARKED, None, "payments.punctuate", "is missing; commits by punctuation need it"),
        (SECONDS, MARKED, "payments.punctuate", "does not come in pairs with those of the other streams"),
        (PER_FILE, SECONDS, "payments.punctuate", "write every for all streams, or for none"),
        (SECONDS, {"every": "2s"}, "payments.punctuate.every", "all streams need punctuations of one span"),
    ],
)
def test_all_streams_punctuate_in_pairs(orders: Any, payments: Any, field: str, message: str, validate: Try) -> None:
    with pytest.raises(InputError) as wrong:
        validate(punctuated(orders, payments))
    assert wrong.value.field == f"streams.{field}"
    assert message in str(wrong.value)


def test_rows_and_files_are_read_as_the_rule_says(validate: Try) -> None:
    bound = validate(punctuated({"column": "price", "value": 3.25}, PER_FILE))
    assert [stream.ending for stream in bound.plan.streams] == [EndsByRow("price", pa.scalar(3.25)), EndsByFile()]
    assert snapshot_policy(bound.file, bound.plan) == PairPolicy()
    assert snapshot_policy(validate(punctuated(SECONDS, SECONDS)).file, bound.plan) == PunctuationPolicy(1_000_000)
    job = bound.job()
    assert "price" in job.read_columns(0), "although the query does not need it"
    assert "price" not in validate(punctuated(PER_FILE, PER_FILE)).job().read_columns(0)
    assert [job.sources[number].settings["alone"] for number in (0, 1)] == [False, True]


def test_an_ending_is_no_part_of_what_a_checkpoint_must_keep(validate: Try) -> None:
    from streamjoin.spark.identity import identity

    assert identity(validate(punctuated(MARKED)).job()) == identity(validate({}).job())


@pytest.mark.parametrize(
    ("orders", "payments", "words"),
    [
        (
            {"column": "ts", "value": "2026-01-01T00:00:00Z"},
            PER_FILE,
            "a period ends in orders at a row whose ts is 2026-01-01 00:00:00+00:00, in payments at the end of a file; "
            "its snapshot closes once all have ended it, and the watermark of the results has passed the latest of "
            "these ends",
        ),
        (
            SECONDS,
            SECONDS,
            "a snapshot closes for each 1 s of event time, once the watermark of the results has passed its end",
        ),
    ],
)
def test_explain_says_when_periods_close(orders: Any, payments: Any, words: str, validate: Try) -> None:
    explained = explain(validate(punctuated(orders, payments)))
    assert explained.to_json()["snapshots_close"] == words
    assert f"snapshots   {words}" in str(explained).splitlines()
    other = explain(validate({**punctuated(orders, payments), "results": {"discard": True}}))
    assert other.to_json()["snapshots_close"] is None and "snapshots" not in str(other)


def test_a_stream_may_punctuate_where_nothing_closes_by_it(validate: Try) -> None:
    assert validate({**punctuated(MARKED, None), "results": {"discard": True}}).plan.streams[0].ending is not None


GROUPED = (
    "SELECT ONLINE orders.k, COUNT(*) AS n FROM orders, payments WHERE orders.k = payments.k WITHIN 1 SECOND "
    "GROUP BY orders.k, TUMBLE(1 SECOND)"
)
OF_THREE = "SELECT ONLINE a.id FROM orders a, payments p, orders b WHERE a.k = p.k AND a.k = b.k WITHIN 1 DAY"


@pytest.mark.parametrize("query", [GROUPED, OF_THREE])
def test_only_streams_that_the_query_reads_must_punctuate(query: str, validate: Try) -> None:
    unread = {"query": query, "streams/parcels": {"source": "csv", "path": "data/orders", "time": "ts"}}
    bound = validate({**punctuated(SECONDS, SECONDS), **unread})
    assert snapshot_policy(bound.file, bound.plan) == PunctuationPolicy(1_000_000)
    with pytest.raises(InputError) as wrong:
        validate({**punctuated(SECONDS, None), **unread})
    assert wrong.value.field == "streams.payments.punctuate"
