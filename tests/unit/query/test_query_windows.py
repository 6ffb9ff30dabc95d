"""WITHIN: what each form means. Refused forms are in test_query_bad_input."""

from __future__ import annotations

import pytest

from streamjoin.plan.window import CountWindow, FullHistory, TimeWindow

SECOND_US = 1_000_000


@pytest.mark.parametrize(
    ("within", "window"),
    [
        ("WITHIN 10 MINUTES", TimeWindow(600 * SECOND_US, 600 * SECOND_US)),
        ("within 1 Hour", TimeWindow(3600 * SECOND_US, 3600 * SECOND_US)),
        ("WITHIN 2 DAYS", TimeWindow(172_800 * SECOND_US, 172_800 * SECOND_US)),
        ("WITHIN 5 MILLISECONDS", TimeWindow(5_000, 5_000)),
        ("WITHIN 7 MICROSECONDS", TimeWindow(7, 7)),
        ("WITHIN 1.5 SECONDS", TimeWindow(1_500_000, 1_500_000)),
        ("WITHIN 0.1 SECONDS", TimeWindow(100_000, 100_000)),
        ("WITHIN 1e3 SECONDS", TimeWindow(1000 * SECOND_US, 1000 * SECOND_US)),
        ("WITHIN 0 SECONDS", TimeWindow(0, 0)),
        ("WITHIN (5 SECONDS, 10 MINUTES)", TimeWindow(5 * SECOND_US, 600 * SECOND_US)),
        ("WITHIN (0 SECONDS, 1 SECOND)", TimeWindow(0, SECOND_US)),
        ("WITHIN 5 SECONDS FOR S, 10 MINUTES FOR R", TimeWindow(5 * SECOND_US, 600 * SECOND_US)),
        ('WITHIN 0 SECONDS FOR s, 1 SECOND FOR "R"', TimeWindow(0, SECOND_US)),
        ("WITHIN 36525 DAYS", TimeWindow(36_525 * 86_400 * SECOND_US, 36_525 * 86_400 * SECOND_US)),
        ("WITHIN 100 ROWS", CountWindow(100)),
        ("WITHIN 1 ROW", CountWindow(1)),
        ("", FullHistory()),
    ],
)
def test_each_form_of_within_gives_its_window(plan, within, window):
    assert plan(f"SELECT ONLINE R.k FROM R, S WHERE R.k = S.k {within}").window == window


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ONLINE R.k FROM R, S WITHIN 3 SECONDS",
        "SELECT ONLINE R.k FROM R JOIN S ON R.k = S.k WITHIN 3 SECONDS;",
        "SELECT ONLINE R.k FROM R JOIN S ON R.k = S.k WHERE R.ok\n  WITHIN /* both sides */ 3 SECONDS -- end",
    ],
)
def test_within_is_the_last_clause_wherever_the_condition_stands(plan, text):
    assert plan(text).window == TimeWindow(3 * SECOND_US, 3 * SECOND_US)


def test_a_column_called_within_is_written_in_quotes(plan):
    found = plan('SELECT ONLINE R.k AS within, S.k AS "WITHIN 5" FROM R, S WITHIN 3 SECONDS')
    assert [name for name, _ in found.select] == ["within", "WITHIN 5"]
    assert found.window == TimeWindow(3 * SECOND_US, 3 * SECOND_US)
