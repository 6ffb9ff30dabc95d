"""Every wrong field of a join file is named, with what is wrong and what would be right."""

from __future__ import annotations

import re
from typing import Any

import pytest

from streamjoin.errors import InputError, UnsupportedError
from streamjoin.explain.plans import explain, summary

from .conftest import GONE, Changes, Try

ORDERS = "streams/orders"
GENERATED = {"source": "generator", "kind": "band.r", "time": "ts"}
SELECT = "SELECT ONLINE orders.id AS a, payments.id AS b FROM orders, payments"
BY_ID = f"{SELECT} WHERE orders.id = payments.id WITHIN 9 SECONDS"
BAND = f"{SELECT} WHERE ABS(orders.k - payments.k) < 5"
TOPIC = {"source": "kafka", "servers": "localhost:9092", "topic": "orders", "time": "ts"}
COLUMNS = {"ts": "timestamp", "id": "int64", "k": "int64"}
CONTRAND = {"name": "biclique", "routing": "contrand", "r_units": 2, "s_units": 2}


def generated(**fields: Any) -> Changes:
    return {ORDERS: {**GENERATED, **fields}, "query": BY_ID}


def operator(**fields: Any) -> Changes:
    return {"operator": fields}


def schema(**columns: Any) -> Changes:
    return {f"{ORDERS}/schema": columns}


