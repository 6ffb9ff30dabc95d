"""A batch that dies at a place in its tasks is done again exactly; on Spark `make soak` kills at these places."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamjoin import failpoints
from tests.failing import failing_at

from .alone import run_alone
from .test_bundles import bound, rows_in, streams, write
from .test_starting_queries import BASE, alone, file_of

PLACES = (
    "router.before_punctuation", "unit.before_probe", "unit.mid_results", "unit.before_segments", "unit.after_segments",
    "unit.before_manifest", "unit.after_manifest", "state.before_collect",
)  # fmt: skip
MET = {"router.before_punctuation": 4, "unit.mid_results": 6}
"""How often a batch of the job meets a place; units find nothing for some queries in its first batch."""
UNITS = 8
"""The same for all other places."""


@pytest.mark.parametrize("place", PLACES)
def test_a_batch_that_dies_there_is_done_again_exactly(place: str, tmp_path: Path) -> None:
    write(tmp_path, streams(90))
    file = file_of(tmp_path, "job", BASE)
    # In the middle of the third batch: the first units have the next version by then, and the batch needs the last one.
    each = MET.get(place, UNITS)
    with failing_at(place, 2 * each + each // 2 + 2), pytest.raises(failpoints.FailpointError):
        run_alone(bound(file))
    commits = tmp_path / "job-checkpoint" / "offsets" / "commits"
    assert sorted(path.name for path in commits.iterdir()) == ["0", "1"], "the third batch was to fail"
    run_alone(bound(file))
    for name, query in BASE.items():
        wanted = alone(tmp_path, f"{name}-alone", query)
        assert wanted and rows_in(tmp_path / "job" / name) == wanted, name
