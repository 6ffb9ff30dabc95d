"""The dashboard's form of a job knows every field that a job may set, and none that it may not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from backend.jobs.joinfile import RESULT_FIELDS, RUN_FIELDS
from backend.settings import Settings
from streamjoin.operators.registry import COMMON_KNOBS, REGISTRY
from streamjoin.plan.functions.table import PUBLIC_FUNCTIONS
from streamjoin.query.aggregates import AGGREGATES
from streamjoin.query.tokens import SYNONYMS
from streamjoin.spec.sections import SnapshotFile

SOURCES = Path(__file__).resolve().parents[2] / "frontend/src"
FORM = (SOURCES / "api/fields.gen.ts").read_text()
EDITOR = (SOURCES / "editor/language.ts").read_text()
SECTIONS = {
    "RUN": set(RUN_FIELDS) - {"until_end"},  # of the platform alone
    "RESULT": set(RESULT_FIELDS) - {"snapshot", "store"},  # parts of their own
    "SNAPSHOT": set(SnapshotFile.model_fields),
}


def settings_of(constant: str) -> Any:
    """What `fields.gen.ts` has under a name."""
    found = re.search(rf"export const {constant}_SETTINGS[^=]*= (.*?);$", FORM, re.DOTALL | re.MULTILINE)
    assert found is not None
    return json.loads(found[1])


@pytest.mark.parametrize("section", SECTIONS)
def test_every_field_of_a_section_has_a_place_in_the_form(section: str) -> None:
    assert {field["name"] for field in settings_of(section)} == SECTIONS[section]


def test_a_new_join_offers_every_store_that_the_platform_may_have() -> None:
    listed = re.search(r"^export const STORES[^=]*= (.*?);$", FORM, re.DOTALL | re.MULTILINE)
    assert listed is not None
    assert [*json.loads(listed[1]), "auto"] == list(get_args(Settings.model_fields["result_store"].annotation))


@pytest.mark.parametrize("name", REGISTRY)
def test_every_knob_has_a_place_in_the_form(name: str) -> None:
    knobs = settings_of("OPERATOR")[name]
    assert [field["name"] for field in knobs] == [*REGISTRY[name].knobs, *COMMON_KNOBS]
    assert all(field["says"] and field["unset"] for field in knobs)


def test_the_editor_knows_every_function_of_the_query_language() -> None:
    listed = re.search(r"const FUNCTIONS =([^;]*);", EDITOR)
    assert listed is not None
    words = " ".join(re.findall(r"'([^']*)'", listed[1])).split()
    assert words == sorted({*PUBLIC_FUNCTIONS, *SYNONYMS, "cast", "extract"})


def test_the_editor_knows_every_aggregate_of_the_query_language() -> None:
    listed = re.search(r"const AGGREGATES =([^;]*);", EDITOR)
    assert listed is not None
    words = " ".join(re.findall(r"'([^']*)'", listed[1])).split()
    assert words == sorted({*AGGREGATES, "window_start", "window_end"})
