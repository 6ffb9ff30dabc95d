"""What a job is, as the catalog keeps it, and what a change makes of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, text

from backend.catalog.database import Catalog
from backend.catalog.ids import new_id
from backend.catalog.jobspec import JobSpec
from backend.catalog.models import Job

SPEC = JobSpec("SELECT a.x FROM a, b", {"n": {"query": "q", "stopped": False}}, {"name": "matrix"}, {"store": "sqlite"},
               {"slots": 2, "until_end": True})  # fmt: skip


@pytest.fixture
def catalog(tmp_path: Path, empty_catalog: Path) -> Iterator[Catalog]:
    """A new one."""
    shutil.copy(empty_catalog, tmp_path / "catalog.db")
    catalog = Catalog(f"sqlite:///{tmp_path / 'catalog.db'}")
    yield catalog
    catalog.close()


def test_the_catalog_gives_back_what_it_was_given(catalog: Catalog) -> None:
    with catalog.begin() as session:
        session.add(Job(id=(job_id := new_id("job")), name="j", spec=SPEC, streams={}))
    with catalog.read() as session:
        assert session.get_one(Job, job_id).spec == SPEC
        # Another process of another version reads it, so its form stays.
        kept = session.execute(text("SELECT spec FROM jobs")).scalar_one()
    assert kept == (
        '{"query": "SELECT a.x FROM a, b", "queries": {"n": {"query": "q", "stopped": false}}, '
        '"operator": {"name": "matrix"}, "results": {"store": "sqlite"}, "run": {"slots": 2, "until_end": true}}'
    )


@pytest.mark.parametrize("kept", ['{"query": "q"}', '{"query": "q", "operator": {}, "results": null, "run": {}}'])
def test_a_row_with_fewer_sections_is_read(catalog: Catalog, kept: str) -> None:
    with catalog.begin() as session:
        session.add(Job(id=new_id("job"), name="j", spec=SPEC, streams={}))
        session.execute(text("UPDATE jobs SET spec = :kept"), {"kept": kept})
    with catalog.read() as session:
        assert session.scalars(select(Job)).one().spec == JobSpec("q", {}, {"name": "auto"}, {}, {})


@pytest.mark.parametrize(
    ("given", "results", "queries", "operator"),
    [
        ({}, {"store": "sqlite"}, {"n"}, "matrix"),
        ({"results": {"retain": "1h"}}, {"store": "sqlite", "retain": "1h"}, {"n"}, "matrix"),
        ({"results": {"store": "hbase"}}, {"store": "hbase"}, {"n"}, "matrix"),
        ({"queries": {"m": {"query": "p", "stopped": False}}}, {"store": "sqlite"}, {"n", "m"}, "matrix"),
        ({"operator": {}}, {"store": "sqlite"}, {"n"}, "auto"),
    ],
)
def test_a_change_leaves_results_where_they_are_and_other_queries_as_they_are(
    given: dict[str, Any], results: dict[str, Any], queries: set[str], operator: str
) -> None:
    changed = SPEC.changed(given)
    assert (changed.results, set(changed.queries), changed.operator["name"]) == (results, queries, operator)
    assert (changed.query, changed.run) == (SPEC.query, SPEC.run)


def test_a_query_beside_the_job_s_own_is_replaced_by_its_name() -> None:
    assert SPEC.changed({"queries": {"n": {"query": "p", "stopped": True}}}).queries == {
        "n": {"query": "p", "stopped": True}
    }
