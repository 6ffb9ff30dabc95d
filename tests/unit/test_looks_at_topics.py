"""What explain and `auto` make of what brokers say, or do not, without a broker."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.errors import InputError
from streamjoin.explain import sampling
from streamjoin.explain.order import ordered
from streamjoin.explain.plans import explain
from streamjoin.explain.sampling import look
from streamjoin.sources.topic import Newest
from streamjoin.spec.joinfile import parse
from streamjoin.spec.prepare import Bound, bind

ROWS = [b'{"ts": %d, "k": %d}' % (at * 20, at % 7) for at in range(500)]


def bound(folder: Path, time: str = "ts", **more: str) -> Bound:
    streams = "".join(
        f"  {name}: {{source: kafka, servers: '127.0.0.1:9', topic: of-{name}, format: json, "
        f"schema: {{ts: int64, k: int64}}, time: {time}{more.get(name, '')}}}\n"
        for name in "abc"
    )
    query = "SELECT ONLINE a.k AS k FROM a, b, c WHERE a.k = b.k AND b.k = c.k WITHIN 10 SECONDS"
    text = f"streams:\n{streams}query: {query}\nresults: {{parquet: out}}\nrun: {{checkpoint: ck, slots: 2}}\n"
    return bind(parse(text, base=folder))


def said(patch: pytest.MonkeyPatch, by_topic: Mapping[str, Newest | InputError]) -> list[tuple[str, bool, int]]:
    """What each topic answers; gives what they were asked."""
    asked: list[tuple[str, bool, int]] = []
    together = threading.Barrier(3, timeout=20)

    def newest(servers: str, topic: str, client: Any, rows: int, *, rate: bool, wait_s: float) -> Newest:
        together.wait()  # they are asked side by side
        asked.append((topic, rate, threading.get_ident()))
        answer = by_topic[topic]
        if isinstance(answer, InputError):
            raise answer
        return answer

    patch.setattr(sampling, "newest", newest)
    return asked


def records(rate_per_s: float | None, unknown: str = "", rows: list[bytes] = ROWS) -> Newest:
    return Newest(pa.array(rows, pa.binary()), rate_per_s, unknown)


def test_rates_of_topics_are_those_of_predictions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = said(monkeypatch, {"of-a": records(50.0), "of-b": records(50.0), "of-c": records(0.1)})
    found = explain(bound(tmp_path))
    assert len({thread for *_, thread in asked}) == 3
    assert found.statistics is not None and found.unknown == {}
    assert [one.rate_per_s for one in found.statistics] == [50.0, 50.0, 0.1]
    assert "chosen by auto" in found.order and "(a, (b, c))" in found.order and "0.1 c/s" in found.order


def test_what_the_join_file_says_of_a_rate_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = said(monkeypatch, {"of-a": records(50.0), "of-b": records(50.0), "of-c": records(None, "nobody knows")})
    found = explain(bound(tmp_path, a=", rows_per_s: 7", c=", rows_per_s: 0.5"))
    assert {(topic, rate) for topic, rate, _ in asked} == {("of-a", False), ("of-b", True), ("of-c", False)}
    assert found.statistics is not None and [one.rate_per_s for one in found.statistics] == [7.0, 50.0, 0.5]


def test_rows_that_arrive_without_a_time_have_a_rate_as_well(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said(monkeypatch, {f"of-{name}": records(9.0) for name in "abc"})
    found = explain(bound(tmp_path, time="arrival"))
    assert found.statistics is not None and [one.rate_per_s for one in found.statistics] == [9.0] * 3


def test_why_nothing_is_known_of_each_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    down = InputError("127.0.0.1:9 does not answer: timed out", field="servers")
    told = {"of-a": down, "of-b": records(3.0, rows=[b"no json"]), "of-c": records(None, "topic of-c is empty", [])}
    said(monkeypatch, told)
    of = bound(tmp_path)
    looked = look(of)
    assert looked.statistics() is None and looked.unknown == {
        "a": "127.0.0.1:9 does not answer: timed out",
        "b": "topic of-b: none of its newest records can be read as json",
        "c": "topic of-c is empty",
    }
    chosen = ordered(of, looked).order
    assert chosen is not None and chosen.tree == (("a", "b"), "c")
    assert chosen.reason.startswith("in the order of FROM, as the rates") and looked.unknown_words in chosen.reason
    found = explain(of)
    assert found.to_json()["unknown_rates"] == looked.unknown and found.to_json()["sampled"] is None
    assert str(found).count("is not known:") == 3


@pytest.mark.parametrize("rate", ["0", "-1", ".nan", "'many'", "1e99"])
def test_a_rate_that_is_none_is_refused(rate: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="rows_per_s"):
        bound(tmp_path, a=f", rows_per_s: {rate}")
