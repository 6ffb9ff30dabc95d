"""What `explain` predicts of operators that read a relation part by part."""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.explain import reading as readings_of
from streamjoin.explain.plans import explain
from streamjoin.explain.reading import Reading, predicted
from streamjoin.operators.costs.reading import BATCH_S, SCAN_TIMES, SORTED_TIMES
from streamjoin.operators.costs.ssbj import Bytes, memory_bytes
from streamjoin.operators.ssbj.step import COLLECTED_SHARE
from streamjoin.spark.run import foretold

from .conftest import GONE, Changes, Try
from .test_auto_relations import BAND, JOIN, MIXED

pytestmark = pytest.mark.slow

ROWS = 60_000
MIB = 1 << 20
ROW, TUPLE = 8 + 100 + 4 + 16, 8 + 8 + 16


@pytest.fixture(autouse=True)
def skewed(folder: Path) -> Path:
    """A relation of a row a value, and a stream that asks for few values more often than for others."""
    pq.write_table(pa.table({"id": np.arange(ROWS), "name": ["n" * 100] * ROWS}), folder / "wide.parquet")
    shares = np.arange(1, ROWS + 1) ** -1.0
    keys = np.random.default_rng(1).choice(ROWS, 20_000, p=shares / shares.sum())
    times = np.datetime64("2026-01-01") + np.arange(keys.size).astype("timedelta64[ms]")
    rows = pa.table({"ts": pa.array(times, pa.timestamp("ms")), "id": np.arange(keys.size), "k": keys})
    pq.write_table(rows, folder / "skewed.parquet")
    return folder


def changes(query: str = JOIN, **operator: Any) -> Changes:
    return {
        "streams/orders": {"source": "parquet", "path": "skewed.parquet", "time": "ts", "delay": "0s"},
        "relations": {"customers": {"source": "parquet", "path": "wide.parquet"}}, "query": query,
        **{f"operator/{name}": value for name, value in operator.items()},
    }  # fmt: skip


def test_rows_read_and_what_the_cache_joins_are_predicted(validate: Try) -> None:
    shown = explain(validate(changes(memory=1)))
    found = shown.to_json()["readings"]
    assert list(found) == ["lookup", "ssbj", "meshjoin"] and found["ssbj"]["memory_bytes"] == MIB
    ssbj = found["ssbj"]
    # Equation 1, from the share and the rows read: what the memory has to be.
    round_tuples, buffer_rows = ROWS / ssbj["rows_read_per_tuple"], MIB / 10 / ROW
    misses = (1 - ssbj["cached_share"]) * round_tuples * buffer_rows / ROWS
    waits = memory_bytes(Bytes(TUPLE, ROW), ROWS, buffer_rows, 0, misses)
    room = MIB - (MIB - buffer_rows * ROW) / COLLECTED_SHARE
    assert 0.5 * room < waits < room  # the rest is cached
    assert 0.3 < ssbj["cached_share"] < 0.9
    text = str(shown)
    assert f"\n            ssbj: {ssbj['cached_share']:.0%} of o from the cache, " in text
    assert "rows of c read for each row of o, in 1.0 MiB; units join up to " in text and "meshjoin: " in text
    assert "ssbj             can run it; its rate is predicted above" in text
    assert "lookup           can run it; its rate is predicted above" in text


def test_meshjoin_with_its_usual_memory_by_hand(validate: Try) -> None:
    found = explain(validate(changes(name="meshjoin", memory=2, partitions=40))).to_json()["readings"]["meshjoin"]
    round_tuples = (2 * MIB - ROWS / 40 * ROW) / TUPLE
    times = SCAN_TIMES  # two units: each does 40 steps, with half of the rows and of the tuples, on a core of its own
    steps_ns = 2 * 40 * (times.seek + 40 * times.meet) + ROWS * times.look_up
    by_hand_ns = steps_ns + round_tuples * (times.take + times.output + 40 * times.search)
    assert found == {
        "text": f"{found['rows_read_per_tuple']:.2g} rows of c read for each row of o, in 2.0 MiB; "
        f"units join up to {found['rate_per_s']:,.0f} tuples/s",
        "memory_bytes": 2 * MIB,
        "rate_per_s": pytest.approx(2e9 * round_tuples / by_hand_ns, rel=0.01),
        "rows_read_per_tuple": pytest.approx(ROWS / round_tuples, rel=0.02),
        "cached_share": 0,
    }


