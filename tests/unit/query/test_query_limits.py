"""Limits: text as hostile as it comes works or fails by name, and quickly."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from streamjoin.errors import QueryError
from streamjoin.query import parse
from tests.processor import seconds_of

pytestmark = pytest.mark.slow

HEAD = "SELECT ONLINE R.k FROM R, S WHERE "

NESTED = {
    "brackets": lambda depth: "(" * depth + "R.ok" + ")" * depth,
    "calls": lambda depth: "ABS(" * depth + "R.k" + ")" * depth + " = 7",
    "case": lambda depth: "CASE WHEN R.ok THEN " * depth + "R.ok" + " END" * depth,
    "not": lambda depth: "NOT " * depth + "R.ok",
    "minus": lambda depth: "- " * depth + "R.k = 7",
}


@pytest.mark.parametrize("nested", NESTED.values(), ids=NESTED)
def test_sixty_levels_work_and_more_than_64_fail_by_name(plan, nested):
    assert plan(HEAD + nested(60))
    for depth in (65, 2_000):
        with pytest.raises(QueryError, match="more than 64 levels deep") as caught:
            plan(HEAD + nested(depth))
        assert caught.value.span.line == 1


def test_a_caller_deep_in_its_own_stack_can_parse_as_deep_a_query(plan):
    def down(frames: int) -> object:
        return down(frames - 1) if frames else plan(HEAD + NESTED["brackets"](60))

    assert down(sys.getrecursionlimit() - 300)


def test_parsing_leaves_the_recursion_limit_as_it_was_in_every_thread(plan):
    before = sys.getrecursionlimit()
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda _: plan(HEAD + NESTED["calls"](60)), range(16)))
    assert sys.getrecursionlimit() == before


def test_a_long_chain_works_where_it_can_be_balanced(plan):
    assert plan(HEAD + " OR ".join(["R.k = S.k"] * 2_000))
    assert plan(HEAD + " || ".join(["name"] * 2_000) + " = label")


@pytest.mark.parametrize("link", [" + x", " = x", " IS NULL", " LIKE 'x'", " BETWEEN 1 AND 2"])
def test_a_long_chain_of_anything_else_fails_by_name(plan, link):
    with pytest.raises(QueryError, match="more than 128 operators inside each other"):
        plan(HEAD + "x" + link * 2_000)


def test_a_sum_of_128_terms_works(plan):
    assert plan(HEAD + " + ".join(["x"] * 128) + " = y")


def test_a_case_of_too_many_branches_fails_by_name(plan):
    assert plan(HEAD + "CASE " + "WHEN ok THEN 1 " * 64 + "END = 1")
    with pytest.raises(QueryError, match="64 branches at most"):
        plan(HEAD + "CASE " + "WHEN ok THEN 1 " * 65 + "END = 1")


def test_text_of_64_kib_is_read_and_one_byte_more_is_not(plan):
    text = "SELECT ONLINE R.k FROM R, S"
    assert parse(text + " " * (65_536 - len(text)))
    for much in (65_537, 10_000_000):
        with pytest.raises(QueryError, match="longer than 65536 bytes"):
            parse(text + " " * (much - len(text)))


def test_the_limit_counts_bytes_and_not_characters():
    with pytest.raises(QueryError, match="longer than 65536 bytes"):
        parse("SELECT ONLINE 'é" + "é" * 33_000 + "' FROM R, S")


@pytest.mark.parametrize(
    "start", ["/* ", "'", '"', "`", "'' ", "JOIN S ", "x.", "[", "{", "$$", "->", "DISTINCT ", "SELECT "]
)
def test_one_thing_repeated_to_the_limit_fails_by_name(plan, start):
    with pytest.raises(QueryError):
        plan("SELECT ONLINE R.k FROM R " + start * (64_000 // len(start)))


LONG = {
    "blanks in an interval": "INTERVAL '5" + " " * 60_000 + "!' SECOND",
    "digits with an exponent": "1" * 60_000 + "e5",
    "digits with a point": "1" * 60_000 + "." + "1" * 60_000,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_long_constants_are_refused_at_once(plan, text):
    def read() -> None:
        with pytest.raises(QueryError):
            plan(HEAD + f"R.k = {text}")

    assert seconds_of(read) < 2
