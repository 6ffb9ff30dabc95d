"""SplitJoin keeps its cores in outer, semi and anti joins: each core remembers which of its tuples were matched."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamjoin.errors import UnsupportedError

from .alone import run_alone
from .test_bundles import bound, file_of, rows_in, streams, write


def join_file(folder: Path, name: str, query: str, cores: int) -> Path:
    return file_of(folder, name, [query], f"operator: {{name: splitjoin, cores: {cores}}}\n")


@pytest.mark.parametrize("query", ["left", "semi", "anti"])
def test_other_cores_are_refused_and_the_job_goes_on_with_its_own(query: str, tmp_path: Path) -> None:
    write(tmp_path, streams(90))
    run_alone(bound(join_file(tmp_path, "whole", query, 2)))
    run_alone(bound(join_file(tmp_path, "job", query, 2)), lambda batch: batch < 2)
    with pytest.raises(UnsupportedError, match="keeps the cores that it began with; set it to 2, or") as refused:
        run_alone(bound(join_file(tmp_path, "job", query, 3)))
    assert refused.value.field == "operator.cores"
    run_alone(bound(join_file(tmp_path, "job", query, 2)))
    assert rows_in(tmp_path / "job") == rows_in(tmp_path / "whole") != {}


def test_inner_joins_take_others(tmp_path: Path) -> None:
    write(tmp_path, streams(91))
    run_alone(bound(join_file(tmp_path, "whole", "pairs", 2)))
    run_alone(bound(join_file(tmp_path, "job", "pairs", 2)), lambda batch: batch < 2)
    run_alone(bound(join_file(tmp_path, "job", "pairs", 3)))
    assert rows_in(tmp_path / "job") == rows_in(tmp_path / "whole") != {}