def test_more_memory_reads_less_and_enough_of_it_nothing(validate: Try) -> None:
    read = [
        explain(validate(changes(memory=memory))).to_json()["readings"]["ssbj"]["rows_read_per_tuple"]
        for memory in (1, 2, 4, 64)
    ]
    assert read == sorted(read, reverse=True) and len(set(read)) == 4 and read[-1] == 0
    assert "ssbj: 100% of o from the cache, nothing of c read once it is cached" in str(
        explain(validate(changes(memory=64)))
    )


def test_too_little_memory_is_said_before_the_start(validate: Try) -> None:
    shown = explain(validate(changes(memory=1, partitions=1)))
    assert "ssbj: a memory of 1 MiB is not enough, as a part of the relation has 3.7 MiB in each of 2 units" in str(
        shown
    )
    found = shown.to_json()["readings"]
    assert list(found["ssbj"]) == ["text"] and "give at least 15 MiB, or more partitions" in found["ssbj"]["text"]
    assert found["meshjoin"]["memory_bytes"] == 256 * MIB  # its own usual one


@pytest.mark.parametrize("query", [BAND, MIXED])
def test_where_too_little_is_known_nothing_is_predicted(query: str, validate: Try) -> None:
    shown = explain(validate(changes(query)))
    assert shown.readings == () and "\npredicted " not in str(shown)


def test_a_rate_takes_what_it_takes(validate: Try) -> None:
    found = explain(validate(changes(rate=1_000))).to_json()["readings"]
    assert list(found) == ["lookup", "ssbj", "meshjoin"]
    ssbj = found["ssbj"]
    assert ssbj["asked_per_s"] == 1_000 and ssbj["rate_per_s"] == pytest.approx(1_000, rel=0.01)
    # A batch reads the whole relation, one tenth after the other; what comes during a batch waits for the next one.
    waits = 1_000 * BATCH_S * TUPLE
    assert 0.5 * waits < ssbj["memory_bytes"] - ROWS / 10 * ROW < 1.1 * waits and ssbj["problem"] is None
    assert "; 1,000 tuples/s take " in ssbj["text"] and "KiB, and this machine has " in ssbj["text"]


