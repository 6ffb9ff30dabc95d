"""How fast a topic's records come, as a real broker tells it, and what `auto` makes of it."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # Documented, not exported.

from streamjoin.explain.order import ordered
from streamjoin.explain.plans import explain
from streamjoin.explain.sampling import look
from streamjoin.sources.topic import RATE_S, Newest, newest
from streamjoin.spec.joinfile import parse
from streamjoin.spec.prepare import Bound, bind

from . import KafkaBroker

pytestmark = pytest.mark.services

DAY_MS = 86_400_000


def written(broker: KafkaBroker, topic: str, times_ms: Iterable[int], partition: int = 0) -> None:
    """A record for each timestamp."""
    failed: list[object] = []
    noted = {"linger.ms": 20, "on_delivery": lambda error, _: failed.append(error) if error else None}
    producer = Producer({"bootstrap.servers": broker.servers, **noted})
    for number, at_ms in enumerate(times_ms):
        value = b'{"ts": %d, "k": %d}' % (at_ms, number % 50)
        producer.produce(topic, value, partition=partition, timestamp=at_ms)
        producer.poll(0)
    assert producer.flush(60) == 0 and not failed


def asked(broker: KafkaBroker, topic: str) -> Newest:
    for _ in range(5):
        found = newest(broker.servers, topic, {}, 100, rate=True)
        if "did not say within" not in found.unknown:  # as on a busy machine
            break
    return found


def evenly(last_ms: int, per_s: float, seconds: float) -> list[int]:
    """Times up to the last one, oldest first."""
    count = int(per_s * seconds)
    return [last_ms - round((count - 1 - number) * 1000 / per_s) for number in range(count)]


def test_a_rate_is_that_of_the_last_minutes_of_all_partitions(broker: KafkaBroker) -> None:
    broker.create_topic("paced", partitions=3)
    now_ms = int(time.time() * 1000)
    written(broker, "paced", evenly(now_ms, 4, 900), 0)
    written(broker, "paced", evenly(now_ms, 1, 900), 1)  # and one that has none
    found = asked(broker, "paced")
    assert found.rate_per_s == pytest.approx(5.0, rel=0.01) and found.unknown == ""
    assert len(found.values) > 100
    # What is old has the rate that it had when it came.
    broker.create_topic("earlier")
    written(broker, "earlier", [*evenly(now_ms - 40 * DAY_MS, 1, 50), *evenly(now_ms - 30 * DAY_MS, 20, 100)])
    assert asked(broker, "earlier").rate_per_s == pytest.approx(20 / 3, rel=0.02)


def test_a_young_topic_is_asked_for_a_shorter_time(broker: KafkaBroker) -> None:
    broker.create_topic("young")
    written(broker, "young", evenly(int(time.time() * 1000), 10, 70))
    assert asked(broker, "young").rate_per_s == pytest.approx(10.0, rel=0.02)


@pytest.mark.parametrize(
    ("topic", "times_ms", "why"),
    [
        ("nothing", [], "is empty"),
        ("timeless", [1] * 300, "have no timestamps"),
        ("in-seconds", range(1_700_000_000, 1_700_000_300), "of before 1980"),
        ("ahead", evenly(int(time.time() * 1000) + 400 * DAY_MS, 10, 30), "in the future"),
        ("one-ahead", [*evenly(int(time.time() * 1000), 10, 20), 4_102_444_800_000], "in the future"),
        ("at-once", [1_700_000_000_000] * 300, "are of the same second"),
    ],
)
def test_a_topic_whose_times_tell_nothing_has_no_rate_and_says_why(
    topic: str, times_ms: Sequence[int], why: str, broker: KafkaBroker
) -> None:
    any_time = {"message.timestamp.after.max.ms": str(2**63 - 1)}  # a broker refuses more than an hour, unless told
    admin = broker.admin()
    admin.create_topics([NewTopic(topic, 1, 1, config=any_time)])[topic].result(60)
    broker.wait_for_topic(admin, topic, there=True)
    written(broker, topic, times_ms)
    found = asked(broker, topic)
    assert found.rate_per_s is None and why in found.unknown and topic in found.unknown
    assert len(found.values) == min(len(times_ms), 100)


def bound(servers: str, folder: Path, topics: Iterable[str], **more: str) -> Bound:
    """Three topics of the same records, whose query joins the first two on what they all have alike."""
    streams = "".join(
        f"  {name}: {{source: kafka, servers: '{servers}', topic: {topic}, format: json, "
        f"schema: {{ts: int64, k: int64}}, time: ts, time_unit: ms{more.get(name, '')}}}\n"
        for name, topic in zip("abc", topics, strict=True)
    )
    return bind(
        parse(
            f"streams:\n{streams}query: SELECT ONLINE a.k AS k FROM a, b, c WHERE a.k = b.k AND b.k = c.k "
            "WITHIN 10 SECONDS\nresults: {parquet: results}\nrun: {checkpoint: checkpoint, slots: 2}\n",
            base=folder,
        )
    )  # fmt: skip


def test_auto_chooses_by_the_rates_of_topics_and_says_so(broker: KafkaBroker, tmp_path: Path) -> None:
    now_ms = int(time.time() * 1000)
    for topic, per_s in (("rate-a", 40), ("rate-b", 40), ("rate-c", 0.2)):
        broker.create_topic(topic)
        written(broker, topic, evenly(now_ms, per_s, 100))
    of = bound(broker.servers, tmp_path, ("rate-a", "rate-b", "rate-c"))
    looked = look(of)
    assert looked.rates_per_s == {
        0: pytest.approx(40, rel=0.05),
        1: pytest.approx(40, rel=0.05),
        2: pytest.approx(0.2, rel=0.2),
    }
    assert looked.unknown == {}
    chosen = ordered(of, looked).order
    assert chosen is not None and chosen.tree == ("a", ("b", "c"))  # the rare one first
    told = explain(of)
    assert told.to_json()["unknown_rates"] == {} and told.to_json()["sampled"]["a"]["tuples_per_s"] > 35
    assert "40" in told.order and "a/s" in told.order
    # What the join file says of a rate holds, whatever the topic tells.
    hinted = bound(
        broker.servers, tmp_path, ("rate-a", "rate-b", "rate-c"), a=", rows_per_s: 0.5", c=", rows_per_s: 900"
    )
    assert look(hinted).rates_per_s == {0: 0.5, 1: pytest.approx(40, rel=0.05), 2: 900}
    other = ordered(hinted).order
    assert other is not None and other.tree != chosen.tree


def test_a_topic_without_a_rate_leaves_the_order_of_from_and_says_why(broker: KafkaBroker, tmp_path: Path) -> None:
    broker.create_topic("some")
    broker.create_topic("none")
    written(broker, "some", evenly(int(time.time() * 1000), 10, 70))
    of = bound(broker.servers, tmp_path, ("some", "none", "missing"))
    told = explain(of)
    assert set(told.to_json()["unknown_rates"]) == {"b", "c"} and told.statistics is None
    assert "b is not known: topic none is empty" in str(told)
    chosen = ordered(of).order
    assert chosen is not None and chosen.tree == (("a", "b"), "c")
    assert "not known before the start: b: topic none is empty; c: the broker has no topic missing" in chosen.reason


def test_brokers_that_do_not_answer_take_some_seconds_side_by_side(tmp_path: Path) -> None:
    with socket.socket() as silent:  # it takes connections, and says nothing
        silent.bind(("127.0.0.1", 0))
        silent.listen(16)
        begun_s = time.monotonic()
        looked = look(bound(f"127.0.0.1:{silent.getsockname()[1]}", tmp_path, ("x", "y", "z")))
        took_s = time.monotonic() - begun_s
    assert set(looked.unknown) == {"a", "b", "c"} and all("does not answer" in why for why in looked.unknown.values())
    assert looked.statistics() is None and took_s < 3 * RATE_S
