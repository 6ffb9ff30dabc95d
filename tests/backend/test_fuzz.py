"""Requests made from the API's own description: whatever is sent, nothing answers with a failure of ours."""

from __future__ import annotations

import shutil
from collections import Counter
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any
from unittest import SkipTest

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from backend.app import create_app
from backend.settings import Settings

pytestmark = pytest.mark.slow

ENDLESS = "/api/v1/jobs/{id}/stream"
"""Never ends; test_results_live.py has its tests."""
ANSWER_S = 120
"""A busy machine may leave the catalog waiting for long."""


@schemathesis.serializer("application/x-ndjson")
def lines(context: Any, value: Any) -> bytes:
    """Rows that are posted, and what is none."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


@pytest.fixture(scope="module")
def description(tmp_path_factory: pytest.TempPathFactory, empty_catalog: Path) -> Any:
    """The API's, of an app with two streams and a job."""
    data = tmp_path_factory.mktemp("fuzz")
    shutil.copy(empty_catalog, data / "catalog.db")
    app = create_app(
        Settings(data=data, auth="off", redis_url="redis://127.0.0.1:1/0", rate_limit="1000000/minute", jobs_max=20)
    )
    found = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app, headers={"Host": "127.0.0.1"})
    return found.exclude(path=ENDLESS)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("examples", [6, pytest.param(60, marks=pytest.mark.soak)])
def test_nothing_that_is_sent_makes_the_server_fail(examples: int, description: Any) -> None:
    operations = [found.ok() for found in description.get_all_operations()]
    assert len(operations) > 40
    seen: Counter[int] = Counter()
    for operation, mode in product(operations, (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)):

        @settings(
            max_examples=examples, deadline=None, derandomize=True, database=None,
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(case=operation.as_strategy(generation_mode=mode))
        def send(case: Any) -> None:
            answer = case.call(headers={"Host": "127.0.0.1"}, timeout=ANSWER_S)
            seen[answer.status_code] += 1
            assert answer.status_code < 500, f"{case.method} {case.formatted_path}: {answer.text}"
            if answer.status_code >= 400:
                assert answer.headers["content-type"][0] == "application/problem+json"

        with suppress(Unsatisfiable, SkipTest):  # nothing about it can be wrong
            send()
    assert {200, 201, 404, 422} <= seen.keys(), seen