MISSPELT: list[tuple[Changes, str, str]] = [
    ({"stream": {}}, "stream", 'there is no such field; did you mean "streams"?'),
    ({"colour": 1}, "colour", "fields here are streams, relations, query, queries, operator, results, run"),
    ({"base": "/etc"}, "base", "there is no such field"),
    ({"name": "mine"}, "name", "there is no such field"),
    ({f"{ORDERS}/tme": "ts"}, "streams.orders.tme", 'did you mean "time"?'),
    ({f"{ORDERS}/tiem": "ts", f"{ORDERS}/time": GONE}, "streams.orders.tiem", 'did you mean "time"?'),
    ({f"{ORDERS}/pth": "x"}, "streams.orders.pth", 'did you mean "path"?'),
    ({"results/parqet": "x"}, "results.parqet", 'did you mean "parquet"?'),
    ({"run/slot": 2}, "run.slot", 'did you mean "slots"?'),
]
SHED = {"threshold": 100, "capacity": 200}
SHEDDING: list[tuple[Changes, str, str]] = [
    ({f"{ORDERS}/shed": {**SHED, **wrong}}, f"streams.orders.shed.{next(iter(wrong))}", message)
    for wrong, message in (
        ({"capacity": 100}, "100 must be above the threshold, which is 100"),
        ({"capacity": "many"}, "needs a whole number"),
        ({"threshold": 0}, "must be at least 1"),
        ({"base": 1}, "1.0 must be at least 0 and below 1"),
        ({"base": -0.5}, "must be at least 0 and below 1"),
        ({"base": "half"}, "needs a number"),
        ({"shape": "cubic"}, '"cubic" is not a shed function; use linear and quadratic'),
        ({"shape": 1}, "needs a text"),
        ({"capcity": 300}, 'there is no such field; did you mean "capacity"?'),
    )
] + [
    (
        {f"{ORDERS}/shed": {"threshold": 1}},
        "streams.orders.shed.capacity",
        "is missing; it is the number of live tuples",
    ),
    ({f"{ORDERS}/idle": "0s"}, "streams.orders.idle", "is 0s; give a span such as 30s"),
    (
        {f"{ORDERS}/idle": "500ms"},
        "streams.orders.idle",
        "500 ms is less than run.heartbeat, 1 s, by which silence is noticed",
    ),
    (
        {f"{ORDERS}/idle": "2s", "run": {"every": "5s"}},
        "streams.orders.idle",
        "2 s is less than run.every, 5 s, by which silence is noticed; give a longer span, or more batches",
    ),
    ({"run": {"every": 1}}, "run.every", "1 is not a span of time; write a number and us, ms, s"),
    ({"run": {"every": "-1s"}}, "run.every", '"-1s" is negative; a span is 0s or longer'),
    (
        {f"{ORDERS}/idle": "30s", "operator": {"name": "spark"}},
        "streams.orders.idle",
        "Spark's own join waits for the watermarks of both streams",
    ),
    ({f"{ORDERS}/deletes": True}, "streams.orders.deletes", "needs key, the columns that say what a row ends, such as"),
    ({f"{ORDERS}/deletes": "yes"}, "streams.orders.deletes", 'needs true or false, not "yes"'),
    ({f"{ORDERS}/key": ["k"]}, "streams.orders.key", "means nothing without deletes: true; add that, or leave it out"),
    *(
        ({f"{ORDERS}/deletes": True, f"{ORDERS}/key": wrong}, "streams.orders.key", message)
        for wrong, message in (
            ("k", '"k" is not a list of names; write one or more, such as [sym]'),
            ([], "[] is not a list of names"),
            ([5], "[5] is not a list of names"),
            (["nothing"], 'there is no column "nothing"; columns are'),
            (["ts"], '"ts" is the event time'),
        )
    ),
    ({f"{ORDERS}/shed": True}, "streams.orders.shed", "needs a mapping such as {threshold: 2000000"),
    (
        {f"{ORDERS}/shed": SHED, "operator": {"name": "spark"}},
        "streams.orders.shed",
        "Spark's own join drops no tuples",
    ),
]
MISSING: list[tuple[Changes, str, str]] = [
    ({"streams": GONE}, "streams", "is missing: a name and a description for each stream"),
    ({"streams": {}}, "streams", "is empty"),
    ({"streams/payments": GONE}, "", 'there is no stream "payments"; there are orders'),
    ({"query": GONE}, "query", "is missing; write a SELECT ONLINE"),
    ({"query": ""}, "query", "is missing; write a SELECT ONLINE"),
    ({"query": "  "}, "", "the query is empty"),
    ({f"{ORDERS}/source": GONE}, "streams.orders.source", "it is parquet, csv, jsonl, arrow, kafka or generator"),
    ({f"{ORDERS}/path": GONE}, "streams.orders.path", "is missing; a csv stream needs it"),
    ({f"{ORDERS}/path": None}, "streams.orders.path", "is empty; give it a value"),
    ({f"{ORDERS}/time": GONE}, "streams.orders.time", "it names the column of the event time"),
    ({ORDERS: {"source": "generator", "time": "ts"}}, "streams.orders.kind", "a generator stream needs it"),
    ({ORDERS: {"source": "kafka", "time": "ts"}}, "streams.orders.servers", "a kafka stream needs it"),
    (
        {ORDERS: {**TOPIC, "format": "json"}},
        "streams.orders.schema", "Kafka records do not carry one",
    ),
    (
        {ORDERS: {**TOPIC, "format": "avro", "schema": COLUMNS}},
        "streams.orders.avro_schema", "with the schema they were written with",
    ),
    ({ORDERS: None}, "streams.orders", "is empty"),
    ({f"{ORDERS}/csv": {"null": None}}, "streams.orders.csv.null", 'put the text into quotes, "NULL"'),
    ({"operator": None}, "operator", "is empty; give it a value or leave the field out"),
    ({"results": None}, "results", "is empty"),
    ({"results": {}}, "results", "name exactly one of parquet, jsonl, discard and store"),
    ({f"{ORDERS}/delay": None}, "streams.orders.delay", "is empty"),
    ({f"{ORDERS}/time": None}, "streams.orders.time", "is empty"),
]  # fmt: skip
WRONG_TYPES: list[tuple[Changes, str, str]] = [
    ({"streams": [1]}, "streams", "needs a mapping: a name and a description for each stream, not [1]"),
    ({"streams": {5: {}}}, "streams.5.source", "is missing"),
    ({ORDERS: "csv"}, "streams.orders", 'needs a mapping, not "csv"'),
    ({"operator": "matrix"}, "operator", 'needs a mapping such as {name: matrix}, not "matrix"'),
    ({"results": "jsonl"}, "results", "needs a mapping such as {parquet: out/pairs}"),
    ({"run": [2]}, "run", "needs a mapping such as {slots: 2}, not [2]"),
    ({"query": ["a"]}, "query", "needs a text, not ['a']"),
    ({"run/slots": 0}, "run.slots", "must be at least 1, not 0"),
    ({"run/slots": -1}, "run.slots", "must be at least 1, not -1"),
    ({"run/slots": "two"}, "run.slots", 'needs a whole number, not "two"'),
    ({"run/slots": "2"}, "run.slots", 'needs a whole number, not "2"'),
    ({"run/slots": True}, "run.slots", "needs a whole number, not true"),
    ({"run/slots": 1e9}, "run.slots", "needs a whole number"),
    ({"run/slots": 2**70}, "run.slots", "must be at most 4096"),
    ({f"{ORDERS}/csv": {"delimiter": ";;"}}, "streams.orders.csv.delimiter", "is not one ASCII character, such as"),
    ({f"{ORDERS}/csv": {"delimiter": "é"}}, "streams.orders.csv.delimiter", "is not one ASCII character"),
    ({f"{ORDERS}/csv": {"delimiter": ""}}, "streams.orders.csv.delimiter", "is not one ASCII character"),
    ({f"{ORDERS}/csv": {"quote": "\n"}}, "streams.orders.csv.quote", "is not one ASCII character"),
    ({f"{ORDERS}/csv": {"quote": ","}}, "streams.orders.csv.quote", "is the delimiter, too"),
    ({f"{ORDERS}/csv": {"null": "N,A"}}, "streams.orders.csv.null", "has a delimiter, a quote or a line break in it"),
    ({f"{ORDERS}/csv": {"names": ["a", "a"]}}, "streams.orders.csv.names", "needs a name for each column, each once"),
    ({f"{ORDERS}/csv": {"header": False}}, "streams.orders.csv.names", "without a line of column names give names"),
    ({f"{ORDERS}/csv": {"header": "no"}}, "streams.orders.csv.header", "needs true or false"),
    ({f"{ORDERS}/csv": {"delimeter": ";"}}, "streams.orders.csv.delimeter", 'did you mean "delimiter"?'),
    ({"run/files_per_batch": 0}, "run.files_per_batch", "must be at least 1"),
    ({"run/files_per_batch": 2.5}, "run.files_per_batch", "needs a whole number"),
    ({"run/offsets_per_batch": "x"}, "run.offsets_per_batch", "needs a whole number"),
    ({"run/driver_memory": 1}, "run.driver_memory", "must be at least 480"),
    ({"run/driver_memory": 10**9}, "run.driver_memory", "must be at most"),
    ({"run/strict": "maybe"}, "run.strict", 'needs true or false, not "maybe"'),
    ({"run/heartbeat": "often"}, "run.heartbeat", '"often" is not a span of time'),
    ({"run/spark": "x"}, "run.spark", "needs a mapping"),
    ({"run/spark": {"spark.x": [1]}}, "run.spark.spark.x", "needs a text"),
    ({"run/checkpoint": 5}, "run.checkpoint", "needs a text, not 5"),
    ({"run/checkpoint": ""}, "run.checkpoint", "is empty"),
    ({"run/state": ""}, "run.state", "is empty"),
    ({"run/cache": {"size": "200"}}, "run.cache.size", '"200" is not a size; write a whole number and m, g or t'),
    ({"run/cache": {"size": "0g"}}, "run.cache.size", '"0g" is no size that holds anything'),
    ({"run/cache": {"size": "1g"}}, "run.cache", "keeps what a store has, and this state is a folder; leave it out"),
    ({"run/cache": {"path": "c"}, "run/state": "elsewhere"}, "run.cache", "keeps what a store has"),
    ({"run/cache": {"sise": "1g"}}, "run.cache.sise", 'did you mean "size"?'),
    ({f"{ORDERS}/source": "cvs"}, "streams.orders.source", "must be 'parquet', 'csv', 'jsonl'"),
    ({f"{ORDERS}/source": ["csv"]}, "streams.orders.source", "must be 'parquet', 'csv', 'jsonl'"),
    ({f"{ORDERS}/source": "sql"}, "streams.orders.source", "a table of a database ends, so write it under relations"),
    ({f"{ORDERS}/path": 5}, "streams.orders.path", "needs a text, not 5"),
    ({f"{ORDERS}/time": 5}, "streams.orders.time", "needs a text, not 5"),
    ({f"{ORDERS}/time_unit": "ns"}, "streams.orders.time_unit", "must be 's', 'ms' or 'us', not \"ns\""),
    ({f"{ORDERS}/topic": "t"}, "streams.orders.topic", "a csv stream takes no such field; it is for kafka"),
    (generated(path="x"), "streams.orders.path", "a generator stream takes no such field"),
    (generated(schema=COLUMNS), "streams.orders.schema", "a generator stream takes no such field"),
]
SPANS: list[tuple[Changes, str, str]] = [
    ({f"{ORDERS}/delay": value}, "streams.orders.delay", message)
    for value, message in (
        ("2", '"2" is not a span of time; write a number and us, ms, s, min, h or d, such as 2s'),
        (5, "5 is not a span of time"),
        (1.5, "1.5 is not a span of time"),
        (True, "true is not a span of time"),
        ([1], "[1] is not a span of time"),
        ("", '"" is not a span of time'),
        ("s", '"s" is not a span of time'),
        ("2 parsecs", "is not a span of time"),
        ("1e3s", "is not a span of time"),
        ("inf s", "is not a span of time"),
        ("٢s", "is not a span of time"),
        ("2 s 3 ms", "is not a span of time"),
        ("-2s", '"-2s" is negative; a span is 0s or longer'),
        ("0.1us", "is not a whole number of microseconds below 100 years"),
        ("99999d", "is not a whole number of microseconds below 100 years"),
        ("9" * 30 + "d", "is not a whole number of microseconds below 100 years"),
        ("9" * 400 + "s", "is not a span of time"),
    )
]
RATES: list[tuple[Changes, str, str]] = [
    (generated(rate=value), "streams.orders.rate", message)
    for value, message in (
        ("1000", '"1000" is not a rate; write 1000/s'),
        ("1/d", "is not a rate; write 1000/s"),
        ("fast", "is not a rate; write 1000/s"),
        (True, "true is not a rate; write 1000/s"),
        ([1], "is not a rate; write 1000/s"),
        (0, "must be above 0"),
        ("0/s", "must be above 0"),
        (-1, "must be above 0"),
        (float("inf"), "at most 1e+12/s"),
        (float("nan"), "must be above 0"),
        (10**400, "at most 1e+12/s"),
        ("9" * 30 + "/s", "at most 1e+12/s"),
    )
]
GENERATORS: list[tuple[Changes, str, str]] = [
    (generated(kind="bnad"), "streams.orders.kind", '"bnad" is not a kind of generated stream; kinds are band.r'),
    (generated(kind=5), "streams.orders.kind", "needs a text"),
    (generated(options={"keys": 1}), "streams.orders.options", 'band.r has no option "keys"; it has no options'),
    (generated(kind="zipf.r", options={"keis": 1}), "streams.orders.options", 'no option "keis"; options are'),
    (generated(kind="zipf.r", options={"keys": -1}), "streams.orders.options", 'option "keys" is -1'),
    (generated(kind="zipf.r", options={"keys": float("nan")}), "streams.orders.options", 'option "keys" is nan'),
    (generated(options={"a": "x"}), "streams.orders.options.a", "needs a number"),
    (generated(rows=0), "streams.orders.rows", "must be at least 1"),
    (generated(rows=10**30), "streams.orders.rows", "must be at most"),
    (generated(seed="x"), "streams.orders.seed", "needs a whole number"),
    (generated(seed=2**80), "streams.orders.seed", "must be at most"),
]
OPERATORS: list[tuple[Changes, str, str]] = [
    (operator(name="bclique"), "operator.name", 'there is no operator "bclique"; operators are biclique, matrix, '),
    (operator(name=5), "operator.name", "needs a text"),
    (operator(routing="hsh"), "operator.routing", '"hsh" is not a valid routing; use random, hash, contrand'),
    (operator(routing=["hash"]), "operator.routing", "['hash'] is not a valid routing; use random, hash, contrand"),
    (operator(routing={"a": 1}), "operator.routing", "is not a valid routing; use random, hash, contrand"),
    (operator(index="btree"), "operator.index", '"btree" is not a valid index; use auto, hash, tree, scan'),
    (operator(r_units=0), "operator.r_units", "0 is not a whole number from 1 to 4096"),
    (operator(r_units=5000), "operator.r_units", "from 1 to 4096"),
    (operator(r_units="4"), "operator.r_units", "from 1 to 4096"),
    (operator(r_units=True), "operator.r_units", "from 1 to 4096"),
    (operator(zz=1), "operator.zz", "biclique has no such knob; its knobs are routing, r_units"),
    (operator(name="matrix", r_units=2), "operator.r_units", "matrix has no such knob; its knobs are rows, columns"),
    (operator(name="spark", r_units=2), "operator.r_units", "spark has no knobs"),
    (operator(archive_period="0s"), "operator.archive_period", "at least 1 us"),
    (operator(archive_period="x"), "operator.archive_period", "is not a span of time"),
    (operator(r_groups=2), "operator.r_groups", "only contrand routing has subgroups"),
    (operator(**CONTRAND, r_groups=4), "operator.r_groups", "there must be between 1 and 2"),
    (operator(capacity=64), "operator.capacity", "write adaptive: true beside it, or leave it out"),
    (operator(adaptive=True, target=0.9), "operator.target", "0.9 must be above drain_below 0.3 and below add_above 0"),
    (operator(adaptive=True, max_units=1), "operator.max_units", "between 1 and 1, and the job begins with 2 and 2"),
    (operator(adaptive=True, min_units=3), "operator.min_units", "between 3 and 8, and the job begins with 2 and 2"),
    (operator(adaptive="yes"), "operator.adaptive", "true or false"),
    (operator(name="matrix", adaptive=True), "operator.adaptive", "matrix has no such knob"),
    ({"query": BAND, **operator(**CONTRAND, r_groups=2, s_groups=1)}, "operator.r_bounds", "needs the 1 keys"),
    *(
        ({"query": BAND, **operator(**CONTRAND, r_groups=2, s_groups=1, r_bounds=wrong)}, "operator.r_bounds", message)
        for wrong, message in (
            (["x"], "['x'] is not a list of whole numbers"),
            ([None], "is not a list of whole numbers"),
            ([1.5], "is not a list of whole numbers"),
            ([[1]], "is not a list of whole numbers"),
            ([1, 2], "2 subgroups need 1 rising keys, not [1, 2]"),
        )
    ),
]  # fmt: skip
SCHEMAS: list[tuple[Changes, str, str]] = [
    (schema(), "streams.orders.schema", "a stream needs at least one column"),
    (schema(**{f"c{n}": "int64" for n in range(2000)}), "streams.orders.schema", "2000; give it a schema of those"),
    (schema(ts="timestamp", __event_time="int64"), "streams.orders.schema", "two underscores are reserved"),
    (schema(**{"ts": "timestamp", "": "int64"}), "streams.orders.schema", "a column needs a name"),
    (schema(ts="timestamp", k="INT64"), "streams.orders.schema", 'column "k": "INT64" is not a column type; did'),
    (schema(ts="timestamp", k="varchar"), "streams.orders.schema", "did you mean string?"),
    (schema(ts="timestamp", k="nope"), "streams.orders.schema", "types are bool, int8"),
    (schema(ts="timestamp", k="decimal(0,0)"), "streams.orders.schema", "1 <= precision <= 38"),
    (schema(ts="timestamp", k="decimal(39,0)"), "streams.orders.schema", "1 <= precision <= 38"),
    (schema(ts="timestamp", k="decimal(5,9)"), "streams.orders.schema", "scale <= precision"),
    (schema(ts=5), "streams.orders.schema.ts", "needs a text, not 5"),
    ({f"{ORDERS}/schema": {5: "int64"}}, "streams.orders.time", 'there is no column "ts"; columns are 5'),
    ({f"{ORDERS}/schema": ["ts"]}, "streams.orders.schema", "needs a mapping such as {ts: timestamp, k: int64}"),
    (schema(k="int64", id="int64"), "streams.orders.time", 'there is no column "ts"; columns are k, id'),
    (schema(ts="string", id="int64"), "streams.orders.time", 'column "ts" is string, such as "2026-01-01T'),
    ({f"{ORDERS}/time": "price"}, "streams.orders.time", 'column "price" is float64; an event time is a timestamp'),
    ({f"{ORDERS}/time": "TS"}, "streams.orders.time", 'there is no column "TS"; did you mean "ts"?'),
    ({f"{ORDERS}/time": "pryce"}, "streams.orders.time", 'there is no column "pryce"; did you mean "price"?'),
    ({f"{ORDERS}/time": "sold_at"}, "streams.orders.time", 'there is no column "sold_at"; columns are ts, id, k'),
]  # fmt: skip
RESULTS: list[tuple[Changes, str, str]] = [
    ({"results": {"parquet": "a", "jsonl": "b"}}, "results", "name exactly one of"),
    ({"results": {"path": "x"}}, "results", "name exactly one of"),
    ({"results": {"discard": False}}, "results.discard", "is true or left out"),
    ({"results": {"discard": "maybe"}}, "results.discard", "needs true or false"),
    ({"results": {"parquet": ""}}, "results.parquet", "is empty; name a file or folder"),
    ({"results": {"jsonl": " "}}, "results.jsonl", "is empty"),
    ({"results": {"parquet": "a\0b"}}, "results.parquet", "has characters that no path should have"),
    ({"results": {"parquet": 5}}, "results.parquet", "needs a text"),
    ({"results": {"parquet": "a", "snapshot": {}}}, "results.snapshot", "is for result stores only"),
    ({"results": {"parquet": "a", "path": "b"}}, "results.path", "is for result stores only"),
    ({"results": {"parquet": "data/orders"}}, "results.parquet", "results in it would be read as its tuples"),
    ({"results": {"jsonl": "data/orders/out.jsonl"}}, "results.jsonl", "results in it would be read as its tuples"),
    ({"results": {"parquet": "data/orders/1.csv"}}, "results.parquet", "is a file; Parquet results are a folder"),
    ({"results": {"jsonl": "data"}}, "results.jsonl", "is a folder; JSON lines results are one file"),
    ({"results": {"parquet": "data/orders/1.csv/out"}}, "results.parquet", "1.csv is a file; Parquet results"),
    ({"results": {"jsonl": "data/orders/1.csv/out"}}, "results.jsonl", "1.csv is a file; a file lies in a folder"),
    ({"run/checkpoint": "data/orders/1.csv/state"}, "run.checkpoint", "1.csv is a file; a checkpoint is a folder"),
    ({"run/checkpoint": "data/orders/1.csv"}, "run.checkpoint", "is a file; a checkpoint is a folder"),
]


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        pytest.param(*case, id=f"{case[1][:40]}-{index}")
        for index, case in enumerate(
            MISSPELT + MISSING + WRONG_TYPES + SPANS + RATES + GENERATORS + OPERATORS + SCHEMAS + RESULTS + SHEDDING
        )
    ],
)
def test_wrong_field_is_named_with_what_would_be_right(
    changes: Changes, field: str, message: str, validate: Try
) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as refused:
        validate(changes)
    assert (refused.value.field or "") == field
    assert len(str(refused.value)) < 500
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        *((name, name) for name in ("a b", "1a", "é", "a" * 64, "a-b", "a.b", "", "../x", 'x"y', "%2e")),
        ("a\nb", "a�b"),
        ("\u202eabc", "�abc"),
    ],
)
def test_odd_name_of_a_stream_is_refused_and_shown_on_one_line(name: str, shown: str, validate: Try) -> None:
    with pytest.raises(InputError, match="a stream's name is a letter or _, then letters, digits and _") as refused:
        validate({"streams": {name: {"source": "csv", "path": "data/orders", "time": "ts"}}})
    assert refused.value.field == f"streams.{shown}"


