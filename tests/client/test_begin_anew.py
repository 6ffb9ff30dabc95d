"""`jobs update` with `start_anew` says what it drops, and drops nothing unasked that a job could go on with."""

from __future__ import annotations

from typing import Any

import pytest

from streamjoin.cli.platform.anew import agree, dropped_text
from streamjoin.errors import InputError

STATE = {"state_at": "2026-11-28T20:00:00.000Z", "results": 1250}


def test_a_restart_is_advised_where_it_would_do_alone() -> None:
    for could, changes, advised in ((True, [], True), (None, [], False), (True, [{"field": "run.slots"}], False)):
        with pytest.raises(InputError, match=r"[sS]ay --yes") as refused:
            agree({"changes": changes, "drops": {**STATE, "could_go_on": could}}, yes=False)
        assert ("jobs restart" in str(refused.value)) == advised


@pytest.mark.parametrize("could", [True, None])
def test_a_state_that_may_do_is_dropped_only_with_yes(could: bool | None, capsys: pytest.CaptureFixture[str]) -> None:
    found: dict[str, Any] = {"starts_anew": True, "changes": [], "drops": {**STATE, "could_go_on": could}}
    with pytest.raises(InputError, match=r"state of 2026-11-28T20:00:00.000Z, and 1,250 results .* [sS]ay --yes"):
        agree(found, yes=False)
    agree(found, yes=True)
    assert "1,250 results" in capsys.readouterr().err


def test_one_that_does_not_fit_is_told_and_needs_no_more(capsys: pytest.CaptureFixture[str]) -> None:
    agree({"drops": {**STATE, "could_go_on": False}}, yes=False)
    assert "it does not fit" in capsys.readouterr().err
    agree({"drops": None}, yes=False)
    agree({}, yes=False)  # of an earlier version
    assert capsys.readouterr().err == ""


def test_what_nobody_knows_is_said_so() -> None:
    said = dropped_text({"state_at": None, "results": None, "could_go_on": None})
    assert said == (
        "dropped is the state of no batch that is known, and all results so far are no longer the job's; "
        "whether it fits cannot be told here"
    )
