"""A batch that dies at a place in its tasks is done again exactly; on Spark `make soak` kills at these places."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamjoin import failpoints

from .alone import run_alone
from .test_bundles import bound, rows_in, streams, write
from .test_starting_queries import BASE, alone, file_of

PLACES = ("router.before_punctuation", "unit.before_probe", "unit.before_segments", "state.before_collect")


@pytest.mark.parametrize("place", PLACES)
def test_a_batch_that_dies_there_is_done_again_exactly(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, streams(90))
    file = file_of(tmp_path, "job", BASE)
    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "_points", {place: ("raise", 9)})
        with pytest.raises(failpoints.FailpointError):
            run_alone(bound(file))
    run_alone(bound(file))
    for name, query in BASE.items():
        wanted = alone(tmp_path, f"{name}-alone", query)
        assert wanted and rows_in(tmp_path / "job" / name) == wanted, name