def test_streams_that_differ_by_case_only_are_refused(validate: Try) -> None:
    with pytest.raises(InputError, match='differs from "orders" by case only') as refused:
        validate({"streams/Orders": {"source": "csv", "path": "data/orders", "time": "ts"}})
    assert refused.value.field == "streams.Orders"


QUERIES = {"near": {"query": BAND, "results": {"parquet": "near"}}, "equal": {"query": BY_ID}}
SEVERAL: Changes = {"queries": QUERIES, "query": GONE, "results": GONE}


@pytest.mark.parametrize(
    ("joins", "words"),
    [
        ("orders LEFT ANTI JOIN payments ON {0}", "orders LEFT ANTI JOIN payments within 5 s, by biclique"),
        (
            "orders FULL OUTER JOIN payments ON {0} JOIN payments AS again ON orders.id = again.id",
            "orders FULL JOIN payments JOIN again within 5 s, by biclique",
        ),
        (
            "orders AS o, orders LEFT JOIN payments ON {0}",
            "o JOIN (orders LEFT JOIN payments) within 5 s, by biclique",
        ),
    ],
)
def test_joins_are_called_what_they_are(joins: str, words: str, validate: Try) -> None:
    query = f"SELECT ONLINE orders.id FROM {joins.format('orders.id = payments.id')} WITHIN 5 SECONDS"
    assert summary(validate({"query": query})).startswith(words)


