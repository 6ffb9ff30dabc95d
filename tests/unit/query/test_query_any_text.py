"""Whatever text comes in, only a named error comes out."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamjoin.errors import InputError, QueryError, Span
from streamjoin.plan.join import JoinPlan

PIECES = r"""
    SELECT ONLINE DISTINCT FROM WHERE WITHIN JOIN ON AS AND OR NOT IN IS NULL TRUE LIKE BETWEEN CASE WHEN THEN ELSE END
    CAST INTERVAL TIMESTAMP DATE SECONDS ROWS MONTH LEFT USING GROUP BY ORDER LIMIT UNION WITH OVER INT DECIMAL VARCHAR
    DISTINCT UNKNOWN ILIKE EXTRACT( DATE_TRUNC( ROUND( IF( SPLIT_PART( LEFT( year
    R S a b R.k S.k R.x S.y R.ts R.name "a	b" `a b` ABS( COUNT( near( f( ( ) , ; . * + - / % = <> < >= || :: -> [ ] { }
    1 -1 0.5 1e400 9223372036854775808 'x' '2024-05-01' ' " ` -- /* */ $$ ? @ # ^ ~ \
"""
WORDS = PIECES.split()
FRAMES = (
    "{}",
    "SELECT ONLINE {} FROM R, S",
    "SELECT ONLINE R.k FROM {}",
    "SELECT ONLINE k FROM R JOIN S USING {}",
    "SELECT ONLINE R.k FROM R, S WHERE {}",
)

soup = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
anything = st.one_of(st.text(max_size=60), soup, st.tuples(soup, st.text(max_size=5), soup).map(" ".join))


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(frame=st.sampled_from(FRAMES), text=anything)
def test_random_text_raises_nothing_but_input_errors_and_they_point_into_the_text(plan, frame, text):
    query = frame.replace("{}", text)
    error = refusal(plan, query)
    if isinstance(error, QueryError):
        assert isinstance(error.span, Span)
        lines = query.split("\n")
        assert 1 <= error.span.line <= error.span.end_line <= len(lines)
        assert 1 <= error.span.column <= len(lines[error.span.line - 1]) + 1
        assert 1 <= error.span.end_column <= len(lines[error.span.end_line - 1]) + 2


def refusal(plan: Callable[..., JoinPlan], query: str) -> InputError | None:
    """The named error a query is refused with; None where it is a good one."""
    try:
        plan(query)
    except InputError as error:
        return error
    return None


@settings(max_examples=200, deadline=None)
@given(name=st.text(min_size=1, max_size=8))
def test_any_name_in_double_quotes_is_one_name(plan, name):
    quoted = '"' + name.replace('"', '""') + '"'
    with contextlib.suppress(InputError):
        found = plan(f"SELECT ONLINE R.k AS {quoted} FROM R, S")
        assert [column for column, _ in found.select] == [name]
