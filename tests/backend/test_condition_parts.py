"""Short conditions that take long to evaluate may not follow a job: what counts is what is evaluated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from backend.problems import Problem
from backend.results.conditions import parts_of
from backend.results.feed import Feed
from backend.results.limits import Limits
from backend.results.payload import Held
from backend.results.places import Place
from backend.results.readers import Readers
from backend.results.recent import Memory
from backend.results.view import View
from streamjoin.plan import evaluation
from streamjoin.results.block import key_code
from streamjoin.results.description import Description
from streamjoin.results.question import Question
from streamjoin.results.stores.spec import StoreSpec
from tests.backend.results_job import SCHEMA, rows

PLACE = Place("job_1", "matches", StoreSpec("sqlite", (("path", "nowhere.db"),)), "job_1")
DESCRIBED = Description(SCHEMA, key_code(pa.int64(), equality=True, buckets=1))
LIMITS = Limits()


def cases(deep: int, branches: int = 9) -> str:
    """CASE inside of CASE."""
    text = "n"
    for _ in range(deep):
        text = f"CASE {text} {' '.join(f'WHEN {10 + one} THEN {one}' for one in range(branches))} ELSE 99 END"
    return f"{text} > 1"


def comparisons(count: int, first: int = 0) -> str:
    return " AND ".join(f"price <> {first + one}" for one in range(count))


def view(where: str | None) -> View:
    return View(Question(where=where), DESCRIBED)


def in_feed(act: Callable[[Feed], None], **limits: int) -> None:
    async def run() -> None:
        act(Feed(PLACE, Readers(Memory(None)), Limits(**limits), Held(), asyncio.get_running_loop()))  # type: ignore[arg-type]

    asyncio.run(run())


@pytest.mark.parametrize("where", ["n > 1", cases(1), cases(2, 3), comparisons(20), "n IN (1, 2) OR name LIKE 'a%'"])
def test_as_many_parts_are_counted_as_are_evaluated(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    asked, evaluated, evaluate = view(where), 0, evaluation._evaluate

    def counted(*given: Any) -> Any:
        nonlocal evaluated
        evaluated += 1
        return evaluate(*given)

    monkeypatch.setattr(evaluation, "_evaluate", counted)
    asked.rows.of(rows(0, 10))
    assert evaluated == asked.parts > 2


def test_attack_a_short_condition_that_is_evaluated_for_long_follows_no_job() -> None:
    where = cases(4)
    assert len(where) < 700

    def ask(feed: Feed) -> None:
        for actor in ("eve", None):
            with pytest.raises(Problem, match=r"3\d,\d{3} parts") as refused:
                feed.join(view(where), actor)
            told = refused.value
            assert (told.code, told.subcode, told.can_retry) == ("invalid", "condition_too_large", False)
            assert (told.params["limit"], told.errors[0].pointer) == (LIMITS.condition_parts_an_actor, "/where")
        assert feed.views == 0

    in_feed(ask)


def test_attack_conditions_of_one_user_have_so_many_parts_together() -> None:
    parts = view(comparisons(100)).parts

    def ask(feed: Feed) -> None:
        joined = [feed.join(view(comparisons(100, first)), "eve") for first in range(5)]
        for actor, told in (("eve", "conditions of yours .* more than 2,000 parts"), ("max", "more than 3,000 parts")):
            if actor == "max":
                feed.join(view(comparisons(100, 6)), "vic")
                feed.join(view(comparisons(100, 7)), "vic")
            with pytest.raises(Problem, match=told) as refused:
                feed.join(view(comparisons(100, 8)), actor)
            assert (refused.value.code, refused.value.subcode) == ("rate_limited", "too_many_views")
        for actor in ("eve", "vic", None):  # what is asked already, and what has no condition, costs nothing more
            assert feed.join(view(comparisons(100, 4)), actor) is joined[4]
            feed.join(view(None), actor)
        feed.leave(joined[0])
        feed.join(view(comparisons(100, 8)), "eve")

    in_feed(ask, condition_parts=3_000, condition_parts_an_actor=2_000)
    assert 5 * parts <= 2_000 < 6 * parts and 7 * parts <= 3_000 < 8 * parts


def test_ordinary_conditions_have_room() -> None:
    def ask(feed: Feed) -> None:
        for first in range(10):
            feed.join(view(comparisons(100, first)), "kim")
        feed.join(view(f"n IN ({', '.join(map(str, range(1000)))})"), "lou")

    in_feed(ask)


def test_no_condition_has_no_parts() -> None:
    assert parts_of(None) == view(None).parts == 0