def test_several_queries_share_a_file(validate: Try) -> None:
    bound = validate(SEVERAL)
    assert summary(bound).startswith("near, equal: orders joins payments full history, by biclique")
    assert [query.name for query in bound.queries] == ["near", "equal"]


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"query": BAND}, "query", "belongs to each of the queries, as queries.NAME.query"),
        ({"results": {"discard": True}}, "results", "belongs to each of the queries, as queries.NAME.results"),
        ({"queries": {}}, "queries", "is empty; name the queries"),
        ({"queries": {"a b": {"query": BAND}}}, "queries.a b", "a query's name is letters"),
        ({"queries": {"a": {"query": " "}}}, "queries.a.query", "is empty"),
        ({"queries": {"a": BAND}}, "queries.a", "needs a mapping"),
        ({"queries": {"a": {"results": {"discard": True}}}}, "queries.a.query", "is missing"),
        ({"queries": {"a": {"query": BAND, "result": {}}}}, "queries.a.result", 'did you mean "results"?'),
        ({"queries": {"a": {"query": BAND, "results": {"parqet": "x"}}}}, "queries.a.results.parqet", "parquet"),
        ({"queries": {"a": {"query": BAND, "results": {"store": "sqlite"}}}}, "queries.a.results.path", "is missing"),
        (
            {"queries": {"a": {"query": BAND, "results": {"parquet": "data/orders"}}}},
            "queries.a.results.parquet",
            "results in it would be read as its tuples",
        ),
        (
            {"queries": {name: {"query": BAND, "results": {"jsonl": "-"}} for name in ("a", "b")}},
            "queries.b.results",
            "is where the results of a go",
        ),
        (operator(main="orders.id = payments.id"), "operator.main", "names a conjunct of one query"),
        (
            {**operator(routing="hash"), "queries": {
                "a": {"query": BY_ID}, "b": {"query": BY_ID.replace("orders.id = payments.id", "orders.k = payments.k")}
            }},
            "operator.routing",
            "these queries have no equality in common",
        ),
        (operator(name="spark"), "operator.name", "needs an equality between the two streams"),
        (
            {**operator(ordering="total"), "queries": {
                **QUERIES, "near": {"query": BAND, "results": {"store": "sqlite", "path": "results.db"}}
            }},
            "queries.equal.results",
            "the results of all queries go into stores",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_with_one_of_several_queries_is_said_with_its_name(
    changes: Changes, field: str, message: str, validate: Try
) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as refused:
        validate({**SEVERAL, **changes})
    assert refused.value.field == field


def test_a_mistake_in_one_of_several_queries_is_shown_where_it_is(validate: Try) -> None:
    wrong = {"queries": {**QUERIES, "equal": {"query": BY_ID.replace("payments.id WITHIN", "payments.it WITHIN")}}}
    with pytest.raises(InputError, match=r"^queries\.equal\.query, line 1, column \d+: .*payments"):
        validate({**SEVERAL, **wrong})


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        (operator(unit_capacity=64), "operator.unit_capacity", "unit_capacity"),
    ],
)
def test_what_this_version_cannot_do_is_refused_by_name(
    changes: Changes, field: str, message: str, validate: Try
) -> None:
    with pytest.raises(UnsupportedError, match=rf"{message}.* not supported by this version") as refused:
        validate(changes)
    assert refused.value.field == field


