"""The rate of a topic is told from what its broker says, and never from what it does not say yet."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from streamjoin.sources import topic

NOW_MS = int(time.time() * 1000)


class Broker:
    """Answers questions about offsets, one list after another, and the last one from then on.

    Args:
        answers: by partition, the offset that is said.
    """

    def __init__(self, *answers: list[int]) -> None:
        self.answers = list(answers)
        self.asked = 0

    def offsets_for_times(self, asked: list[Any], timeout: float) -> Iterator[Any]:
        from confluent_kafka import TopicPartition

        self.asked += 1
        said = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return iter([TopicPartition(one.topic, one.partition, said[one.partition]) for one in asked])


def rate(broker: Broker, newest_ms: dict[int, int]) -> tuple[float | None, str]:
    """Of a topic of two partitions with 300 records each."""
    from confluent_kafka import TopicPartition

    ends = [(TopicPartition("t", number, 0), 0, 300) for number in range(2)]
    consumer: Any = broker
    return topic._rate(consumer, "t", ends, newest_ms)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic, "_AGAIN_S", 0.001)
    monkeypatch.setattr(topic, "RATE_S", 0.2)


def test_a_broker_that_does_not_name_what_it_gave_is_asked_again() -> None:
    broker = Broker([-1, -1], [100, -1], [100, 200])
    assert rate(broker, {0: NOW_MS, 1: NOW_MS}) == (1.0, "")
    assert broker.asked == 3


def test_a_partition_whose_records_are_older_need_not_be_named() -> None:
    broker = Broker([150, -1])
    assert rate(broker, {0: NOW_MS, 1: NOW_MS - 3_600_000}) == (0.5, "")
    assert broker.asked == 1


def test_a_broker_that_never_names_them_is_said_to_be_silent() -> None:
    broker = Broker([-1, -1])
    found, why = rate(broker, {0: NOW_MS, 1: NOW_MS})
    assert found is None and why.startswith("the broker did not say within 0.2 s which records of topic t")
    assert broker.asked > 3


def test_records_of_one_second_have_no_rate() -> None:
    broker = Broker([0, 0])
    assert rate(broker, {0: NOW_MS, 1: NOW_MS}) == (None, "all records of topic t are of the same second")
    assert broker.asked == len(topic.SPANS_S)