def test_a_faster_stream_takes_more_memory_and_more_than_there_is_is_warned_of(
    validate: Try, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound = [validate(changes(name="meshjoin", rate=rate)) for rate in (1_000_000, 8_000_000)]
    slow, fast = (predicted(one) for one in bound)
    assert slow is not None and fast is not None
    assert slow.memory_bytes is not None and fast.memory_bytes is not None
    assert slow.memory_bytes < fast.memory_bytes and not slow.problem
    monkeypatch.setattr(readings_of, "free_bytes", lambda: (slow.memory_bytes + fast.memory_bytes) // 2)  # type: ignore[operator]
    slow, fast = (predicted(one) for one in bound)
    assert slow is not None and fast is not None and not slow.problem
    assert fast.problem.startswith("8,000,000 tuples/s take ") and "give a lower operator.rate" in fast.problem
    assert ", but this machine has " in fast.words


def test_a_rate_that_no_memory_lets_through_is_said_with_the_highest(validate: Try) -> None:
    found = predicted(validate(changes(name="ssbj", rate=1e9)))
    assert found is not None and found.to_json() == {"text": found.refusal}
    assert found.refusal.startswith("no memory lets 1,000,000,000 tuples/s through; units join up to ")
    assert found.problem.endswith("; rows that come faster wait")


def test_lookup_is_predicted_by_what_looking_up_takes(validate: Try) -> None:
    found = explain(validate(changes())).to_json()["readings"]["lookup"]
    assert found["rate_per_s"] == pytest.approx(2e9 / (SORTED_TIMES.look_up + SORTED_TIMES.output), rel=1e-3)
    assert found["memory_bytes"] is None and found["text"].startswith("units join up to ")


def test_streams_alone_are_not_looked_at_for_a_prediction(validate: Try, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings_of, "look", lambda bound: pytest.fail("looked"))
    assert predicted(validate({})) is None


def test_the_operator_reads_the_rate(validate: Try) -> None:
    operator = validate(changes(name="ssbj", rate="90/min")).job().operators[0]
    assert str(operator).startswith("2 units read the relation in parts, again and again, for 1.5 tuples/s")


def in_format(folder: Path, source: str) -> dict[str, Any]:
    """The wide relation again, in another format and in two files, the larger one first."""
    rows = pq.read_table(folder / "wide.parquet").to_pylist()
    (folder / f"wide-{source}").mkdir(exist_ok=True)
    for name, part in (("1", rows[:40_000]), ("2", rows[40_000:])):
        texts = [json.dumps(row) if source == "jsonl" else f"{row['id']},{row['name']}" for row in part]
        head = ["id,name"] if source == "csv" else []
        (folder / f"wide-{source}" / name).write_text("\n".join([*head, *texts]) + "\n")
    return {"relations": {"customers": {"source": source, "path": f"wide-{source}"}}}


@pytest.mark.parametrize("source", ["csv", "jsonl"])
def test_rows_of_text_files_are_told_about_by_their_bytes(source: str, folder: Path, validate: Try) -> None:
    shown = explain(validate({**changes(memory=1), **in_format(folder, source)}))
    (size,) = shown.relations
    assert size.rows is None and size.about == pytest.approx(ROWS, rel=0.03)
    assert f"c: about {size.about:,} rows in 2 files, " in str(shown)
    counted = explain(validate(changes(memory=1))).to_json()["readings"]
    found = shown.to_json()["readings"]
    assert list(found) == list(counted) and "no formula" not in str(shown).partition("\nspark")[0]
    assert found["ssbj"]["cached_share"] == pytest.approx(counted["ssbj"]["cached_share"], abs=0.05)
    assert all(one["text"].endswith(f", with about {size.about:,} rows of c") for one in found.values())
    assert all("about" not in one["text"] for one in counted.values())


def test_rows_of_packed_text_files_are_not_guessed(folder: Path, validate: Try) -> None:
    (folder / "packed.csv.gz").write_bytes(gzip.compress(b"id,name\n" + b"1,a\n" * 1000))
    packed = {**changes(), "relations": {"customers": {"source": "csv", "path": "packed.csv.gz"}}}
    shown = explain(validate(packed))
    assert shown.relations[0].about is None and shown.readings == ()
    assert "\nlookup           can run it; the rows of c are not counted before it is read\n" in str(shown)


def test_why_nothing_is_predicted_is_said(folder: Path, validate: Try) -> None:
    with closing(sqlite3.connect(folder / "customers.db")) as connection, connection:
        connection.execute("CREATE TABLE customers (id INTEGER, name TEXT)")
        connection.execute("INSERT INTO customers VALUES (1, 'a')")
    table = {"customers": {"source": "sql", "url": "sqlite:///customers.db", "table": "customers"}}
    for given, said in (
        ({**changes(), "relations": table}, "the rows of c are not counted before it is read"),
        (changes(BAND), "its rate without an equality is not predicted"),
        (changes(MIXED), "its rate beside other joins is not predicted"),
    ):
        assert f"\nlookup           can run it; {said}\n" in str(explain(validate(given)))


def test_what_is_predicted_beside_other_queries_is_that_of_the_part_or_why_nothing_is(validate: Try) -> None:
    plain = changes()
    pairs = "SELECT ONLINE o.id FROM orders AS o, payments AS p WHERE o.k = p.k WITHIN 10 SECONDS"

    def beside(**queries: str) -> Changes:
        found = {name: {"query": query, "results": {"discard": True}} for name, query in queries.items()}
        return {**plain, "query": GONE, "results": GONE, "queries": found}

    assert (
        predicted(
            validate(beside(pairs=pairs, left=pairs.replace(", payments AS p WHERE", " LEFT JOIN payments AS p ON")))
        )
        is None
    )
    alone = predicted(validate(plain))
    of_part = predicted(validate(beside(pairs=pairs, named=JOIN)))
    assert isinstance(alone, Reading) and alone == of_part
    several = beside(pairs=pairs, named=JOIN, again=JOIN.replace("orders.id", "orders.id, orders.k"))
    why = "2 parts of the job join relations, and what they do together is not predicted"
    assert predicted(validate(several)) == why and foretold(validate(several)) == {"text": why}
    banded = validate(beside(pairs=pairs, band=BAND))
    assert foretold(banded) == {"text": "its rate without an equality is not predicted"}