def test_an_order_that_is_none_is_refused_with_those_there_are(validate: Try) -> None:
    with pytest.raises(InputError, match='"sorted" is not a valid ordering; use none, outer, inner, total') as refused:
        validate(operator(ordering="sorted"))
    assert refused.value.field == "operator.ordering"
    validate(operator(ordering="outer"))


KEPT = {"store": "sqlite", "path": "results.db"}
BY_PERIOD = {**KEPT, "snapshot": {"punctuation": True}}
PUNCTUATED: Changes = {f"streams/{name}/punctuate": {"every": "1s"} for name in ("orders", "payments")}
CHAIN: Changes = {**PUNCTUATED, **operator(name="handshake")}


def test_a_chain_keeps_results_by_period_as_every_operator_does(validate: Try) -> None:
    validate({**CHAIN, "results": BY_PERIOD})
    several = {"all": {"query": BY_ID, "results": BY_PERIOD}, "equal": {"query": BY_ID}}
    validate({**CHAIN, **SEVERAL, "queries": several})
    stopped = {**several, "all": {**several["all"], "stopped": True}}
    bound = validate({**CHAIN, **SEVERAL, "queries": stopped})
    assert [query.name for query in bound.stopped] == ["all"]
    options = explain(validate({**PUNCTUATED, "results": BY_PERIOD})).options
    assert [option.name for option in options if option.refusal] == []


def test_spark_needs_an_equality_and_says_so_before_it_starts(validate: Try) -> None:
    with pytest.raises(UnsupportedError, match="needs an equality") as refused:
        validate({"query": BAND + " WITHIN 1 SECONDS", "operator": {"name": "spark"}})
    assert refused.value.field == "operator.name"


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {f"{ORDERS}/delay": "1h"},  # longer than the window
        {f"{ORDERS}/delay": "1.5 min"},
        {f"{ORDERS}/delay": "0.3s"},
        {f"{ORDERS}/time": "arrival"},
        {f"{ORDERS}/time": "id", f"{ORDERS}/time_unit": "ms"},
        {f"{ORDERS}/schema": COLUMNS},
        {f"{ORDERS}/schema": {**COLUMNS, "price": "decimal(12, 2)"}},
        {"results": {"parquet": "out/pairs"}},
        {"results": {"discard": True}},
        {"results": GONE, "run": GONE},
        {"run/spark": {"spark.sql.shuffle.partitions": 5, "spark.ui.enabled": True}},
        {"operator": {"name": "matrix", "rows": 2, "columns": 2}},
        {"operator": {"name": "spark"}},
        {"operator": {"archive_period": "1s", "index": "tree"}},
        {"operator": {**CONTRAND, "r_units": 4, "s_units": 4, "r_groups": 2, "s_groups": 2}},
        {"operator": {**CONTRAND, "adaptive": True, "capacity": 0.5, "max_units": 9, "check_every": "5s"}},
        {"query": BAND, "operator": {**CONTRAND, "r_groups": 2, "s_groups": 1, "r_bounds": [7], "s_bounds": []}},
        generated(rate="1000/s", rows=100_000, seed=1),
        generated(rate=1000),
        {
            ORDERS: {
                **TOPIC, "format": "json", "starting": "latest", "schema": {**COLUMNS, "price": "float64"},
            }
        },
    ],
)  # fmt: skip
def test_right_files_are_right(changes: Changes, validate: Try) -> None:
    assert validate(changes).plan.names == ("orders", "payments")


def test_spans_are_exact(validate: Try) -> None:
    for text, us in (("4.35s", 4_350_000), ("1.1 ms", 1_100), ("0s", 0), ("2h", 7_200_000_000), ("1 us", 1)):
        assert validate({f"{ORDERS}/delay": text}).file.streams["orders"].delay == us


def test_spark_settings_become_the_texts_that_spark_reads(validate: Try) -> None:
    found = validate({"run/spark": {"a": 5, "b": True, "c": 0.5, "d": "x"}}).file.run.spark
    assert found == {"a": "5", "b": "true", "c": "0.5", "d": "x"}
